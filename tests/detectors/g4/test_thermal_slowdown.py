"""Timelines of ``thermal_slowdown``: time lost to heat, from counters and, without them, bits.

Growth is in sixteenths of a second a second, which doubles add up without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g4_power.thermal_slowdown import ThermalSlowdown
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Gpu, Machine, Sample
from spark_watch.settings.g4 import ThermalSlowdownSettings
from tests.detectors.g4.gpus import at, gpu, lost, spread
from tests.detectors.timelines import GB10, play, squeeze

SOFTWARE = "sw_thermal_slowdown"
HARDWARE = "hw_thermal_slowdown"


def rule(**settings_: float) -> ThermalSlowdown:
    """Return the condition with its defaults, or with some of them replaced."""
    return ThermalSlowdown(ThermalSlowdownSettings(**settings_))


def counted(software: float, hardware: float = 0.0, index: int = 0) -> Gpu:
    """Return a GPU whose counters stand at these seconds; the power cap is always the largest."""
    seconds = {SOFTWARE: software, HARDWARE: hardware, "sw_power_cap": 9000.0}
    return gpu(96, 2400, reasons=(), seconds=seconds, index=index)


def growing(rate: Callable[[int], float], count: int, *, hardware: bool = False) -> list[Gpu]:
    """Return a GPU a second whose counter starts at 100 s and grows by ``rate`` of the second."""
    total, gpus = 100.0, []
    for second in range(count):
        gpus.append(counted(100.0, total) if hardware else counted(total, 100.0))
        total += rate(second)
    return gpus


def bits(*reasons: str) -> Gpu:
    """Return a GPU without counters whose bits stand like this."""
    return gpu(96, 2400, reasons=reasons)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param(growing(lambda _: 0.0, 620), "?570 .50", id="healthy"),
        pytest.param(
            growing(lambda n: 0.25 if n % 500 == 0 else 0.0, 1200), "?570 .630", id="0.05-per-cent"
        ),
        pytest.param(
            # more than 12 s of 600: at 192 s it is 12 exactly, one second later it is more
            growing(lambda _: 0.0625, 300),
            "?193 w107",
            id="fault-6-per-cent-raised-early",
        ),
        pytest.param(
            growing(lambda n: 0.0625 if n < 192 else 0.0, 700), "?570 .130", id="one-tick-short"
        ),
        pytest.param(
            # more than 60 s of 600, one second after 480
            growing(lambda _: 0.125, 600),
            "?97 w384 c119",
            id="critical-12-per-cent",
        ),
        pytest.param(
            growing(lambda n: 0.125 if n == 99 else 0.0, 800, hardware=True),
            # it is somewhere in the ten seconds to 100 s; a third of them must have left
            "?100 w594 .106",
            id="an-eighth-of-a-second-in-hardware",
        ),
        pytest.param(
            growing(lambda n: 0.0625 if n == 99 else 0.0, 620, hardware=True),
            "?570 .50",
            id="a-sixteenth-in-hardware",
        ),
        pytest.param(
            growing(lambda _: 0.5, 40, hardware=True), "?1 w20 c19", id="critical-in-hardware"
        ),
        pytest.param(
            growing(lambda n: 0.0625 if n < 200 else 0.0, 1000),
            # 12.5 s, and below 9.6 s when the window has passed 46.4 s of its 200 s
            "?193 w454 .353",
            id="between-leave-and-enter",
        ),
        pytest.param(growing(lambda _: 0.25, 100) + [None] * 40, "?49 w81 ?10", id="lost-reading"),
        pytest.param(
            [counted(900.0, 90.0)] * 50 + [counted(0.0)] * 600, "?570 .80", id="counter-reset"
        ),
        pytest.param([counted(0.0)] * 9 + [counted(500.0)] * 40, "?49", id="jump-faster-than-time"),
        pytest.param([gpu(96, 2400, reasons=())] * 700, "?700", id="unit-unknown"),
        pytest.param([gpu(96, 2400)] * 700, "?700", id="nothing-to-read"),
        # a bit stands for the second before its sample, and before the first there is none
        pytest.param([bits(SOFTWARE)] * 700, "?13 w687", id="bits-never-more-than-warning"),
        pytest.param(
            [bits(), bits(SOFTWARE), *[bits()] * 18] * 30,
            "?241 w359",
            id="bit-in-one-sample-of-twenty",
        ),
        pytest.param(
            [bits(), bits(HARDWARE), *[bits()] * 8] * 30,
            "?21 w279",
            id="hardware-bit-in-three-samples",
        ),
        pytest.param([bits(), bits(HARDWARE), bits()] + [bits()] * 60, "?63", id="one-bit"),
        pytest.param([bits("sw_power_cap")] * 700, "?700", id="power-cap-is-no-heat"),
    ],
)
def test_timeline(gpus: Sequence[Gpu | None], expected: str) -> None:
    """The state at every second is the one worked out from the counters."""
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == expected


def test_sentence_at_three_in_the_morning() -> None:
    """The event says how much of which kind, of how long, and the levels."""
    _, events = play(rule(), spread(growing(lambda _: 0.125, 600)))
    assert events[-1].sentence == (
        "GPU 0 slowed down by heat: 60.1 s (10.0 %) in software and 0.0 s in hardware of the last "
        "10 min (levels 10 % and 10.0 s), for 6 min now."
    )


def test_power_cap_time_on_an_idle_box_is_no_heat() -> None:
    """The power-cap counter may grow all the time."""
    gpus = [
        gpu(0, 208, seconds={SOFTWARE: 1.0, HARDWARE: 0.0, "sw_power_cap": 812.0 + n})
        for n in range(700)
    ]
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == "?570 .130"


def test_counters_read_every_five_seconds() -> None:
    """Between two readings of the counters the state stands, and a warning comes as soon."""
    gpus = growing(lambda _: 0.0625, 400)
    sparse = [one if n % 5 == 0 else bits() for n, one in enumerate(gpus)]
    states, _ = play(rule(), spread(sparse))
    assert squeeze(states) == "?195 w205"


def test_counters_read_once_a_minute_do_not_flap() -> None:
    """A slow recorder of counters beside a fast one of everything else gives a steady state."""
    gpus = [counted(5.0) if n % 60 == 0 else bits() for n in range(1500)]
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == "?600 .900"


def test_counters_that_stay_away_are_lost() -> None:
    """The GPU answers and its counters do not: after 30 s nobody knows."""
    gpus = [counted(5.0)] * 600 + [bits()] * 60
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == "?570 .60 ?30"
    judge = Judge([rule()], Timeline(machine=GB10))
    for sample in spread(gpus):
        judge.update(sample)
    assert judge.measures == {}


def test_one_bit_is_no_duration_at_long_intervals() -> None:
    """At 16 s one sample stands for more than 2 % of ten minutes; it takes three."""
    one = [bits()] * 20
    states, _ = play(rule(), spread([*one, bits(SOFTWARE), *one], 16.0), interval_seconds=16.0)
    assert squeeze(states) == "?41"
    states, _ = play(rule(), spread(one + [bits(SOFTWARE)] * 3, 16.0), interval_seconds=16.0)
    assert squeeze(states) == "?22 w1"


def test_one_counter_alone_says_nothing_is_fine() -> None:
    """Without the hardware counter there is no ok, and the software one may still raise."""
    calm = [gpu(96, 2400, seconds={SOFTWARE: 5.0}) for _ in range(700)]
    states, _ = play(rule(), spread(calm))
    assert squeeze(states) == "?700"
    hot = [gpu(96, 2400, seconds={SOFTWARE: 5.0 + 0.0625 * n}) for n in range(300)]
    states, _ = play(rule(), spread(hot))
    assert squeeze(states) == "?193 w107"


def test_counters_that_turn_up_take_over_from_the_bits() -> None:
    """A bit that stands proves the unit; what it raised is not lost when the counters come."""
    gpus = [bits(SOFTWARE)] * 20 + growing(lambda _: 1.0, 60)
    states, _ = play(rule(), spread(gpus))
    # 19 s from the bits, and more than 60 with the counter's 42nd second
    assert squeeze(states) == "?13 w49 c18"


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 5.0, 10.0, 16.0, 60.0])
def test_every_interval(interval: float) -> None:
    """6 % of the time warns, and 0.05 % is ok after ten minutes, at any interval."""
    count = int(1900 / interval)
    hot = [counted(0.0625 * n * interval) for n in range(count)]
    states, _ = play(rule(), spread(hot, interval), interval_seconds=interval)
    raised = states.index("w") * interval
    assert 192.0 < raised <= 192.0 + interval
    assert set(states[states.index("w") :]) == {"w"}
    calm = [counted(0.0005 * n * interval) for n in range(count)]
    states, _ = play(rule(), spread(calm, interval), interval_seconds=interval)
    assert 570.0 <= states.index(".") * interval < 570.0 + interval
    assert set(states) == {"?", "."}


def test_counter_saw_what_happened_in_a_hole() -> None:
    """Half an hour unseen with 90 s of slowdown is 5 % of any ten minutes of it."""
    samples = [at(n, counted(100.0)) for n in range(700)]
    samples += [at(2500 + n, counted(190.0)) for n in range(5)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == "?570 .130 w5"


@pytest.mark.parametrize("back", [True, False], ids=["one-bad-reading", "another-count"])
def test_counter_that_leaps_counts_nothing(back: bool) -> None:
    """A million seconds in one are no slowdown; ok needs ten minutes of sense after them."""
    gpus = [counted(100.0, 0.0)] * 600 + [counted(1e6, 1e6)]
    gpus += [counted(100.0, 0.0) if back else counted(1e6, 1e6)] * 600
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == "?570 .30 ?570 .31"


def test_unit_of_another_size_is_never_fine() -> None:
    """Counters a thousand times too fast leap all the time: nothing is known."""
    states, _ = play(rule(), spread([counted(1000.0 * n) for n in range(1300)]))
    assert set(states) == {"?"}


def test_leap_takes_nothing_back() -> None:
    """What was counted before a leap stays in its ten minutes."""
    gpus = growing(lambda _: 0.0625, 300)
    states, _ = play(rule(), spread([*gpus, *[counted(1e6, 100.0)] * 50]))
    assert squeeze(states) == "?193 w157"


def test_irregular_intervals() -> None:
    """The share is of seconds, not of samples."""
    seconds = [0.0, 0.5, 3.0, 40.0, 41.0, 100.0, 191.0, 193.0, 194.0]
    states, _ = play(rule(), [at(second, counted(0.0625 * second)) for second in seconds])
    assert states == "???????ww"


def test_restart_of_the_machine_starts_anew() -> None:
    """Counters of another boot say nothing of this one's last ten minutes."""
    samples = [at(n, counted(900.0 + 0.25 * n), boot_id="a") for n in range(100)]
    samples += [at(200 + n, counted(0.0), boot_id="b") for n in range(600)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == "?49 w51 ?570 .30"


def test_another_unit_is_judged_too() -> None:
    """Thermal counters mean the same on a discrete card."""
    gpus = growing(lambda _: 0.0625, 300)
    states, _ = play(rule(), spread(gpus), machine=Machine(gpu_name="NVIDIA H200"))
    assert squeeze(states) == "?193 w107"


def test_each_gpu_has_its_own_counters() -> None:
    """One hot GPU of two is named."""
    samples = [at(n, counted(5.0), counted(0.0625 * n, index=1)) for n in range(300)]
    _, events = play(rule(), samples)
    assert [(event.subject, event.to_state.label) for event in events] == [("gpu1", "warning")]


def test_shares_are_measured_for_every_counter() -> None:
    """A quarter of the time in software, none in hardware, none at the cap, per GPU."""
    judge = Judge([rule()], Timeline(machine=GB10))
    for n in range(100):
        judge.update(at(n, counted(0.25 * n)))
        if n < 30:
            assert judge.measures == {}
    assert judge.measures == {
        ("gpu_event_reason_ratio", ("0", SOFTWARE)): pytest.approx(0.25),
        ("gpu_event_reason_ratio", ("0", HARDWARE)): 0.0,
        ("gpu_event_reason_ratio", ("0", "sw_power_cap")): 0.0,
    }


def test_share_of_a_counter_that_grows_all_the_time_is_one() -> None:
    """Over more than the window the share is still 1, not a little more."""
    judge = Judge([rule()], Timeline(machine=GB10))
    for n in range(1500):
        judge.update(at(n, counted(float(n))))
    assert judge.measures["gpu_event_reason_ratio", ("0", SOFTWARE)] == pytest.approx(1.0)


def test_shares_of_lost_counters_go() -> None:
    """What is not read any more is not shown any more."""
    judge = Judge([rule()], Timeline(machine=GB10))
    samples: list[Sample] = [at(n, counted(0.25 * n)) for n in range(100)]
    for sample in [*samples, *(lost(n) for n in range(100, 140))]:
        judge.update(sample)
    assert judge.measures == {}


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    total=st.floats(0.0, 1e7),
    interval=st.sampled_from([0.25, 1.0, 5.0, 16.0, 60.0]),
)
def test_constant_counter_never_fires(total: float, interval: float) -> None:
    """A counter that does not grow is silence, whatever it stands at."""
    gpus = [counted(total, total)] * 200
    states, _ = play(rule(), spread(gpus, interval), interval_seconds=interval)
    assert set(states) <= {"?", "."}


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    grown=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=120),
    tight=st.floats(0.01, 0.1),
    factor=st.floats(0.1, 1.0),
)
def test_looser_level_never_fires_later(grown: list[float], tight: float, factor: float) -> None:
    """With a lower level a warning comes no later."""
    total, gpus = 0.0, []
    for growth in grown:
        total += growth
        gpus.append(counted(total))
    late, _ = play(rule(software_warning_ratio=tight), spread(gpus))
    soon, _ = play(rule(software_warning_ratio=tight * factor), spread(gpus))
    assert (soon.find("w") + 1 or 999) <= (late.find("w") + 1 or 999)
