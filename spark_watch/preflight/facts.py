"""Everything the checks judge, read beforehand: a check itself reads nothing and cannot wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_watch.detectors.timeline import REFERENCE_POOL_BYTES
from spark_watch.model import EMPTY, GIB, Gpu, GpuIdentity, Machine, Memory, Process, Zone
from spark_watch.preflight.boots import Boots
from spark_watch.preflight.cage import Answers
from spark_watch.preflight.clone import Clone
from spark_watch.preflight.estimate import Workload
from spark_watch.preflight.launches import Launches
from spark_watch.preflight.packages import Installed
from spark_watch.settings.conditions import ConditionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known before a run. ``None`` is "not read": the reason stands in ``unread``.

    Args:
        machine: what is known of the machine.
        gpus: one reading of each GPU.
        identities: the GPUs' names and compute capabilities.
        processes: GPU processes and their launchers.
        memory: the pool.
        free_blocks: bytes of a block to the number of free ones.
        zones: thermal zones.
        boots: how the last boots ended.
        sysctls: settings of the kernel's memory management, by name.
        guards: programs that kill before memory runs out.
        loader: (name, path) of every library in the loader's cache.
        cudart: whether the CUDA 13 run-time library loads, asked of this interpreter.
        container: signs of a container.
        python: the interpreter of the environment to check; ``None`` where none was named.
        installed: what the folders of that environment hold.
        torch: what importing torch there came to.
        flash: what importing flash-attn there came to.
        gpu_used: whether foreign code was let on the GPU: only where nothing else is on it.
        variables: the caller's environment.
        launches: what launch files and the environment say.
        launch_named: whether any launch file was named.
        clone: the playbooks' clone; ``None`` also where none was named.
        clone_named: whether one was named.
        pins: name to version of a lock or reference list; ``None`` where none was named.
        workload: what the run will need; ``None`` where nobody said.
        conditions: the levels, shared with the conditions of the daemon.
        now_seconds: unix time.
        unread: name of a field to the reason why it is ``None``.
    """

    machine: Machine = field(default_factory=Machine)
    gpus: tuple[Gpu, ...] | None = None
    identities: tuple[GpuIdentity, ...] = ()
    processes: tuple[Process, ...] | None = None
    memory: Memory | None = None
    free_blocks: Mapping[int, int] | None = None
    zones: tuple[Zone, ...] | None = None
    boots: Boots | None = None
    sysctls: Mapping[str, int] | None = None
    guards: tuple[str, ...] | None = None
    loader: tuple[tuple[str, str], ...] | None = None
    cudart: Answers | None = None
    container: tuple[str, ...] | None = None
    python: Path | None = None
    installed: Installed | None = None
    torch: Answers | None = None
    flash: Answers | None = None
    gpu_used: bool = False
    variables: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    launches: Launches | None = None
    launch_named: bool = False
    clone: Clone | None = None
    clone_named: bool = False
    pins: Mapping[str, str] | None = None
    workload: Workload | None = None
    conditions: ConditionSettings = field(default_factory=ConditionSettings)
    now_seconds: float = 0.0
    unread: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def foreign(self) -> bool:
        """Whether the machine is known to be no Spark, so that rules of a GB10 say nothing."""
        return self.machine.is_gb10 is False

    def why(self, name: str) -> str:
        """Return why a field is not known, in snake case."""
        return self.unread.get(name, "not_read")

    def gib(self, level: float) -> float:
        """Return a level in GiB, written for a pool of 121.7 GiB, in bytes for this one."""
        total = self.memory.total_bytes if self.memory is not None else None
        return level * GIB * ((total or REFERENCE_POOL_BYTES) / REFERENCE_POOL_BYTES)

    def version(self, name: str) -> str | None:
        """Return the installed version of a distribution, ``None`` where it is not there."""
        return None if self.installed is None else self.installed.versions.get(name)

    @property
    def headroom_bytes(self) -> int | None:
        """What can still be allocated: free huge pages where there are any, else MemAvailable.

        Swap is left out: it does not rescue an allocation of the driver.

        Source: NVIDIA's known issues of the DGX Spark (unified memory); ggml-org/llama.cpp#17368.
        """
        memory = self.memory
        if memory is None:
            return None
        if memory.huge_pages_total:
            if memory.huge_pages_free is None or memory.huge_page_bytes is None:
                return None
            return memory.huge_pages_free * memory.huge_page_bytes
        return memory.available_bytes
