"""Sources that may block have a thread of their own, and nobody waits for it."""

from __future__ import annotations

import threading
from typing import Any

from spark_watch.errors import Unavailable
from spark_watch.sources.background import Background
from spark_watch.sources.reading import Meter
from tests.waiting import PATIENCE_SECONDS, until


class Gated:
    """Answers when its gate is open; tells when it is entered."""

    def __init__(self, name: str, *, opened: bool = True) -> None:
        self.name = name
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.closed = False
        if opened:
            self.gate.set()

    def read(self) -> Any:
        """Wait for the gate."""
        self.entered.set()
        if not self.gate.wait(PATIENCE_SECONDS):
            raise Unavailable("timeout")
        return self.name

    def close(self) -> None:
        """Take note of it."""
        self.closed = True


class Time:
    """Monotonic seconds that pass when a test says so."""

    now = 50.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def background(time: Time, *sources: Gated) -> Background:
    """Return the sources with a period of 10 s."""
    meters = [Meter(source, period_seconds=10.0, clock=time) for source in sources]
    return Background(meters, clock=time)


def test_what_is_due_is_read_once_in_its_order() -> None:
    """A step reads each due source; the next step within the period reads none."""
    time = Time()
    some = background(time, Gated("a"), Gated("b"))
    some.step()
    assert [outcome.value for outcome in some.take()] == ["a", "b"]
    some.step()
    assert some.take() == []
    time.now += 9.0
    some.step()
    assert len(some.take()) == 2
    assert some.pending() is None


def test_a_source_that_blocks_delays_nobody_else_than_its_thread() -> None:
    """What came before it can be taken, how long it has been out is known, close returns."""
    time = Time()
    quick, stuck = Gated("quick"), Gated("stuck", opened=False)
    some = background(time, quick, stuck)
    some.start()
    assert stuck.entered.wait(PATIENCE_SECONDS)
    assert [outcome.value for outcome in some.take()] == ["quick"]
    time.now += 600.0
    assert some.pending() == ("stuck", 600.0)
    assert some.take() == []
    some.close(0.01)
    assert not stuck.closed
    stuck.gate.set()
    assert some._thread is not None
    some._thread.join(PATIENCE_SECONDS)
    assert not some._thread.is_alive()


def test_an_answer_that_comes_late_is_still_taken() -> None:
    """After the call comes back it is an outcome like any other and nothing is out."""
    time = Time()
    stuck = Gated("stuck", opened=False)
    some = background(time, stuck)
    some.start()
    assert stuck.entered.wait(PATIENCE_SECONDS)
    stuck.gate.set()
    assert [outcome.value for outcome in until(some.take)] == ["stuck"]
    assert until(lambda: some.pending() is None)
    some.close(PATIENCE_SECONDS)
    assert stuck.closed


def test_a_loop_that_does_not_take_costs_bounded_memory() -> None:
    """Of a thousand readings that nobody took the newest few are kept."""
    time = Time()
    some = background(time, Gated("a"), Gated("b"))
    for _ in range(500):
        time.now += 10.0
        some.step()
    assert len(some.take()) == 8


def test_close_before_start_closes_the_sources() -> None:
    """A feed that was never started gives everything back."""
    one = Gated("a")
    background(Time(), one).close()
    assert one.closed
