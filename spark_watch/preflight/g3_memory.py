"""G3: the pool runs out below 128 GB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from spark_watch.detectors.g3_memory.memory_fragmented import COMPACT, MIB
from spark_watch.model import GIB, Memory
from spark_watch.preflight.estimate import Workload
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Result

FLUSH: Final = "sync; echo 1 > /proc/sys/vm/drop_caches (as root, between runs, never mid-run)"

LADDER: Final = (
    f"in this order: 1. flush the page cache: {FLUSH}; 2. pack shorter sequences or take a smaller "
    "batch; 3. take a smaller method, bf16 LoRA before QLoRA, whose dequantisation can run out "
    "earlier"
)
"""What to do when headroom is short. Reducing the batch is never the first step."""

CACHE_GIB: Final = 12.0
"""A tenth of the pool in reclaimable cache is worth a flush before a launch: what reads MemFree
starts with that much less (unslothai/unsloth#10704, ollama/ollama#12283)."""

RESERVE_GIB: Final = 4.0
"""More than this set aside by sysctls makes start checks fail: 4 GiB of ``min_free_kbytes`` took
6.2 GiB from MemAvailable (tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark#19)."""


def check(facts: Facts) -> Iterator[Line]:
    """Judge headroom, the run that was asked for, cache, blocks, swap, sysctls and guards."""
    memory = facts.memory
    if memory is None:
        yield Line(
            "G3",
            "headroom",
            Result.SKIP,
            f"/proc/meminfo could not be read: {facts.why('memory')}",
            "run on the host, with /proc mounted",
        )
    else:
        yield _headroom(facts, memory)
        if facts.workload is not None:
            yield _workload(facts, memory, facts.workload)
        yield _cache(facts, memory)
        yield _blocks(facts, memory)
        yield _swap(memory)
        yield from _contiguous(memory)
    yield _reserves(facts)
    yield _guards(facts)


def short(facts: Facts) -> bool:
    """Whether the run that was asked for needs more than the headroom."""
    headroom = facts.headroom_bytes
    return (
        facts.workload is not None
        and headroom is not None
        and facts.workload.total_bytes > headroom
    )


def _headroom(facts: Facts, memory: Memory) -> Line:
    headroom = facts.headroom_bytes
    if headroom is None:
        return Line(
            "G3",
            "headroom",
            Result.SKIP,
            "/proc/meminfo does not say what can be allocated",
            "look at MemAvailable, or at HugePages_Free where huge pages are configured",
        )
    values = {"headroom_bytes": headroom, "free_bytes": memory.free_bytes}
    source = "MemAvailable, swap left out"
    if memory.huge_pages_total:
        source = (
            f"{memory.huge_pages_free} free huge pages of {memory.huge_pages_total}; with huge "
            "pages configured nothing else counts"
        )
    sentence = f"{headroom / GIB:.1f} GiB can be allocated ({source})"
    low = facts.conditions.memory_low
    if headroom < facts.gib(low.floor_gib):
        return Line("G3", "headroom", Result.FAIL, sentence, LADDER, values)
    if headroom < facts.gib(low.low_gib):
        return Line("G3", "headroom", Result.WARN, sentence, LADDER, values)
    return Line("G3", "headroom", Result.PASS, sentence, "", values)


def _workload(facts: Facts, memory: Memory, workload: Workload) -> Line:
    headroom = facts.headroom_bytes
    need = workload.total_bytes
    values = {
        "need_bytes": round(need),
        "weights_bytes": round(workload.weights_bytes),
        "optimizer_bytes": round(workload.optimizer_bytes),
        "gradient_bytes": round(workload.gradient_bytes),
        "activation_bytes": (
            None if workload.activation_bytes is None else round(workload.activation_bytes)
        ),
        "load_bytes": None if workload.load_bytes is None else round(workload.load_bytes),
    }
    sentence = f"the run needs {need / GIB:.1f} GiB ({workload.terms()})"
    if headroom is None:
        return Line(
            "G3",
            "workload",
            Result.SKIP,
            f"{sentence}; what can be allocated is not known",
            LADDER,
            values,
        )
    sentence = f"{sentence} of {headroom / GIB:.1f}"
    if need > headroom:
        return Line("G3", "workload", Result.FAIL, sentence, LADDER, values)
    left = headroom - need
    if left < facts.gib(facts.conditions.memory_low.low_gib):
        sentence = f"{sentence}, which leaves {left / GIB:.1f} for everything else"
        return Line("G3", "workload", Result.WARN, sentence, LADDER, values)
    if workload.load_bytes is not None and workload.load_bytes > headroom:
        return Line(
            "G3",
            "workload",
            Result.WARN,
            f"{sentence}, and {workload.load_bytes / GIB:.1f} for a moment while safetensors load",
            f"load shard by shard (low_cpu_mem_usage), and before it {FLUSH}",
            values,
        )
    if memory.free_bytes is not None and need > memory.free_bytes:
        return Line(
            "G3",
            "workload",
            Result.WARN,
            f"{sentence}, but CUDA sees {memory.free_bytes / GIB:.1f} GiB free: page cache holds "
            "the rest",
            FLUSH,
            values,
        )
    return Line("G3", "workload", Result.PASS, sentence, "", values)


def reclaimable_cache(memory: Memory) -> int | None:
    """Return the page cache that can be dropped: without shared memory and what is locked."""
    if memory.cached_bytes is None:
        return None
    held = max(memory.shared_bytes or 0, memory.locked_bytes or 0)
    return max(0, memory.cached_bytes + (memory.buffers_bytes or 0) - held)


def _cache(facts: Facts, memory: Memory) -> Line:
    cache = reclaimable_cache(memory)
    if cache is None or memory.free_bytes is None:
        return Line(
            "G3",
            "page_cache",
            Result.SKIP,
            "/proc/meminfo does not say how much is page cache and how much is free",
            "look at Cached and MemFree",
        )
    values = {"page_cache_bytes": cache, "free_bytes": memory.free_bytes}
    sentence = (
        f"{cache / GIB:.0f} GiB page cache; CUDA sees {memory.free_bytes / GIB:.1f} GiB free "
        "(MemFree)"
    )
    if cache >= facts.gib(CACHE_GIB):
        return Line("G3", "page_cache", Result.WARN, sentence, FLUSH, values)
    return Line("G3", "page_cache", Result.PASS, sentence, "", values)


def _blocks(facts: Facts, memory: Memory) -> Line:
    settings = facts.conditions.memory_fragmented
    blocks, free = facts.free_blocks, memory.free_bytes
    if not blocks or not free:
        return Line(
            "G3",
            "fragmentation",
            Result.SKIP,
            f"free blocks could not be read: {facts.why('free_blocks')}",
            "look at /proc/buddyinfo on the host",
        )
    size = min(settings.block_mib * MIB, max(blocks))
    large = sum(bytes_ * count for bytes_, count in blocks.items() if bytes_ >= size)
    share = min(1.0, large / free)
    sentence = (
        f"{share:.0%} of {free / GIB:.0f} GiB free lies in blocks of {size / MIB:.0f} MiB or more"
    )
    values = {"block_bytes": round(size), "share_ratio": round(share, 4)}
    if share >= settings.share_ratio:
        return Line("G3", "fragmentation", Result.PASS, sentence, "", values)
    if any(process.kind != "graphics" for process in facts.processes or ()):
        sentence += ", which says nothing while something runs on the GPU"
        return Line("G3", "fragmentation", Result.INFO, sentence, "", values)
    if facts.processes is None and (memory.available_bytes or 0) < facts.gib(
        settings.idle_available_gib
    ):
        sentence += ", which cannot be judged without a list of GPU processes"
        fix = "ask again when nothing runs on the GPU"
        return Line("G3", "fragmentation", Result.SKIP, sentence, fix, values)
    if free < facts.gib(settings.free_gib):
        sentence += "; with so little free that says nothing"
        fix = f"drop caches, compact, ask again: {COMPACT}"
        return Line("G3", "fragmentation", Result.INFO, sentence, fix, values)
    fix = f"{COMPACT}; if the share stays low, reboot before the launch"
    return Line("G3", "fragmentation", Result.WARN, sentence, fix, values)


def _swap(memory: Memory) -> Line:
    total, free = memory.swap_total_bytes, memory.swap_free_bytes
    if total is None or free is None:
        return Line("G3", "swap", Result.SKIP, "/proc/meminfo does not say how much is swapped")
    if total == 0:
        return Line("G3", "swap", Result.INFO, "there is no swap space")
    return Line(
        "G3",
        "swap",
        Result.INFO,
        f"{(total - free) / GIB:.1f} of {total / GIB:.1f} GiB swap are used; the driver's memory "
        "is never swapped, so it is no headroom",
        "parked swap is harmless; traffic is not (spark-watch check, swap_thrash)",
        {"swap_used_bytes": total - free, "swap_size_bytes": total},
    )


def _contiguous(memory: Memory) -> Iterator[Line]:
    """Say so where the kernel counts contiguous memory it does not have.

    Source: MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#259.
    """
    if memory.cma_total_bytes == 0 and memory.cma_free_bytes:
        yield Line(
            "G3",
            "contiguous",
            Result.WARN,
            f"the kernel has no contiguous area and counts {memory.cma_free_bytes / GIB:.1f} GiB "
            "of it as free, which memory then lacks",
            "boot with kho=off",
        )


def _reserves(facts: Facts) -> Line:
    known = facts.sysctls
    if known is None:
        return Line(
            "G3",
            "sysctls",
            Result.SKIP,
            f"the kernel's reserves could not be read: {facts.why('sysctls')}",
            "sysctl vm.min_free_kbytes vm.watermark_boost_factor vm.watermark_scale_factor",
        )
    shown = ", ".join(f"vm.{name} {value}" for name, value in known.items())
    total = facts.memory.total_bytes if facts.memory is not None else None
    reserve = reserved_bytes(known, total or 0)
    sentence = f"{shown}: about {reserve / GIB:.1f} GiB are kept free and not counted as available"
    values = {**known, "reserve_bytes": round(reserve)}
    if reserve > facts.gib(RESERVE_GIB):
        return Line(
            "G3",
            "sysctls",
            Result.WARN,
            sentence,
            "lower vm.min_free_kbytes or vm.watermark_scale_factor, or count with less",
            values,
        )
    return Line("G3", "sysctls", Result.PASS, sentence, "", values)


def reserved_bytes(sysctls: Mapping[str, int], total_bytes: int) -> float:
    """Return what the watermarks keep free: the high one, up to which the kernel reclaims.

    Source: mm/page_alloc.c, ``__setup_per_zone_wmarks`` (a step is a quarter of the minimum, or
    ``watermark_scale_factor`` in 10,000 of the memory, whichever is more; high is minimum and two).
    """
    minimum = sysctls.get("min_free_kbytes", 0) * 1024
    scale = sysctls.get("watermark_scale_factor", 10)
    return minimum + 2 * max(minimum / 4, total_bytes * scale / 10_000)


def _guards(facts: Facts) -> Line:
    if facts.guards is None:
        return Line(
            "G3",
            "guards",
            Result.SKIP,
            f"processes could not be listed: {facts.why('guards')}",
            "look for earlyoom or systemd-oomd on the host",
        )
    if not facts.guards:
        return Line(
            "G3",
            "guards",
            Result.INFO,
            "no earlyoom or systemd-oomd runs here, so nothing ends a process before the pool is "
            "gone",
            "earlyoom reads MemAvailable, so it sees the pool shrink; it cannot see who holds CUDA "
            "memory",
        )
    return Line(
        "G3",
        "guards",
        Result.INFO,
        f"{' and '.join(facts.guards)} run{'s' * (len(facts.guards) == 1)} here, choosing by "
        "resident memory and control groups, which hold no CUDA memory",
        "do not take that for protection: it may end the wrong process, and a collapse takes two "
        "seconds (Blackwellboy/model-serving-minefield#57)",
    )
