"""Which processes hold GPU memory, since when, and which of them are growing."""

from __future__ import annotations

from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Recent
from spark_watch.model import GIB, Process

YOUNG_SECONDS = 900.0
"""A process younger than this is still starting; weight loads take up to 550 s
(FujitsuPolycom/sparkring#173)."""

GROWTH_SECONDS = 60.0
"""Growth is what was added in the last minute."""


class _Held:
    """One process as it was seen last."""

    __slots__ = ("gpu_bytes", "since", "started")

    def __init__(self, since: float, started: float | None) -> None:
        self.since = since
        self.started = started
        self.gpu_bytes = Recent(GROWTH_SECONDS, capacity=64)


class GpuProcesses:
    """Follows the list of processes that hold GPU memory. Launchers do not count.

    A process of the first list is as old as it says of itself, and old where it does not say.

    Attributes:
        changed: whether this sample's list differs from the one before; the first one does.
        first: whether this sample holds the first list.
    """

    __slots__ = ("_held", "changed", "first")

    def __init__(self) -> None:
        self._held: dict[int, _Held] | None = None
        self.changed = False
        self.first = False

    def update(self, tick: Tick) -> None:
        """Look at a sample; one without a list changes nothing."""
        self.changed = False
        self.first = False
        processes = tick.sample.processes
        if processes is None:
            return
        first = self.first = self._held is None
        held = self._held or {}
        now: dict[int, _Held] = {}
        for process in processes:
            if process.kind == "launcher":
                continue
            known = held.get(process.pid)
            if known is None or _another(known, process):
                known = _Held(_started(tick, process, first=first), process.started_seconds)
                self.changed = True
            if process.gpu_bytes is not None:
                known.gpu_bytes.add(tick.now, process.gpu_bytes)
            now[process.pid] = known
        if first or held.keys() != now.keys():
            self.changed = True
        self._held = now

    @property
    def youngest_since(self) -> float:
        """When the youngest started, on the timeline; -inf where none is known to have started."""
        return max((one.since for one in (self._held or {}).values()), default=float("-inf"))

    def loading_bytes(self, now: float) -> float:
        """Bytes that processes younger than a quarter of an hour added in the last minute."""
        return sum(
            max(0.0, one.gpu_bytes[-1][1] - one.gpu_bytes[0][1])
            for one in (self._held or {}).values()
            if now - one.since < YOUNG_SECONDS and len(one.gpu_bytes)
        )


def _another(known: _Held, process: Process) -> bool:
    """Whether the number went to another process."""
    return (
        known.started is not None
        and process.started_seconds is not None
        and known.started != process.started_seconds
    )


def _started(tick: Tick, process: Process, *, first: bool) -> float:
    """Return when a process not seen before started, on the timeline."""
    if process.started_seconds is not None and tick.sample.boottime_seconds is not None:
        return tick.now - max(0.0, tick.sample.boottime_seconds - process.started_seconds)
    return float("-inf") if first else tick.now


def loading(growth_bytes: float) -> bool:
    """Whether the growth of young processes is a load under way: half a GiB a minute."""
    return growth_bytes >= GIB / 2
