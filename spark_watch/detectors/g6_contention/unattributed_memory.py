"""The driver holds memory that no listed process explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, Process, State
from spark_watch.settings.g6 import UnattributedMemorySettings


class UnattributedMemory(Condition[UnattributedMemorySettings]):
    """What ``/proc/meminfo`` leaves out, less what NVML says of each process.

    Only where the GPU has no memory of its own is the first number the driver's.
    """

    name = "unattributed_memory"
    gotcha = "G6"
    part = "processes"
    sources = ("processes", "meminfo")
    gb10_only = True
    summary = "Driver memory exceeds the listed processes by > 16 GiB for 60 s (info)"
    remedies: ClassVar = {
        State.INFO: "If no process is listed, run spark-watch on the host or in its pid namespace "
        "(--pid=host). Otherwise look for leftovers of an engine that ended (spark-watch who): "
        "their memory may take minutes to come back, and a reboot frees it for certain. Managed "
        "CUDA memory is in no list and explains it too. Dropping caches does not help.",
    }

    def __init__(self, settings: UnattributedMemorySettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._level = Level(settings.hold_seconds)

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the difference at each list; where one size is missing it may explain it all."""
        memory = self._pool.update(tick)
        processes = tick.sample.processes
        residual = memory.driver_residual_bytes if memory is not None else None
        if processes is None:
            return None
        if residual is None:
            return {
                "host": Judgement(
                    State.UNKNOWN, "What the driver holds is not known: the pool cannot be read."
                )
            }
        owners = [process for process in processes if process.kind != "launcher"]
        return {"host": self._one(tick, owners, residual)}

    def _one(self, tick: Tick, owners: list[Process], residual: int) -> Judgement:
        settings = self.settings
        known = sum(process.gpu_bytes or 0 for process in owners)
        unsized = sum(process.gpu_bytes is None for process in owners)
        gap = residual - known
        over = gap > tick.gib(settings.info_gib)
        raised = self._level.update(
            tick.now,
            enter=over and not unsized,
            leave=gap < tick.gib(settings.leave_gib) or unsized > 0,
            interval_seconds=tick.interval("processes"),
        )
        values = {
            "residual": residual / GIB,
            "known": known / GIB,
            "gap": gap / GIB,
            "level": tick.gib(settings.info_gib) / GIB,
            "count": f"{len(owners)} listed process{'es' if len(owners) != 1 else ''}",
            "held": self._level.held_seconds(tick.now),
            "hold": settings.hold_seconds,
        }
        if raised:
            if not owners:
                return Judgement(
                    State.INFO,
                    "The driver holds {residual:.1f} GiB and no process is listed, for "
                    "{held:.0f} s: spark-watch is in another pid namespace, or it is a leftover.",
                    values,
                )
            return Judgement(
                State.INFO,
                "The driver holds {residual:.1f} GiB, {gap:.1f} GiB more than the {count} "
                "(level {level:.1f} GiB), for {held:.0f} s.",
                values,
            )
        if over and unsized:
            return Judgement(
                State.UNKNOWN,
                "The driver holds {gap:.1f} GiB more than NVML says of the processes, but it does "
                "not say the size of all of them.",
                values,
            )
        if over and not self._level.known:
            return Judgement(
                State.UNKNOWN,
                "The driver holds {gap:.1f} GiB more than the listed processes; it counts after "
                "{hold:.0f} s.",
                values,
            )
        return Judgement(
            State.OK,
            "The driver holds {residual:.1f} GiB, the {count} {known:.1f} GiB of it.",
            values,
        )
