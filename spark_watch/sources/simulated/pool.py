"""The one memory pool of the simulated Spark: who holds it, who gives way, what the kernel counts.

The order in which Linux finds room is what makes the box behave like a real one: free memory first,
then page cache, then the cold anonymous pages, then the hot ones, then nothing. Memory of the GPU
driver is in no line of ``/proc/meminfo`` and never gives way.
"""

from __future__ import annotations

import random
from math import exp
from typing import Final

from spark_watch.model import GIB, Memory, Pressure, Vm
from spark_watch.sources.simulated.processes import SimulatedProcess

KIB: Final = 1024
PAGE_BYTES: Final = 4096

TOTAL_BYTES: Final = 127_600_748 * KIB
"""MemTotal of a GB10 as its owners report it (Syllo/nvitop#208): 121.7 GiB."""

LOW_BYTES: Final = 0.22 * GIB
"""The low watermark, as ``si_mem_available`` in the kernel's ``mm/show_mem.c`` subtracts it."""

RESERVE_BYTES: Final = 0.35 * GIB
"""``totalreserve_pages``: free memory that MemAvailable does not promise."""

KSWAPD_WAKES_BYTES: Final = 0.9 * GIB
KSWAPD_RESTS_BYTES: Final = 1.3 * GIB
"""Boosted watermarks: loaded boxes hover at 0.9 to 1.5 GiB free while their cache is evicted."""

CACHE_FLOOR_BYTES: Final = 0.3 * GIB
"""Page cache that reclaim cannot get: pages being read, mapped and dirty at this very moment."""

HOT_CACHE_BYTES: Final = 1.2 * GIB
"""Mapped files that are in use all the time."""

SLAB_BYTES: Final = 0.55 * GIB
SLAB_OF_CACHE: Final = 0.02
"""Reclaimable slab of a box at rest, and what each byte of page cache adds to it."""

SWAP_BYTES_PER_SECOND: Final = 0.8 * GIB
TIGHT_BYTES: Final = 3.0 * GIB
"""Free memory below which the driver's large allocations begin to fail and are logged."""

LINES_PER_TIGHT_GIB: Final = 1.5
REFUSED_BYTES_PER_LINE: Final = 256 * 1024**2
LINES_PER_SECOND: Final = 12.0
TOUCH_PER_SECOND: Final = 0.5
"""Share of the hot pages a process comes back to in a second."""

REFAULT_BYTES_PER_SECOND: Final = 0.2 * GIB
JITTER_SECONDS: Final = 8.0
MAX_STALL_RATIO: Final = 0.97


