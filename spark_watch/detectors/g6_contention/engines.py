"""Which of the listed processes belong together, and what each such engine claims of the pool.

A server is often several processes: a launcher that holds the command line and workers that hold
the memory. Its own workers are no strangers to it, so contention is judged between engines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from spark_watch.detectors.condition import Judgement
from spark_watch.detectors.timeline import Tick
from spark_watch.model import Memory, Process, State

MAXIMUM_ANCESTORS: Final = 8
"""Launchers above one another that are followed; a server has two."""

HIDDEN_GIB: Final = 16.0
"""Driver memory with no process to it that cannot be the driver's own (1 to 9 GiB are).

Source: Syllo/nvtop#449 (9 GiB between the two counts), MiaAI-Lab/sparkDash#10 (a list that is
empty because the reader sits in another pid namespace).
"""


@dataclass(slots=True)
class Engine:
    """Compute processes that belong together, lowest pid first.

    Attributes:
        claim: share of the pool that it claims, 0 to 1 and more; ``None`` where no flag says.
        gpu_bytes: what its processes hold of the GPU's memory, as far as NVML says.
        sized: whether NVML says so of all of them.
    """

    processes: list[Process] = field(default_factory=list)
    claim: float | None = None
    gpu_bytes: int = 0
    sized: bool = True

    @property
    def subject(self) -> str:
        """How a finding names it: by its first process."""
        return self.processes[0].subject


def engines(processes: Iterable[Process], pool_bytes: int | None) -> list[Engine]:
    """Return the engines among the processes, in the order of their first pid.

    Processes are of one engine where they share a launcher, or where one launched the other, or
    where they share a container and no launcher says otherwise. Graphics processes and launchers
    are of none, but a launcher's claim is its engine's.

    Args:
        processes: all that are listed.
        pool_bytes: size of the pool, without which a claim in bytes is no share.
    """
    ordered = sorted(processes, key=attrgetter("pid"))
    keys = _keys(ordered)
    found: dict[int, Engine] = {}
    ratios: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for process in ordered:
        if process.kind == "graphics":
            continue
        key = keys[process.pid]
        # every worker repeats the command line's claim: the largest is the claim, not the sum
        if process.claim_ratio is not None:
            ratios[key] = max(ratios.get(key, 0.0), process.claim_ratio)
        if process.claim_bytes is not None:
            sizes[key] = max(sizes.get(key, 0), process.claim_bytes)
        if process.kind == "launcher":
            continue
        engine = found.get(key)
        if engine is None:
            engine = found[key] = Engine()
        engine.processes.append(process)
        if process.gpu_bytes is None:
            engine.sized = False
        else:
            engine.gpu_bytes += process.gpu_bytes
    for key, engine in found.items():
        if key in sizes and pool_bytes:
            # a size overrides the fraction, and is the cache alone: what is held already counts too
            engine.claim = max(sizes[key], engine.gpu_bytes) / pool_bytes
        else:
            engine.claim = ratios.get(key)
    return list(found.values())


def listed_engines(tick: Tick) -> list[Engine]:
    """Return the engines of this sample's list, worked out once for all rules that ask."""
    found: list[Engine] | None = tick.notes.get("engines")
    if found is None:
        found = tick.notes["engines"] = engines(tick.sample.processes or (), tick.pool_bytes)
    return found


def _keys(ordered: list[Process]) -> dict[int, int]:
    """Return pid to the pid by which its engine is known."""
    by_pid = {process.pid: process for process in ordered}
    keys: dict[int, int] = {}
    containers: dict[str, int] = {}
    tops: set[int] = set()
    strays: list[Process] = []
    for process in ordered:
        key = process.pid
        launcher = process.launcher_pid
        if launcher is None:
            keys[key] = key
            if process.container is not None:
                strays.append(process)
            continue
        for _ in range(MAXIMUM_ANCESTORS):
            key = launcher
            above = by_pid.get(key)
            if above is None or above.launcher_pid is None:
                break
            launcher = above.launcher_pid
        keys[process.pid] = key
        tops.add(key)
        if process.container is not None:
            containers.setdefault(process.container, key)
    for process in strays:
        if process.pid not in tops and process.container is not None:
            keys[process.pid] = containers.setdefault(process.container, process.pid)
    return keys


def hidden(tick: Tick, memory: Memory | None) -> Judgement | None:
    """Say so where the list of processes is empty although the driver holds memory.

    Returns:
        A judgement that nothing is known, or ``None`` where the list can be believed.
    """
    if tick.sample.processes != () or tick.is_gb10 is not True or memory is None:
        return None
    residual = memory.driver_residual_bytes
    if residual is None or residual <= tick.gib(HIDDEN_GIB):
        return None
    return Judgement(
        State.UNKNOWN,
        "NVML lists no process although the driver holds {held:.1f} GiB: they cannot be seen "
        "from here.",
        {"held": tick.in_gib(residual)},
        remedy="Run spark-watch on the host, or in the host's pid namespace (--pid=host).",
    )
