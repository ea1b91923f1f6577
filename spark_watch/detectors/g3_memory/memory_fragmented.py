"""Free memory lies in pieces too small for the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, Memory, Process, State
from spark_watch.settings.g3 import MemoryFragmentedSettings

MIB = GIB // 1024
"""One mebibyte in bytes."""

LARGE_BYTES = 4 * GIB
"""A GPU process that holds less leaves the blocks as they are."""

COMPACT = "sync; echo 1 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory"
"""The two commands in their order."""


class MemoryFragmented(Condition[MemoryFragmentedSettings]):
    """Much free memory, little of it in large blocks, and no engine that could have used them.

    Only before a launch does this mean anything: on healthy serving boxes no large block is left.
    And only where the GPU's memory comes out of this pool: on other machines broken-up memory is
    the normal end of a few days' work and hinders nobody.
    """

    name = "memory_fragmented"
    gotcha = "G3"
    part = "free_blocks"
    sources = ("buddyinfo", "meminfo", "processes")
    gb10_only = True
    summary = (
        "no engine running, >= 32 GiB free and < 25 % of it in blocks of 16 MiB (or the kernel's "
        "largest): reboot before the next launch if compaction does not help"
    )
    remedies: ClassVar = {
        State.INFO: f"Drop caches, compact, ask again: {COMPACT}. Do this only while no engine "
        "runs.",
        State.WARNING: f"Before the next launch: {COMPACT}. If the share stays low, reboot; a load "
        "would crawl or hang here although memory looks free. Never while an engine runs. A "
        "smaller memory fraction does not help.",
    }

    def __init__(self, settings: MemoryFragmentedSettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._broken = Level(settings.hold_seconds)
        self._processes: tuple[Process, ...] | None = None
        self._processes_at = 0.0

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the blocks of each reading, where no engine holds memory."""
        memory = self._pool.update(tick)
        sample = tick.sample
        if sample.processes is not None:
            self._processes = sample.processes
            self._processes_at = tick.now
        elif tick.now - self._processes_at > tick.stale_after("processes"):
            self._processes = None
        blocks = sample.free_blocks
        if not blocks:
            return None
        if memory is None or memory.free_bytes is None:
            return None
        return {"host": self._one(tick, memory, memory.free_bytes, blocks)}

    def _one(self, tick: Tick, memory: Memory, free: int, blocks: Mapping[int, int]) -> Judgement:
        settings = self.settings
        engine = self._engine(tick, memory)
        if engine is not None:
            self._broken.restart()
            return Judgement(State.UNKNOWN, engine)
        size = min(settings.block_mib * MIB, max(blocks))
        large = sum(bytes_ * count for bytes_, count in blocks.items() if bytes_ >= size)
        share = large / free if free > 0 else 0.0
        enough = free >= tick.gib(settings.free_gib)
        broken = self._broken.update(
            tick.now,
            enter=enough and share < settings.share_ratio,
            leave=not enough or share >= settings.leave_ratio,
            interval_seconds=tick.interval("free_blocks"),
        )
        values = {
            "free": free / GIB,
            "share": share,
            "size": size / MIB,
            "level": settings.share_ratio,
            "enough": tick.gib(settings.free_gib) / GIB,
            "held": self._broken.held_seconds(tick.now),
        }
        if broken:
            return Judgement(
                State.WARNING,
                "The host has {free:.0f} GiB free but only {share:.0%} of it in blocks of "
                "{size:.0f} MiB or more, below {level:.0%} for {held:.0f} s.",
                values,
            )
        if share >= settings.share_ratio:
            return Judgement(
                State.OK,
                "The host has {free:.0f} GiB free, {share:.0%} of it in blocks of {size:.0f} MiB "
                "or more (low is below {level:.0%}).",
                values,
            )
        if not enough:
            return Judgement(
                State.INFO,
                "The host has {free:.0f} GiB free, {share:.0%} of it in blocks of {size:.0f} MiB "
                "or more; below {enough:.0f} GiB free that says nothing: drop caches, compact, "
                "ask again.",
                values,
            )
        return Judgement(
            State.OK if self._broken.known else State.UNKNOWN,
            "The host has {free:.0f} GiB free and {share:.0%} of it in blocks of {size:.0f} MiB or "
            "more for {held:.0f} s; it counts as broken up after {hold:.0f} s.",
            {**values, "hold": settings.hold_seconds},
        )

    def _engine(self, tick: Tick, memory: Memory) -> str | None:
        """Return why the blocks say nothing now, ``None`` where no engine holds memory."""
        if self._processes is not None:
            if any(_is_engine(process) for process in self._processes):
                return (
                    "Not judged while an engine runs: on healthy serving boxes no large block is "
                    "left."
                )
            return None
        if memory.available_bytes is not None and memory.available_bytes >= tick.gib(
            self.settings.idle_available_gib
        ):
            return None
        return "Not judged without a list of GPU processes: an engine may be running."


def _is_engine(process: Process) -> bool:
    """Whether a process may have used up the large blocks."""
    if process.engine is not None:
        return True
    return process.kind == "compute" and (
        process.gpu_bytes is None or process.gpu_bytes >= LARGE_BYTES
    )
