"""Timelines of ``swap_thrash``: traffic counts, parked pages do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_watch.detectors.g3_memory.swap_thrash import SwapThrash
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Failure, Memory, Sample, Vm
from spark_watch.settings.g3 import SwapThrashSettings
from tests.detectors.g3.pool import GIB, TOTAL, every
from tests.detectors.timelines import GB10, play, squeeze

MIB = 1024**2

Rate = Callable[[float], float]


def nothing(_: float) -> float:
    """Return no traffic."""
    return 0.0


def between(begin: float, end: float, rate: float) -> Rate:
    """Return so many MiB a second from ``begin`` to ``end``, none around it."""
    return lambda second: rate if begin <= second < end else 0.0


def traffic(
    incoming: Rate,
    outgoing: Rate = nothing,
    *,
    until: float = 60.0,
    interval: float = 1.0,
    gib: float | None = 60.0,
    total: int = TOTAL,
) -> list[Sample]:
    """Return samples of counters that grow at the given rates."""
    samples = []
    totals = [7 * GIB, 9 * GIB]
    for second in every(interval, until):
        vm = Vm(swapped_in_bytes=totals[0], swapped_out_bytes=totals[1])
        pool = None
        if gib is not None:
            pool = Memory(total_bytes=total, available_bytes=round(gib * GIB))
        samples.append(Sample(t=1e9 + second, vm=vm, memory=pool))
        for n, rate in enumerate((incoming, outgoing)):
            totals[n] += round(rate(second) * interval * MIB)
    return samples


def thrash(samples: list[Sample], interval: float = 1.0) -> str:
    """Return the squeezed states."""
    condition = SwapThrash(SwapThrashSettings())
    return squeeze(play(condition, samples, interval_seconds=interval)[0])


@pytest.mark.parametrize(
    ("incoming", "outgoing", "gib", "expected"),
    [
        pytest.param(nothing, nothing, 6.0, "?1 .60", id="parked-swap"),
        # 20 MiB/s from 5 s on: over two seconds it reads 10 at 6 s and 20 from 7 to 17
        pytest.param(between(5, 99, 20), nothing, 60.0, "?1 .16 w44", id="fault"),
        pytest.param(between(5, 16, 20), nothing, 60.0, "?1 .60", id="one-tick-short"),
        pytest.param(
            lambda s: 20.0 if s >= 5 and s not in {11, 12} else 0.0,
            nothing,
            60.0,
            "?1 .24 w36",
            id="dip",
        ),
        # 10 MiB/s at 31 s is between the levels; from 32 s on it rests, for 30 s
        pytest.param(between(5, 30, 20), nothing, 60.0, "?1 .16 w44", id="leave-hold"),
        pytest.param(
            lambda s: 20.0 if 5 <= s < 30 else 10.0, nothing, 60.0, "?1 .16 w44", id="between"
        ),
        pytest.param(between(5, 99, 15), nothing, 60.0, "?1 .60", id="below"),
        pytest.param(between(5, 99, 20), between(5, 99, 20), 7.9, "?1 .16 c44", id="both-low"),
        pytest.param(between(5, 99, 20), between(5, 99, 20), 8.1, "?1 .16 w44", id="both-room"),
        pytest.param(between(5, 99, 20), between(5, 99, 20), None, "?1 .16 w44", id="unknown-room"),
        # at 6 s the two seconds already read 100 MiB/s
        pytest.param(nothing, between(5, 99, 200), 6.0, "?1 .15 i45", id="cold-pages-leave"),
    ],
)
def test_timeline(incoming: Rate, outgoing: Rate, gib: float | None, expected: str) -> None:
    """The state at every second is the one worked out beside the traffic."""
    assert thrash(traffic(incoming, outgoing, gib=gib)) == expected


def test_leaves_after_half_a_minute_of_rest() -> None:
    """Traffic that stopped at 30 s rests from 32 s on and is over at 62 s."""
    assert thrash(traffic(between(5, 30, 20), until=70.0)) == "?1 .16 w45 .9"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # the rate is known at the second sample; the hold needs 10 s and three samples
        pytest.param(0.25, "?1 w240", id="4-hz"),
        pytest.param(10.0, "?3 w4", id="10-s"),
        pytest.param(60.0, "?3 w4", id="60-s"),
    ],
)
def test_steady_thrash_at_any_interval(interval: float, expected: str) -> None:
    """From the start 20 MiB/s come in: unknown until held, never ok."""
    samples = traffic(between(0, 1e9, 20), interval=interval, until=max(60.0, 6 * interval))
    said = thrash(samples, interval)
    if interval == 0.25:
        # the rate is 20 MiB/s from the second sample, 0.25 s, on: held at 10.25 s
        assert said == "?41 w200"
    else:
        assert said == expected


def test_reset_counters_are_not_traffic() -> None:
    """Counters that fall back to zero are no traffic, and what was known stands meanwhile."""
    samples = traffic(nothing, until=20.0)
    zero = Vm(swapped_in_bytes=0, swapped_out_bytes=0)
    samples[10:] = [Sample(t=sample.t, vm=zero) for sample in samples[10:]]
    assert thrash(samples) == "?1 .20"


def test_lost_reading_turns_unknown() -> None:
    """A warning whose source fails stands for 30 s and is then unknown."""
    samples = traffic(between(0, 99, 20), until=20.0)
    samples += [
        Sample(t=1e9 + second, failed=(Failure(source="vmstat", reason="malformed"),))
        for second in range(21, 60)
    ]
    assert thrash(samples) == "?11 w40 ?9"


def test_long_gap_starts_the_hold_anew() -> None:
    """Nobody saw what happened in a gap of a minute: ten seconds are counted from its end."""
    samples = traffic(between(0, 999, 20), until=120.0)
    samples = samples[:8] + samples[80:]
    assert thrash(samples) == "?18 w31"


def test_level_scales_with_the_pool() -> None:
    """On a quarter of the pool 7 GiB are much: in and out stay a warning."""
    both = between(0, 99, 20)
    samples = traffic(both, both, gib=7.0, total=TOTAL // 4)
    assert thrash(samples) == "?11 w50"


def test_rates_are_published() -> None:
    """In and out go out in bytes a second."""
    judge = Judge([SwapThrash(SwapThrashSettings())], Timeline(machine=GB10))
    for sample in traffic(between(0, 99, 20), between(0, 99, 3), until=10.0):
        judge.update(sample)
    assert judge.measures == {
        ("swap_in_bytes_per_second", ()): 20 * MIB,
        ("swap_out_bytes_per_second", ()): 3 * MIB,
    }
