"""Timelines of ``power_plateau``: a ceiling that is in order, and power that heat holds down.

A window is 300 s in thirty stretches and counts as full from 285 s on, so the first verdict falls
on the stretch that begins at 290 s. Two minutes and a half of a new level move its median.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g4_power.power_plateau import PowerPlateau
from spark_watch.model import Gpu, Machine
from spark_watch.settings.g4 import PowerPlateauSettings
from tests.detectors.g4.gpus import at, gpu, spread
from tests.detectors.timelines import play, squeeze

SEED = 20261130
REST = gpu(0, 2405, watts=11.0, celsius=55.0)


def rule(**settings_: float) -> PowerPlateau:
    """Return the condition with its defaults, or with some of them replaced."""
    return PowerPlateau(PowerPlateauSettings(**settings_))


def phase(
    seconds: int,
    watts: float,
    mhz: float,
    celsius: float,
    *,
    to_celsius: float | None = None,
    percent: float = 96.0,
    spread_watts: float = 1.0,
) -> list[Gpu]:
    """Return one reading a second of work at these levels, with the noise of real sensors."""
    noise = random.Random(SEED)  # noqa: S311 - sensor noise, not a secret
    last = celsius if to_celsius is None else to_celsius
    return [
        gpu(
            percent,
            mhz + noise.uniform(-6.0, 6.0),
            watts=watts + noise.uniform(-spread_watts, spread_watts),
            celsius=float(round(celsius + (last - celsius) * n / seconds)),
        )
        for n in range(seconds)
    ]


BEST = phase(600, 90.0, 2450.0, 80.0)
HELD_DOWN = phase(600, 70.0, 2100.0, 82.0)
MOVING = phase(600, 70.0, 2100.0, 82.0, spread_watts=7.3)  # uniform: 7.3 / sqrt(3) is 6 % of 70


@pytest.mark.parametrize(
    ("gpus", "worst"),
    [
        pytest.param(phase(1200, 40.0, 2500.0, 60.0), ".", id="steady-decode"),
        pytest.param(phase(1200, 99.0, 2420.0, 83.0), "i", id="practical-ceiling"),
        pytest.param(phase(1200, 90.0, 2200.0, 81.0), "i", id="dense-prefill"),
        pytest.param(phase(1200, 60.0, 2000.0, 76.0), "i", id="lock-from-the-start"),
        pytest.param(phase(600, 60.0, 2400.0, 66.0, to_celsius=90.0), "i", id="literal-climb"),
        pytest.param(phase(900, 60.0, 2400.0, 60.0, to_celsius=74.0), "i", id="climb-below-75"),
        pytest.param(
            phase(600, 92.0, 2450.0, 88.0) + phase(600, 60.0, 2000.0, 78.0),
            "i",
            id="locked-meanwhile-and-settled",
        ),
        pytest.param(phase(600, 40.0, 2500.0, 45.0, to_celsius=60.0), ".", id="warm-up-of-a-load"),
        pytest.param(BEST + HELD_DOWN, "w", id="held-down"),
        pytest.param(BEST + phase(600, 45.0, 2490.0, 78.0), "i", id="lighter-work-clocks-higher"),
        pytest.param(BEST + phase(600, 78.0, 2100.0, 82.0), "i", id="power-at-87-per-cent"),
        pytest.param(BEST + phase(600, 70.0, 2300.0, 82.0), "i", id="clock-at-94-per-cent"),
        pytest.param(BEST + phase(600, 70.0, 2100.0, 74.0), "i", id="die-below-75"),
        pytest.param(
            phase(600, 92.0, 2450.0, 86.0) + phase(600, 60.0, 2000.0, 86.0, to_celsius=76.0),
            "i",
            id="locked-meanwhile-and-cooled",
        ),
        pytest.param(
            BEST + phase(600, 70.0, 2100.0, 82.0, spread_watts=12.0), "i", id="power-moves"
        ),
        pytest.param(BEST + phase(600, 70.0, 2100.0, 82.0, percent=85.0), "i", id="not-saturated"),
    ],
)
def test_worst_state(gpus: Sequence[Gpu], worst: str) -> None:
    """What is raised at most by each kind of work is what a fair reader would say."""
    states, _ = play(rule(), spread(gpus))
    assert max(states, key="?.iwc".index) == worst


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param(phase(900, 40.0, 2500.0, 60.0), "?290 .610", id="healthy"),
        pytest.param(phase(290, 99.0, 2420.0, 83.0), "?290", id="warm-up"),
        pytest.param(phase(900, 99.0, 2420.0, 83.0), "?290 i610", id="ceiling"),
        pytest.param([REST] * 600, "?600", id="idle"),
        pytest.param(phase(400, 40.0, 2500.0, 60.0) + [REST] * 900, "?290 .1010", id="ok-stands"),
        pytest.param(
            # information stands for ten idle minutes after the last verdict at 399 s
            phase(400, 99.0, 2420.0, 83.0) + [REST] * 900,
            "?290 i711 ?299",
            id="info-while-idle",
        ),
        pytest.param(
            phase(400, 99.0, 2420.0, 83.0) + [None] * 40, "?290 i140 ?10", id="lost-reading"
        ),
        pytest.param(phase(900, 40.0, 2500.0, 60.0, percent=89.0), "?900", id="too-little-load"),
        pytest.param([*phase(2, 99.0, 2420.0, 83.0), REST] * 300, "?900", id="load-with-pauses"),
    ],
)
def test_timeline(gpus: Sequence[Gpu | None], expected: str) -> None:
    """The state at every second is the one worked out from window and load."""
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == expected


def test_held_down_is_said_when_the_window_is_flat_again() -> None:
    """Five minutes after the fall, because until then the window holds both levels."""
    states, events = play(rule(), spread(BEST + HELD_DOWN))
    raised = states.index("w")
    assert 860 <= raised <= 910
    assert set(states[raised:]) == {"w"}
    (event,) = (one for one in events if one.to_state.label == "warning")
    assert event.sentence.startswith("GPU 0 held at 70 W and 2100 MHz at 82 C for 5 min; this run")
    assert "reached 9" in event.sentence


def test_what_the_run_can_do_is_not_forgotten_while_it_is_held_down() -> None:
    """Three hours on, when nine tenths of the run were held down, it still is a warning."""
    states, _ = play(rule(), spread(BEST + HELD_DOWN * 18))
    assert states[-1] == "w"
    assert set(states[states.index("w") :]) == {"w"}


def test_power_a_little_less_flat_does_not_clear_it() -> None:
    """A spread of 6 % is between the 5 % that is flat and the 7.5 % that is not."""
    states, _ = play(rule(), spread(BEST + HELD_DOWN + MOVING))
    assert set(states[states.index("w") :]) == {"w"}
    states, _ = play(rule(), spread(BEST + MOVING * 2))
    assert "w" not in states


def test_it_clears_when_power_returns() -> None:
    """Back at its best the warning goes, and it does not flap on the way."""
    states, _ = play(rule(), spread(BEST + HELD_DOWN + BEST))
    assert states[-1] == "i"  # 90 W flat at 80 C
    assert squeeze(states[600:]).count("w") == 1


def test_clock_limit_of_the_owner_is_no_heat() -> None:
    """At a limit set meanwhile the clock is where the owner wants it."""
    states, _ = play(rule(gpu_clock_limit_hertz=2.1e9), spread(BEST + HELD_DOWN))
    assert "w" not in states


def test_two_idle_minutes_begin_another_run() -> None:
    """Another job that draws less is held against itself."""
    states, _ = play(rule(), spread(BEST + [REST] * 125 + HELD_DOWN))
    assert "w" not in states
    states, _ = play(rule(), spread(BEST + HELD_DOWN + [REST] * 125 + HELD_DOWN))
    assert states[-1] == "i"


def test_one_idle_minute_does_not() -> None:
    """A pause between two epochs leaves the run what it was."""
    states, _ = play(rule(), spread(BEST + [REST] * 60 + HELD_DOWN))
    assert states[-1] == "w"


def test_ceiling_is_named() -> None:
    """97 to 101 W is said once, as what the rail takes."""
    _, events = play(rule(), spread(phase(1200, 99.0, 2420.0, 83.0)))
    (event,) = events
    assert event.sentence == (
        "GPU 0 flat at 99 W and 2420 MHz at 83 C over 5 min: the practical ceiling of its rail."
    )


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 5.0, 10.0, 16.0, 60.0])
def test_every_interval(interval: float) -> None:
    """Held down is found within seven minutes at any interval, and decode is quiet."""
    step = max(1, round(interval))
    repeat = max(1, round(1 / interval))
    work = [one for one in (BEST + HELD_DOWN)[::step] for _ in range(repeat)]
    states, _ = play(rule(), spread(work, interval), interval_seconds=interval)
    assert 860.0 <= states.index("w") * interval <= 1020.0
    calm = [one for one in phase(1200, 40.0, 2500.0, 60.0)[::step] for _ in range(repeat)]
    states, _ = play(rule(), spread(calm, interval), interval_seconds=interval)
    assert set(states) == {"?", "."}


def test_long_gap_empties_the_window() -> None:
    """Four minutes before and four after a minute of nothing are no five minutes."""
    gpus = phase(240, 99.0, 2420.0, 83.0)
    samples = [at(n, one) for n, one in enumerate(gpus)]
    samples += [at(300 + n, one) for n, one in enumerate(gpus)]
    states, _ = play(rule(), samples)
    assert set(states) == {"?"}


def test_restart_of_the_machine_starts_anew() -> None:
    """What the boot before could do says nothing of this one."""
    samples = [at(n, one, boot_id="a") for n, one in enumerate(BEST)]
    samples += [at(700 + n, one, boot_id="b") for n, one in enumerate(HELD_DOWN)]
    states, _ = play(rule(), samples)
    assert "w" not in states
    assert states[600:890] == "?" * 290


def test_another_unit_is_not_judged() -> None:
    """A discrete card has a power limit of its own."""
    states, _ = play(
        rule(), spread(BEST + HELD_DOWN), machine=Machine(gpu_name="NVIDIA H200", gpu_count=1)
    )
    assert set(states) == {"?"}


def test_each_gpu_has_its_own_run() -> None:
    """One of two GPUs held down is named."""
    both = zip(BEST + BEST, BEST + HELD_DOWN, strict=True)
    samples = []
    for n, (first, second) in enumerate(both):
        other = gpu(
            96,
            (second.sm_hertz or 0.0) / 1e6,
            watts=second.power_watts,
            celsius=second.temperature_celsius,
            index=1,
        )
        samples.append(at(n, first, other))
    _, events = play(rule(), samples)
    assert [one.subject for one in events if one.to_state.label == "warning"] == ["gpu1"]


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    watts=st.floats(0.0, 110.0),
    mhz=st.floats(200.0, 3003.0),
    celsius=st.floats(0.0, 104.0),
    interval=st.sampled_from([1.0, 5.0, 10.0, 16.0, 60.0]),
)
def test_constant_never_warns(watts: float, mhz: float, celsius: float, interval: float) -> None:
    """A run that is the same all along is not held down against itself."""
    gpus = [gpu(96, mhz, watts=watts, celsius=celsius)] * round(1200 / interval)
    states, _ = play(rule(), spread(gpus, interval), interval_seconds=interval)
    assert set(states) <= {"?", ".", "i"}


@pytest.mark.parametrize("shift", [-5e8, 0.5, 3e8])
def test_shifting_the_start_changes_nothing(shift: float) -> None:
    """The timeline is the same whenever it happened."""
    here, _ = play(rule(), spread(BEST + HELD_DOWN))
    there, _ = play(rule(), spread(BEST + HELD_DOWN, start=shift))
    assert here == there


@pytest.mark.parametrize("looser", [0.86, 0.9, 0.95])
def test_looser_level_never_fires_later(looser: float) -> None:
    """With a higher share of power to fall below, a warning comes no later."""
    late, _ = play(rule(), spread(BEST + HELD_DOWN))
    soon, _ = play(rule(power_ratio=looser), spread(BEST + HELD_DOWN))
    assert soon.index("w") <= late.index("w")
