"""G6: one pool for everything, so every process on the GPU is a neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spark_watch.detectors.g6_contention.engines import HIDDEN_GIB, Engine, engines
from spark_watch.model import GIB
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Result

FIX: Final = (
    "stop it by its own stop command before the run, or start it again with a size that fits "
    "(vLLM --kv-cache-memory-bytes, SGLang --mem-fraction-static); a container's memory limit does "
    "not hold CUDA memory"
)


def check(facts: Facts) -> Iterator[Line]:
    """Judge every engine on the GPU: capped or not, and whether it may stay."""
    if facts.processes is None:
        yield Line(
            "G6",
            "processes",
            Result.SKIP,
            f"GPU processes could not be listed: {facts.why('processes')}",
            "look at nvidia-smi on the host before the run",
        )
        return
    if hidden(facts):
        yield Line(
            "G6",
            "processes",
            Result.SKIP,
            "NVML lists no process although the driver holds memory: they cannot be seen from here",
            "run on the host, or in the host's pid namespace (--pid=host)",
        )
        return
    memory = facts.memory
    pool = memory.total_bytes if memory is not None else None
    found = engines(facts.processes, pool)
    if not found:
        yield Line("G6", "processes", Result.PASS, "nothing else computes on the GPU")
    for engine in found:
        yield _engine(facts, engine)


def hidden(facts: Facts) -> bool:
    """Whether the list is empty although the driver of a GB10 holds memory for somebody."""
    if facts.processes or facts.memory is None or not facts.machine.is_gb10:
        return False
    residual = facts.memory.driver_residual_bytes
    return residual is not None and residual > facts.gib(HIDDEN_GIB)


def may_stay(facts: Facts, engine: Engine) -> bool:
    """Whether an engine is small, or capped low enough to leave room for a run beside it.

    The levels are those of the condition ``pool_overcommitted``.
    """
    settings = facts.conditions.pool_overcommitted
    if engine.claim is not None:
        return engine.claim <= settings.heavy_claim_ratio
    return engine.sized and engine.gpu_bytes < facts.gib(settings.heavy_gib)


def _engine(facts: Facts, engine: Engine) -> Line:
    held = f"{engine.gpu_bytes / GIB:.1f} GiB" if engine.sized else "an unknown size"
    cap = "not capped" if engine.claim is None else f"claims {engine.claim:.2f} of the pool"
    sentence = f"{engine.subject} holds {held}, {cap}"
    values = {
        "pids": [process.pid for process in engine.processes],
        "gpu_bytes": engine.gpu_bytes if engine.sized else None,
        "claim_ratio": engine.claim,
    }
    name = f"pid{engine.processes[0].pid}"
    if may_stay(facts, engine):
        return Line("G6", name, Result.PASS, f"{sentence}: it may stay", "", values)
    if facts.foreign:
        return Line("G6", name, Result.INFO, f"{sentence}; this machine is no GB10", "", values)
    return Line("G6", name, Result.WARN, f"{sentence}: too much for a neighbour", FIX, values)
