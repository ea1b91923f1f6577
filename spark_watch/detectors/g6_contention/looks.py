"""Two looks at the processes a minute apart: who lost memory meanwhile, and who grew."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from spark_watch.detectors.timeline import Tick
from spark_watch.model import Process, Vm

LOOKS: Final = 12
"""So many looks at the list are kept for the window."""


@dataclass(frozen=True, slots=True)
class Look:
    """The list at one moment, and the kernel's counters beside it."""

    at: float
    processes: dict[int, Process]
    vm: Vm | None


class Change(NamedTuple):
    """What became of one process since the look before; what is not known counts as no change.

    ``memory_bytes`` is GPU memory and resident memory together, so that weights that go from the
    one to the other are neither lost nor gained. ``taken_bytes`` counts what went to swap as well:
    a process that grows while it is paged out itself takes more all the same.
    """

    memory_bytes: int
    swapped_bytes: int
    taken_bytes: int
    major_faults: int
    refaults: int
    """Of its control group."""


class Looks:
    """The lists of the last window, thinned to a dozen.

    Args:
        seconds: length of the window; two intervals where those are longer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._looks: deque[Look] = deque(maxlen=LOOKS + 2)
        self._vm: Vm | None = None

    def add(self, tick: Tick, processes: tuple[Process, ...]) -> Look:
        """Take a list and return the oldest look in the window."""
        now = tick.now
        if tick.sample.vm is not None:
            self._vm = tick.sample.vm
        looks = self._looks
        span = max(self._seconds, 2.0 * tick.interval("processes"))
        if not looks or now - looks[-1].at >= self._seconds / LOOKS:
            looks.append(Look(now, {process.pid: process for process in processes}, self._vm))
        while len(looks) > 1 and now - looks[0].at > span * 1.01:
            looks.popleft()
        return looks[0]

    def note(self, tick: Tick) -> None:
        """Keep the newest counters of a sample that holds no list."""
        if tick.sample.vm is not None:
            self._vm = tick.sample.vm

    def full(self, now: float) -> bool:
        """Whether the oldest look is as old as the window, to within the spacing of looks."""
        return now - self._looks[0].at >= self._seconds * (1.0 - 1.0 / LOOKS)

    @property
    def vm(self) -> Vm | None:
        """The newest counters."""
        return self._vm


def change(before: Process | None, after: Process) -> Change | None:
    """Return what became of a process, ``None`` where it was not there: a pid may be reused."""
    if before is None or before.started_seconds != after.started_seconds:
        return None
    memory = _difference(before.gpu_bytes, after.gpu_bytes) + _difference(
        before.resident_bytes, after.resident_bytes
    )
    swapped = _difference(before.swapped_bytes, after.swapped_bytes)
    faults = _difference(before.major_faults, after.major_faults)
    refaults = _difference(before.cgroup_refaults, after.cgroup_refaults)
    return Change(memory, swapped, memory + swapped, faults, refaults)


def counted(before: Vm | None, after: Vm | None) -> tuple[int, int]:
    """Return refaults and bytes swapped in between two looks; a reset counter counts nothing."""
    if before is None or after is None:
        return 0, 0
    refaults = _difference(before.refaults, after.refaults)
    swapped_in = _difference(before.swapped_in_bytes, after.swapped_in_bytes)
    return max(0, refaults), max(0, swapped_in)


def _difference(before: int | None, after: int | None) -> int:
    return 0 if before is None or after is None else after - before
