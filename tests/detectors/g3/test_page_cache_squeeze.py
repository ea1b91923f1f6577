"""Timelines of ``page_cache_squeeze``: a fact worth knowing, a warning only under strain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_watch.detectors.g3_memory.page_cache_squeeze import PageCacheSqueeze
from spark_watch.model import Failure, KernelEvent, Machine, Memory, Process, Sample, Vm
from spark_watch.settings.g3 import PageCacheSqueezeSettings
from tests.detectors.g3.pool import GIB, TOTAL, every
from tests.detectors.timelines import play, squeeze


def memory(free: float, cached: float, shared: float | None = 0.0, total: int = TOTAL) -> Memory:
    """Return a pool of which so many GiB are free, cached and shared."""
    return Memory(
        total_bytes=total,
        free_bytes=round(free * GIB),
        available_bytes=round((free + cached) * GIB),
        cached_bytes=round(cached * GIB),
        buffers_bytes=0,
        reclaimable_slab_bytes=0,
        shared_bytes=None if shared is None else round(shared * GIB),
    )


def squeezed(samples: list[Sample], interval: float = 1.0) -> str:
    """Return the squeezed states."""
    condition = PageCacheSqueeze(PageCacheSqueezeSettings())
    return squeeze(play(condition, samples, interval_seconds=interval)[0])


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param([(100.0, 12.0)] * 3, ".3", id="healthy"),
        pytest.param([(41.5, 72.6)] * 3, ".3", id="60-gib-file-with-room"),
        pytest.param([(7.9, 16.1)] * 3, "i3", id="squeezed-at-once"),
        pytest.param([(7.9, 15.9)] * 3, ".3", id="little-cache"),
        pytest.param([(8.1, 60.0)] * 3, ".3", id="enough-free"),
        pytest.param([(2.0, 60.0), (9.0, 60.0), (9.9, 60.0)], "i3", id="between-levels"),
        pytest.param([(2.0, 60.0), (10.1, 60.0)], "i1 .1", id="free-again"),
        pytest.param([(2.0, 60.0), (2.0, 13.0)], "i1 .1", id="cache-gone"),
        pytest.param([(2.0, 60.0)] + [None] * 40, "i31 ?10", id="lost-reading"),
    ],
)
def test_timeline(levels: list[tuple[float, float] | None], expected: str) -> None:
    """The state at every second is the one worked out beside free and cached memory."""
    samples = [
        Sample(t=1e9 + second, failed=(Failure(source="meminfo", reason="malformed"),))
        if level is None
        else Sample(t=1e9 + second, memory=memory(*level))
        for second, level in enumerate(levels)
    ]
    assert squeezed(samples) == expected


def test_shared_memory_is_no_cache() -> None:
    """Of 30 GiB of page cache 20 are shared memory: 10 can be given back."""
    assert squeezed([Sample(t=1e9, memory=memory(2.0, 30.0, shared=20.0))]) == ".1"


def test_without_the_shared_line_what_is_available_counts() -> None:
    """Where the kernel's shared memory was not read, available minus free is the cache."""
    pool = replace(memory(2.0, 30.0, shared=None), available_bytes=10 * GIB)
    assert squeezed([Sample(t=1e9, memory=pool)]) == ".1"
    pool = replace(pool, available_bytes=30 * GIB, cached_bytes=None)
    assert squeezed([Sample(t=1e9, memory=pool)]) == "i1"


def test_unknown_free_memory_is_unknown() -> None:
    """A reading of what is available alone cannot be judged."""
    pool = Memory(total_bytes=TOTAL, available_bytes=60 * GIB)
    assert squeezed([Sample(t=1e9, memory=pool)]) == "?1"


def under_load(
    interval: float = 1.0,
    *,
    growth: float = 0.1,
    started: int = 5,
    kernel: tuple[KernelEvent, ...] = (KernelEvent(kind="nv_err_no_memory", count=5),),
    failures: float = 0.0,
) -> list[Sample]:
    """Return a minute in which a process grows by so many GiB a second beside much cache."""
    samples = []
    for second in every(interval, 60.0):
        grown = Process(pid=7, kind="compute", gpu_bytes=round((1.0 + growth * second) * GIB))
        samples.append(
            Sample(
                t=1e9 + second,
                memory=memory(2.0, 60.0),
                processes=(grown,) if second >= started else (),
                kernel=kernel if second == 30.0 else (),
                vm=Vm(
                    compaction_stalls=round(200.0 * second),
                    compaction_failures=round(failures * second),
                ),
            )
        )
    return samples


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        # growth and a driver line at 30 s; both have lasted 5 s at 35
        pytest.param(under_load(), "i35 w26", id="load-and-driver-lines"),
        pytest.param(under_load(kernel=()), "i61", id="load-without-strain"),
        pytest.param(
            under_load(kernel=(KernelEvent(kind="nv_err_no_memory", count=3),)),
            "i61",
            id="three-lines-at-a-start",
        ),
        pytest.param(under_load(growth=0.0), "i61", id="strain-without-load"),
        # half a GiB is added at 10 s; compaction fails all along
        pytest.param(under_load(kernel=(), failures=130.0), "i15 w46", id="compaction"),
        pytest.param(under_load(kernel=(), failures=110.0), "i61", id="half-of-them-fail"),
        pytest.param(under_load(kernel=(), failures=60.0), "i61", id="few-failures"),
        # a process of the first list whose start is not known is taken for an old one
        pytest.param(under_load(started=0), "i61", id="old-process-that-grows"),
        pytest.param(under_load(0.25), "i140 w101", id="at-4-hz"),
        pytest.param(under_load(10.0), "i5 w2", id="every-10-s"),
    ],
)
def test_strain(samples: list[Sample], expected: str) -> None:
    """A warning needs a young process that grows and a driver or compaction under strain."""
    interval = samples[1].t - samples[0].t
    assert squeezed(samples, interval) == expected


def test_levels_scale_with_the_pool() -> None:
    """On a quarter of the pool 4.1 GiB of cache and 1.9 free are a squeeze."""
    pool = memory(1.9, 4.1, total=TOTAL // 4)
    assert squeezed([Sample(t=1e9, memory=pool)]) == "i1"


def test_sentence_has_the_two_numbers() -> None:
    """What CUDA sees and what the kernel would give back stand in one sentence."""
    condition = PageCacheSqueeze(PageCacheSqueezeSettings())
    _, events = play(condition, [Sample(t=1e9, memory=memory(2.8, 49.0))])
    assert events[0].sentence == (
        "The host has 2.8 GiB free, which is all CUDA sees, and 49.0 GiB of reclaimable cache for "
        "0 s."
    )
    assert "never in mid run" in events[0].remedy


@pytest.mark.parametrize("name", ["NVIDIA H200", None])
def test_only_where_cuda_counts_this_pool(name: str | None) -> None:
    """A discrete card has memory of its own, so the host's free memory is not what CUDA sees."""
    condition = PageCacheSqueeze(PageCacheSqueezeSettings())
    samples = [Sample(t=1e9 + n, memory=memory(2.0, 60.0)) for n in range(5)]
    machine = Machine(gpu_name=name, memory_total_bytes=TOTAL)
    timeline, _ = play(condition, samples, machine=machine)
    assert set(timeline) == {"?"}
