"""The run: how one GPU has worked since it last rested, for rules that compare it with itself.

What is normal depends on the work, so several rules hold a GPU against its own hours before. Those
are kept here, once for all rules and once for each sample.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from spark_watch.detectors.holds import Hold
from spark_watch.detectors.timeline import HOLE_INTERVALS, Tick
from spark_watch.model import Gpu

LOADED_RATIO: Final = 0.8
"""Utilisation from which a GPU counts as loaded: below it a clock proves nothing.

Source: hoesing/spark-gpu-throttle-check calls anything less inconclusive. 0.94 to 0.96 is as high
as a GB10 reads.
"""

IDLE_RATIO: Final = 0.1
"""Utilisation below which a GPU rests."""

REST_SECONDS: Final = 120.0
"""So much rest ends a run."""

SLICES: Final = 6
SLICE_SECONDS: Final = 3600.0
"""A run remembers its last six hours, in slices that are forgotten whole."""

WATT_STEP: Final = 0.5
HERTZ_STEP: Final = 5e6
CELSIUS_STEP: Final = 1.0
LARGEST_STEP: Final = 4096
"""Everything above is counted as this many steps, so that no reading can make memory grow."""


class Quantiles:
    """Running quantiles of a reading over the last hours, weighted by time.

    Args:
        step: the width of a bin, and with it the error of every answer.
    """

    __slots__ = ("_slices", "_started", "_total", "seconds", "step")

    def __init__(self, step: float) -> None:
        self.step = step
        self.seconds = 0.0
        """How many seconds of readings the answers rest on."""
        self._started = 0.0
        self._slices: deque[dict[int, float]] = deque([{}])
        self._total: dict[int, float] = {}

    def add(self, now: float, value: float, seconds: float) -> None:
        """Add a reading that stood for so many seconds."""
        if self.seconds == 0.0:
            self._started = now
        elif now - self._started >= SLICE_SECONDS:
            self._turn(now)
        place = min(LARGEST_STEP, max(0, int(value / self.step)))
        self.seconds += seconds
        self._total[place] = self._total.get(place, 0.0) + seconds
        newest = self._slices[-1]
        newest[place] = newest.get(place, 0.0) + seconds

    def _turn(self, now: float) -> None:
        """Begin a slice and forget what is older than the run may be."""
        self._started = now
        self._slices.append({})
        if len(self._slices) > SLICES:
            self._slices.popleft()
        total: dict[int, float] = {}
        for one in self._slices:
            for place, seconds in one.items():
                total[place] = total.get(place, 0.0) + seconds
        self._total = total
        self.seconds = sum(total.values())

    def quantile(self, share: float) -> float | None:
        """The middle of the bin below which ``share`` of the time lies, ``None`` without readings.

        Args:
            share: 0.5 for the median, 0.9 for what is exceeded in a tenth of the time.
        """
        left = share * self.seconds
        found = None
        for place in sorted(self._total):
            found = (place + 0.5) * self.step
            left -= self._total[place]
            if left <= 0.0:
                break
        return found


class Run:
    """One GPU's run: from the end of its last two idle minutes, at most six hours back.

    Attributes:
        loaded: whether the newest reading shows load, ``None`` where utilisation was not read.
        number: how many runs there were, this one included.
        power: watts while loaded.
        clock: SM clock in hertz while loaded.
        temperature: die temperature in degrees Celsius while loaded.
    """

    __slots__ = ("_last", "_rest", "_rested", "clock", "loaded", "number", "power", "temperature")

    def __init__(self) -> None:
        self.loaded: bool | None = None
        self.number = 0
        self._last: float | None = None
        self._rest = Hold(REST_SECONDS)
        self._rested = False
        self._begin()

    def _begin(self) -> None:
        self.number += 1
        self._rested = False
        self.power = Quantiles(WATT_STEP)
        self.clock = Quantiles(HERTZ_STEP)
        self.temperature = Quantiles(CELSIUS_STEP)

    def update(self, now: float, gpu: Gpu, interval_seconds: float) -> None:
        """Take the newest reading of the GPU.

        Args:
            now: seconds on the timeline.
            gpu: the reading.
            interval_seconds: the measured interval of such readings; a longer gap counts as one of
                three and a half, because nobody saw the rest of it.
        """
        since = interval_seconds if self._last is None else now - self._last
        seconds = min(since, HOLE_INTERVALS * interval_seconds)
        self._last = now
        ratio = gpu.utilization_ratio
        if ratio is None:
            self.loaded = None
            return
        self.loaded = ratio >= LOADED_RATIO
        idle = ratio < IDLE_RATIO
        if self._rest.update(now, idle, interval_seconds):
            self._rested = True
        elif self._rested and not idle:
            self._begin()
        if not self.loaded:
            return
        if gpu.power_watts is not None:
            self.power.add(now, gpu.power_watts, seconds)
        if gpu.sm_hertz is not None:
            self.clock.add(now, gpu.sm_hertz, seconds)
        if gpu.temperature_celsius is not None:
            self.temperature.add(now, gpu.temperature_celsius, seconds)


def runs(tick: Tick) -> dict[int, Run]:
    """Return every GPU's run by its index, as of this sample; the first to ask works it out.

    A GPU that was never read is not in it. The runs start anew when the machine restarts.
    """
    kept: dict[int, Run] = tick.shared.setdefault("runs", {})
    if "runs" not in tick.notes:
        tick.notes["runs"] = True
        interval = tick.interval("gpus")
        for gpu in tick.sample.gpus or ():
            run = kept.get(gpu.index)
            if run is None:
                run = kept[gpu.index] = Run()
            run.update(tick.now, gpu, interval)
    return kept
