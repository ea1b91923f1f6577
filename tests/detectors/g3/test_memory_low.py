"""Timelines of ``memory_low``: a leak is seen half an hour ahead, swings and flat boxes are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_watch.detectors.g3_memory.memory_low import TREND, MemoryLow
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Process, Sample, State, Vm
from spark_watch.settings.g3 import MemoryLowSettings
from tests.detectors.g3.pool import GIB, available, every, line, seeded
from tests.detectors.timelines import GB10, play, squeeze

MINUTE = 60.0


def low(**levels: float) -> MemoryLow:
    """Return a fresh condition, with other levels where they are given."""
    return MemoryLow(MemoryLowSettings.model_validate(levels))


def minutes(points: list[tuple[float, float]]) -> Callable[[float], float]:
    """Return straight lines through points in minutes, as a function of seconds."""
    return line([(minute * MINUTE, gib) for minute, gib in points])


def process(pid: int, started: float | None = None, kind: str = "compute") -> Process:
    """Return a process that holds GPU memory."""
    return Process(pid=pid, kind=kind, engine="vllm", gpu_bytes=GIB, started_seconds=started)


@pytest.mark.parametrize(
    ("points", "until", "expected"),
    [
        pytest.param([(0, 8.1)], 30, ".31", id="level-alone-is-ok-at-once"),
        pytest.param([(0, 6)], 60, "?19 .42", id="flat-needs-20-min"),
        pytest.param([(0, 3.2)], 60, "?19 i42", id="flat-low-is-info"),
        pytest.param([(0, 3.2), (30, 3.2), (31, 4.2)], 60, "?19 i42", id="thin-between-levels"),
        pytest.param([(0, 3.2), (30, 3.2), (31, 4.6)], 60, "?19 i12 .30", id="no-longer-thin"),
        # 8 GiB at 30 min; a minute later the line is at 7.9 and 2 GiB are 29.5 min away
        pytest.param([(0, 14), (60, 2)], 60, ".31 w30", id="leak"),
        # too slow to reach 2 GiB within 30 min before it levels at 5
        pytest.param([(0, 9), (60, 6), (80, 6)], 80, ".81", id="slow-leak-that-levels"),
        # 4.9 GiB at 111 min, falling by 0.1: 29.5 min to go, and lower than ever in 90 minutes
        pytest.param([(0, 7), (90, 7), (120, 4)], 120, "?19 .92 w10", id="leak-after-flat"),
        pytest.param([(0, 7), (60, 7), (60.5, 4.5)], 120, "?19 .42 ?20 .40", id="step-starts-anew"),
        pytest.param([(0, 60), (60, 60), (61, 6)], 100, ".61 ?20 .20", id="a-start-is-a-step"),
    ],
)
def test_timeline(points: list[tuple[float, float]], until: float, expected: str) -> None:
    """The state at every minute is the one worked out beside the straight lines of memory."""
    samples = available(every(MINUTE, until * MINUTE), minutes(points))
    said, _ = play(low(), samples, interval_seconds=MINUTE)
    assert squeeze(said) == expected


@pytest.mark.parametrize("interval", [0.25, 1.0, 10.0, 60.0])
def test_leak_at_any_interval(interval: float) -> None:
    """A leak of 0.2 GiB a minute from 14 GiB is a warning between 31 and 33 min, and before not."""
    samples = available(every(interval, 40 * MINUTE), minutes([(0, 14), (60, 2)]))
    _, events = play(low(), samples, interval_seconds=interval)
    assert [event.to_state for event in events] == [State.OK, State.WARNING]
    assert 31 * MINUTE <= events[1].elapsed_seconds <= 33 * MINUTE
    assert "0.20 GiB a minute" in events[1].sentence


@pytest.mark.parametrize(
    ("points", "course"),
    [
        pytest.param([(0, 3.2), (25, 3.2)], "level (+0.00 GiB", id="level"),
        pytest.param([(0, 2.4), (25, 3.4)], "rising (+0.04 GiB", id="rising"),
        # 0.03 GiB a minute: from 3.2 GiB, 2 GiB are 39 min away, inside the way out of 60
        pytest.param(
            [(0, 3.9), (25, 3.15)], "falling no further than it swings (-0.03 GiB", id="swing"
        ),
        pytest.param([(0, 5.2), (25, 4.45)], "falling slowly (-0.03 GiB", id="slow"),
    ],
)
def test_sentence_does_not_call_a_fall_level(
    points: list[tuple[float, float]], course: str
) -> None:
    """What is no leak may still move: by 0.5 GiB in 20 min or more it is not called level."""
    samples = available(every(10.0, 1500.0), minutes(points))
    judge = Judge([low()], Timeline(interval_seconds=10.0, machine=GB10))
    for sample in samples:
        judge.update(sample)
    (standing,) = judge.standing(samples[-1].t)
    assert course in standing.finding.sentence


def test_leak_that_stops_is_over() -> None:
    """Once the leak has stopped at 5 GiB for twenty minutes the state is ok and stays so."""
    samples = available(every(MINUTE, 120 * MINUTE), minutes([(0, 14), (45, 5)]))
    said, _ = play(low(), samples, interval_seconds=MINUTE)
    assert said[44] == "w"
    assert squeeze(said).split()[1].startswith("w")
    assert set(said[66:]) == {"."}


def test_leak_whose_memory_comes_back_is_over_at_once() -> None:
    """From 8.5 GiB on the warning is gone, between 8 and 8.5 it stands."""
    shape = minutes([(0, 14), (45, 5), (45.5, 8.2), (50, 8.2), (50.5, 9)])
    samples = available(every(MINUTE, 55 * MINUTE), shape)
    said, _ = play(low(step_gib=100.0), samples, interval_seconds=MINUTE)
    assert said[46:50] == "wwww"
    assert set(said[51:]) == {"."}


@pytest.mark.parametrize("interval", [1.0, 60.0])
@pytest.mark.parametrize("level", [4.5, 5.5, 6.5, 8.0])
@pytest.mark.parametrize("period", [2.0, 7.0, 15.0, 25.0])
def test_swing_is_no_leak(interval: float, level: float, period: float) -> None:
    """Two GiB to either side, over any of these minutes, never raises in five hours."""

    def swing(second: float) -> float:
        return level + 2.0 * math.sin(2 * math.pi * second / MINUTE / period)

    samples = available(every(interval, 300 * MINUTE), swing)
    said, _ = play(low(), samples, interval_seconds=interval)
    assert "w" not in said
    assert "c" not in said


def test_fall_that_turned_is_no_leak() -> None:
    """Nine minutes down and three up again are a swing, although the line through 20 min falls."""
    shape = minutes([(0, 7.5), (30, 7.5), (39, 3.0), (42, 4.8), (51, 3.4), (54, 5.2), (90, 5.2)])
    samples = available(every(MINUTE, 90 * MINUTE), shape)
    said, _ = play(low(swing_gib=0.0), samples, interval_seconds=MINUTE)
    assert "w" not in said


def test_noise_for_a_day_is_no_leak() -> None:
    """A day at 4 to 7 GiB with noise, wandering by 0.1 GiB a minute, never raises."""
    rng = seeded(5)
    level = 5.5
    levels = []
    for _ in range(24 * 60 + 1):
        level = min(7.0, max(4.0, level + rng.gauss(0.0, 0.1)))
        levels.append(level + rng.gauss(0.0, 0.05))
    samples = available(every(MINUTE, 86_400.0), lambda second: levels[round(second / MINUTE)])
    said, _ = play(low(), samples, interval_seconds=MINUTE)
    assert set(said) <= {"?", "."}


def test_process_start_and_exit_start_the_window_anew() -> None:
    """After a start 15 min of grace and 20 of window pass before a flat box is ok again."""
    samples = available(every(MINUTE, 140 * MINUTE), lambda _: 6.0)
    samples = [
        replace(sample, processes=(process(1), process(2))[: 2 if 60 <= n < 120 else 1])
        for n, sample in enumerate(samples)
    ]
    said, _ = play(low(), samples, interval_seconds=MINUTE)
    assert squeeze(said) == "?19 .41 ?34 .26 ?19 .2"


def test_launcher_starts_nothing_anew() -> None:
    """A launcher holds no GPU memory: its start is none."""
    samples = available(every(MINUTE, 60 * MINUTE), lambda _: 6.0)
    samples = [
        replace(
            sample,
            processes=(process(1), *((process(2, kind="launcher"),) if n >= 40 else ())),
        )
        for n, sample in enumerate(samples)
    ]
    assert squeeze(play(low(), samples, interval_seconds=MINUTE)[0]) == "?19 .42"


def test_process_that_is_young_at_our_start() -> None:
    """A process that started 5 min before our first look has 10 of its 15 min of grace left."""
    samples = available(every(MINUTE, 60 * MINUTE), lambda _: 6.0)
    samples = [
        replace(
            sample,
            monotonic_seconds=1000.0 + n * MINUTE,
            boottime_seconds=1000.0 + n * MINUTE,
            processes=(process(1, started=700.0),),
        )
        for n, sample in enumerate(samples)
    ]
    assert squeeze(play(low(), samples, interval_seconds=MINUTE)[0]) == "?29 .32"


def test_number_given_to_another_process() -> None:
    """The same number with another start is another process."""
    samples = available(every(MINUTE, 60 * MINUTE), lambda _: 6.0)
    samples = [
        replace(sample, processes=(process(1, started=1.0 if n < 40 else 2.0),))
        for n, sample in enumerate(samples)
    ]
    assert squeeze(play(low(), samples, interval_seconds=MINUTE)[0]) == "?19 .21 ?21"


@pytest.mark.parametrize(
    ("levels", "counters", "expected"),
    [
        pytest.param([1.4], None, "?12", id="still"),
        pytest.param([1.4], Vm(swapped_in_bytes=2 << 20), "?6 c6", id="swap-in"),
        pytest.param([1.4], Vm(swapped_in_bytes=1 << 18), "?12", id="parked-swap"),
        pytest.param([1.4], Vm(major_faults=60), "?6 c6", id="faults"),
        pytest.param([1.4], Vm(major_faults=5), "?12", id="few-faults"),
        pytest.param([1.6], Vm(swapped_in_bytes=2 << 20), "?12", id="above"),
        pytest.param([1.4] * 7 + [1.6] * 5, Vm(swapped_in_bytes=2 << 20), "?6 c6", id="stands"),
        pytest.param([1.4] * 6 + [1.6] * 6, Vm(swapped_in_bytes=2 << 20), "?12", id="one-short"),
        pytest.param(
            [1.4] * 4 + [1.6] + [1.4] * 7, Vm(swapped_in_bytes=2 << 20), "?10 c2", id="dip"
        ),
        pytest.param([2.25 - 0.1 * n for n in range(12)], None, "?12", id="falls-not-5-s-yet"),
        pytest.param([2.25 - 0.1 * n for n in range(14)], None, "?13 c1", id="falls"),
    ],
)
def test_nearly_gone(levels: list[float], counters: Vm | None, expected: str) -> None:
    """Below 1.5 GiB for 5 s it is critical where it moves; counters grow by this each second."""
    count = max(len(levels), 12)
    samples = available(every(1.0, count - 1.0), lambda second: levels[int(second) % len(levels)])
    if counters is not None:
        samples = [
            replace(
                sample,
                vm=Vm(
                    swapped_in_bytes=(counters.swapped_in_bytes or 0) * n,
                    major_faults=(counters.major_faults or 0) * n,
                ),
            )
            for n, sample in enumerate(samples, start=1)
        ]
    assert squeeze(play(low(), samples)[0]) == expected


def test_counters_that_start_anew_are_no_movement() -> None:
    """Swap counters that fall back to zero say nothing moved."""
    samples = [
        replace(sample, vm=Vm(swapped_in_bytes=0 if n >= 5 else 1 << 40))
        for n, sample in enumerate(available(every(1.0, 30.0), lambda _: 1.4))
    ]
    assert squeeze(play(low(), samples)[0]) == "?31"


def test_lost_readings_turn_unknown() -> None:
    """A flat box whose readings fail stays ok for three intervals and is then unknown."""
    samples = available(
        every(MINUTE, 40 * MINUTE), lambda second: 6.0 if second <= 30 * MINUTE else None
    )
    assert squeeze(play(low(), samples, interval_seconds=MINUTE)[0]) == "?19 .15 ?7"


def test_long_gap_is_no_window() -> None:
    """Fifteen of twenty minutes lost: too little of the window was seen to call it level."""
    moments = [*every(MINUTE, 25 * MINUTE), *every(MINUTE, 60 * MINUTE, since=41 * MINUTE)]
    said, _ = play(low(), available(moments, lambda _: 6.0), interval_seconds=MINUTE)
    assert squeeze(said[:26]) == "?19 .7"
    assert said[26 + 1] == "?"
    assert said[-1] == "."


@pytest.mark.parametrize("pool", [30.0, 119.6])
def test_levels_scale_with_the_pool(pool: float) -> None:
    """The same leak, scaled with the pool, plays the same timeline."""
    scale = pool / 121.7
    shape = minutes([(0, 14.01 * scale), (60, 2.01 * scale)])
    samples = available(every(MINUTE, 60 * MINUTE), shape, total=round(pool * GIB))
    said, _ = play(low(), samples, interval_seconds=MINUTE, machine=None)
    assert squeeze(said) == ".31 w30"


def test_restart_of_the_machine_starts_anew() -> None:
    """After a reboot the window is empty."""
    samples = [
        replace(sample, boot_id="a" if n < 40 else "b")
        for n, sample in enumerate(available(every(MINUTE, 60 * MINUTE), lambda _: 6.0))
    ]
    assert squeeze(play(low(), samples, interval_seconds=MINUTE)[0]) == "?19 .21 ?19 .2"


def test_slope_is_published() -> None:
    """Twenty minutes of 0.2 GiB a minute are 3.6 million bytes a second, falling."""
    judge = Judge([low()], Timeline(machine=GB10, interval_seconds=MINUTE))
    last: Sample
    for last in available(every(MINUTE, 25 * MINUTE), minutes([(0, 14), (60, 2)])):
        judge.update(last)
    assert judge.measures[TREND] == pytest.approx(-0.2 * GIB / 60, rel=1e-3)


def test_a_pool_that_is_back_is_ok_at_once_and_one_that_is_not_says_what_it_waits_for() -> None:
    """From 8 GiB on the level alone excludes the rule; below, the sentence tells then from now."""
    # falling from 2.25 to 0.95 GiB, below 1.5 for the last five seconds; then 3 GiB; then 100
    levels = [2.25 - 0.1 * second for second in range(14)] + [3.0] * 5 + [100.0] * 3
    judge = Judge([low()], Timeline(machine=GB10))
    said = []
    for second, gib in enumerate(levels):
        (sample,) = available([float(second)], dict.fromkeys([float(second)], gib).__getitem__)
        judge.update(sample)
        (standing,) = judge.standing(sample.t)
        said.append(standing.finding)
    assert [finding.state.label for finding in said[13:]] == ["critical"] * 6 + ["ok"] * 3
    assert "0.95 GiB available, below 1.5 GiB for 5 s" in said[13].sentence
    assert said[15].sentence.startswith("The host has 3.0 GiB available again; ")
    assert said[15].sentence.endswith(" it fell below 1.5 GiB, and 30 s of rest clear this.")
