"""One GPU process loses memory, or is paged out, while another takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g6_contention.engines import Engine, hidden, listed_engines
from spark_watch.detectors.g6_contention.frozen_progress import FrozenProgress
from spark_watch.detectors.g6_contention.looks import Look, Looks, change, counted, same
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool, available_bytes
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, Process, State
from spark_watch.settings.g6 import SqueezedSettings

MIB: Final = 1024**2


@dataclass(slots=True)
class _Victim:
    """What is remembered of a process; ``born_at`` is on the timeline."""

    started: float | None
    born_at: float
    level: Level
    lost: str = ""


class Squeezed(Condition[SqueezedSettings]):
    """Losses of a GPU process during another engine's growth, each such process a subject.

    That the kernel takes from one what another needs is so only where both live in one pool. No
    report proves that memory from ``cudaMalloc`` itself is ever evicted, so the sentence says
    "evicted" only where pages were read back: refaults or swap-in.
    """

    name = "squeezed"
    gotcha = "G6"
    part = "processes"
    sources = ("processes", "vmstat")
    gb10_only = True
    summary = (
        "A GPU process loses >= 1 GiB, >= 0.25 GiB to swap or has >= 50 major faults/min with "
        "refaults, while another grows; critical when its progress is frozen too"
    )
    remedies: ClassVar = {
        State.WARNING: "Stop or shrink the process that grows, by its own means, before the next "
        "long prompt. The server recovers by itself once the memory is back; restarting it now "
        "loads the weights into the same shortage. A fraction is no hard cap on this machine, a "
        "container's memory limit does not hold CUDA memory, and more swap only makes the stalls "
        "longer.",
        State.CRITICAL: "Stop the process that grows now, all of its processes: killing an API "
        "server alone leaves its engine process holding the memory. The frozen server may go on "
        "by itself after that; wait a minute before restarting it. One in D state cannot be "
        "killed: do not loop kill and restart.",
    }

    def __init__(self, settings: SqueezedSettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._looks = Looks(settings.window_seconds)
        self._progress = FrozenProgress(settings.frozen_seconds)
        self._victims: dict[int, _Victim] = {}
        self._first = True

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge every process of an engine that has another beside it."""
        memory = self._pool.update(tick)
        self._progress.update(tick)
        processes = tick.sample.processes
        if processes is None:
            self._looks.note(tick)
            return None
        unseen = hidden(tick, memory)
        if unseen is not None:
            return {"host": unseen}
        look = self._looks.add(tick, processes)
        found = listed_engines(tick)
        self._meet(tick, found)
        grown = [self._grower(tick, engine, look) for engine in found]
        tight = available_bytes(memory)
        scarce = tight is None or tight < tick.gib(self.settings.low_memory_gib)
        raised: dict[str, Judgement | None] = {}
        pending = False
        for index, engine in enumerate(found):
            others = grown[:index] + grown[index + 1 :]
            grower = next((other for other in others if other is not None), None)
            for process in engine.processes:
                victim = self._victims[process.pid]
                lost = self._lost(tick, process, victim, look, scarce=scarce)
                if self._update(tick, victim, lost, grower):
                    raised[process.subject] = self._say(tick, process, victim, grower)
                pending = pending or not victim.level.known
        return raised or {"host": self._quiet(tick, found, pending=pending)}

    def _meet(self, tick: Tick, found: list[Engine]) -> None:
        """Remember who is there, since when, and forget who is not."""
        now = tick.now
        uptime = tick.sample.boottime_seconds
        victims: dict[int, _Victim] = {}
        for engine in found:
            for process in engine.processes:
                victim = self._victims.get(process.pid)
                if victim is None or victim.started != process.started_seconds:
                    started = process.started_seconds
                    # of one that was there before this watch nobody knows the age but its start
                    born_at = -math.inf if self._first else now
                    if started is not None and uptime is not None:
                        born_at = now - (uptime - started)
                    level = Level(self.settings.hold_seconds, self.settings.leave_seconds)
                    victim = _Victim(started, born_at, level)
                victims[process.pid] = victim
        self._victims = victims
        self._first = False

    def _grower(self, tick: Tick, engine: Engine, look: Look) -> Process | None:
        """Return a process of the engine that grew since the look, or began with that much."""
        level = tick.gib(self.settings.grown_gib)
        for process in engine.processes:
            before = look.processes.get(process.pid)
            if before is not None and same(before, process):
                grown = change(before, process).taken_bytes
            else:
                grown = (process.gpu_bytes or 0) + (process.resident_bytes or 0)
            if grown >= level:
                return process
        return None

    def _lost(
        self, tick: Tick, process: Process, victim: _Victim, look: Look, *, scarce: bool
    ) -> str:
        """Say what the process lost since the look, empty where it lost nothing that counts."""
        settings = self.settings
        before = look.processes.get(process.pid)
        if before is None or before is process or not same(before, process):
            return ""
        if tick.now - victim.born_at < settings.settle_seconds:
            return ""
        changed = change(before, process)
        minutes = max(tick.now - look.at, settings.window_seconds) / 60.0
        refaults, swapped_in = counted(look.vm, self._looks.vm)
        back = (
            refaults >= settings.refaults_per_minute * minutes
            or swapped_in >= settings.swap_in_mib_per_minute * MIB * minutes
        )
        faults = changed.major_faults or 0
        lost = -(changed.memory_bytes or 0)
        swapped = changed.swapped_bytes or 0
        if swapped >= tick.gib(settings.swapped_gib):
            what = f"{swapped / GIB:.1f} GiB went to swap"
        elif back and faults >= settings.faults_per_minute * minutes:
            what = f"{faults / minutes:.0f} major faults a minute"
        elif scarce and lost >= tick.gib(settings.lost_gib):
            what = f"it lost {lost / GIB:.1f} GiB"
        else:
            return ""
        return f"is evicted: {what}, and pages are read back" if back else f"is squeezed: {what}"

    def _update(self, tick: Tick, victim: _Victim, lost: str, grower: Process | None) -> bool:
        if lost:
            victim.lost = lost
        return victim.level.update(
            tick.now,
            enter=bool(lost) and grower is not None,
            leave=not lost,
            interval_seconds=tick.interval("processes"),
        )

    def _say(
        self, tick: Tick, process: Process, victim: _Victim, grower: Process | None
    ) -> Judgement:
        values: dict[str, Any] = {
            "subject": process.subject,
            "lost": victim.lost,
            "window": self.settings.window_seconds,
            "held": victim.level.held_seconds(tick.now),
        }
        template = "{subject} {lost} within {window:.0f} s"
        if grower is not None:
            values["grower"] = grower.subject
            template += " while {grower} grows"
        template += ", for {held:.0f} s"
        frozen = self._progress.frozen_seconds(tick.now, process)
        if frozen is None:
            return Judgement(State.WARNING, template + ".", values)
        values["frozen"] = frozen
        return Judgement(
            State.CRITICAL,
            template + "; its requests have made no token for {frozen:.0f} s.",
            values,
        )

    def _quiet(self, tick: Tick, found: list[Engine], *, pending: bool) -> Judgement:
        if len(found) < 2:  # noqa: PLR2004 - it takes two
            return Judgement(State.OK, "No two engines share the pool: nobody is squeezed.")
        for engine in found:
            for process in engine.processes:
                if process.swapped_bytes is None or (
                    process.gpu_bytes is None and process.resident_bytes is None
                ):
                    return Judgement(
                        State.UNKNOWN,
                        "What {subject} holds, or has in swap, cannot be read.",
                        {"subject": process.subject},
                    )
        if pending or not self._looks.full(tick.now):
            return Judgement(
                State.UNKNOWN,
                "{count} engines share the pool; not watched for {window:.0f} s yet.",
                {"count": len(found), "window": self.settings.window_seconds},
            )
        return Judgement(
            State.OK,
            "{count} engines share the pool and none loses memory to another.",
            {"count": len(found)},
        )
