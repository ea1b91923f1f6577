"""A workload's own speed at one kind of work, learnt while it was steady."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from spark_watch.detectors.holds import Level
from spark_watch.settings.g5 import BandwidthDegradedSettings

KEPT: Final = 64
"""The most readings kept of a stretch; faster ones are thinned to fit it."""

SLOW_READINGS: Final = 5
"""The speed of now is the median of so many."""

PAUSE_SECONDS: Final = 30.0
"""A loop that writes a checkpoint meanwhile is still the same loop."""

TAIL: Final = 0.1
"""A tenth of the readings at the slow end may be strays: checkpoints, a first step."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a workload at work.

    ``speed`` is in steps or tokens a second, ``size`` in bytes or tokens a step; ``watts`` and
    ``hertz`` are the GPU's meanwhile. What is not known is ``None``.
    """

    at: float
    speed: float
    size: float | None
    watts: float | None
    hertz: float | None


class OwnSpeed:
    """Learns one speed and says whether the newest readings are well below it.

    The fastest steady stretch is the workload's own speed: a slow one that lasts for hours is
    steady too.

    Attributes:
        own: the speed that was learnt, with power and clock then; ``None`` before.
        level: whether it is slow.
    """

    __slots__ = ("_readings", "_settings", "level", "own")

    def __init__(self, settings: BandwidthDegradedSettings) -> None:
        self._settings = settings
        self._readings: deque[Reading] = deque(maxlen=2 * KEPT)
        self.own: Reading | None = None
        self.level = Level(settings.hold_seconds, settings.hold_seconds)

    def add(self, reading: Reading, interval_seconds: float) -> None:
        """Take a reading, which is expected every ``interval_seconds``."""
        settings, readings = self._settings, self._readings
        if len(readings) > 1 and reading.at - readings[-2].at < settings.learn_seconds / KEPT:
            # what comes faster than can be kept is one reading
            reading = _middle([readings.pop(), reading])
        readings.append(reading)
        while (
            len(readings) > settings.learn_readings
            and reading.at - readings[1].at >= settings.learn_seconds
        ):
            readings.popleft()
        self._learn()
        own, now = self.own, self.now
        if own is None or now is None:
            return
        self.level.update(
            reading.at,
            enter=now.speed < settings.slow_ratio * own.speed,
            leave=now.speed >= settings.leave_ratio * own.speed,
            interval_seconds=max(interval_seconds, PAUSE_SECONDS),
        )

    @property
    def now(self) -> Reading | None:
        """The median of the newest readings, ``None`` where there are too few."""
        if len(self._readings) < SLOW_READINGS:
            return None
        return _middle(list(self._readings)[-SLOW_READINGS:])

    @property
    def learnt_seconds(self) -> float:
        """How long the stretch is that is being learnt from."""
        return self._readings[-1].at - self._readings[0].at if self._readings else 0.0

    def _learn(self) -> None:
        settings, readings = self._settings, self._readings
        if len(
            readings
        ) < settings.learn_readings or self.learnt_seconds < settings.learn_seconds * (
            1.0 - 1.0 / KEPT
        ):
            return
        speeds = sorted(one.speed for one in readings)
        strays = int(len(speeds) * TAIL)
        middle = median(speeds)
        if speeds[-1 - strays] - speeds[strays] > settings.steady_ratio * middle:
            return
        if self.own is None or middle > self.own.speed:
            self.own = _middle(list(readings))


def _middle(readings: list[Reading]) -> Reading:
    """Return the medians of several readings; the mean for sizes, which come in whole steps."""
    sizes = [one.size for one in readings if one.size is not None]
    watts = [one.watts for one in readings if one.watts is not None]
    hertz = [one.hertz for one in readings if one.hertz is not None]
    return Reading(
        readings[-1].at,
        median(one.speed for one in readings),
        fmean(sizes) if sizes else None,
        median(watts) if watts else None,
        median(hertz) if hertz else None,
    )
