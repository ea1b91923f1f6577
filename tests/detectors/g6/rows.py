"""Short ways to write processes and the samples that list them."""

from __future__ import annotations

from typing import Any

from spark_watch.model import GIB, Memory, Process, Sample


def process(pid: int, gpu_gib: float | None = None, **more: Any) -> Process:
    """Return a compute process that holds so much GPU memory."""
    fields: dict[str, Any] = {
        "name": "python3",
        "kind": "compute",
        "gpu_bytes": None if gpu_gib is None else round(gpu_gib * GIB),
        **more,
    }
    return Process(pid=pid, **fields)


def launcher(pid: int, **more: Any) -> Process:
    """Return the launcher of a server."""
    return Process(pid=pid, **{"name": "python3", "kind": "launcher", **more})


def pool(available_gib: float, *, residual_gib: float = 0.0) -> Memory:
    """Return a pool with so much available and so much held by the driver."""
    total = 121.7
    return Memory(
        total_bytes=round(total * GIB),
        free_bytes=round((total - residual_gib) * GIB),
        available_bytes=round(available_gib * GIB),
        cached_bytes=0,
        buffers_bytes=0,
        anonymous_bytes=0,
    )


def listing(
    second: float,
    processes: tuple[Process, ...] | None,
    *,
    available_gib: float | None = 60.0,
    residual_gib: float = 0.0,
    **more: Any,
) -> Sample:
    """Return a sample that lists processes; ``available_gib`` None leaves the pool unread."""
    memory = None
    if available_gib is not None:
        memory = pool(available_gib, residual_gib=residual_gib)
    return Sample(t=1e9 + second, processes=processes, memory=memory, **more)
