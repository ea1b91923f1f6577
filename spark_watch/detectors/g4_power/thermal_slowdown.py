"""Time lost to heat, from counters that only ever grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement, Measures, spoken
from spark_watch.detectors.holds import MINIMUM_SAMPLES, Level
from spark_watch.detectors.timeline import HOLE_INTERVALS, Cadence, Tick
from spark_watch.detectors.windows import FULL_SHARE
from spark_watch.model import Gpu, State
from spark_watch.settings.g4 import ThermalSlowdownSettings

SOFTWARE: Final = "sw_thermal_slowdown"
HARDWARE: Final = "hw_thermal_slowdown"

POINT_SECONDS: Final = 10.0
"""Totals are kept at most this often: a window of ten minutes is some sixty points."""

UPDATE_SECONDS: Final = 10.0
"""A counter may show up to this much of an earlier time at once."""

LEAP: Final = 2.0
"""So many times what is possible is no late update but another count, or garbage."""

SHOWN_SECONDS: Final = 30.0
"""A share of less time than this is not shown: it would jump between 0 and 1."""


class _Ledger:
    """Seconds spent under each clock event reason of one GPU, over the window.

    A counter that falls (a reloaded driver) starts anew, and none grows faster than time: one that
    leaps counted something else, and what was watched of it until then proves nothing any more.
    Growth over a hole is spread over it evenly, because the counter saw what we did not.
    """

    __slots__ = ("_counters", "_points", "counted_since", "now", "seen", "totals", "window_seconds")

    def __init__(self, window_seconds: float) -> None:
        self.window_seconds = window_seconds
        self._points: deque[tuple[float, dict[str, float]]] = deque(
            maxlen=int(window_seconds / POINT_SECONDS) + 3
        )
        self._counters: dict[str, tuple[float, float]] = {}
        self.totals: dict[str, float] = {}
        self.seen: dict[str, int] = {}
        """In how many samples a bit stood since it last did not stand for a whole window."""
        self.counted_since: float | None = None
        """Since when the counters are read and make sense, ``None`` where they never were."""
        self.now = 0.0

    def count(self, now: float, counters: Mapping[str, float]) -> None:
        """Take cumulative seconds by reason."""
        for reason, value in counters.items():
            before = self._counters.get(reason)
            self._counters[reason] = (now, value)
            grown = 0.0
            if before is not None:
                possible = now - before[0] + UPDATE_SECONDS
                grown = min(max(0.0, value - before[1]), possible)
                if value - before[1] > LEAP * possible:
                    grown = 0.0
                    self.counted_since = now
            self.totals[reason] = self.totals.get(reason, 0.0) + grown
        if self.counted_since is None:
            self.counted_since = now
        self._keep(now)

    def estimate(self, now: float, reasons: tuple[str, ...], seconds: float) -> None:
        """Take the bits that stand now, each for the time since the sample before."""
        for reason in reasons:
            self.totals[reason] = self.totals.get(reason, 0.0) + seconds
            self.seen[reason] = self.seen.get(reason, 0) + 1
        self._keep(now)
        for reason in [one for one in self.seen if one not in reasons]:
            if self.seconds(reason) <= 0.0:
                del self.seen[reason]

    def _keep(self, now: float) -> None:
        self.now = now
        points = self._points
        if not points or now - points[-1][0] >= POINT_SECONDS:
            points.append((now, dict(self.totals)))
            while len(points) > 1 and points[1][0] <= now - self.window_seconds:
                points.popleft()

    @property
    def span_seconds(self) -> float:
        """Seconds of the window that were seen."""
        if not self._points:
            return 0.0
        return min(self.window_seconds, self.now - self._points[0][0])

    @property
    def full(self) -> bool:
        """Whether the counters, and not bits, speak for the whole window."""
        since = self.counted_since
        return since is not None and self.now - since >= self.window_seconds * FULL_SHARE

    def seconds(self, reason: str) -> float:
        """Seconds under the reason within the window."""
        if not self._points:
            return 0.0
        total = self.totals.get(reason, 0.0)
        begun, totals = self._points[0]
        base = totals.get(reason, 0.0)
        edge = self.now - self.window_seconds
        if begun < edge:
            until, totals = self._points[1] if len(self._points) > 1 else (self.now, self.totals)
            base += (totals.get(reason, 0.0) - base) * (edge - begun) / (until - begun)
        return total - base


class _Watch:
    """What is remembered of one GPU."""

    __slots__ = ("critical", "judgement", "last", "ledger", "pace", "ratios", "warning")

    def __init__(self, window_seconds: float, assumed_seconds: float) -> None:
        self.ledger = _Ledger(window_seconds)
        self.warning = Level(0.0)
        self.critical = Level(0.0)
        self.pace = Cadence(assumed_seconds)
        self.judgement: Judgement | None = None
        self.last: float | None = None
        self.ratios: Measures = {}


class ThermalSlowdown(Condition[ThermalSlowdownSettings]):
    """Share of the last ten minutes spent in thermal slowdown.

    Counted by the driver in clock event counters, which never reset and miss nothing. Where there
    are none, the event bits of the samples stand in for them: they may raise a warning, never more,
    because a sample says little of the time around it; and they never say ok, because short
    slowdowns fall between samples (NVIDIA/open-gpu-kernel-modules#1358).
    """

    name = "thermal_slowdown"
    gotcha = "G4"
    part = "gpus"
    sources = ("nvml",)
    summary = (
        "Of 10 min: > 2 % in software or >= 0.1 s in hardware slowdown; critical > 10 % or > 10 s"
    )
    remedies: ClassVar = {
        State.WARNING: "Give it air: intake and outlet free, dust, a fan that turns the wrong way, "
        "the room. A lower clock (nvidia-smi -lgc 0,2000) takes 10 C off at little cost. "
        "Restarting the job does not help.",
        State.CRITICAL: "Lower the clock now (nvidia-smi -lgc 0,2000) or pause the job, then look "
        "at the air path: next is a power-off without a word in the log. Restarting the job or "
        "the machine does not help.",
    }

    def __init__(self, settings: ThermalSlowdownSettings) -> None:
        super().__init__(settings)
        self._watches: dict[int, _Watch] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each GPU by the growth of its counters."""
        gpus = tick.sample.gpus
        if gpus is None:
            return None
        said = {}
        self.measures = {}
        for gpu in gpus:
            watch = self._watches.get(gpu.index)
            if watch is None:
                watch = _Watch(self.settings.window_seconds, tick.interval("gpus"))
                self._watches[gpu.index] = watch
            said[f"gpu{gpu.index}"] = self._one(tick, gpu, watch)
            self.measures.update(watch.ratios)
        return said

    def _one(self, tick: Tick, gpu: Gpu, watch: _Watch) -> Judgement | None:
        now, ledger = tick.now, watch.ledger
        gap = 0.0 if watch.last is None else now - watch.last
        watch.last = now
        counters = gpu.event_seconds
        if counters and (SOFTWARE in counters or HARDWARE in counters):
            watch.pace.see(now)
            ledger.count(now, counters)
            watch.judgement = self._judge(tick, gpu, watch)
            watch.ratios = _ratios(gpu.index, counters, ledger)
            return watch.judgement
        last = watch.pace.last
        if last is None:
            return self._by_bits(tick, gpu, watch, gap)
        lost = now - last
        if lost <= 3 * watch.pace.interval_seconds:
            # counters are read seldom, and this is not their turn
            return watch.judgement if lost > tick.stale_after("gpus") else None
        watch.ratios = {}
        return None

    def _by_bits(self, tick: Tick, gpu: Gpu, watch: _Watch, gap: float) -> Judgement | None:
        if gpu.event_reasons is None:
            return Judgement(
                State.UNKNOWN,
                "GPU {gpu}: no clock event counters, and no event reasons in their place.",
                {"gpu": gpu.index},
            )
        interval = tick.interval("gpus")
        seconds = min(gap, HOLE_INTERVALS * interval)
        watch.ledger.estimate(tick.now, gpu.event_reasons, seconds)
        return self._judge(tick, gpu, watch)

    def _judge(self, tick: Tick, gpu: Gpu, watch: _Watch) -> Judgement:
        settings, ledger = self.settings, watch.ledger
        window = settings.window_seconds
        software, hardware = ledger.seconds(SOFTWARE), ledger.seconds(HARDWARE)
        counted = ledger.counted_since is not None
        if not counted:
            # one bit in one sample is no duration
            software = software if ledger.seen.get(SOFTWARE, 0) >= MINIMUM_SAMPLES else 0.0
            hardware = hardware if ledger.seen.get(HARDWARE, 0) >= MINIMUM_SAMPLES else 0.0
        share = software / window
        leave = settings.leave_share
        interval = tick.interval("gpus")
        warning = watch.warning.update(
            tick.now,
            enter=share > settings.software_warning_ratio
            or hardware >= settings.hardware_warning_seconds,
            leave=share < settings.software_warning_ratio * leave
            and hardware < settings.hardware_warning_seconds * leave,
            interval_seconds=interval,
        )
        critical = watch.critical.update(
            tick.now,
            enter=counted
            and (
                share > settings.software_critical_ratio
                or hardware > settings.hardware_critical_seconds
            ),
            leave=share < settings.software_critical_ratio * leave
            and hardware < settings.hardware_critical_seconds * leave,
            interval_seconds=interval,
        )
        values: dict[str, Any] = {
            "gpu": gpu.index,
            "software": software,
            "share": share * 100,
            "hardware": hardware,
            "minutes": window / 60,
            "seen": ledger.span_seconds / 60,
            "level": settings.software_warning_ratio * 100,
            "seconds": settings.hardware_warning_seconds,
        }
        if critical:
            values["level"] = settings.software_critical_ratio * 100
            values["seconds"] = settings.hardware_critical_seconds
        if critical or warning:
            values["held"] = spoken(watch.warning.held_seconds(tick.now))
            return Judgement(
                State.CRITICAL if critical else State.WARNING,
                "GPU {gpu} slowed down by heat: {software:.1f} s ({share:.1f} %) in software and "
                "{hardware:.1f} s in hardware of the last {minutes:.0f} min (levels {level:.0f} % "
                "and {seconds:.1f} s), for {held} now."
                + ("" if counted else " From samples alone: no counters."),
                values,
            )
        if counted and not (SOFTWARE in ledger.totals and HARDWARE in ledger.totals):
            return Judgement(
                State.UNKNOWN,
                "GPU {gpu}: only one of the two counters of slowdown by heat can be read, and it "
                "shows {software:.1f} s in software and {hardware:.1f} s in hardware.",
                values,
            )
        if ledger.full:
            return Judgement(
                State.OK,
                "GPU {gpu}: {software:.1f} s ({share:.2f} %) in software and {hardware:.1f} s in "
                "hardware slowdown by heat of the last {minutes:.0f} min (levels {level:.0f} % and "
                "{seconds:.1f} s).",
                values,
            )
        return Judgement(
            State.UNKNOWN,
            "GPU {gpu}: counters watched for {seen:.0f} of {minutes:.0f} min, {software:.1f} s in "
            "software and {hardware:.1f} s in hardware slowdown so far."
            if counted
            else "GPU {gpu}: no clock event counters yet (absent, or their unit is not proved); "
            "no slowdown in the event reasons, which miss short ones.",
            values,
        )


def _ratios(index: int, counters: Mapping[str, float], ledger: _Ledger) -> Measures:
    """Return the share of the window, or of what was seen of it, for every counted reason."""
    span = ledger.span_seconds
    if span < SHOWN_SECONDS:
        return {}
    return {
        ("gpu_event_reason_ratio", (str(index), reason)): min(1.0, ledger.seconds(reason) / span)
        for reason in counters
    }
