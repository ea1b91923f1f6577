"""The loop on a clock, a feed and signals that a test has written."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import ClassVar

import pytest

from spark_watch.daemon.notify import Notifier
from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Tick, Timeline
from spark_watch.errors import InputError
from spark_watch.model import State
from spark_watch.settings.frozen import Frozen
from spark_watch.sources.feed import Moment
from spark_watch.sources.reading import SourceHealth
from tests.daemon.stage import EPOCH, StageClock, StageFeed, StageSink, stage


class Rule(Condition[Frozen]):
    """Says ok, or raises what its settings do not say."""

    name = "rule"
    gotcha = "G3"
    part = "memory"
    sources = ("meminfo",)
    summary = "a rule of the tests"
    remedies: ClassVar = {}
    raises = False

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge nothing."""
        del tick
        if self.raises:
            raise ValueError("a bug")
        return {"host": Judgement(State.OK, "fine")}


class Broken(Rule):
    """Raises at every sample."""

    name = "broken"
    raises = True


def test_ticks_stay_on_their_grid() -> None:
    """Slow readings and late waking do not add up: the hundredth tick is where it belongs."""
    feed = StageFeed(StageClock(overshoot=0.01))
    feed.costs = dict.fromkeys(range(200), 0.3)
    daemon, published, _ = stage(feed, max_ticks=101)
    daemon.run()
    assert feed.read_at[0] == 0.0
    assert feed.read_at[1:] == pytest.approx([number + 0.01 for number in range(1, 101)])
    assert daemon.missed_ticks == 0
    assert published[-1].loop.late_seconds == pytest.approx(0.01)


def test_ticks_that_cannot_be_kept_are_counted() -> None:
    """A reading of 2.5 s loses the ticks at 1 s and 2 s; the next is at 3 s, 2 s late."""
    feed = StageFeed(StageClock())
    feed.costs = {0: 2.5}
    daemon, published, _ = stage(feed, max_ticks=3)
    daemon.run()
    assert feed.read_at == [0.0, 3.0, 4.0]
    assert daemon.missed_ticks == 2
    assert feed.late == [0.0, 2.0, 0.0]
    assert [one.loop.late_seconds for one in published] == [0.0, 2.0, 0.0]
    assert [one.loop.late_high_seconds for one in published] == pytest.approx([0.0, 2.0, 1.8])


def test_a_machine_that_does_not_let_us_wake_is_late() -> None:
    """Woken five seconds too late, the tick says so, and those in between are lost."""
    clock = StageClock()
    feed = StageFeed(clock)
    daemon, _, _ = stage(feed, max_ticks=3)
    clock.at = {0.5: lambda: setattr(clock, "monotonic", 6.25)}
    daemon.run()
    assert feed.read_at == [0.0, 6.25, 7.0]
    assert feed.late == [0.0, 5.25, 0.0]
    assert daemon.missed_ticks == 5


def test_a_falling_pool_is_read_four_times_a_second_until_it_is_calm() -> None:
    """Between two ticks of danger the pool alone is read three times; 30 s of calm end it."""
    feed = StageFeed(StageClock(), lambda t: 60.0 if t < 10 else max(20.0, 60.0 - 3 * (t - 10)))
    daemon, published, _ = stage(feed, max_ticks=80)
    daemon.run()
    assert feed.read_at == [float(second) for second in range(80)]
    between = [sum(second < t < second + 1 for t in feed.memory_at) for second in range(79)]
    first = between.index(3)
    last = len(between) - 1 - between[::-1].index(3)
    assert 11 <= first <= 15
    assert 23 + 25 <= last <= 24 + 31 + 1
    assert between == [0] * first + [3] * (last - first + 1) + [0] * (78 - last)
    quarters = [t % 1 for t in feed.memory_at]
    assert set(quarters) == {0.25, 0.5, 0.75}
    danger = [one.loop.danger for one in published]
    assert danger[0] is False
    assert True in danger
    assert danger[-1] is False


def test_between_ticks_nothing_is_late_and_no_tick_is_counted() -> None:
    """A reading of the pool alone is published but is no tick."""
    feed = StageFeed(StageClock(), lambda t: 30.0 - 3 * t)
    daemon, published, _ = stage(feed, max_ticks=8)
    daemon.run()
    assert daemon.ticks == 8
    assert len(published) == 8 + len(feed.memory_at) > 8
    assert daemon.missed_ticks == 0


def test_at_a_quarter_second_danger_changes_nothing() -> None:
    """Where every tick comes at 4 Hz there is no room between two of them."""
    feed = StageFeed(StageClock(), lambda t: 30.0 - 3 * t, interval_seconds=0.25)
    daemon, published, _ = stage(feed, max_ticks=30)
    daemon.run()
    assert published[-1].loop.danger
    assert feed.memory_at == []


def test_the_daemon_is_ready_before_a_source_starts() -> None:
    """READY=1 comes first: the first call into a driver may take minutes."""
    feed = StageFeed(StageClock())
    said: list[tuple[str, bool]] = []

    class Told(Notifier):
        def send(self, *states: str) -> None:
            """Keep what was said and whether the sources had been started."""
            said.extend((state, feed.started) for state in states)

    daemon, _, _ = stage(feed, max_ticks=1, notifier=Told({}))
    daemon.run()
    assert said == [("READY=1", False), ("STATUS=watching", False), ("STOPPING=1", True)]


