"""An engine process holds GPU memory although the launcher that we saw is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g6_contention.engines import hidden
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, Process, State
from spark_watch.settings.g6 import OrphanedMemorySettings

ABSENT: Final = -1.0
"""Stands for the start of a launcher that is not in the list."""


@dataclass(slots=True)
class _Owner:
    """A process that holds GPU memory, and the launcher it was last seen with."""

    started: float | None
    gone: Level
    launcher: int | None = None
    launcher_started: float | None = ABSENT
    """The launcher's own start, so that its pid may not be taken for it later."""


class OrphanedMemory(Condition[OrphanedMemorySettings]):
    """Owners of GPU memory that have outlived their launcher, each a subject.

    A launcher that was never seen is not missed: engines may be started without one. The rule asks
    for parents alone and holds on every machine.
    """

    name = "orphaned_memory"
    gotcha = "G6"
    part = "processes"
    sources = ("processes",)
    summary = "GPU memory held by a process whose launcher (seen before) is gone for 60 s"
    remedies: ClassVar = {
        State.WARNING: "End the process that is named (kill PID, then kill -9 PID) and wait until "
        "available memory is back, which may take minutes; then start the server again. Starting "
        "it with a lower fraction does not help, nor does stopping the container that is gone. A "
        "process in D state cannot be killed: reboot.",
    }

    def __init__(self, settings: OrphanedMemorySettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._owners: dict[int, _Owner] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge every owner of GPU memory; where none is orphaned the host is ok."""
        memory = self._pool.update(tick)
        processes = tick.sample.processes
        if processes is None:
            return None
        unseen = hidden(tick, memory)
        if unseen is not None:
            return {"host": unseen}
        launchers = {
            process.pid: process.started_seconds
            for process in processes
            if process.kind != "graphics"
        }
        owners: dict[int, _Owner] = {}
        found: dict[str, Judgement | None] = {}
        for process in processes:
            if process.kind in {"launcher", "graphics"}:
                continue
            owner = self._owners.get(process.pid)
            if owner is None or owner.started != process.started_seconds:
                owner = _Owner(process.started_seconds, Level(self.settings.hold_seconds))
            owners[process.pid] = owner
            if self._is_orphaned(tick, process, owner, launchers):
                found[process.subject] = self._say(tick, process, owner)
        self._owners = owners
        return found or {
            "host": Judgement(
                State.OK,
                "{count} processes hold GPU memory; no launcher of one has gone.",
                {"count": len(owners)},
            )
        }

    def _is_orphaned(
        self, tick: Tick, process: Process, owner: _Owner, launchers: Mapping[int, float | None]
    ) -> bool:
        launcher = process.launcher_pid
        gone = False
        if launcher is None:
            gone = owner.launcher is not None
        else:
            started = launchers.get(launcher, ABSENT)
            if launcher != owner.launcher or owner.launcher_started == ABSENT:
                owner.launcher, owner.launcher_started = launcher, started
            else:
                # a launcher that was listed must be so still: its pid may outlive it
                gone = started != owner.launcher_started
        if not gone and owner.gone.resting:
            return False
        size = process.gpu_bytes
        held = size is None or size >= tick.gib(self.settings.minimum_gib)
        return owner.gone.update(
            tick.now,
            enter=gone and held,
            leave=not gone,
            interval_seconds=tick.interval("processes"),
        )

    def _say(self, tick: Tick, process: Process, owner: _Owner) -> Judgement:
        values = {
            "subject": process.subject,
            "launcher": owner.launcher,
            "held": owner.gone.held_seconds(tick.now),
        }
        if process.gpu_bytes is None:
            template = "{subject} holds GPU memory"
        else:
            values["gib"] = process.gpu_bytes / GIB
            template = "{subject} holds {gib:.1f} GiB of GPU memory"
        template += "; its launcher, pid {launcher}, has been gone for {held:.0f} s."
        return Judgement(State.WARNING, template, values)
