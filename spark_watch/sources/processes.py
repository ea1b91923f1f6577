"""The processes that hold GPU memory, and their launchers."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from spark_watch.model import Process
from spark_watch.sources.cgroups import Refaults
from spark_watch.sources.tracked import Tracked

_ALWAYS: Final = 64
_IN_TURN: Final = 32
"""A driver lists up to 950 processes. The largest are read every time, the rest in turn."""


class Server(NamedTuple):
    """A server by the name of its workload (``vllm/1234``), its engine, process and port."""

    workload: str
    engine: str
    pid: int
    port: int
    container: str | None


class ProcessesSource:
    """Adds to NVML's list what ``/proc`` says of each process in it, and of their launchers.

    No other process is looked at, except the ancestors of these when one is new or has changed.
    Reading a command line waits for a lock of that process, which a process stuck in the kernel may
    hold: call it from a thread that nobody waits for.

    Args:
        proc_root: where ``/proc`` is.
        sys_root: where ``/sys`` is, for control groups.
        ticks_per_second: the unit of start times in ``/proc/PID/stat``; the running kernel's.
    """

    name = "processes"

    def __init__(
        self,
        *,
        proc_root: Path = Path("/proc"),
        sys_root: Path = Path("/sys"),
        ticks_per_second: int = os.sysconf("SC_CLK_TCK"),
    ) -> None:
        self._proc_root = proc_root
        self._ticks_per_second = ticks_per_second
        self._refaults = Refaults(sys_root=sys_root)
        self._tracked: dict[int, Tracked] = {}
        self._turn = 0

    def read(self, listed: Sequence[Process]) -> tuple[Process, ...]:
        """Return every process of ``listed`` in its order, then the launchers not in it, by pid.

        A process whose ``/proc`` is hidden, gone or garbled comes back as it was given. Of a long
        list the largest 64 are read at each call and 32 of the others in turn, each with its
        launcher; between its turns a process has the values of its last. Refaults are read for one
        control group a call.

        Args:
            listed: what NVML says: pid, kind, GPU bytes, and a name where it has one.
        """
        always, in_turn = self._due(listed)
        due = [*always, *in_turn]
        pids = {process.pid for process in listed}
        self._refresh([*due, *(self._launchers(due) - pids)])
        for pid in due:
            tracked = self._tracked[pid]
            if not tracked.settled or not self._runs(tracked):
                tracked.identify(launched=True)
        launchers = self._launchers(due) - pids
        self._refresh(launchers - self._tracked.keys())
        for pid in launchers:
            if not self._tracked[pid].settled:
                self._tracked[pid].identify(launched=False)
        for pid in in_turn:
            self._tracked[pid].close()
        for pid in self._tracked.keys() - pids - launchers:
            self._tracked.pop(pid).close()
        self._refaults.read(self._groups())
        alive = sorted(pid for pid in launchers if self._tracked[pid].alive)
        return tuple(
            self._describe(process)
            for process in (*listed, *(Process(pid=pid, kind="launcher") for pid in alive))
        )

    def servers(self) -> tuple[Server, ...]:
        """Return the servers among the processes of the last reading, each by its own port.

        One that several GPU processes belong to is named by the first of them, as findings do.
        """
        owners: dict[int, int] = {}
        for pid, tracked in sorted(self._tracked.items()):
            if tracked.identity is not None and tracked.identity.launcher is not None:
                owners.setdefault(tracked.identity.launcher.pid, pid)
        found = []
        for pid, tracked in sorted(self._tracked.items()):
            identity = tracked.identity
            if identity is None or not tracked.alive:
                continue
            engine, port = identity.command.engine, identity.command.port
            if engine is not None and port is not None:
                owner = owners.get(pid, pid)
                found.append(Server(f"{engine}/{owner}", engine, pid, port, identity.container))
        return tuple(found)

    def close(self) -> None:
        """Close every descriptor and forget every process."""
        for tracked in self._tracked.values():
            tracked.close()
        self._tracked = {}
        self._refaults.close()

    def _due(self, listed: Sequence[Process]) -> tuple[list[int], list[int]]:
        """Return the pids to read at every call, and those whose turn it is."""
        sizes = {process.pid: process.gpu_bytes or 0 for process in listed}
        always = heapq.nlargest(_ALWAYS, sizes, key=sizes.__getitem__)
        rest = sorted(sizes.keys() - set(always))
        start = self._turn if self._turn < len(rest) else 0
        self._turn = start + _IN_TURN
        return always, rest[start : self._turn]

    def _refresh(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if pid not in self._tracked:
                self._tracked[pid] = Tracked(pid, proc_root=self._proc_root)
            self._tracked[pid].refresh()

    def _launchers(self, pids: Iterable[int]) -> set[int]:
        known = (self._tracked[pid].identity for pid in pids if pid in self._tracked)
        return {each.launcher.pid for each in known if each is not None and each.launcher}

    def _runs(self, tracked: Tracked) -> bool:
        """Whether the launcher of a process still runs; true where it never had one."""
        launcher = None if tracked.identity is None else tracked.identity.launcher
        if launcher is None:
            return True
        found = self._tracked.get(launcher.pid)
        return found is not None and found.alive and found.started == launcher.started

    def _groups(self) -> Iterator[str]:
        for tracked in self._tracked.values():
            if tracked.identity is not None and tracked.identity.group is not None:
                yield tracked.identity.group

    def _describe(self, process: Process) -> Process:
        tracked = self._tracked.get(process.pid)
        if tracked is None or tracked.stat is None or tracked.identity is None:
            return process
        stat, identity = tracked.stat, tracked.identity
        command = identity.command
        return Process(
            pid=process.pid,
            name=command.name or process.name,
            kind=process.kind,
            engine=command.engine,
            container=identity.container,
            gpu_bytes=process.gpu_bytes,
            resident_bytes=tracked.resident_bytes,
            swapped_bytes=tracked.swapped_bytes,
            major_faults=stat.major_faults,
            cgroup_refaults=self._refaults.of(identity.group),
            started_seconds=stat.started / self._ticks_per_second,
            launcher_pid=None if identity.launcher is None else identity.launcher.pid,
            claim_ratio=command.claim.ratio,
            claim_bytes=command.claim.size,
        )
