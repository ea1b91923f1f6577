"""Timelines of ``memory_stalled``: full pressure is said at once, and what makes it critical."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_watch.detectors.g3_memory.memory_stalled import MemoryStalled
from spark_watch.model import Failure, Memory, Pressure, Sample
from spark_watch.settings.g3 import MemoryStalledSettings
from tests.detectors.g3.pool import GIB, TOTAL, every
from tests.detectors.timelines import play, squeeze


def at(
    second: float, ratio: float | None, *, gib: float | None = 60.0, late: float | None = None
) -> Sample:
    """Return a sample of full pressure, or one in which it could not be read."""
    memory = None if gib is None else Memory(total_bytes=TOTAL, available_bytes=round(gib * GIB))
    if ratio is None:
        failed = (Failure(source="pressure", reason="not_found"),)
        return Sample(t=1e9 + second, memory=memory, failed=failed)
    pressure = Pressure(full_avg10_ratio=ratio)
    return Sample(t=1e9 + second, memory=memory, late_seconds=late, pressure=pressure)


def stalled(samples: list[Sample], interval: float = 1.0) -> str:
    """Return the squeezed states."""
    condition = MemoryStalled(MemoryStalledSettings())
    return squeeze(play(condition, samples, interval_seconds=interval)[0])


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        pytest.param([0.0] * 60, ".60", id="healthy-zero"),
        pytest.param([0.03] * 60, ".60", id="a-few-per-cent"),
        pytest.param([0.12, 0.19], ".2", id="before-a-wedge"),
        pytest.param([0.0, 0.5], ".1 w1", id="at-once"),
        pytest.param([0.0] + [0.95] * 120 + [0.0] * 5, ".1 w120 .5", id="two-minutes-recovered"),
        pytest.param([0.9] * 180, "w180", id="one-tick-short"),
        pytest.param([0.9] * 185, "w180 c5", id="for-180-s"),
        pytest.param([0.9] * 100 + [0.1] + [0.9] * 100, "w100 .1 w100", id="dip"),
        pytest.param([0.9, 0.4, 0.31, 0.29], "w3 .1", id="between-leave-and-enter"),
        pytest.param([0.9] * 3 + [None] * 40, "w33 ?10", id="lost-reading"),
        pytest.param([None] * 5, "?5", id="no-pressure-on-this-kernel"),
    ],
)
def test_timeline(ratios: list[float | None], expected: str) -> None:
    """The state at every second is the one worked out beside the pressure."""
    assert stalled([at(second, ratio) for second, ratio in enumerate(ratios)]) == expected


@pytest.mark.parametrize("interval", [0.25, 10.0, 60.0])
def test_three_minutes_at_any_interval(interval: float) -> None:
    """Critical comes 180 s after the warning, whatever the interval."""
    samples = [at(second, 0.9) for second in every(interval, 300.0)]
    count = int(180 / interval)
    assert stalled(samples, interval) == f"w{count} c{len(samples) - count}"


@pytest.mark.parametrize(
    ("gib", "late", "expected"),
    [
        pytest.param(3.9, None, "c3", id="with-little-memory"),
        pytest.param(4.1, None, "w3", id="with-memory"),
        pytest.param(None, None, "w3", id="memory-unknown"),
        pytest.param(60.0, 2.1, "c3", id="late-by-more-than-two-ticks"),
        pytest.param(60.0, 1.9, "w3", id="late-by-less"),
    ],
)
def test_what_makes_it_critical_at_once(
    gib: float | None, late: float | None, expected: str
) -> None:
    """Little memory or our own lateness, beside full pressure."""
    assert stalled([at(second, 0.9, gib=gib, late=late) for second in range(3)]) == expected


def test_little_memory_alone_is_no_stall() -> None:
    """Without pressure neither little memory nor lateness says anything here."""
    assert stalled([at(second, 0.0, gib=1.0, late=9.0) for second in range(3)]) == ".3"


def test_memory_read_at_its_own_pace_counts() -> None:
    """Pressure and memory in samples of their own: the last memory reading counts."""
    memory = replace(at(0, 0.0, gib=3.0), pressure=None)
    pressure = [at(second, 0.9, gib=None) for second in (1, 2)]
    assert stalled([memory, *pressure]) == "?1 c2"


def test_level_scales_with_the_pool() -> None:
    """On half the pool 3 GiB are not below 2."""
    samples = [at(second, 0.9, gib=3.0) for second in range(3)]
    half = Memory(total_bytes=TOTAL // 2, available_bytes=3 * GIB)
    assert stalled([replace(sample, memory=half) for sample in samples]) == "w3"


def test_sentence() -> None:
    """The sentence has the share, the level, the time and what stands beside it."""
    condition = MemoryStalled(MemoryStalledSettings())
    _, events = play(condition, [at(0, 0.0), at(1, 0.92, gib=46.0)])
    assert events[-1].sentence == (
        "On the host every task waited for memory 92% of the last 10 s, at or near 50% for 0 s "
        "(available: 46.0 GiB; our own loop's lateness: not known)."
    )
