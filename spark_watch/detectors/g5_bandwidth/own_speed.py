"""A workload's own speed at one kind of work, learnt while it was steady."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

from spark_watch.detectors.holds import Level
from spark_watch.detectors.timeline import HOLE_INTERVALS
from spark_watch.settings.g5 import BandwidthDegradedSettings

KEPT: Final = 64
"""The most readings kept of a stretch; faster ones are thinned to fit it."""

MOST_READINGS: Final = 2 * KEPT
"""And no more than these where most of them follow a rest."""

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
    worked: float = 0.0
    """Seconds of work since the reading before."""


class OwnSpeed:
    """Learns one speed and says whether the newest readings are well below it.

    The fastest steady stretch is the workload's own speed: a slow one that lasts for hours is
    steady too.

    Attributes:
        own: the speed that was learnt, with power and clock then; ``None`` before.
        level: whether it is slow.
        learnt_seconds: how much work the readings that it learns from stand for.
        kept_seconds: for how long of its work it kept that speed before it last left it.
    """

    __slots__ = (
        "_left",
        "_readings",
        "_settings",
        "kept_seconds",
        "learnt_seconds",
        "level",
        "own",
    )

    def __init__(self, settings: BandwidthDegradedSettings) -> None:
        self._settings = settings
        self._readings: deque[Reading] = deque()
        self.own: Reading | None = None
        self.level = Level(settings.hold_seconds, settings.hold_seconds)
        self.learnt_seconds = 0.0
        self.kept_seconds = 0.0
        self._left: bool | None = None

    def add(self, reading: Reading, interval_seconds: float) -> None:
        """Take a reading, expected every ``interval_seconds``; in a longer gap was no work."""
        settings, readings = self._settings, self._readings
        gap = reading.at - readings[-1].at if readings else 0.0
        longest = max(HOLE_INTERVALS * interval_seconds, PAUSE_SECONDS)
        worked = gap if gap <= longest else 0.0
        reading = replace(reading, worked=worked)
        if len(readings) > 1 and reading.at - readings[-2].at < settings.learn_seconds / KEPT:
            # what comes faster than can be kept is one reading
            reading = _middle([readings.pop(), reading])
        self.learnt_seconds += worked
        readings.append(reading)
        while len(readings) > MOST_READINGS or (
            len(readings) > settings.learn_readings
            and self.learnt_seconds - readings[1].worked >= settings.learn_seconds
        ):
            readings.popleft()
            self.learnt_seconds -= readings[0].worked
            readings[0] = replace(readings[0], worked=0.0)
        self._learn()
        own, now = self.own, self.now
        if own is None or now is None:
            return
        self._keep(abs(now.speed - own.speed) <= settings.steady_ratio * own.speed, worked)
        self.level.update(
            reading.at,
            enter=now.speed < settings.slow_ratio * own.speed,
            leave=now.speed >= settings.leave_ratio * own.speed,
            interval_seconds=max(interval_seconds, PAUSE_SECONDS),
        )

    def _keep(self, kept: bool, worked_seconds: float) -> None:
        """Count the time at its own speed; a stretch that begins anew counts from nothing."""
        if self._left is None:
            self.kept_seconds = self.learnt_seconds
        elif kept:
            self.kept_seconds = worked_seconds + (0.0 if self._left else self.kept_seconds)
        self._left = not kept

    @property
    def now(self) -> Reading | None:
        """The median of the newest readings, ``None`` where there are too few."""
        if len(self._readings) < SLOW_READINGS:
            return None
        return _middle(list(self._readings)[-SLOW_READINGS:])

    def _learn(self) -> None:
        settings, readings = self._settings, self._readings
        enough = settings.learn_seconds * (1.0 - 1.0 / KEPT)
        if len(readings) < settings.learn_readings or self.learnt_seconds < enough:
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
        sum(one.worked for one in readings),
    )
