"""Timelines of ``low_power_state``: a clock far too low under load, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g4_power.low_power_state import EPISODES_KEPT, LowPowerState
from spark_watch.model import Gpu, Machine
from spark_watch.settings.g4 import LowPowerStateSettings
from tests.detectors.g4.gpus import at, gpu, spread
from tests.detectors.timelines import play, squeeze

FINE = gpu(96, 2400)
STUCK = gpu(96, 799, watts=19.5)
BETWEEN = gpu(96, 1200)
RESIDENT = gpu(0, 2405, watts=11.0)
DEEP = gpu(0, 208, watts=4.0)


def rule(**settings_: float) -> LowPowerState:
    """Return the condition with its defaults, or with some of them replaced."""
    return LowPowerState(LowPowerStateSettings(**settings_))


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param([FINE] * 10, "?2 .8", id="healthy"),
        pytest.param([gpu(95, 2400, watts=31.0)] * 10, "?2 .8", id="memory-bound-decode"),
        pytest.param([RESIDENT] * 5 + [DEEP] * 5, "?10", id="idle"),
        pytest.param([gpu(0, 377)] * 9 + [gpu(0, 201)] * 9, "?18", id="idle-in-p0"),
        pytest.param([FINE] * 3 + [STUCK] * 30, "?2 .3 w18 c10", id="fault"),
        pytest.param([STUCK] * 25, "?2 w18 c5", id="stuck-from-the-start"),
        pytest.param([FINE] * 3 + [STUCK] * 2 + [FINE] * 3, "?2 .6", id="one-tick-short"),
        pytest.param([STUCK] * 20 + [DEEP], "?2 w19", id="one-tick-short-of-critical"),
        pytest.param([STUCK] * 21 + [DEEP], "?2 w18 c2", id="critical-on-the-tick"),
        pytest.param(
            [FINE] * 3 + [STUCK, STUCK, FINE] * 20, "?2 .61", id="dips-shorter-than-the-hold"
        ),
        pytest.param([STUCK] * 25 + [BETWEEN] * 90, "?2 w18 c95", id="between-leave-and-enter"),
        pytest.param([STUCK] * 25 + [FINE] * 60 + [BETWEEN], "?2 w18 c66", id="almost-clear"),
        pytest.param([STUCK] * 25 + [FINE] * 61, "?2 w18 c65 .1", id="clear"),
        pytest.param(
            [STUCK] * 25 + [FINE] * 50 + [BETWEEN] + [FINE] * 50,
            "?2 w18 c106",
            id="not-in-one-piece",
        ),
        pytest.param([STUCK, STUCK, RESIDENT] * 10, "?30", id="pauses-start-the-hold-anew"),
        pytest.param(
            [STUCK] * 25 + ([FINE] * 21 + [RESIDENT] * 9) * 3 + [FINE],
            # three loads of 20 s between their first and last reading; the third ends at 105 s
            "?2 w18 c85 .11",
            id="clear-by-loads-with-pauses",
        ),
        pytest.param(
            [STUCK] * 12 + [RESIDENT] * 5 + [STUCK] * 12,
            # 11 s of load before the pause, 9 more after it
            "?2 w24 c3",
            id="critical-by-loads-with-a-pause",
        ),
        pytest.param([STUCK] * 25 + [None] * 40, "?2 w18 c35 ?10", id="lost-reading"),
        pytest.param([STUCK] * 25 + [RESIDENT] * 700, "?2 w18 c606 ?99", id="idle-while-stuck"),
        pytest.param(
            [STUCK] * 25 + [RESIDENT] * 700 + [FINE] * 5,
            "?2 w18 c606 ?101 .3",
            id="fine-after-a-long-rest",
        ),
        pytest.param(
            [STUCK] * 25 + [RESIDENT] * 700 + [STUCK] * 5,
            "?2 w18 c606 ?101 w3",
            id="stuck-again-after-a-long-rest",
        ),
        pytest.param([FINE] * 3 + [RESIDENT] * 90, "?2 .91", id="ok-stands-while-idle"),
        pytest.param([gpu(79, 700)] * 60, "?60", id="too-little-load-proves-nothing"),
        pytest.param([gpu(96, 1001)] * 60, "?2 .58", id="just-above-the-level"),
        pytest.param([gpu(96, None)] * 9, "?9", id="no-clock"),
        pytest.param([gpu(None, 700)] * 9, "?9", id="no-utilisation"),
        pytest.param([FINE] * 3 + [gpu(96, None)] * 40, "?2 .31 ?10", id="clock-lost"),
        pytest.param([DEEP] * 5 + [gpu(96, 2509)] + [DEEP] * 5, "?11", id="one-stale-reading"),
    ],
)
def test_timeline(gpus: Sequence[Gpu | None], expected: str) -> None:
    """The state at every second is the one worked out from the clocks."""
    states, _ = play(rule(), spread(gpus))
    assert squeeze(states) == expected


def test_sentence_at_three_in_the_morning() -> None:
    """The critical event says what is measured, the level, for how long and how often."""
    _, events = play(rule(), spread([STUCK] * 25))
    assert [event.to_state.label for event in events] == ["warning", "critical"]
    assert events[1].sentence == (
        "GPU 0 held at 799 MHz with 96 % utilisation and 19.5 W for 20 s (level 1000 MHz): "
        "low-power state of the platform, episode 1 in 24 h."
    )
    assert "A reboot does not clear it" in events[1].remedy


def test_heat_that_does_it_is_named() -> None:
    """Where the driver says that heat slows the GPU down, cutting AC power does not come first."""
    hot = gpu(96, 650, reasons=("hw_slowdown", "hw_thermal_slowdown"))
    _, events = play(rule(), spread([hot] * 25))
    assert events[-1].sentence.endswith(" Slowed by heat as well (hw_thermal_slowdown).")
    assert events[-1].remedy.startswith("Heat comes first")


def test_ramp_of_a_load_at_a_quarter_second() -> None:
    """A clock that takes 0.75 s to rise is a ramp."""
    ramp = [gpu(96, 208), gpu(96, 700), gpu(96, 950)]
    gpus = ([DEEP] * 4 + ramp + [FINE] * 20) * 5
    states, _ = play(rule(), spread(gpus, 0.25), interval_seconds=0.25)
    assert set(states) == {"?", "."}


def test_stuck_at_half_a_second_as_it_was_recorded() -> None:
    """Idle at 2.2 GHz, then 890, 890, 858, 695 MHz as the load starts: said within seconds."""
    gpus = [gpu(0, 2197), gpu(0, 2229)] * 3
    gpus += [gpu(94, 890), gpu(95, 890), gpu(96, 858)] + [gpu(96, 695)] * 60
    states, _ = play(rule(), spread(gpus, 0.5), interval_seconds=0.5)
    assert squeeze(states) == "?10 w36 c23"  # load from 3 s on: warning at 5 s, critical at 23 s


@pytest.mark.parametrize("interval", [10.0, 16.0, 60.0])
def test_stale_clock_at_the_ends_of_a_load_is_quiet(interval: float) -> None:
    """At long intervals one sample at the start or end of a load shows a clock of rest."""
    edge = gpu(96, 208)
    gpus = [DEEP, edge, FINE, FINE, FINE, FINE, edge, DEEP] * 5
    states, _ = play(rule(), spread(gpus, interval), interval_seconds=interval)
    assert set(states) == {"?", "."}


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (0.25, "?8 .40 w72 c48"),
        (0.5, "?4 .40 w36 c88"),
        (1.0, "?2 .40 w18 c108"),
        (5.0, "?2 .40 w2 c124"),
        (10.0, "?2 .40 c126"),
        (16.0, "?2 .40 c126"),
        (60.0, "?2 .40 c126"),
    ],
)
def test_every_interval(interval: float, expected: str) -> None:
    """Two and twenty seconds at any interval, or three samples where those take longer."""
    gpus = [FINE] * 40 + [STUCK] * 128
    states, _ = play(rule(), spread(gpus, interval), interval_seconds=interval)
    assert squeeze(states) == expected


def test_clearing_takes_three_samples() -> None:
    """At 60 s the second fine sample is a minute after the first; it is the third that clears."""
    states, _ = play(rule(), spread([STUCK] * 5 + [FINE] * 5, 60.0), interval_seconds=60.0)
    assert squeeze(states) == "?2 c5 .3"


def test_irregular_intervals() -> None:
    """Seconds count, not samples: stuck at 0, 0.7 and 1.1 s is no warning, at 2.4 s it is."""
    states, _ = play(rule(), [at(second, STUCK) for second in (0.0, 0.7, 1.1, 2.4)])
    assert states == "???w"


def test_long_gap_starts_the_hold_anew() -> None:
    """Two samples before and two after ten minutes of nothing are no two seconds."""
    seconds = (0.0, 1.0, 601.0, 602.0, 603.0)
    states, _ = play(rule(), [at(second, STUCK) for second in seconds])
    assert states == "????w"


def test_restart_of_the_machine_forgets() -> None:
    """After a reboot the state is unknown until the GPU is loaded again, and is then found anew."""
    samples = [at(n, STUCK, boot_id="a") for n in range(25)]
    samples += [at(60 + n, DEEP, boot_id="b") for n in range(5)]
    samples += [at(65 + n, STUCK, boot_id="b") for n in range(5)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == "?2 w18 c5 ?7 w3"


def test_another_unit_is_not_judged() -> None:
    """A discrete card may clock as it likes."""
    states, _ = play(rule(), spread([STUCK] * 30), machine=Machine(gpu_name="NVIDIA H200"))
    assert squeeze(states) == "?30"


def test_each_gpu_has_its_own_state() -> None:
    """One stuck GPU beside a fine one is named."""
    samples = [at(n, FINE, gpu(96, 799, index=1)) for n in range(25)]
    _, events = play(rule(), samples)
    assert [(event.subject, event.to_state.label) for event in events] == [
        ("gpu1", "warning"),
        ("gpu1", "critical"),
    ]


def test_clock_limit_of_the_owner_moves_the_levels() -> None:
    """Locked to 800 MHz on purpose, 790 MHz is fine and 500 MHz is stuck; it clears at 790."""
    locked = gpu(96, 790)
    states, _ = play(rule(gpu_clock_limit_hertz=8e8), spread([locked] * 30))
    assert squeeze(states) == "?2 .28"
    gpus = [gpu(96, 500)] * 25 + [locked] * 61
    states, _ = play(rule(gpu_clock_limit_hertz=8e8), spread(gpus))
    assert squeeze(states) == "?2 w18 c65 .1"


def test_clock_limit_above_the_levels_changes_nothing() -> None:
    """Capped to 2000 MHz the rule is the same, and it still clears."""
    gpus = [STUCK] * 25 + [gpu(96, 2000)] * 61
    states, _ = play(rule(gpu_clock_limit_hertz=2e9), spread(gpus))
    assert squeeze(states) == "?2 w18 c65 .1"


def test_episodes_are_found_counted_and_do_not_flap() -> None:
    """Stalls of 7 min every 30: each is warning, critical, ok, and says which one it is."""
    gpus = ([FINE] * 1380 + [STUCK] * 420) * 4
    _, events = play(rule(), spread(gpus))
    assert [event.to_state.label for event in events] == (
        ["ok"] + ["warning", "critical", "ok"] * 3 + ["warning", "critical"]
    )
    said = [event.sentence[-18:] for event in events if event.to_state.label == "critical"]
    assert said == [f"episode {number} in 24 h." for number in (1, 2, 3, 4)]


def test_episodes_of_the_day_before_do_not_count() -> None:
    """One stall a day is the first in 24 h every time."""
    gpus = ([STUCK] * 5 + [FINE] * 1436) * 3  # at 60 s a cycle of 24 h and a minute
    _, events = play(rule(), spread(gpus, 60.0), interval_seconds=60.0)
    said = [event.sentence for event in events if event.to_state.label == "critical"]
    assert len(said) == 3
    assert all("episode 1 in 24 h" in sentence for sentence in said)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    readings=st.lists(
        st.tuples(st.floats(0.0, 100.0), st.floats(1000.0, 3003.0)), min_size=1, max_size=80
    ),
    interval=st.sampled_from([0.25, 0.5, 1.0, 5.0, 10.0, 16.0, 60.0]),
)
def test_clock_at_or_above_the_level_never_fires(
    readings: list[tuple[float, float]], interval: float
) -> None:
    """Whatever the load does, a clock that is not low is never called stuck."""
    gpus = [gpu(percent, mhz) for percent, mhz in readings]
    states, _ = play(rule(), spread(gpus, interval), interval_seconds=interval)
    assert set(states) <= {"?", "."}


def first_raised(states: str) -> int:
    """Return when something was raised first, or a number past the end."""
    return min((n for n, state in enumerate(states) if state in "wc"), default=len(states))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    mhz=st.lists(st.sampled_from([300.0, 799.0, 950.0, 1100.0, 2400.0]), min_size=1, max_size=60),
    loaded=st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_looser_level_never_fires_later(mhz: list[float], loaded: list[bool]) -> None:
    """With a higher level, or a shorter hold, a warning comes no later."""
    gpus = [gpu(96 if busy else 3, clock) for clock, busy in zip(mhz, loaded, strict=False)]
    tight, _ = play(rule(low_hertz=8e8), spread(gpus))
    loose, _ = play(rule(low_hertz=1.2e9), spread(gpus))
    quick, _ = play(rule(low_hertz=8e8, warning_seconds=0.0), spread(gpus))
    assert first_raised(loose) <= first_raised(tight)
    assert first_raised(quick) <= first_raised(tight)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(
    shift=st.integers(-(10**9), 10**9),
    stuck=st.lists(st.booleans(), min_size=1, max_size=60),
)
def test_shifting_the_start_changes_nothing(shift: int, stuck: list[bool]) -> None:
    """The timeline is the same whenever it happened."""
    gpus = [STUCK if low else FINE for low in stuck]
    here, _ = play(rule(), spread(gpus))
    there, _ = play(rule(), spread(gpus, start=float(shift)))
    assert here == there


def test_episodes_are_bounded() -> None:
    """More stalls than a day can hold do not make memory grow."""
    condition = rule(warning_seconds=0.0, critical_seconds=0.0, clear_seconds=0.0)
    play(condition, spread(([STUCK] * 3 + [FINE] * 3) * (EPISODES_KEPT + 50), 0.25))
    assert len(condition._watches[0].episodes) == EPISODES_KEPT