class Pool:
    """Bytes of every kind of memory, moved on by :meth:`advance`.

    Args:
        rng: the source of the small unrest that every recording shows.
        total_bytes: MemTotal.
        swap_total_bytes: 16 GiB on a Spark as delivered.
        max_block_bytes: the largest buddy block; 4 MiB or 32 MiB, depending on the kernel.
        jitter_bytes: standard deviation of the unrest of the system's own memory.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        total_bytes: int = TOTAL_BYTES,
        swap_total_bytes: int = 16 * GIB,
        max_block_bytes: int = 32 * 1024**2,
        jitter_bytes: float = 0.05 * GIB,
    ) -> None:
        self._rng = rng
        self.total_bytes = total_bytes
        self.swap_total_bytes = swap_total_bytes
        self.max_block_bytes = max_block_bytes
        self.jitter_bytes = jitter_bytes
        self.tenants: list[SimulatedProcess] = [
            SimulatedProcess(
                pid=1,
                name="system",
                kind="system",
                anonymous_bytes=2.1 * GIB,
                anonymous_goal=2.1 * GIB,
                cold_ratio=0.6,
            )
        ]
        self.driver_base_bytes = 0.9 * GIB
        self.cache_bytes = 4.6 * GIB
        self.hot_cache_bytes = HOT_CACHE_BYTES
        self.buffers_bytes = 0.25 * GIB
        self.shared_bytes = 0.06 * GIB
        self.reclaimable_slab_bytes = SLAB_BYTES
        self.unreclaimable_slab_bytes = 0.85 * GIB
        self.page_tables_bytes = 0.05 * GIB
        self.kernel_stack_bytes = 0.03 * GIB
        self.per_cpu_bytes = 0.02 * GIB
        self.dirty_bytes = 0.0
        self.locked_bytes = 0.02 * GIB
        self.reading_bytes_per_second = 0.0
        self.writing_bytes_per_second = 0.0
        self.wear = 0.0
        """How far days of use have broken up the free memory, 0 to 1."""
        self.livelock_ratio = 0.0
        """Share of time lost to reclaim that makes no progress, whatever the free memory says."""
        self.driver_lines = 0.0
        """Allocation failures the driver wants to log; the reader takes whole ones away."""
        self.swapped_in_bytes = 3.0e6
        self.swapped_out_bytes = 4.0e7
        self.major_faults = 21_000.0
        self.oom_kills = 0
        self.compaction_stalls = 1_200.0
        self.compaction_failures = 310.0
        self.direct_reclaims = 900.0
        self.refaults = 14_000.0
        self.stall_ratio = 0.0
        self._some_avg10 = 0.0
        self._full_avg10 = 0.0
        self._some_seconds = 0.4
        self._full_seconds = 0.2
        self._jitter = 0.0
        self._out_budget = 0.0
        self._in_budget = 0.0
        self._unmet = 0.0

    @property
    def driver_bytes(self) -> float:
        """Memory that only the driver knows of: its own and that of every GPU process."""
        held = self.driver_base_bytes
        for tenant in self.tenants:
            held += tenant.gpu_bytes
        return held

    @property
    def anonymous_bytes(self) -> float:
        """Resident anonymous memory of all processes together."""
        held = 0.0
        for tenant in self.tenants:
            held += tenant.anonymous_bytes
        return held + max(-0.3 * held, self._jitter)

    @property
    def swap_used_bytes(self) -> float:
        """What lies in swap now, moving or parked."""
        return sum(tenant.swapped_bytes for tenant in self.tenants)

    @property
    def free_bytes(self) -> float:
        """MemFree, which is what CUDA calls free on a GB10."""
        return max(
            0.05 * GIB,
            self.total_bytes
            - self.driver_bytes
            - self.anonymous_bytes
            - self.cache_bytes
            - self.shared_bytes
            - self.buffers_bytes
            - self.reclaimable_slab_bytes
            - self.unreclaimable_slab_bytes
            - self.page_tables_bytes
            - self.kernel_stack_bytes
            - self.per_cpu_bytes,
        )

    @property
    def available_bytes(self) -> float:
        """MemAvailable by the kernel's own formula (``si_mem_available``)."""
        cache = self.cache_bytes + self.buffers_bytes
        slab = self.reclaimable_slab_bytes
        return max(
            0.0,
            self.free_bytes
            - RESERVE_BYTES
            + cache
            - min(cache / 2, LOW_BYTES)
            + slab
            - min(slab / 2, LOW_BYTES),
        )

    def advance(self, seconds: float) -> None:
        """Let the tenants grow and shrink, and the kernel answer, for that long (up to 10 s)."""
        self._out_budget = self._in_budget = SWAP_BYTES_PER_SECOND * seconds
        self._unmet = 0.0
        before_in = self.swapped_in_bytes
        for tenant in self.tenants:
            self._move_driver_memory(tenant, seconds)
            self._move_anonymous_memory(tenant, seconds)
        for tenant in self.tenants:
            self._touch_swapped(tenant, seconds)
        self._read_and_write(seconds)
        self._background_reclaim(seconds)
        self._refault(seconds)
        self._shake(seconds)
        awaited = self.swapped_in_bytes - before_in + self._unmet
        swapping = 1.1 * awaited / (SWAP_BYTES_PER_SECOND * seconds)
        self.stall_ratio = min(MAX_STALL_RATIO, max(self.livelock_ratio, swapping))
        self._press(seconds)

    def _move_driver_memory(self, tenant: SimulatedProcess, seconds: float) -> None:
        change = tenant.gpu_goal - tenant.gpu_bytes
        if change <= 0:
            tenant.gpu_bytes = tenant.gpu_goal
            return
        wanted = min(change, tenant.gpu_rate * seconds)
        granted = self._make_room(wanted)
        tenant.gpu_bytes += granted
        blocks = granted / (2 * 1024**2)
        stalls = blocks * self.fragmentation**2 * 0.6
        self.compaction_stalls += stalls
        self.compaction_failures += stalls * 0.48
        lines = (wanted - granted) / REFUSED_BYTES_PER_LINE
        if self.free_bytes < TIGHT_BYTES and self.available_bytes < 2 * TIGHT_BYTES:
            lines += granted / GIB * LINES_PER_TIGHT_GIB
        self.driver_lines += min(lines, LINES_PER_SECOND * seconds)

    def _move_anonymous_memory(self, tenant: SimulatedProcess, seconds: float) -> None:
        change = tenant.anonymous_goal - tenant.anonymous_bytes - tenant.swapped_bytes
        if change < 0:
            from_swap = min(-change, tenant.swapped_bytes)
            tenant.swapped_bytes -= from_swap
            tenant.anonymous_bytes += change + from_swap
        elif change > 0:
            tenant.anonymous_bytes += self._make_room(min(change, tenant.anonymous_rate * seconds))

    def _make_room(self, wanted: float) -> float:
        """Return how much of ``wanted`` can be had now, after cache and swap have given way."""
        room = self.free_bytes - LOW_BYTES
        if room < wanted:
            self.direct_reclaims += 1 + (wanted - max(0.0, room)) / (16 * 1024**2)
            room += self._drop_cache(wanted - room)
        if room < wanted:
            room += self._swap_out(wanted - room)
        return max(0.0, min(room, wanted))

    def _drop_cache(self, wanted: float) -> float:
        dropped = max(0.0, min(wanted, self.cache_bytes - CACHE_FLOOR_BYTES))
        self.cache_bytes -= dropped
        slab = self.reclaimable_slab_bytes
        self.reclaimable_slab_bytes = min(slab, max(SLAB_BYTES, slab - SLAB_OF_CACHE * dropped))
        return dropped

    def _swap_out(self, wanted: float, *, cold_only: bool = False) -> float:
        left = min(wanted, self._out_budget, max(0.0, self.swap_total_bytes - self.swap_used_bytes))
        asked = left
        for take_hot in (False, True):
            if take_hot and cold_only:
                break
            for tenant in self.tenants:
                most = tenant.hot_spare_bytes if take_hot else tenant.cold_resident_bytes
                moved = min(left, most)
                tenant.anonymous_bytes -= moved
                tenant.swapped_bytes += moved
                left -= moved
        moved = asked - left
        self._out_budget -= moved
        self.swapped_out_bytes += moved
        return moved

    def _touch_swapped(self, tenant: SimulatedProcess, seconds: float) -> None:
        """Bring back what the process works with; what it never touches stays parked."""
        missed = tenant.swapped_bytes - tenant.cold_ratio * (
            tenant.swapped_bytes + tenant.anonymous_bytes
        )
        if missed <= 0:
            return
        wanted = min(missed * (1 - exp(-TOUCH_PER_SECOND * seconds)), self._in_budget)
        granted = self._make_room(wanted)
        tenant.swapped_bytes -= granted
        tenant.anonymous_bytes += granted
        self._in_budget -= granted
        self._unmet += wanted - granted
        self.swapped_in_bytes += granted
        faults = granted / PAGE_BYTES / 8
        tenant.major_faults += faults
        self.major_faults += faults

    def _read_and_write(self, seconds: float) -> None:
        flow = (self.reading_bytes_per_second + self.writing_bytes_per_second) * seconds
        grown = max(0.0, min(flow, self.free_bytes - KSWAPD_WAKES_BYTES))
        self.cache_bytes += grown
        self.reclaimable_slab_bytes += grown * SLAB_OF_CACHE
        self.dirty_bytes += self.writing_bytes_per_second * seconds
        self.dirty_bytes = min(self.dirty_bytes * exp(-seconds / 4), self.cache_bytes / 2)

    def _background_reclaim(self, seconds: float) -> None:
        if self.free_bytes >= KSWAPD_WAKES_BYTES:
            return
        wanted = min(KSWAPD_RESTS_BYTES - self.free_bytes, 3.0 * GIB * seconds)
        dropped = self._drop_cache(wanted * 0.92)
        self._swap_out(wanted - dropped, cold_only=True)

    def _refault(self, seconds: float) -> None:
        """Mapped files that were evicted while somebody uses them are read again."""
        missing = max(0.0, 1 - self.cache_bytes / self.hot_cache_bytes)
        pages = missing * REFAULT_BYTES_PER_SECOND * seconds / PAGE_BYTES
        if not pages:
            return
        self.refaults += pages
        self.major_faults += pages / 8
        room = max(0.0, self.free_bytes - KSWAPD_WAKES_BYTES)
        self.cache_bytes += min(pages * PAGE_BYTES, room)
        holders = [tenant for tenant in self.tenants if tenant.gpu_bytes]
        for tenant in holders:
            tenant.refaults += pages / len(holders)
            tenant.major_faults += pages / 8 / len(holders)

    def _shake(self, seconds: float) -> None:
        keep = exp(-seconds / JITTER_SECONDS)
        noise = self.jitter_bytes * (1 - keep * keep) ** 0.5
        self._jitter = self._jitter * keep + self._rng.gauss(0.0, noise)
        self.major_faults += self._rng.random() * 0.4 * seconds
        self.refaults += self._rng.random() * 0.5 * seconds

    def _press(self, seconds: float) -> None:
        """Average the stalled share as the kernel does: exponentially, over ten seconds."""
        full = self.stall_ratio
        some = min(1.0, full * 1.08)
        keep = exp(-seconds / 10)
        self._full_avg10 = self._full_avg10 * keep + full * (1 - keep)
        self._some_avg10 = self._some_avg10 * keep + some * (1 - keep)
        self._full_seconds += full * seconds
        self._some_seconds += some * seconds

    @property
    def fragmentation(self) -> float:
        """How broken up the free memory is, 0 (fresh boot) to 1: by wear, or by being full."""
        used = 1 - self.free_bytes / self.total_bytes
        return min(1.0, max(self.wear, used**6))

    def memory(self) -> Memory:
        """What ``/proc/meminfo`` says now."""
        return Memory(
            total_bytes=self.total_bytes,
            free_bytes=_kib(self.free_bytes),
            available_bytes=_kib(self.available_bytes),
            cached_bytes=_kib(self.cache_bytes + self.shared_bytes),
            buffers_bytes=_kib(self.buffers_bytes),
            reclaimable_slab_bytes=_kib(self.reclaimable_slab_bytes),
            unreclaimable_slab_bytes=_kib(self.unreclaimable_slab_bytes),
            anonymous_bytes=_kib(self.anonymous_bytes),
            shared_bytes=_kib(self.shared_bytes),
            locked_bytes=_kib(self.locked_bytes),
            mapped_bytes=_kib(min(self.hot_cache_bytes, self.cache_bytes)),
            dirty_bytes=_kib(self.dirty_bytes),
            page_tables_bytes=_kib(self.page_tables_bytes),
            kernel_stack_bytes=_kib(self.kernel_stack_bytes),
            vmalloc_used_bytes=_kib(0.2 * GIB),
            per_cpu_bytes=_kib(self.per_cpu_bytes),
            swap_total_bytes=self.swap_total_bytes,
            swap_free_bytes=_kib(self.swap_total_bytes - self.swap_used_bytes),
            huge_pages_total=0,
            huge_pages_free=0,
            huge_page_bytes=2 * 1024**2,
            cma_total_bytes=128 * 1024**2,
            cma_free_bytes=_kib(96 * 1024**2),
        )

    def pressure(self) -> Pressure:
        """What ``/proc/pressure/memory`` says now; the kernel prints hundredths of a per cent."""
        return Pressure(
            some_avg10_ratio=round(self._some_avg10, 4),
            full_avg10_ratio=round(self._full_avg10, 4),
            some_seconds=round(self._some_seconds, 6),
            full_seconds=round(self._full_seconds, 6),
        )

    def vm(self) -> Vm:
        """What ``/proc/vmstat`` has counted since boot."""
        return Vm(
            swapped_in_bytes=_pages(self.swapped_in_bytes),
            swapped_out_bytes=_pages(self.swapped_out_bytes),
            major_faults=int(self.major_faults),
            oom_kills=self.oom_kills,
            compaction_stalls=int(self.compaction_stalls),
            compaction_failures=int(self.compaction_failures),
            direct_reclaims=int(self.direct_reclaims),
            refaults=int(self.refaults),
        )

    def free_blocks(self) -> dict[int, int]:
        """What ``/proc/buddyinfo`` says now: free blocks by size, the sizes in rising order.

        On a fresh box two thirds of the free bytes lie in the largest blocks; the more it is
        broken up, the further the bytes move down the list.
        """
        slope = 1.1 - 1.65 * self.fragmentation
        sizes = []
        size = PAGE_BYTES
        while size <= self.max_block_bytes:
            sizes.append(size)
            size *= 2
        weights = [exp(-slope * (len(sizes) - 1 - order)) for order in range(len(sizes))]
        scale = self.free_bytes / sum(weights)
        return {
            size: int(scale * weight / size) for size, weight in zip(sizes, weights, strict=True)
        }


def _kib(value: float) -> int:
    return int(value / KIB) * KIB


def _pages(value: float) -> int:
    return int(value / PAGE_BYTES) * PAGE_BYTES
