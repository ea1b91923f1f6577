"""The driver writes that it got no memory: one line is a retry, many are the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Tally
from spark_watch.model import Memory, State
from spark_watch.settings.g3_driver import DriverAllocationFailuresSettings


class DriverAllocationFailures(Condition[DriverAllocationFailuresSettings]):
    """Lines with ``NV_ERR_NO_MEMORY`` over the last minute, weighed by how short memory is.

    The counts are those of machines whose GPU allocates from the host's pool. A silent log proves
    nothing: the kernel may drop lines, and wedges without one are known
    (NVIDIA/open-gpu-kernel-modules#1358).
    """

    name = "driver_allocation_failures"
    gotcha = "G3"
    part = "kernel"
    sources = ("kernel_log",)
    gb10_only = True
    summary = (
        "NV_ERR_NO_MEMORY >= 20 in 60 s, or >= 5 with < 12 GiB available or the driver holding "
        "> 85 % of the pool; critical with memory_collapse (for < 20 lines with a critical one)"
    )
    remedies: ClassVar = {
        State.INFO: "Nothing to do: one to three lines around an engine's start are retries that "
        "succeeded with smaller pages.",
        State.WARNING: "Start nothing more on the GPU, let no long prompt in, and give the engine "
        "less (smaller batch, context or --kv-cache-memory-bytes) at its next start. Available "
        "memory may still look fine: the driver needs whole blocks. A container's memory limit "
        "does not hold CUDA memory.",
        State.CRITICAL: "Stop the youngest GPU engine now, all of its processes: killing its API "
        "server alone leaves the engine process holding the memory. Seconds count. Swap does not "
        "help a driver allocation, and the OOM killer does not come for it.",
    }

    def __init__(self, settings: DriverAllocationFailuresSettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._lines = Tally(settings.window_seconds)
        self._many = Level(0.0)
        self._read_at: float | None = None

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the lines of the last minute; ok needs a whole minute that was read."""
        memory = self._pool.update(tick)
        events = tick.sample.kernel
        if events is None:
            return None
        now = tick.now
        read_at, self._read_at = self._read_at, now
        if read_at is not None and now - read_at > tick.stale_after("kernel"):
            self._lines.restart()
        lines = self._lines.add(
            now, sum(event.count for event in events if event.kind == "nv_err_no_memory")
        )
        return {"host": self._say(tick, lines, memory)}

    def _say(self, tick: Tick, lines: int, memory: Memory | None) -> Judgement:
        settings = self.settings
        if not lines:
            self._many.restart()
            template = "No NV_ERR_NO_MEMORY in the last {seconds:.0f} s"
            state = State.OK
            if not self._lines.full(tick.now):
                template += ", which were not all read"
                state = State.UNKNOWN
            return Judgement(state, template + ".", {"seconds": settings.window_seconds})
        residual = memory.driver_residual_bytes if memory is not None else None
        available = memory.available_bytes if memory is not None else None
        many = self._many.update(
            tick.now,
            enter=lines >= settings.burst_lines
            or (lines >= settings.strained_lines and self._strained(tick, available, residual)),
            leave=lines < settings.leave_lines,
            interval_seconds=tick.interval("kernel"),
        )
        values: dict[str, Any] = {"lines": lines, "seconds": settings.window_seconds}
        template = "The driver wrote NV_ERR_NO_MEMORY in the last {seconds:.0f} s, lines: {lines}"
        if available is not None:
            values["available"] = tick.in_gib(available)
            template += "; {available:.1f} GiB are available"
        if residual is not None:
            values["residual"] = tick.in_gib(residual)
            template += ", the driver holds {residual:.1f} GiB"
        if not many:
            return Judgement(State.INFO, template + ".", values)
        # a few lines beside a fall that may yet come to rest are seen in a start-up's dip as well
        level = State.WARNING if lines >= settings.burst_lines else State.CRITICAL
        if tick.notes.get("memory_collapse", State.UNKNOWN) >= level:
            return Judgement(State.CRITICAL, template + ", and memory is collapsing.", values)
        return Judgement(State.WARNING, template + ".", values)

    def _strained(self, tick: Tick, available: int | None, residual: int | None) -> bool:
        """Whether memory is short, by what is available or by what the driver holds."""
        settings = self.settings
        if available is not None and available < tick.gib(settings.low_memory_gib):
            return True
        pool = tick.pool_bytes
        if residual is None or pool is None:
            return False
        return residual > settings.driver_ratio * pool
