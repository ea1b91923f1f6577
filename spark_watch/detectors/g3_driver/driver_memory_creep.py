"""The driver holds more and more although no process began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Buckets
from spark_watch.model import GIB, Process, State
from spark_watch.settings.g3_driver import DriverMemoryCreepSettings

STRETCHES: Final = 20
"""The window is kept as so many stretches, each with its lowest reading."""


class DriverMemoryCreep(Condition[DriverMemoryCreepSettings]):
    """Whether what the driver never gave back in ten minutes is more than where it began.

    Where it began is the lowest reading of the first ten minutes after the last GPU process began
    or ended and had time to load. It is never set lower: an engine that sleeps and wakes again
    takes what it had. One step of the size of a first large prompt is not counted, once.

    Only where the GPU has no memory of its own is what ``/proc/meminfo`` leaves out the driver's.
    """

    name = "driver_memory_creep"
    gotcha = "G3"
    part = "memory"
    sources = ("meminfo", "processes")
    gb10_only = True
    summary = "Driver memory > 0.5 GiB up, not returned in 10 min, no process started (info)"
    remedies: ClassVar = {
        State.INFO: "Plan a restart of the engine before the reserve is gone: what it took for "
        "large prompts or wide batches it does not return. Cap prompt length or batch at the next "
        "start. Dropping caches does not help, it is no cache.",
    }

    def __init__(self, settings: DriverMemoryCreepSettings) -> None:
        super().__init__(settings)
        self._processes: dict[int, float | None] | None = None
        self._changed_at = 0.0
        self._listed_at = 0.0
        self._window = Buckets(settings.window_seconds, settings.window_seconds / STRETCHES)
        self._floor_bytes = 0.0
        self._start_bytes: float | None = None
        self._start_at = 0.0
        self._prompted = False
        self._raised = False

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the driver's memory; ok as soon as it is not above where it began."""
        if tick.sample.processes is not None:
            self._note_processes(tick, tick.sample.processes)
        memory = tick.sample.memory
        residual = memory.driver_residual_bytes if memory is not None else None
        if residual is None:
            return None
        unseen = tick.now - self._listed_at > tick.stale_after("processes")
        if self._processes is None or unseen:
            return {
                "host": Judgement(
                    State.UNKNOWN, "The GPU's processes cannot be seen: any may just have begun."
                )
            }
        return {"host": self._one(tick, residual)}

    def _note_processes(self, tick: Tick, listed: tuple[Process, ...]) -> None:
        now = tick.now
        self._listed_at = now
        processes = {
            process.pid: process.started_seconds for process in listed if process.kind != "launcher"
        }
        if processes == self._processes:
            return
        self._changed_at = now
        uptime = tick.sample.boottime_seconds
        if self._processes is None and uptime is not None:
            starts = [started for started in processes.values() if started is not None]
            if len(starts) == len(processes):
                # all of them are known to be older than this watch, which need not wait for them
                self._changed_at = now - (uptime - max(starts, default=0.0))
        self._processes = processes
        self._window.clear()
        self._start_bytes = None
        self._prompted = self._raised = False

    def _one(self, tick: Tick, residual: int) -> Judgement:
        settings = self.settings
        now = tick.now
        since = now - self._changed_at
        if since < settings.settle_seconds:
            return Judgement(
                State.UNKNOWN,
                "A GPU process began or ended {since:.0f} s ago; the driver's memory is judged "
                "{settle:.0f} s after that.",
                {"since": since, "settle": settings.settle_seconds},
            )
        window = self._window
        if tick.hole("memory"):
            window.clear()
        if window.add(now, residual):
            self._floor_bytes = min(stretch.low for stretch in window)
        else:
            self._floor_bytes = min(self._floor_bytes, residual)
        if self._start_bytes is None and window.full:
            self._start_bytes = self._floor_bytes
            self._start_at = now - window.span_seconds
        if self._start_bytes is None:
            return Judgement(
                State.UNKNOWN,
                "The driver holds {held:.1f} GiB; where it began is known after {window:.0f} s.",
                {"held": residual / GIB, "window": settings.window_seconds},
            )
        return self._against(tick, residual, self._start_bytes)

    def _against(self, tick: Tick, residual: int, start: float) -> Judgement:
        """Judge against where it began, which one first large prompt may move."""
        settings = self.settings
        grown = self._floor_bytes - start
        if self._raised:
            self._raised = residual > start + tick.gib(settings.leave_gib)
        elif self._window.full and grown > tick.gib(settings.grown_gib):
            if not self._prompted and grown <= tick.gib(settings.first_prompt_gib):
                self._prompted = True
                self._start_bytes = start = self._floor_bytes
            else:
                self._raised = True
        values = {
            "held": residual / GIB,
            "start": start / GIB,
            "more": (residual - start) / GIB,
            "minutes": (tick.now - self._start_at) / 60.0,
            "window": settings.window_seconds,
        }
        if self._raised:
            return Judgement(
                State.INFO,
                "The driver holds {held:.1f} GiB, {more:.1f} GiB more than {minutes:.0f} min ago, "
                "for {window:.0f} s and more, and no GPU process has begun since.",
                values,
            )
        if not self._window.full and residual > start + tick.gib(settings.grown_gib):
            return Judgement(
                State.UNKNOWN,
                "The driver holds {held:.1f} GiB, {more:.1f} GiB more than {minutes:.0f} min ago; "
                "not watched for {window:.0f} s since.",
                values,
            )
        return Judgement(
            State.OK,
            "The driver holds {held:.1f} GiB and began with {start:.1f} GiB {minutes:.0f} min ago.",
            values,
        )
