"""Available memory is low and leaking away over minutes, or nearly gone and moving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g3_memory.gpu_processes import YOUNG_SECONDS, GpuProcesses
from spark_watch.detectors.g3_memory.trend import WINDOW_SECONDS, Trend
from spark_watch.detectors.holds import Level
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Growth, Recent
from spark_watch.model import GIB, State
from spark_watch.settings.g3 import MemoryLowSettings

MIB = GIB // 1024
"""One mebibyte in bytes."""

TREND = ("memory_trend_bytes_per_second", ())
"""The slope's own series, there once twenty minutes are seen."""


class MemoryLow(Condition[MemoryLowSettings]):
    """Less than 8 GiB available, and where it goes from there.

    Flat is how many boxes serve for weeks. A slope is only believed over twenty minutes in which
    no GPU process started or ended and nothing stepped, and which is no swing.
    """

    name = "memory_low"
    gotcha = "G3"
    part = "memory"
    sources = ("meminfo",)
    summary = (
        "available memory < 8 GiB and 20 min of slope reach 2 GiB within 30 min (warning); flat "
        "below 4 GiB (info); < 1.5 GiB for 5 s with swap-in, faults or falling (critical)"
    )
    remedies: ClassVar = {
        State.INFO: "Nothing to do tonight: boxes serve like this for weeks. Start nothing beside "
        "it, and give the next start a smaller memory fraction or context so that 8 GiB stay.",
        State.WARNING: "Something leaks: see which process grows (spark-watch who), finish or "
        "checkpoint its run and restart it before 2 GiB are reached. Dropping caches does not "
        "help (available memory already counts them); a container's memory limit does not hold "
        "CUDA memory; swap holds none of it.",
        State.CRITICAL: "Stop the newest or largest GPU process now; the host may stop answering "
        "in seconds. Do not wait for the OOM killer, and start nothing to look at it: every new "
        "process needs memory. Afterwards restart it with a smaller memory fraction.",
    }

    def __init__(self, settings: MemoryLowSettings) -> None:
        super().__init__(settings)
        self._processes = GpuProcesses()
        self._trend = Trend()
        self._window_from = float("-inf")
        self._leaking = False
        self._thin = Level(settings.thin_hold_seconds)
        self._gone = Level(settings.gone_hold_seconds, settings.gone_leave_seconds)
        self._recent = Recent(settings.falling_seconds, capacity=256)
        self._swapped_in = Growth(settings.gone_hold_seconds)
        self._faults = Growth(settings.gone_hold_seconds)
        self._swap_in_rate: float | None = None
        self._fault_rate: float | None = None

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the pool; from 8 GiB on it is ok at once, below only after twenty quiet minutes."""
        self._see_counters(tick)
        self._see_processes(tick)
        memory = tick.memory
        if memory is None or memory.available_bytes is None:
            return None
        gib = memory.available_bytes / GIB
        scale = tick.scale
        settings = self.settings
        now = tick.now
        self._recent.add(now, gib, tick.since_last_seconds)
        if now >= self._window_from:
            self._follow(tick, gib)
        if gib >= settings.low_gib * scale:
            self._gone.restart()
        self._gone.update(
            now,
            enter=gib < settings.gone_gib * scale and self._moving(now, gib, scale),
            leave=gib >= settings.gone_leave_gib * scale or not self._moving(now, gib, scale),
            interval_seconds=tick.interval("memory"),
        )
        self._thin.update(
            now,
            enter=gib < settings.thin_gib * scale,
            leave=gib >= settings.thin_leave_gib * scale,
            interval_seconds=tick.interval("memory"),
        )
        if self._leaking and gib >= settings.leave_gib * scale:
            self._leaking = False
        return {"host": self._say(tick, gib)}

    def _see_counters(self, tick: Tick) -> None:
        vm = tick.sample.vm
        if vm is None:
            return
        if vm.swapped_in_bytes is not None:
            self._swap_in_rate = self._swapped_in.update(tick.now, vm.swapped_in_bytes)
        if vm.major_faults is not None:
            self._fault_rate = self._faults.update(tick.now, vm.major_faults)

    def _see_processes(self, tick: Tick) -> None:
        """Start the window anew at a start or exit, once the youngest has settled."""
        processes = self._processes
        processes.update(tick)
        if not processes.changed:
            return
        settled = processes.youngest_since + YOUNG_SECONDS
        if processes.first and settled <= tick.now:
            return
        self._window_from = max(tick.now, settled)
        self._restart()

    def _restart(self) -> None:
        self._trend.restart()
        self._leaking = False

    def _follow(self, tick: Tick, gib: float) -> None:
        settings = self.settings
        trend = self._trend
        scale = tick.scale
        if not trend.add(tick.now, gib, settings.step_gib * scale):
            return
        slope = trend.slope
        self.measures = {} if slope is None else {TREND: slope * GIB}
        if slope is None:
            self._leaking = False
            return
        left = self._seconds_left(scale)
        if self._leaking:
            self._leaking = left <= settings.leave_minutes * 60
        else:
            self._leaking = (
                gib < settings.low_gib * scale
                and trend.steady
                and left <= settings.within_minutes * 60
                and trend.deeper_than_swing(settings.swing_gib * scale)
            )

    def _seconds_left(self, scale: float) -> float:
        trend = self._trend
        if trend.slope is None or trend.slope >= 0.0:
            return float("inf")
        return max(0.0, (trend.level - self.settings.floor_gib * scale) / -trend.slope)

    def _course(self, slope: float, scale: float) -> str:
        """Say where memory goes that is no leak."""
        if abs(slope) * WINDOW_SECONDS < self.settings.falling_gib * scale:
            return "level"
        if slope > 0.0:
            return "rising"
        if self._seconds_left(scale) > self.settings.leave_minutes * 60:
            return "falling slowly"
        return "falling no further than it swings"

    def _moving(self, now: float, gib: float, scale: float) -> bool:
        settings = self.settings
        return (
            (
                self._swap_in_rate is not None
                and self._swap_in_rate >= settings.swap_in_mib_per_second * MIB
            )
            or (self._fault_rate is not None and self._fault_rate >= settings.faults_per_second)
            or self._recent.level_at(now - settings.falling_seconds) - gib
            >= settings.falling_gib * scale
        )

    def _say(self, tick: Tick, gib: float) -> Judgement:
        settings = self.settings
        scale = tick.scale
        now = tick.now
        values: dict[str, Any] = {"gib": gib, "low": settings.low_gib * scale}
        if self._gone.active:
            return Judgement(
                State.CRITICAL,
                "The host has {gib:.2f} GiB available, below {level:.1f} GiB for {held:.0f} s, and "
                "it is moving ({lost:+.2f} GiB in {over:.0f} s, swap-in {swap:.1f} MiB/s)."
                if gib < settings.gone_gib * scale
                else "The host has {gib:.1f} GiB available again; {held:.0f} s ago it fell below "
                "{level:.1f} GiB, and {leave:.0f} s of rest clear this.",
                {
                    **values,
                    "level": settings.gone_gib * scale,
                    "held": self._gone.held_seconds(now),
                    "lost": gib - self._recent.level_at(now - settings.falling_seconds),
                    "over": settings.falling_seconds,
                    "swap": (self._swap_in_rate or 0.0) / MIB,
                    "leave": settings.gone_leave_seconds,
                },
            )
        trend = self._trend
        slope = trend.slope
        if self._leaking and slope is not None:
            return Judgement(
                State.WARNING,
                "The host has {gib:.1f} GiB available and lost {slope:.2f} GiB a minute over "
                "{window:.0f} min: {floor:.0f} GiB is reached in {minutes:.0f} min.",
                {
                    **values,
                    "slope": -slope * 60,
                    "window": WINDOW_SECONDS / 60,
                    "floor": settings.floor_gib * scale,
                    "minutes": self._seconds_left(scale) / 60,
                },
            )
        if gib >= settings.low_gib * scale:
            return Judgement(
                State.OK, "The host has {gib:.1f} GiB available, at least {low:.0f} GiB.", values
            )
        if slope is None or trend.is_off(gib, settings.step_gib * scale):
            return Judgement(
                State.UNKNOWN,
                "The host has {gib:.1f} GiB available, below {low:.0f} GiB; a slope needs 20 min "
                "in which no GPU process starts or ends and nothing steps.",
                values,
            )
        values["slope"] = round(slope * 60, 2) + 0.0
        values["course"] = self._course(slope, scale)
        if self._thin.active:
            return Judgement(
                State.INFO,
                "The host has {gib:.1f} GiB available, below {thin:.0f} GiB for {held:.0f} s but "
                "{course} ({slope:+.2f} GiB a minute over 20 min).",
                {
                    **values,
                    "thin": settings.thin_gib * scale,
                    "held": self._thin.held_seconds(now),
                },
            )
        return Judgement(
            State.OK,
            "The host has {gib:.1f} GiB available, below {low:.0f} GiB but {course} ({slope:+.2f} "
            "GiB a minute over 20 min).",
            values,
        )
