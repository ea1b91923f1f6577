"""Grading says of a timeline of states exactly what a reader of it would."""

from collections.abc import Mapping, Sequence

import pytest

from spark_watch.model import State
from spark_watch.sources.simulated import Span
from tests.score.grade import Grader, Score

GOTCHAS = {"memory_low": "G3", "memory_collapse": "G3", "gpu_hot": "G4"}
LETTERS = {
    "?": State.UNKNOWN,
    ".": State.OK,
    "i": State.INFO,
    "w": State.WARNING,
    "c": State.CRITICAL,
}


def graded(spans: Sequence[Span], timelines: Mapping[str, str], *, interval: float = 1.0) -> Score:
    """The score of timelines with a letter a sample: unknown, ok, info, warning, critical."""
    grader = Grader("trace/0", spans, GOTCHAS, recorded=False)
    for number in range(len(next(iter(timelines.values())))):
        states = {name: LETTERS[timeline[number]] for name, timeline in timelines.items()}
        grader.see(number * interval, states, {})
    return grader.finish()


def fault(start: float, end: float, **changes: object) -> Span:
    """A fault span of G3 that names ``memory_low``."""
    arguments = {"start": start, "end": end, "why": "", "gotchas": ("G3",)}
    return Span(**{**arguments, "condition": "memory_low", **changes})  # type: ignore[arg-type]  # a table of keywords


def test_a_span_is_found_where_its_condition_comes_up() -> None:
    """From 2 s on, a warning at 5 s is three seconds late and within the default deadline."""
    (found,) = graded([fault(2, 6)], {"memory_low": "....?www"}).found
    assert found.after == 3.0
    assert found.in_time
    assert found.named_in_time
    assert found.by == "memory_low"


def test_any_condition_of_the_gotcha_finds_it() -> None:
    """Another condition of the same gotcha counts, but the name does not."""
    (found,) = graded([fault(2, 6)], {"memory_collapse": "...ww..."}).found
    assert found.in_time
    assert not found.named_in_time
    assert found.by == "memory_collapse"


def test_another_gotcha_does_not_find_it() -> None:
    """A hot GPU says nothing of memory."""
    (found,) = graded([fault(2, 6)], {"gpu_hot": "cccccccc"}).found
    assert found.after is None
    assert not found.in_time


def test_what_stood_before_counts_from_the_start() -> None:
    """A state that stands when the span begins has found it at once."""
    (found,) = graded([fault(2, 6)], {"memory_low": "wwwwwwww"}).found
    assert found.after == 0.0


def test_a_deadline_is_a_deadline() -> None:
    """A warning after four seconds misses a deadline of three; it is still told when it came."""
    (found,) = graded([fault(2, 9, deadline=3.0)], {"memory_low": "......wwww"}).found
    assert found.after == 4.0
    assert not found.in_time


def test_a_level_too_low_does_not_count() -> None:
    """Where critical is asked for, a warning is not it."""
    span = fault(1, 5, at_least=State.CRITICAL)
    (found,) = graded([span], {"memory_low": ".wwww.........."}).found
    assert found.after is None


def test_without_a_deadline_five_seconds_grace_follow_the_end() -> None:
    """The default deadline is the span's end and five seconds: 8 s is in time, 9 s is not."""
    (late,) = graded([fault(1, 3)], {"memory_low": ".........w"}).found
    (just,) = graded([fault(1, 3)], {"memory_low": "........w."}).found
    assert just.in_time
    assert not late.in_time


def test_a_slow_recording_is_judged_at_its_first_sample() -> None:
    """At one sample a minute a deadline of five seconds means the first sample after the start."""
    span = fault(10, 200, deadline=5.0)
    (found,) = graded([span], {"memory_low": ".www"}, interval=60.0).found
    (missed,) = graded([span], {"memory_low": "..ww"}, interval=60.0).found
    assert found.in_time
    assert not missed.in_time


def test_each_time_something_comes_up_in_a_quiet_span_is_one_alarm() -> None:
    """Two episodes are two alarms, at their first samples."""
    quiet = Span(start=0, end=9, why="healthy")
    alarms = graded([quiet], {"memory_low": "..ww..c..."}).alarms
    assert [(alarm.at, alarm.state) for alarm in alarms] == [
        (2.0, State.WARNING),
        (6.0, State.CRITICAL),
    ]


def test_what_stands_over_from_before_is_an_alarm_too() -> None:
    """A state that merely still stands in a quiet span counts, though nothing changed in it."""
    quiet = Span(start=4, end=9, why="healthy again")
    (alarm,) = graded([quiet], {"memory_low": ".wwwwww..."}).alarms
    assert alarm.at == 4.0


@pytest.mark.parametrize(
    ("at_most", "number"), [(State.OK, 3), (State.INFO, 2), (State.WARNING, 1), (State.CRITICAL, 0)]
)
def test_a_quiet_span_has_its_own_ceiling(at_most: State, number: int) -> None:
    """Only what lies above the ceiling is false; unknown never is unless even that is too much."""
    quiet = Span(start=0, end=9, why="", at_most=at_most)
    timelines = {"memory_low": ".i.w.c....", "memory_collapse": ".........."}
    assert len(graded([quiet], timelines).alarms) == number


def test_outside_its_spans_a_trace_says_nothing() -> None:
    """Where no reader has an opinion, anything may stand."""
    score = graded([Span(start=0, end=2, why="")], {"memory_low": "...ccccccc"})
    assert score.alarms == []
    assert score.quiet_seconds == 2.0
