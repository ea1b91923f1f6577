"""Timelines of ``memory_collapse``: warned seconds before the pool is gone, silent on loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_watch.detectors.g3_memory.memory_collapse import EXHAUSTION, MemoryCollapse
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import KernelEvent, Pressure, Sample, State, Vm
from spark_watch.settings.g3 import MemoryCollapseSettings
from tests.detectors.g3.pool import GIB, PUBLISHED, TOTAL, available, every, line, seeded
from tests.detectors.timelines import GB10, play, squeeze

INTERVALS = [0.25, 0.5, 1.0, 2.0]


def collapse(**levels: float) -> MemoryCollapse:
    """Return a fresh condition, with other levels where they are given."""
    return MemoryCollapse(MemoryCollapseSettings.model_validate(levels))


def states(
    gib: Callable[[float], float | None],
    until: float,
    interval: float = 1.0,
    *,
    total: int | None = TOTAL,
) -> str:
    """Return the squeezed states of a stretch of available memory."""
    samples = available(every(interval, until), gib, total=total)
    return squeeze(play(collapse(), samples, interval_seconds=interval)[0])


def load(
    begin: float, end: float, rate: float, rest: float = 40.0
) -> tuple[Callable[[float], float], float]:
    """Return a steady load after ``rest`` seconds, and when it has ended for a minute."""
    done = rest + (begin - end) / rate
    return line([(0.0, begin), (rest, begin), (done, end)]), done + 60.0


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("total", [TOTAL, None], ids=["total", "no-total"])
def test_published_collapse(interval: float, total: int | None) -> None:
    """The warning stands 5 s before the end (at 6 s of 11) and the critical above 5 GiB."""
    gib = line(PUBLISHED)
    samples = available(every(interval, 11.0), gib, total=total)
    _, events = play(collapse(), samples, interval_seconds=interval)
    first = {event.to_state: event.elapsed_seconds for event in reversed(events)}
    assert first[State.WARNING] == 6.0
    assert gib(first[State.CRITICAL]) >= 5.0
    assert [event.to_state for event in events] == [State.OK, State.WARNING, State.CRITICAL]


@pytest.mark.parametrize(
    ("points", "until", "expected"),
    [
        pytest.param([(0, 60)], 9, ".10", id="level-alone-is-ok-at-once"),
        pytest.param([(0, 10)], 39, "?31 .9", id="warm-up"),
        pytest.param([(0, 30), (40, 30), (41, 12.7)], 44, ".41 w4", id="one-large-spike"),
        pytest.param([(0, 20), (40, 20), (41, 12.6)], 42, "?31 .10 w2", id="one-spike-of-7.4"),
        pytest.param([(0, 34), (40, 34), (41.5, 12.7)], 43, ".41 w1 c2", id="34-to-12.7-in-1.5-s"),
        pytest.param([(0, 9.9), (36, 9.9), (39, 2.4)], 39, "?31 .7 c2", id="9.9-to-2.4-in-3-s"),
        pytest.param([(0, 7), (40, 7), (41, 0.7)], 41, "?31 .10 c1", id="gone-in-one-second"),
        pytest.param([(0, 0.74)], 3, "c4", id="nothing-left"),
        pytest.param([(0, 0.74), (3, 0.74), (4, 0.9)], 6, "c7", id="between-leave-and-enter"),
        pytest.param([(0, 0.74), (3, 0.74), (4, 1.01)], 6, "c4 ?3", id="something-left-again"),
        pytest.param([(0, 0.5), (3, 0.5), (4, 25)], 6, "c4 .3", id="back-above-24-at-once"),
        pytest.param([(0, 6)], 100, "?31 .70", id="parked-swap-flat-at-6"),
        pytest.param([(0, 12), (40, 12), (41, 10), (42, 12)], 60, "?31 .30", id="one-dip-of-2"),
        pytest.param([(0, 12), (40, 12), (41, 8), (42, 12)], 60, "?31 .30", id="one-dip-of-4"),
        pytest.param(
            [(0, 20), (40, 20), (41, 7.7), (43, 20)], 60, "?31 .10 w12 .8", id="start-up-dip-to-7.7"
        ),
        pytest.param(
            # 20, 18, 16, 14 GiB: the loss of 2.5 GiB is full at the second falling second
            [(0, 20), (40, 20), (43, 14)],
            60,
            "?31 .11 w13 .6",
            id="begins-and-rests",
        ),
        pytest.param([(0, 20), (40, 20), (41, 18)], 60, "?31 .30", id="one-tick-short"),
        pytest.param([(0, 3.6), (40, 3.6), (41, 2.5)], 42, "?31 .10 c2", id="below-3-and-falling"),
        # 0.6 GiB/s: three seconds lose 1.8 GiB, 4 GiB are 12 s away; at half a GiB a second and
        # more, but below one, 7.5 GiB make no critical
        pytest.param(
            [(0, 13), (40, 13), (51, 6.4), (60, 13)], 60, "?31 .12 w18", id="slow-start-up-dip"
        ),
        # 0.3 GiB before a step of 4.7 are noise, not a second that fell
        pytest.param(
            [(0, 20), (40, 20), (41, 19.7), (42, 15)], 60, "?31 .30", id="noise-before-a-step"
        ),
    ],
)
def test_timeline(points: list[tuple[float, float]], until: float, expected: str) -> None:
    """The state at every second is the one worked out beside the straight lines of memory."""
    assert states(line(points), until) == expected


def test_second_long_dip_at_four_hertz() -> None:
    """2.6 GiB gone within one second and no more are no two seconds that fell."""
    assert "w" not in states(line([(0, 12), (40, 12), (41, 9.4)]), 50.0, 0.25)


def test_one_sample_of_three_seconds() -> None:
    """9.9 GiB, then 2.4 at the next sample 3 s later: critical at that sample."""
    assert states(line([(0, 9.9), (39, 9.9), (42, 2.4)]), 42.0, 3.0) == "?11 .3 c1"


@pytest.mark.parametrize("interval", [0.25, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("rate", [0.17, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("end", [8.0, 15.0, 22.0])
def test_steady_load_is_silent(interval: float, rate: float, end: float) -> None:
    """A load from rest at 115 GiB that ends with room raises nothing, with noise or without."""
    rng = seeded(7)
    gib, until = load(115.0, end, rate)
    for noise in (0.0, 0.05):
        said = states(lambda second: gib(second) + rng.gauss(0, noise), until, interval)  # noqa: B023 - played at once
        assert "w" not in said
        assert "c" not in said


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("end", [8.0, 12.0])
def test_twin_is_a_warning_at_most(interval: float, end: float) -> None:
    """A load at 2 GiB/s from rest at 38 GiB looks like a collapse, is a warning, and clears."""
    gib, until = load(38.0, end, 2.0)
    said = states(gib, until, interval)
    assert "w" in said
    assert "c" not in said
    assert said.split()[-1].startswith(".")


@pytest.mark.parametrize("interval", INTERVALS)
def test_load_that_runs_on_is_warned_below_all_ends(interval: float) -> None:
    """A steady load that does not stop is a warning below 7.5 GiB, critical below 3."""
    gib, until = load(115.0, 0.3, 2.0)
    samples = available(every(interval, until), gib)
    _, events = play(collapse(), samples, interval_seconds=interval)
    first = {event.to_state: gib(event.elapsed_seconds) for event in reversed(events)}
    assert 7.5 - 2.0 * interval <= first[State.WARNING] < 7.5
    assert 3.0 - 2.0 * interval <= first[State.CRITICAL] < 3.0


def test_file_copy_is_silent() -> None:
    """While 60 GiB are written available memory stays level and so does the state."""
    assert states(line([(0, 115.85), (60, 115.65)]), 120.0) == ".121"


@pytest.mark.parametrize("interval", [0.25, 1.0, 10.0, 60.0])
def test_thin_box_is_silent(interval: float) -> None:
    """Five minutes (20 samples at least) of noise between 1.5 and 1.9 GiB raise nothing."""
    rng = seeded(3)
    levels = [rng.uniform(1.5, 1.9) for _ in range(1000)]
    said = states(
        lambda second: levels[int(second / 5.0) % 1000], max(300.0, 20 * interval), interval
    )
    assert "w" not in said
    assert "c" not in said


@pytest.mark.parametrize(
    ("witness", "expected"),
    [
        pytest.param(Sample(t=0.0), "w", id="none"),
        pytest.param(
            Sample(t=0.0, kernel=(KernelEvent(kind="nv_err_no_memory"),)), "c", id="driver"
        ),
        pytest.param(Sample(t=0.0, kernel=(KernelEvent(kind="xid", code=31),)), "w", id="xid"),
        pytest.param(Sample(t=0.0, pressure=Pressure(full_avg10_ratio=0.12)), "c", id="pressure"),
        pytest.param(Sample(t=0.0, pressure=Pressure(full_avg10_ratio=0.02)), "w", id="little"),
        pytest.param(Sample(t=0.0, vm=Vm(swapped_in_bytes=1 << 30)), "c", id="swap-in"),
    ],
)
def test_second_witness(witness: Sample, expected: str) -> None:
    """At 12 GiB and 4 s from the floor (2 GiB/s) only a witness makes it critical."""
    samples = available(every(1.0, 44.0), line([(0, 20), (40, 20), (44, 12)]))
    samples = [replace(sample, vm=Vm(swapped_in_bytes=0)) for sample in samples]
    last = samples.pop()
    said, _ = play(collapse(), [*samples, replace(witness, t=last.t, memory=last.memory)])
    assert said[-1] == expected


@pytest.mark.parametrize("pool", [30.0, 60.0, 119.6, 243.4])
def test_levels_scale_with_the_pool(pool: float) -> None:
    """The published collapse on another pool, scaled like it, plays the same timeline."""
    scale = pool / 121.7
    gib = line([(second, level * scale) for second, level in PUBLISHED])
    samples = available(every(1.0, 11.0), gib, total=round(pool * GIB))
    said, _ = play(collapse(), samples, machine=None)
    assert squeeze(said) == ".6 w3 c3"


def test_lost_readings() -> None:
    """Readings lost in mid collapse: the first after them raises; lost for 31 s it is unknown."""
    shape = line(PUBLISHED)
    said = states(lambda second: None if 4 <= second <= 8 else shape(second), 11.0)
    assert said == ".9 w1 c2"
    assert states(lambda second: 60.0 if second < 5 else None, 45.0) == ".35 ?11"


def test_hole_starts_the_half_minute_anew() -> None:
    """After a hole of two minutes the box at 6 GiB is unknown until half a minute was seen."""
    moments = [*every(1.0, 40.0), *every(1.0, 200.0, since=160.0)]
    said, _ = play(collapse(), available(moments, lambda _: 6.0))
    assert squeeze(said) == "?31 .10 ?31 .10"


def test_sample_without_memory_changes_nothing() -> None:
    """A sample that carries an empty memory part is a lost reading, not a zero."""
    samples = available(every(1.0, 9.0), lambda _: 60.0)
    assert samples[5].memory is not None
    samples[5] = replace(samples[5], memory=replace(samples[5].memory, available_bytes=None))
    samples[6] = Sample(t=samples[6].t)
    assert play(collapse(), samples)[0] == "." * 10


def test_restart_of_the_machine_starts_anew() -> None:
    """After a reboot nothing of the last boot is compared with: 28 GiB less is no fall."""
    before = available(every(1.0, 40.0), lambda _: 30.0)
    after = available(every(1.0, 60.0, since=41.0), lambda _: 2.0)
    samples = [replace(sample, boot_id="a") for sample in before]
    samples += [replace(sample, boot_id="b") for sample in after]
    assert squeeze(play(collapse(), samples)[0]) == ".41 ?20"


def test_irregular_intervals() -> None:
    """A fall of 3 GiB/s from 22 GiB is found at gaps from 0.25 to 3 s, and nothing before it."""
    rng = seeded(11)
    moments = [0.0]
    while moments[-1] < 120.0:
        moments.append(moments[-1] + rng.choice((0.25, 1.0, 2.0, 3.0)))
    shape = line([(0, 22), (100, 22), (107, 1)])
    _, events = play(collapse(), available(moments, shape))
    raised = [event for event in events if event.to_state >= State.WARNING]
    assert raised[0].elapsed_seconds <= 104.0
    assert State.CRITICAL in {event.to_state for event in raised}


@pytest.mark.parametrize(
    ("gib", "expected"),
    [
        pytest.param([60.8, 47.5, 3.8, 46.0], "..c.", id="wedge"),
        pytest.param([115.0, 115.0, 60.0, 8.0, 8.0, 8.0, 8.0], "...?...", id="load-ends-at-8"),
        pytest.param([6.0, 6.1, 5.9, 6.0, 6.0, 5.9], "????..", id="flat"),
        pytest.param([7.0, 7.0, 7.0, 7.0, 6.4, 3.8, 7.0], "????...", id="swing"),
    ],
)
def test_minute_interval(gib: list[float], expected: str) -> None:
    """At a sample a minute a fall to the floor is critical, one that ends with room is not."""
    samples = available(every(60.0, 60.0 * (len(gib) - 1)), lambda second: gib[round(second / 60)])
    assert play(collapse(), samples, interval_seconds=60.0)[0] == expected


def test_projection_is_published_only_while_falling() -> None:
    """At 2 GiB/s and 14 GiB the floor of 4 is 5 s away; level memory has no projection."""
    judge = Judge([collapse()], Timeline(machine=GB10))
    shape = line([(0, 20), (10, 20), (13, 14)])
    measured = []
    for sample in available(every(1.0, 15.0), shape):
        judge.update(sample)
        measured.append(judge.measures.get(EXHAUSTION))
    assert measured[:12] == [None] * 12
    assert measured[12] == pytest.approx((16.0 - 4.0) / 2.0)
    assert measured[13] == pytest.approx((14.0 - 4.0) / 2.0)
    assert measured[14:] == [None, None]


def test_sentence_names_value_level_and_time() -> None:
    """The critical sentence says how much is left, how fast it goes, and until when."""
    samples = available(every(1.0, 11.0), line(PUBLISHED))
    _, events = play(collapse(), samples)
    assert events[-1].sentence == (
        "The host has 10.6 GiB available and lost 14.9 GiB in 4 s: at 4.4 GiB/s 4.0 GiB is reached "
        "in 2 s (standing for 3 s)."
    )
    assert events[-1].subject == "host"
    assert "CUDA memory" in events[-1].remedy


@pytest.mark.parametrize("interval", [0.25, 1.0, 5.0])
@pytest.mark.parametrize("rate", [0.06, 0.15, 0.24])
def test_steady_load_that_does_not_end(rate: float, interval: float) -> None:
    """Below 3 GiB a load has no room left, however steady: its first reading there warns.

    The slowest loses 1.2 GiB in 20 s. The fastest falls by 1.2 GiB between two readings at most,
    so that 1.8 GiB are left for 7 s and more.
    """
    gib, until = load(20.0, 0.5, rate, rest=40.0)
    _, events = play(
        collapse(), available(every(interval, until - 60.0), gib), interval_seconds=interval
    )
    warned = next(event for event in events if event.to_state is State.WARNING)
    assert 1.75 <= gib(warned.elapsed_seconds) < 3.0
    assert gib(warned.elapsed_seconds - interval) >= 3.0
    assert "nothing is left in" in warned.sentence


@pytest.mark.parametrize("interval", [1.0, 10.0, 60.0])
def test_thin_box_that_swings(interval: float) -> None:
    """A start at 0.04 GiB/s down to 2.6 GiB, then 0.9 GiB down in 20 s every two minutes."""
    noise = seeded(7)

    def gib(second: float) -> float:
        slow = max(0.0, 20.0 - second * 0.04)
        breath = 0.9 * min(1.0, (second % 120.0) / 20.0) if second > 600.0 else 0.0
        return 2.6 - breath + slow + noise.uniform(-0.04, 0.04)

    timeline, _ = play(
        collapse(), available(every(interval, 3000.0), gib), interval_seconds=interval
    )
    assert not set(timeline) & {"w", "c"}
