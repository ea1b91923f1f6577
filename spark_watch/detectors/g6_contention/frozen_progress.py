"""Which servers have requests running and make no token, and which put requests back."""

from __future__ import annotations

from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Tally
from spark_watch.detectors.workloads import Moves, workloads
from spark_watch.model import Process


class FrozenProgress:
    """What the workloads' reports say of the processes that belong to them.

    Args:
        seconds: how long tokens must stand still while requests run.
        window_seconds: over which time requests that were put back are counted.
    """

    def __init__(self, seconds: float, window_seconds: float) -> None:
        self._seconds = seconds
        self._window = window_seconds
        self._moves: dict[str, Moves] = {}
        self._preempted: dict[str, tuple[float, Tally]] = {}

    def update(self, tick: Tick) -> None:
        """Take a sample; one without progress says nothing."""
        self._moves = workloads(tick)
        if tick.sample.progress is None:
            return
        preempted: dict[str, tuple[float, Tally]] = {}
        for name, moves in self._moves.items():
            total = moves.report.preemptions_total
            if total is None:
                continue
            before, tally = self._preempted.get(name, (total, Tally(self._window)))
            tally.add(tick.now, max(0, round(total - before)))
            preempted[name] = total, tally
        self._preempted = preempted

    def frozen_seconds(self, now: float, process: Process) -> float | None:
        """Return for how long the process's workload has been frozen, ``None`` where it is not."""
        for name, moves in self._moves.items():
            still = moves.still_seconds(now)
            if still >= moves.allowed_seconds(self._seconds) and _belongs(name, process):
                return still
        return None

    def preempted(self, process: Process) -> int:
        """Return how many requests the process's workload has put back within the window."""
        return sum(
            tally.total for name, (_, tally) in self._preempted.items() if _belongs(name, process)
        )


def _belongs(workload: str, process: Process) -> bool:
    """Whether a workload is this process's: by its full name, or by that of its engine alone."""
    return workload == process.subject or workload in {process.engine, process.name}
