"""What holds for all six conditions, whatever the stream."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.condition import Condition
from spark_watch.detectors.g3_memory.memory_collapse import MemoryCollapse
from spark_watch.detectors.g3_memory.memory_fragmented import MemoryFragmented
from spark_watch.detectors.g3_memory.memory_low import MemoryLow
from spark_watch.detectors.g3_memory.memory_stalled import MemoryStalled
from spark_watch.detectors.g3_memory.page_cache_squeeze import PageCacheSqueeze
from spark_watch.detectors.g3_memory.swap_thrash import SwapThrash
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Memory, Pressure, Process, Sample, Vm
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.settings.g3 import MemoryCollapseSettings
from tests.detectors.g3.pool import GIB, TOTAL, seeded
from tests.detectors.timelines import GB10, play

KINDS: list[type[Condition[Any]]] = [
    MemoryCollapse,
    MemoryLow,
    MemoryStalled,
    PageCacheSqueeze,
    SwapThrash,
    MemoryFragmented,
]


def fresh(kind: type[Condition[Any]]) -> Condition[Any]:
    """Return a fresh condition with its default levels."""
    return kind(getattr(ConditionSettings(), kind.name))


def sample(
    second: float, gib: float, *, swapped: int = 0, pressure: float = 0.0, start: float = 1e9
) -> Sample:
    """Return a sample that feeds all six."""
    return Sample(
        t=start + second,
        memory=Memory(
            total_bytes=TOTAL,
            available_bytes=round(gib * GIB),
            free_bytes=round(gib * GIB / 2),
            cached_bytes=round(gib * GIB / 2),
            shared_bytes=0,
        ),
        pressure=Pressure(full_avg10_ratio=pressure),
        vm=Vm(
            swapped_in_bytes=swapped,
            swapped_out_bytes=swapped,
            major_faults=swapped // 4096,
            compaction_failures=0,
        ),
        free_blocks={4096: 1000, 16 << 20: round(gib * 32)},
        processes=(Process(pid=1, kind="graphics", gpu_bytes=GIB),),
        kernel=(),
    )


intervals = st.sampled_from([0.25, 1.0, 10.0, 60.0])
levels = st.floats(min_value=0.8, max_value=118.0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(gib=levels, interval=intervals, count=st.integers(1, 60))
def test_constant_never_fires(
    kind: type[Condition[Any]], gib: float, interval: float, count: int
) -> None:
    """A level that never changes is no warning, at any interval."""
    samples = [sample(n * interval, gib) for n in range(count)]
    said, _ = play(fresh(kind), samples, interval_seconds=interval)
    assert "w" not in said
    assert "c" not in said


walks = st.lists(st.floats(min_value=-4.0, max_value=3.0), min_size=2, max_size=60)


def walk(start: float, steps: list[float]) -> list[float]:
    """Return levels that go by the steps and stay within the pool."""
    out = [start]
    for step in steps:
        out.append(min(118.0, max(0.1, out[-1] + step)))
    return out


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(begin=levels, steps=walks, interval=intervals, shift=st.sampled_from([3600.0, 86_400.0]))
def test_shifting_the_start_changes_nothing(
    kind: type[Condition[Any]], begin: float, steps: list[float], interval: float, shift: float
) -> None:
    """The states do not depend on when the stream began."""
    here = [
        sample(n * interval, gib, swapped=n << 24, pressure=gib / 118.0)
        for n, gib in enumerate(walk(begin, steps))
    ]
    there = [
        sample(n * interval, gib, swapped=n << 24, pressure=gib / 118.0, start=1e9 + shift)
        for n, gib in enumerate(walk(begin, steps))
    ]
    assert (
        play(fresh(kind), here, interval_seconds=interval)[0]
        == (play(fresh(kind), there, interval_seconds=interval)[0])
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    begin=st.floats(min_value=5.0, max_value=40.0),
    steps=walks,
    interval=st.sampled_from([0.25, 1.0, 2.0]),
    looser=st.sampled_from(
        [
            {"warning_seconds": 30.0},
            {"faster_ratio": 1.0},
            {"lost_gib": 0.5},
            {"dip_gib": 1.5},
            {"step_gib": 3.0},
        ]
    ),
)
def test_looser_level_never_fires_later(
    begin: float, steps: list[float], interval: float, looser: dict[str, float]
) -> None:
    """Where the collapse rule raises, a looser one has raised at that sample or before."""
    samples = [sample(n * interval, gib) for n, gib in enumerate(walk(begin, steps))]
    strict, _ = play(MemoryCollapse(MemoryCollapseSettings()), samples, interval_seconds=interval)
    loose, _ = play(
        MemoryCollapse(MemoryCollapseSettings.model_validate(looser)),
        samples,
        interval_seconds=interval,
    )
    first = next((n for n, state in enumerate(strict) if state in "wc"), None)
    if first is not None:
        assert set(loose[: first + 1]) & {"w", "c"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_memory_is_bounded(kind: type[Condition[Any]]) -> None:
    """After 100,000 samples a condition holds no more than after 30,000."""
    rng = seeded(17)
    condition = fresh(kind)
    judge = Judge([condition], Timeline(machine=GB10))
    sizes = []
    for n in range(100_000):
        judge.update(sample(float(n), 6.0 + rng.uniform(-1.0, 1.0), swapped=n * 4096))
        if n in {30_000, 99_999}:
            sizes.append(len(pickle.dumps(condition)))
    assert sizes[1] <= sizes[0] * 1.05
