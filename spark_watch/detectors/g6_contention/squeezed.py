"""One GPU process loses memory, or is paged out, while another takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g6_contention.engines import Engine, hidden, listed_engines
from spark_watch.detectors.g6_contention.frozen_progress import FrozenProgress
from spark_watch.detectors.g6_contention.looks import Change, Look, Looks, change, counted
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, Process, State
from spark_watch.settings.g6 import SqueezedSettings

MIB: Final = 1024**2

SWAPPED_SHARE: Final = 0.1
"""So much of a loss must have gone to swap: the rest may be file pages, which are thrown away."""


@dataclass(slots=True)
class _Victim:
    """What is remembered of a process; ``born_at`` is on the timeline."""

    started: float | None
    born_at: float
    level: Level
    lost: str = ""


class _Measure(NamedTuple):
    """What counts as a loss at one sample, in bytes and faults since the look."""

    minutes: float
    back: bool
    """Whether pages that had been thrown out are read back on this machine."""
    swapped_bytes: float
    faults: float
    refaults: float
    lost_bytes: float
    born_before: float
    """A process born later is still loading: what it frees and faults is its own start."""

    def lost(self, changed: Change) -> str:
        """Say what the process lost, empty where it lost nothing that counts.

        Memory that is merely gone was given back by the process itself; what was taken from it
        went to swap in part, or is missed.
        """
        lost_bytes = -changed.memory_bytes
        missed = self.back and changed.major_faults >= self.faults
        if changed.swapped_bytes >= self.swapped_bytes:
            what = f"{changed.swapped_bytes / GIB:.1f} GiB went to swap"
        elif missed:
            what = f"{changed.major_faults / self.minutes:.0f} major faults a minute"
        elif lost_bytes >= self.lost_bytes and (
            changed.swapped_bytes >= SWAPPED_SHARE * lost_bytes or changed.refaults >= self.refaults
        ):
            what = f"it lost {lost_bytes / GIB:.1f} GiB"
        else:
            return ""
        if self.back or changed.refaults >= self.refaults:
            return f"is evicted: {what}, and pages are read back"
        return f"is squeezed: {what}"


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
        "A GPU process loses >= 0.25 GiB to swap, or >= 1 GiB with refaults or swap, or has >= 50 "
        "major faults/min with refaults, while another grows; critical when its progress is "
        "frozen too"
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
        self._progress = FrozenProgress(settings.frozen_seconds, settings.window_seconds)
        self._victims: dict[int, _Victim] = {}
        self._first = True
        self._stirred = False
        """Whether a level stands or a hold is pending, or somebody is new."""

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
        measure = self._measure(tick, look)
        losses, growers = self._compare(tick, found, look, measure)
        raised: dict[str, Judgement | None] = {}
        if losses or self._stirred:
            raised = self._weigh(tick, found, losses, growers)
        return raised or {"host": self._quiet(tick, found)}

    def _compare(
        self, tick: Tick, found: list[Engine], look: Look, measure: _Measure
    ) -> tuple[dict[int, str], list[Process | None]]:
        """Return what processes lost since the look, and of each engine one that grew.

        Who is new is remembered with the moment of its birth, who is gone is forgotten. A process
        that began since the look has grown by all it holds.
        """
        grown_bytes = tick.gib(self.settings.grown_gib)
        victims: dict[int, _Victim] = {}
        losses: dict[int, str] = {}
        growers: list[Process | None] = []
        for engine in found:
            grower = None
            for process in engine.processes:
                pid = process.pid
                victim = self._victims.get(pid)
                if victim is None or victim.started != process.started_seconds:
                    victim = self._meet(tick, process)
                victims[pid] = victim
                changed = change(look.processes.get(pid), process)
                if changed is None:
                    taken = (process.gpu_bytes or 0) + (process.resident_bytes or 0)
                else:
                    taken = changed.taken_bytes
                    lost = measure.lost(changed)
                    if lost and victim.born_at <= measure.born_before:
                        losses[pid] = lost
                if taken >= grown_bytes:
                    grower = process
            growers.append(grower)
        self._victims = victims
        self._first = False
        return losses, growers

    def _weigh(
        self,
        tick: Tick,
        found: list[Engine],
        losses: Mapping[int, str],
        growers: list[Process | None],
    ) -> dict[str, Judgement | None]:
        """Hold each loss against the growth of another engine; return those that stand."""
        interval = tick.interval("processes")
        raised: dict[str, Judgement | None] = {}
        self._stirred = bool(losses)
        for index, engine in enumerate(found):
            others = growers[:index] + growers[index + 1 :]
            grower = next((other for other in others if other is not None), None)
            for process in engine.processes:
                victim = self._victims[process.pid]
                lost = losses.get(process.pid, "")
                victim.lost = lost or victim.lost
                if victim.level.update(
                    tick.now,
                    enter=bool(lost) and grower is not None,
                    leave=not lost,
                    interval_seconds=interval,
                ):
                    raised[process.subject] = self._say(tick, process, victim, grower)
                    self._stirred = True
        return raised

    def _meet(self, tick: Tick, process: Process) -> _Victim:
        """Return what is to be remembered of a process that was not there before."""
        uptime, started = tick.sample.boottime_seconds, process.started_seconds
        # of one that was there before this watch nobody knows the age but its start
        born_at = -math.inf if self._first else tick.now
        if started is not None and uptime is not None:
            born_at = tick.now - (uptime - started)
        self._stirred = True
        level = Level(self.settings.hold_seconds, self.settings.leave_seconds)
        return _Victim(started, born_at, level)

    def _measure(self, tick: Tick, look: Look) -> _Measure:
        """Return what a loss since the look is measured by."""
        settings = self.settings
        minutes = max(tick.now - look.at, settings.window_seconds) / 60.0
        refault_level = settings.refaults_per_minute * minutes
        refaults, swapped_in = counted(look.vm, self._looks.vm)
        return _Measure(
            minutes=minutes,
            back=refaults >= refault_level
            or swapped_in >= settings.swap_in_mib_per_minute * MIB * minutes,
            swapped_bytes=tick.gib(settings.swapped_gib),
            faults=settings.faults_per_minute * minutes,
            refaults=refault_level,
            lost_bytes=tick.gib(settings.lost_gib),
            born_before=tick.now - settings.settle_seconds,
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
        preempted = self._progress.preempted(process)
        if preempted:
            values["preempted"] = preempted
            template += ", and put {preempted} requests back"
        frozen = self._progress.frozen_seconds(tick.now, process)
        if frozen is None:
            return Judgement(State.WARNING, template + ".", values)
        values["frozen"] = frozen
        return Judgement(
            State.CRITICAL,
            template + "; its requests have made no token for {frozen:.0f} s.",
            values,
        )

    def _quiet(self, tick: Tick, found: list[Engine]) -> Judgement:
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
        pending = self._stirred and not all(one.level.known for one in self._victims.values())
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
