"""Timelines of ``memory_fragmented``: judged before a launch, never on a serving box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from spark_watch.detectors.g3_memory.memory_fragmented import MemoryFragmented
from spark_watch.model import Failure, Machine, Memory, Process, Sample
from spark_watch.settings.g3 import MemoryFragmentedSettings
from tests.detectors.g3.pool import GIB, TOTAL
from tests.detectors.timelines import play, squeeze

MIB = 1024**2


def blocks(
    free: float, share: float, largest: int = 32 * MIB, at: int = 16 * MIB
) -> dict[int, int]:
    """Return a table of free blocks: so large a share of the GiB in blocks of ``at`` bytes."""
    sizes = {4096 << n: 0 for n in range(14) if 4096 << n <= largest}
    large = round(share * free * GIB / at)
    sizes[at] = large
    sizes[4096] = round((free * GIB - large * at) / 4096)
    return sizes


def at(
    second: float,
    table: Mapping[int, int] | None,
    *,
    free: float = 100.0,
    processes: tuple[Process, ...] | None = (),
    available: float | None = None,
    total: int = TOTAL,
) -> Sample:
    """Return a sample of the free blocks, or one in which they could not be read."""
    pool = Memory(
        total_bytes=total,
        free_bytes=round(free * GIB),
        available_bytes=round((available if available is not None else free) * GIB),
    )
    failed = () if table is not None else (Failure(source="buddyinfo", reason="malformed"),)
    return Sample(
        t=1e9 + second, memory=pool, free_blocks=table, processes=processes, failed=failed
    )


def fragmented(samples: list[Sample], interval: float = 10.0) -> str:
    """Return the squeezed states."""
    condition = MemoryFragmented(MemoryFragmentedSettings())
    return squeeze(play(condition, samples, interval_seconds=interval)[0])


WHOLE = blocks(100.0, 0.9)
BROKEN = blocks(100.0, 0.1)
SERVER = Process(pid=7, kind="compute", engine="vllm", gpu_bytes=60 * GIB)
SMALL = Process(pid=8, kind="compute", gpu_bytes=GIB)
DESKTOP = Process(pid=9, kind="graphics", gpu_bytes=GIB // 20)


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        pytest.param([WHOLE] * 10, ".10", id="healthy"),
        pytest.param([BROKEN] * 10, "?6 w4", id="warm-up-and-fault"),
        pytest.param([WHOLE] + [BROKEN] * 10, ".7 w4", id="fault"),
        pytest.param([WHOLE] + [BROKEN] * 6, ".7", id="one-tick-short"),
        pytest.param([WHOLE] + [BROKEN] * 5 + [WHOLE] + [BROKEN] * 5, ".12", id="dip"),
        pytest.param(
            [BROKEN] * 8 + [blocks(100.0, 0.28)] * 3 + [blocks(100.0, 0.31)],
            "?6 w5 .1",
            id="leaves",
        ),
        pytest.param([BROKEN] * 8 + [None] * 5, "?6 w5 ?2", id="lost-reading"),
    ],
)
def test_timeline(tables: list[dict[int, int] | None], expected: str) -> None:
    """The state at every tenth second is the one worked out beside the share of large blocks."""
    assert fragmented([at(10.0 * n, table) for n, table in enumerate(tables)]) == expected


@pytest.mark.parametrize(
    ("interval", "expected"), [(0.25, "?240 w40"), (1.0, "?60 w10"), (60.0, "?2 w8")]
)
def test_minute_at_any_interval(interval: float, expected: str) -> None:
    """The hold is a minute, and three readings at a reading a minute."""
    count = sum(int(run[1:]) for run in expected.split())
    samples = [at(interval * n, BROKEN) for n in range(count)]
    assert fragmented(samples, interval) == expected


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        pytest.param((SERVER,), "?9", id="serving"),
        pytest.param((replace(SERVER, engine=None),), "?9", id="training"),
        pytest.param((replace(SERVER, kind="launcher", gpu_bytes=None),), "?9", id="starting"),
        pytest.param((SMALL, DESKTOP), "?6 w3", id="small-ones-do-not-count"),
        pytest.param((), "?6 w3", id="none"),
        pytest.param(None, "?6 w3", id="list-unknown-but-nearly-all-available"),
    ],
)
def test_engine(processes: tuple[Process, ...] | None, expected: str) -> None:
    """While an engine runs nothing is known: healthy serving boxes have no large block either."""
    samples = [at(10.0 * n, BROKEN, processes=processes) for n in range(9)]
    assert fragmented(samples) == expected


def test_without_a_list_and_with_memory_in_use_nothing_is_known() -> None:
    """With 60 of 121.7 GiB available and no list an engine may be running."""
    table = blocks(60.0, 0.1)
    samples = [at(10.0 * n, table, free=60.0, processes=None) for n in range(9)]
    assert fragmented(samples) == "?9"


def test_engine_that_starts_takes_the_warning_back() -> None:
    """From the launch on the blocks say nothing any more."""
    samples = [at(10.0 * n, BROKEN, processes=(SERVER,) if n >= 8 else ()) for n in range(10)]
    assert fragmented(samples) == "?6 w2 ?2"


@pytest.mark.parametrize(
    ("free", "share", "expected"),
    [
        pytest.param(31.9, 0.1, "i9", id="full-of-page-cache"),
        pytest.param(31.9, 0.5, ".9", id="little-free-and-whole"),
        pytest.param(32.1, 0.1, "?6 w3", id="enough-free"),
    ],
)
def test_little_free_memory_says_nothing(free: float, share: float, expected: str) -> None:
    """Below 32 GiB free a low share is a hint to drop caches and ask again."""
    table = blocks(free, share)
    samples = [at(10.0 * n, table, free=free, available=110.0) for n in range(9)]
    assert fragmented(samples) == expected


def test_kernel_with_small_blocks() -> None:
    """Where the kernel's largest block is 4 MiB those count as large."""
    table = blocks(100.0, 0.9, largest=4 * MIB, at=4 * MIB)
    assert fragmented([at(10.0 * n, table) for n in range(9)]) == ".9"
    table = blocks(100.0, 0.9, largest=4 * MIB, at=2 * MIB)
    assert fragmented([at(10.0 * n, table) for n in range(9)]) == "?6 w3"


def test_level_scales_with_the_pool() -> None:
    """On a quarter of the pool 8.1 GiB free are enough to judge."""
    table = blocks(8.1, 0.1)
    samples = [at(10.0 * n, table, free=8.1, total=TOTAL // 4) for n in range(9)]
    assert fragmented(samples) == "?6 w3"


def test_sentence_and_remedy() -> None:
    """The sentence has free memory, share and block size; the remedy says when to reboot."""
    condition = MemoryFragmented(MemoryFragmentedSettings())
    _, events = play(condition, [at(10.0 * n, BROKEN) for n in range(9)], interval_seconds=10.0)
    assert events[-1].sentence == (
        "The host has 100 GiB free but only 10% of it in blocks of 16 MiB or more, below 25% for "
        "60 s."
    )
    assert "reboot" in events[-1].remedy


@pytest.mark.parametrize("name", ["NVIDIA H200", None])
def test_only_where_the_driver_takes_from_this_pool(name: str | None) -> None:
    """On a machine with another GPU, or with none, the blocks hinder no launch: not judged."""
    condition = MemoryFragmented(MemoryFragmentedSettings())
    samples = [at(10.0 * n, BROKEN) for n in range(20)]
    machine = Machine(gpu_name=name, memory_total_bytes=TOTAL)
    timeline, _ = play(condition, samples, interval_seconds=10.0, machine=machine)
    assert set(timeline) == {"?"}
