"""Who holds the GPU: live processes only, the largest few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import Process

MOST: Final = 32
"""The most processes on the page: a box with 950 must not break its own monitoring."""


def shown(snapshot: Snapshot) -> list[Process]:
    """Return the GPU processes that stand on the page, largest first."""
    processes = [one for one in snapshot.latest.processes or () if one.kind != "launcher"]
    processes.sort(key=lambda process: (-(process.gpu_bytes or 0), process.pid))
    return processes[:MOST]


def _process(pick: Callable[[Process], float | None]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (
            ((str(process.pid), process.name or ""), pick(process)) for process in shown(snapshot)
        )

    return read


def _info(snapshot: Snapshot) -> Samples:
    return (
        (
            (
                str(process.pid),
                process.name or "",
                process.kind or "",
                process.engine or "",
                process.container or "",
            ),
            1.0,
        )
        for process in shown(snapshot)
    )


def _count(snapshot: Snapshot) -> Samples:
    processes = snapshot.latest.processes
    if processes is None:
        return one(None)
    return one(sum(1 for process in processes if process.kind != "launcher"))


_LABELS: Final = ("pid", "name")

FAMILIES: Final = (
    Family(
        "gpu_processes",
        "gauge",
        "Processes that hold the GPU, those not shown one by one included: "
        "nvmlDeviceGetComputeRunningProcesses and nvmlDeviceGetGraphicsRunningProcesses.",
        _count,
    ),
    Family(
        "gpu_process_info",
        "gauge",
        "What a GPU process is, constant 1, at most 32 of them: /proc/PID.",
        _info,
        ("pid", "name", "kind", "engine", "container"),
    ),
    Family(
        "gpu_process_memory_bytes",
        "gauge",
        "GPU memory of the process, a lower bound on a GB10: nvmlDeviceGetComputeRunningProcesses.",
        _process(lambda process: process.gpu_bytes),
        _LABELS,
    ),
    Family(
        "gpu_process_resident_bytes",
        "gauge",
        "Host memory of the process, without its GPU memory: VmRSS in /proc/PID/status.",
        _process(lambda process: process.resident_bytes),
        _LABELS,
    ),
    Family(
        "gpu_process_swapped_bytes",
        "gauge",
        "Memory of the process in swap: VmSwap in /proc/PID/status.",
        _process(lambda process: process.swapped_bytes),
        _LABELS,
    ),
    Family(
        "gpu_process_major_faults",
        "counter",
        "Page faults of the process that waited for a disk: majflt in /proc/PID/stat.",
        _process(lambda process: process.major_faults),
        _LABELS,
    ),
    Family(
        "gpu_process_claim_ratio",
        "gauge",
        "Share of the pool the process says it will take: its engine's flags in /proc/PID/cmdline.",
        _process(lambda process: process.claim_ratio),
        _LABELS,
    ),
    Family(
        "gpu_process_claim_bytes",
        "gauge",
        "Memory the process says it will take: its engine's flags in /proc/PID/cmdline.",
        _process(lambda process: process.claim_bytes),
        _LABELS,
    ),
)
