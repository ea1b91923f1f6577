"""The one immutable picture of a moment that every exporter reads.

The loop makes it after each tick; the page, the JSON and the status page are functions of it. A
request therefore never touches the machine and never waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spark_watch.blackbox.ring import RecorderStatus
from spark_watch.detectors.condition import Measures
from spark_watch.detectors.judge import Standing
from spark_watch.detectors.timeline import PARTS
from spark_watch.detectors.windows import Recent
from spark_watch.model import Gpu, GpuIdentity, Machine, Sample
from spark_watch.preflight.report import Report
from spark_watch.sources.reading import SourceHealth

WATER_MARK_SECONDS: Final = 60.0
"""How far back the low and high water marks look: the longest common scrape interval."""

SELDOM: Final = ("event_seconds", "energy_joules")
"""What is read of a GPU every few seconds only."""

STALE_READINGS: Final = 3
"""A part not renewed for this many of its own intervals (and at least 30 s) leaves the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHealth:
    """How the daemon itself has fared. Seconds and bytes; ``None`` where it was not measured."""

    started_seconds: float
    ticks: int = 0
    missed_ticks: int = 0
    late_seconds: float | None = None
    late_high_seconds: float | None = None
    tick_duration_seconds: float | None = None
    judge_duration_seconds: float | None = None
    interval_seconds: float = 1.0
    danger: bool = False
    internal_errors: int = 0
    cpu_seconds: float | None = None
    resident_bytes: int | None = None
    config_reload_success: bool | None = None
    config_reload_seconds: float | None = None
    memory_locked: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The lowest and the highest value of one quantity over the last minute."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything there is to tell about one moment.

    Args:
        at_seconds: unix time of the newest sample.
        latest: the newest value of every part that is not stale, in one sample; stale parts are
            ``None`` again.
        standings: how every condition of the catalogue stands, in its order.
        measures: the judged quantities.
        marks: water marks by metric name without prefix, then by GPU index or "".
        identities: the GPUs' names; empty until NVML answered.
        machine: what is known of the machine.
        sources: every source that is or should be read, by name.
        loop: the daemon's own health.
        origin: ``live``, ``simulate:NAME`` or ``replay:FILE``.
        ready: whether a first host sample was read and judged.
        recorder: how the black box stands, ``None`` where this run keeps none.
        preflight: what the daily look has found, ``None`` before the first.
    """

    at_seconds: float
    latest: Sample
    standings: tuple[Standing, ...]
    measures: Measures
    marks: Mapping[str, Mapping[str, Marks]]
    identities: tuple[GpuIdentity, ...]
    machine: Machine | None
    sources: tuple[SourceHealth, ...]
    loop: LoopHealth
    origin: str
    ready: bool
    recorder: RecorderStatus | None = None
    preflight: Report | None = None


class Latest:
    """Gathers the newest value of every part and the water marks of what moves fast.

    Args:
        slow_seconds: how old any part may become before it leaves the page.
    """

    def __init__(self, *, slow_seconds: float = 30.0) -> None:
        self._slow = slow_seconds
        self._parts: dict[str, object] = {}
        self._seen: dict[str, float] = {}
        self._gaps: dict[str, float] = {}
        self._counters: dict[tuple[int, str], tuple[Any, float]] = {}
        self._marks: dict[tuple[str, str], Recent] = {}

    def update(self, sample: Sample, now: float) -> None:
        """Take a sample read at ``now`` (monotonic seconds)."""
        for part in (*PARTS, "rails"):
            value = getattr(sample, part)
            if value is not None:
                if part in self._seen:
                    # an outage is no pace: after it the part is as soon stale as before
                    gap = now - self._seen[part]
                    if gap <= self._limit(part):
                        self._gaps[part] = gap
                self._parts[part] = self._kept(value, now) if part == "gpus" else value
                self._seen[part] = now
        memory = sample.memory
        if memory is not None and memory.available_bytes is not None:
            self._mark("memory_available_bytes", "", now, memory.available_bytes)
        if memory is not None and memory.free_bytes is not None:
            self._mark("memory_free_bytes", "", now, memory.free_bytes)
        for gpu in sample.gpus or ():
            index = str(gpu.index)
            if gpu.power_watts is not None:
                self._mark("gpu_power_watts", index, now, gpu.power_watts)
            if gpu.sm_hertz is not None:
                self._mark("gpu_sm_clock_hertz", index, now, gpu.sm_hertz)

    def _kept(self, gpus: tuple[Gpu, ...], now: float) -> tuple[Gpu, ...]:
        """Return the GPUs with the counters that come more seldom, as they were last read."""
        kept = []
        for gpu in gpus:
            fill: dict[str, Any] = {}
            for counter in SELDOM:
                value = getattr(gpu, counter)
                if value is not None:
                    self._counters[gpu.index, counter] = (value, now)
                    continue
                value, seen = self._counters.get((gpu.index, counter), (None, now))
                if value is not None and now - seen <= self._slow:
                    fill[counter] = value
            kept.append(replace(gpu, **fill) if fill else gpu)
        return tuple(kept)

    def _mark(self, name: str, index: str, now: float, value: float) -> None:
        window = self._marks.get((name, index))
        if window is None:
            window = self._marks[name, index] = Recent(WATER_MARK_SECONDS)
        window.add(now, value)

    def merged(self, sample: Sample, now: float) -> Sample:
        """Return ``sample`` with the parts it lacks filled in from before, stale ones left out."""
        fill = {}
        for part, seen in self._seen.items():
            lacks = getattr(sample, part) is None or part == "gpus"
            if lacks and now - seen <= self._limit(part):
                fill[part] = self._parts[part]
        return replace(sample, **fill) if fill else sample  # type: ignore[arg-type]  # by name

    def _limit(self, part: str) -> float:
        """Return how old a part may become."""
        return max(self._slow, STALE_READINGS * self._gaps.get(part, 0.0))

    def marks(self, now: float) -> dict[str, dict[str, Marks]]:
        """Return the water marks of the last minute, of what was read in it."""
        out: dict[str, dict[str, Marks]] = {}
        for (name, index), window in self._marks.items():
            values = [value for at, value in window if now - at <= WATER_MARK_SECONDS]
            if values:
                out.setdefault(name, {})[index] = Marks(low=min(values), high=max(values))
        return out
