"""Holds count seconds, need three readings, and start anew after a hole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.holds import Hold, Level


def feed(hold: Hold, moments: list[float], interval: float) -> list[bool]:
    """Return what the hold says at each moment of a standing breach."""
    return [hold.update(moment, breached=True, interval_seconds=interval) for moment in moments]


def test_met_when_the_breach_is_at_least_as_old_as_the_hold() -> None:
    """At 1 s a hold of 5 s is met at the sixth reading, exactly five seconds on."""
    assert feed(Hold(5.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 1.0) == [False] * 5 + [True]


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 16.0, 60.0])
def test_counts_seconds_at_any_interval(interval: float) -> None:
    """A hold of 60 s is met after 60 s, or after three readings where those take longer."""
    moments = [interval * n for n in range(400)]
    met = feed(Hold(60.0), moments, interval).index(True) * interval
    assert met == {16.0: 64.0, 60.0: 120.0}.get(interval, 60.0)


def test_no_fewer_than_three_samples() -> None:
    """At 60 s two readings span a hold of 20 s, and it is the third that meets it."""
    assert feed(Hold(20.0), [0.0, 60.0, 120.0], 60.0) == [False, False, True]


def test_hold_of_nothing_is_at_once() -> None:
    """Where a rule says "at once" the first reading is enough."""
    assert feed(Hold(0.0), [7.0], 60.0) == [True]


def test_one_reading_that_does_not_breach_starts_anew() -> None:
    """A dip ends the breach however short it is."""
    hold = Hold(2.0)
    assert feed(hold, [0.0, 1.0], 1.0) == [False, False]
    assert not hold.update(2.0, breached=False, interval_seconds=1.0)
    assert feed(hold, [3.0, 4.0, 5.0], 1.0) == [False, False, True]
    assert hold.held_seconds(5.0) == 2.0


def test_hole_starts_a_pending_hold_anew() -> None:
    """Nobody saw what happened in ten minutes without a reading."""
    assert feed(Hold(5.0), [0.0, 1.0, 601.0, 602.0, 603.0], 1.0) == [False] * 5


def test_jitter_is_no_hole() -> None:
    """Three missed readings at 1 s do not start the hold anew."""
    assert feed(Hold(5.0), [0.0, 1.0, 4.4, 5.0], 1.0)[-1]


def test_rounding_of_unix_seconds_delays_nothing() -> None:
    """A minute that reads 59.9999998 s because doubles are what they are is a minute."""
    assert feed(Hold(60.0), [0.0, 30.0, 59.9999998], 30.0)[-1]


def test_level_stays_between_its_two_levels() -> None:
    """Entered at once, not left by a reading between the levels, left by one below."""
    level = Level(0.0)

    def take(now: float, value: float) -> bool:
        return level.update(now, enter=value >= 10.0, leave=value < 8.0, interval_seconds=1.0)

    assert [take(n, value) for n, value in enumerate((9.0, 10.0, 9.0, 7.0, 9.0))] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_level_is_not_left_by_a_reading_that_enters_it() -> None:
    """Where levels overlap, up wins."""
    level = Level(0.0)
    for now in range(3):
        assert level.update(float(now), enter=True, leave=True, interval_seconds=1.0)


def test_level_is_left_only_after_its_own_hold() -> None:
    """With a way out of 3 s a short calm does not clear it, and the calm must be in one piece."""
    level = Level(0.0, leave_seconds=3.0)
    calm = [False, True, True, True, False, True, True, True, True]
    states = [
        level.update(float(n), enter=not quiet, leave=quiet, interval_seconds=1.0)
        for n, quiet in enumerate(calm)
    ]
    assert states == [True] * 8 + [False]


def test_level_says_since_when_and_for_how_long() -> None:
    """The time held counts from the first reading of the breach, not from the end of the hold."""
    level = Level(2.0)
    for now in range(4):
        level.update(float(now), enter=True, leave=False, interval_seconds=1.0)
    assert level.since == 0.0
    assert level.held_seconds(3.0) == 3.0


def test_level_knows_nothing_before_it_saw_a_reading_that_does_not_breach() -> None:
    """A breach that is there from the start is neither up nor known to be down."""
    level = Level(2.0)
    level.update(0.0, enter=True, leave=False, interval_seconds=1.0)
    assert (level.active, level.known) == (False, False)
    level.update(1.0, enter=False, leave=True, interval_seconds=1.0)
    assert (level.active, level.known) == (False, True)


def test_restart_forgets() -> None:
    """After a restart of the machine nothing of the old boot holds."""
    level = Level(0.0)
    level.update(0.0, enter=True, leave=False, interval_seconds=1.0)
    level.restart()
    assert (level.active, level.known, level.since) == (False, False, None)
    hold = Hold(0.0)
    hold.update(0.0, breached=True, interval_seconds=1.0)
    hold.restart()
    assert hold.held_seconds(9.0) == 0.0


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    breaches=st.lists(st.booleans(), min_size=1, max_size=60),
    short=st.floats(0.5, 20.0),
    extra=st.floats(0.0, 20.0),
)
def test_a_longer_hold_is_never_met_earlier(
    breaches: list[bool], short: float, extra: float
) -> None:
    """Wherever the longer hold is met the shorter one is met too."""
    quick, slow = Hold(short), Hold(short + extra)
    for now, breached in enumerate(breaches):
        soon = quick.update(float(now), breached, 1.0)
        late = slow.update(float(now), breached, 1.0)
        assert soon or not late
