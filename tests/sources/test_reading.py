"""One reading of a source: timed, counted, caught, and paced."""

from __future__ import annotations

from typing import Any

import pytest

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.model import Failure
from spark_watch.sources.reading import Meter


class Scripted:
    """Answers what is written, an error by raising it; every answer takes a quarter second."""

    name = "scripted"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.now = 100.0
        self.closed = False

    def clock(self) -> float:
        """Return the time."""
        return self.now

    def read(self) -> Any:
        """Return the next answer."""
        self.now += 0.25
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Take note of it."""
        self.closed = True


def meter(source: Scripted, period: float = 10.0) -> Meter:
    """Return a meter on the source's own time."""
    return Meter(source, period_seconds=period, clock=source.clock)


def test_a_success_is_timed() -> None:
    """The value, how long it took, when it ended, and a record without a reason."""
    one = meter(Scripted("value"))
    assert one.health(0.0, None).success is None
    outcome = one.read()
    assert (outcome.value, outcome.failure) == ("value", None)
    assert (outcome.duration_seconds, outcome.ended_seconds) == (0.25, 100.25)
    health = one.health(1000.0, None)
    assert (health.success, health.reason, health.last_success_seconds) == (True, None, 1100.25)
    assert (health.duration_seconds, health.errors) == (0.25, {})


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unavailable("timeout"), "timeout"),
        (Unsupported("not_found"), "not_found"),
        (ValueError("a bug"), "internal_error"),
        (RecursionError(), "internal_error"),
        (MemoryError(), "internal_error"),
    ],
)
def test_whatever_a_source_raises_is_an_outcome(error: Exception, reason: str) -> None:
    """A source's own errors keep their reason, any other is a bug of ours and ends nothing."""
    one = meter(Scripted("value", error, error, "value"))
    one.read()
    assert one.read().failure == Failure(source="scripted", reason=reason)
    one.read()
    health = one.health(0.0, 3.0)
    assert (health.success, health.reason, health.errors) == (False, reason, {reason: 2})
    assert (health.last_success_seconds, health.pending_seconds) == (100.25, 3.0)
    one.read()
    assert one.health(0.0, None).reason is None


def test_the_pace_leaves_room_for_jitter() -> None:
    """Nine tenths of the period after a reading began the next is due."""
    one = meter(Scripted("a", Unavailable("timeout")))
    assert one.due(0.0)
    one.read()
    assert not one.due(108.9)
    assert one.due(109.0)
    one.read()
    assert one.due(109.25)


def test_what_is_not_supported_is_asked_once_a_minute() -> None:
    """A module may be loaded later: after 54 s it is asked again, not before."""
    one = meter(Scripted(Unsupported("not_found")), period=1.0)
    one.read()
    assert not one.due(153.9)
    assert one.due(154.0)


def test_a_period_of_nothing_is_due_at_every_tick() -> None:
    """However close two readings are, the next tick has its own."""
    one = meter(Scripted("a", "b"), period=0.0)
    one.read()
    assert one.due(100.0)


def test_nothing_to_ask_is_no_success() -> None:
    """``None`` leaves the record alone and is asked again at once."""
    one = meter(Scripted(None, "value", None))
    assert one.read().failure is None
    assert one.health(0.0, None).success is None
    assert one.due(100.25)
    one.read()
    one.read()
    assert one.health(0.0, None).last_success_seconds == 100.5
