"""The pool, its pressure and its counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import Marks, Snapshot


def _memory(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        memory = snapshot.latest.memory
        return one(getattr(memory, field) if memory is not None else None)

    return read


def _pressure(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        pressure = snapshot.latest.pressure
        return one(getattr(pressure, field) if pressure is not None else None)

    return read


def _vm(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        vm = snapshot.latest.vm
        return one(getattr(vm, field) if vm is not None else None)

    return read


def _mark(name: str, pick: Callable[[Marks], float]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        marks = snapshot.marks.get(name, {}).get("")
        return one(pick(marks) if marks is not None else None)

    return read


def _huge(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        memory = snapshot.latest.memory
        if memory is None or memory.huge_page_bytes is None:
            return one(None)
        pages: int | None = getattr(memory, field)
        return one(None if pages is None else pages * memory.huge_page_bytes)

    return read


def _blocks(snapshot: Snapshot) -> Samples:
    blocks = snapshot.latest.free_blocks
    if blocks is None:
        return ()
    return (((str(size),), size * count) for size, count in sorted(blocks.items()))


def _gauge(name: str, field: str, text: str) -> Family:
    return Family(f"memory_{name}_bytes", "gauge", f"{text} in /proc/meminfo.", _memory(field))


FAMILIES: Final = (
    _gauge("size", "total_bytes", "Size of the pool that CPU and GPU share: MemTotal"),
    _gauge("free", "free_bytes", "Unused memory, which is what CUDA calls free: MemFree"),
    _gauge("available", "available_bytes", "What can still be allocated: MemAvailable"),
    Family(
        "memory_available_low_bytes",
        "gauge",
        "Lowest MemAvailable of the last 60 s in /proc/meminfo.",
        _mark("memory_available_bytes", lambda marks: marks.low),
    ),
    Family(
        "memory_available_high_bytes",
        "gauge",
        "Highest MemAvailable of the last 60 s in /proc/meminfo.",
        _mark("memory_available_bytes", lambda marks: marks.high),
    ),
    Family(
        "memory_free_low_bytes",
        "gauge",
        "Lowest MemFree of the last 60 s in /proc/meminfo.",
        _mark("memory_free_bytes", lambda marks: marks.low),
    ),
    _gauge("cached", "cached_bytes", "Page cache, shared memory included: Cached"),
    _gauge("buffers", "buffers_bytes", "Block device buffers: Buffers"),
    _gauge("anonymous", "anonymous_bytes", "Memory of processes without a file: AnonPages"),
    _gauge("shared", "shared_bytes", "Shared memory and tmpfs, part of the page cache: Shmem"),
    _gauge("locked", "locked_bytes", "Memory locked by processes: Mlocked"),
    _gauge("mapped", "mapped_bytes", "Files mapped by processes: Mapped"),
    _gauge("dirty", "dirty_bytes", "Page cache that waits to be written: Dirty"),
    _gauge("reclaimable_slab", "reclaimable_slab_bytes", "Kernel caches: SReclaimable"),
    _gauge("unreclaimable_slab", "unreclaimable_slab_bytes", "Kernel objects: SUnreclaim"),
    _gauge("page_tables", "page_tables_bytes", "Page tables: PageTables"),
    _gauge("kernel_stack", "kernel_stack_bytes", "Kernel stacks: KernelStack"),
    _gauge("per_cpu", "per_cpu_bytes", "Per-CPU areas: Percpu"),
    Family(
        "memory_driver_residual_bytes",
        "gauge",
        "What no other line accounts for, on a GB10 mostly the driver's memory: MemTotal minus "
        "the accounted lines in /proc/meminfo.",
        _memory("driver_residual_bytes"),
    ),
    _gauge("swap_size", "swap_total_bytes", "Size of the swap space: SwapTotal"),
    _gauge("swap_free", "swap_free_bytes", "Unused swap space: SwapFree"),
    Family(
        "memory_huge_pages_size_bytes",
        "gauge",
        "Memory set aside as huge pages: HugePages_Total x Hugepagesize in /proc/meminfo.",
        _huge("huge_pages_total"),
    ),
    Family(
        "memory_huge_pages_free_bytes",
        "gauge",
        "Huge pages not in use: HugePages_Free x Hugepagesize in /proc/meminfo.",
        _huge("huge_pages_free"),
    ),
    _gauge("cma_size", "cma_total_bytes", "Size of the contiguous memory area: CmaTotal"),
    _gauge("cma_free", "cma_free_bytes", "Unused part of it: CmaFree"),
    Family(
        "memory_free_block_bytes",
        "gauge",
        "Free memory in blocks of one size, in bytes, from /proc/buddyinfo.",
        _blocks,
        ("block",),
    ),
    Family(
        "memory_pressure_some_ratio",
        "gauge",
        "Share of the last 10 s in which some task waited for memory: some avg10 in "
        "/proc/pressure/memory.",
        _pressure("some_avg10_ratio"),
    ),
    Family(
        "memory_pressure_full_ratio",
        "gauge",
        "Share of the last 10 s in which all tasks waited for memory: full avg10 in "
        "/proc/pressure/memory.",
        _pressure("full_avg10_ratio"),
    ),
    Family(
        "memory_pressure_some_seconds",
        "counter",
        "Time in which some task waited for memory: some total in /proc/pressure/memory.",
        _pressure("some_seconds"),
    ),
    Family(
        "memory_pressure_full_seconds",
        "counter",
        "Time in which all tasks waited for memory: full total in /proc/pressure/memory.",
        _pressure("full_seconds"),
    ),
    Family(
        "swapped_in_bytes",
        "counter",
        "Bytes read back from swap: pswpin in /proc/vmstat.",
        _vm("swapped_in_bytes"),
    ),
    Family(
        "swapped_out_bytes",
        "counter",
        "Bytes written to swap: pswpout in /proc/vmstat.",
        _vm("swapped_out_bytes"),
    ),
    Family(
        "major_faults",
        "counter",
        "Page faults that waited for a disk: pgmajfault in /proc/vmstat.",
        _vm("major_faults"),
    ),
    Family(
        "oom_kills",
        "counter",
        "Processes killed for memory: oom_kill in /proc/vmstat.",
        _vm("oom_kills"),
    ),
    Family(
        "compaction_stalls",
        "counter",
        "Times a task had to compact memory itself: compact_stall in /proc/vmstat.",
        _vm("compaction_stalls"),
    ),
    Family(
        "compaction_failures",
        "counter",
        "Compactions that brought no block: compact_fail in /proc/vmstat.",
        _vm("compaction_failures"),
    ),
    Family(
        "direct_reclaims",
        "counter",
        "Times a task had to reclaim memory itself: allocstall_* in /proc/vmstat.",
        _vm("direct_reclaims"),
    ),
    Family(
        "refaults",
        "counter",
        "Pages read again soon after they were evicted: workingset_refault_* in /proc/vmstat.",
        _vm("refaults"),
    ),
)
