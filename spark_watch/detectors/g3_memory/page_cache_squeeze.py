"""The page cache holds what CUDA counts as used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g3_memory.gpu_processes import GpuProcesses, loading
from spark_watch.detectors.holds import Level
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Growth, Tally
from spark_watch.model import GIB, Memory, State
from spark_watch.settings.g3 import PageCacheSqueezeSettings

STRAIN_SECONDS = 60.0
"""How long a driver failure counts, and the stretch over which compaction is measured."""


class PageCacheSqueeze(Condition[PageCacheSqueezeSettings]):
    """Much reclaimable cache and little free memory.

    ``cudaMemGetInfo`` says MemFree on a GB10, so that software believes itself out of memory. The
    kernel gives the cache back when it is asked, so this alone is no fault. A card with memory of
    its own does not look at this pool at all.
    """

    name = "page_cache_squeeze"
    gotcha = "G3"
    part = "memory"
    sources = ("meminfo",)
    gb10_only = True
    summary = (
        ">= 16 GiB of reclaimable cache while < 8 GiB are free, which is what CUDA sees (info); "
        "with a load under way and driver or compaction strained (warning)"
    )
    remedies: ClassVar = {
        State.INFO: "Nothing is short. If a program refuses to start for lack of memory, drop "
        "caches between runs (sync; echo 1 > /proc/sys/vm/drop_caches), never in mid run; newer "
        "engines look at available memory instead.",
        State.WARNING: "Let the load finish if it moves; if it stalls or fails, stop it, drop "
        "caches (sync; echo 1 > /proc/sys/vm/drop_caches) and start it again, with direct I/O "
        "or without mmap. Do not drop caches in mid run: the load would read its pages again.",
    }

    def __init__(self, settings: PageCacheSqueezeSettings) -> None:
        super().__init__(settings)
        self._processes = GpuProcesses()
        self._squeezed = Level(0.0)
        self._strained = Level(settings.strain_hold_seconds, settings.strain_leave_seconds)
        self._failures = Growth(STRAIN_SECONDS)
        self._attempts = Growth(STRAIN_SECONDS)
        self._failure_rate = 0.0
        self._attempt_rate = 0.0
        self._driver = Tally(STRAIN_SECONDS)

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each reading by its two numbers, at once."""
        self._processes.update(tick)
        self._see_strain(tick)
        memory = tick.memory
        if memory is None or memory.free_bytes is None:
            return None
        cache = _reclaimable_bytes(memory)
        if cache is None:
            return None
        settings = self.settings
        now = tick.now
        interval = tick.interval("memory")
        squeezed = self._squeezed.update(
            now,
            enter=cache >= tick.gib(settings.cache_gib)
            and memory.free_bytes < tick.gib(settings.free_gib),
            leave=cache < tick.gib(settings.leave_cache_gib)
            or memory.free_bytes >= tick.gib(settings.leave_free_gib),
            interval_seconds=interval,
        )
        strain = squeezed and self._is_strained()
        growth = self._processes.loading_bytes(now) if strain else 0.0
        strained = self._strained.update(
            now,
            enter=strain and loading(growth),
            leave=not strain,
            interval_seconds=interval,
        )
        values = {
            "free": memory.free_bytes / GIB,
            "cache": cache / GIB,
            "free_level": tick.in_gib(tick.gib(settings.free_gib)),
            "cache_level": tick.in_gib(tick.gib(settings.cache_gib)),
            "held": self._squeezed.held_seconds(now),
        }
        if squeezed and strained:
            return {
                "host": Judgement(
                    State.WARNING,
                    "The host loads a model with {free:.1f} GiB free beside {cache:.1f} GiB of "
                    "reclaimable cache for {held:.0f} s, and the driver or compaction is strained "
                    "({lines} driver allocation failures in a minute, {failures:.0f} failed "
                    "compactions a second).",
                    {**values, "lines": self._driver.total, "failures": self._failure_rate},
                )
            }
        if squeezed:
            return {
                "host": Judgement(
                    State.INFO,
                    "The host has {free:.1f} GiB free, which is all CUDA sees, and {cache:.1f} GiB "
                    "of reclaimable cache for {held:.0f} s.",
                    values,
                )
            }
        return {
            "host": Judgement(
                State.OK,
                "The host has {free:.1f} GiB free and {cache:.1f} GiB of reclaimable cache (a "
                "squeeze is below {free_level:.0f} and from {cache_level:.0f} GiB).",
                values,
            )
        }

    def _see_strain(self, tick: Tick) -> None:
        sample = tick.sample
        self._driver.add(
            tick.now,
            sum(event.count for event in sample.kernel or () if event.kind == "nv_err_no_memory"),
        )
        vm = sample.vm
        if vm is None or vm.compaction_failures is None or vm.compaction_stalls is None:
            return
        self._failure_rate = self._failures.update(tick.now, vm.compaction_failures) or 0.0
        self._attempt_rate = self._attempts.update(tick.now, vm.compaction_stalls) or 0.0

    def _is_strained(self) -> bool:
        """Whether the driver was refused memory, or most of many compactions failed."""
        settings = self.settings
        return self._driver.total >= settings.driver_failures or (
            self._failure_rate >= settings.compaction_failures_per_second
            and self._failure_rate >= settings.compaction_failed_ratio * self._attempt_rate
        )


def _reclaimable_bytes(memory: Memory) -> int | None:
    """Return the cache the kernel can give back.

    Page cache without shared memory (which is part of it and cannot be dropped) plus reclaimable
    slab; where the kernel did not say how much is shared, what is available beyond what is free.
    """
    if memory.cached_bytes is not None and memory.shared_bytes is not None:
        return max(
            0,
            memory.cached_bytes
            + (memory.buffers_bytes or 0)
            + (memory.reclaimable_slab_bytes or 0)
            - memory.shared_bytes,
        )
    if memory.available_bytes is not None and memory.free_bytes is not None:
        return max(0, memory.available_bytes - memory.free_bytes)
    return memory.cached_bytes