def test_the_end_of_a_feed_is_a_clean_end() -> None:
    """The last sample is kept, the sink is told when, and everything is closed."""
    feed, sink = StageFeed(StageClock()), StageSink()
    feed.ends_after = 3
    daemon, published, log = stage(feed, sinks=[sink])
    daemon.run()
    assert (daemon.ticks, len(published), len(sink.samples)) == (3, 3, 3)
    assert sink.closed_at == Moment(EPOCH + 3.0, 3.0, 3.0)
    assert sink.clean is True
    assert feed.closed
    assert log.lines[-1] == ("info", "stopping", {"reason": "end_of_feed", "ticks": 3})


def test_a_feed_that_fails_ends_the_run_with_its_error() -> None:
    """A recording that cannot be read any more: the sink is finished, not as a clean stop."""
    feed, sink = StageFeed(StageClock()), StageSink()
    feed.raises = InputError("line 7: rubbish")
    daemon, _, _ = stage(feed, sinks=[sink])
    with pytest.raises(InputError, match="line 7"):
        daemon.run()
    assert feed.closed
    assert sink.closed_at is not None
    assert sink.clean is False


def test_a_sink_that_fails_at_the_end_does_not_keep_the_feed_open() -> None:
    """A full disk at the last line: the error comes out, and the sources are closed."""

    class Full(StageSink):
        def close(self, moment: Moment, *, clean: bool) -> None:
            """Fail."""
            super().close(moment, clean=clean)
            raise OSError(28, "No space left on device")

    feed = StageFeed(StageClock())
    daemon, _, _ = stage(feed, sinks=[Full()], max_ticks=1)
    with pytest.raises(OSError, match="No space"):
        daemon.run()
    assert feed.closed


def test_a_rule_that_raises_is_counted_at_every_tick_and_said_once() -> None:
    """The bug shows in a counter and one line, not in a line a second; other rules go on."""
    feed = StageFeed(StageClock())
    daemon, published, log = stage(feed, rules=[Broken(Frozen()), Rule(Frozen())], max_ticks=5)
    daemon.run()
    assert published[-1].loop.internal_errors == 5
    assert log.events().count("condition_raised") == 1
    states = {one.finding.condition: one.finding.state for one in published[-1].standings}
    assert states == {"broken": State.UNKNOWN, "rule": State.OK}


def test_a_source_that_fails_is_said_at_its_start_and_its_end() -> None:
    """Three failures in a row are one line; another reason and the recovery are one each."""
    feed = StageFeed(StageClock())
    feed.sources = [
        (SourceHealth(source="nvml", success=success, reason=reason),)
        for success, reason in (
            (None, None), (False, "timeout"), (False, "timeout"), (False, "timeout"),
            (False, "gpu_is_lost"), (True, None), (True, None),
        )
    ]  # fmt: skip
    daemon, _, log = stage(feed, max_ticks=7)
    daemon.run()
    said = [(event, values) for _, event, values in log.lines if event.startswith("source_")]
    assert said == [
        ("source_failing", {"source": "nvml", "reason": "timeout"}),
        ("source_failing", {"source": "nvml", "reason": "gpu_is_lost"}),
        ("source_recovered", {"source": "nvml", "reason": "gpu_is_lost"}),
    ]


def test_a_change_of_state_is_one_line() -> None:
    """The first verdict is said once, with what it was before and its sentence."""
    feed = StageFeed(StageClock())
    daemon, _, log = stage(feed, rules=[Rule(Frozen())], max_ticks=3)
    daemon.run()
    changes = [line for line in log.lines if line[1] == "condition_changed"]
    assert [(level, values["before"], values["after"]) for level, _, values in changes] == [
        ("info", "unknown", "ok")
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_at_once(number: signal.Signals) -> None:
    """Half way to the next tick the loop stops, and the handlers from before are back."""
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    clock = StageClock()
    feed = StageFeed(clock)
    daemon, _, log = stage(feed)
    clock.at = {2.5: lambda: os.kill(os.getpid(), number)}
    daemon.run()
    assert feed.read_at == [0.0, 1.0, 2.0]
    assert log.lines[-1][2]["reason"] == number.name
    after = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    assert after == before


def test_a_reload_keeps_the_grid_and_takes_the_new_rules() -> None:
    """SIGHUP between two ticks: the next one comes when it was due, by the new judge."""
    clock = StageClock()
    feed = StageFeed(clock)
    new = Judge([Rule(Frozen())], Timeline())
    daemon, published, _ = stage(feed, max_ticks=5, reload=lambda: new)
    clock.at = {1.25: lambda: os.kill(os.getpid(), signal.SIGHUP)}
    daemon.run()
    assert feed.read_at == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [len(one.standings) for one in published] == [0, 0, 1, 1, 1]
    assert [one.loop.config_reload_success for one in published[1:3]] == [None, True]
    assert published[-1].loop.config_reload_seconds == EPOCH + 1.25
    assert daemon.judge is new


def test_a_reload_that_is_refused_changes_nothing_but_the_metric() -> None:
    """The old rules stay in force and the page says that the reload failed."""
    clock = StageClock()
    feed = StageFeed(clock)
    daemon, published, _ = stage(feed, max_ticks=3, reload=lambda: None)
    old = daemon.judge
    clock.at = {0.5: lambda: os.kill(os.getpid(), signal.SIGHUP)}
    daemon.run()
    assert daemon.judge is old
    assert published[-1].loop.config_reload_success is False


def test_its_own_cost_is_measured() -> None:
    """CPU time and memory of the process are on the page from the first tick."""
    daemon, published, _ = stage(StageFeed(StageClock()), max_ticks=1)
    daemon.run()
    loop = published[0].loop
    assert loop.cpu_seconds is not None
    assert loop.cpu_seconds > 0.0
    assert loop.resident_bytes is not None
    assert 10 * 2**20 < loop.resident_bytes < 2**31
