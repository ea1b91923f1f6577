"""The loop: start, tick, stop. It never waits for anything but the next tick."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from spark_watch.blackbox.ring import RecorderStatus
from spark_watch.daemon.notify import Notifier
from spark_watch.daemon.signals import Signals
from spark_watch.detectors.g3_memory.danger import DangerMode
from spark_watch.detectors.judge import Judge
from spark_watch.export.snapshot import STALE_READINGS, Latest, LoopHealth, Snapshot
from spark_watch.model import Event, Sample, State
from spark_watch.sources.feed import Feed, Moment
from spark_watch.sources.reading import SourceHealth
from spark_watch.sources.self_usage import SelfUsage

DANGER_INTERVAL_SECONDS: Final = 0.25
"""How often the pool alone is read while it may be collapsing: 1.5 s is the fastest fall seen.

Source: NVIDIA/dgx-spark-playbooks#116 (34.0 to 12.7 GiB in 1.5 s).
"""

USAGE_INTERVAL_SECONDS: Final = 5.0
"""How often the daemon looks at its own cost."""


class Sink(Protocol):
    """Something that keeps what the loop saw: a recording, the black box."""

    def write(self, sample: Sample, events: Sequence[Event]) -> None:
        """Take a sample and what changed by it, without ever waiting."""

    def close(self, moment: Moment, *, clean: bool) -> None:
        """Finish at that moment.

        Args:
            moment: of the stop.
            clean: whether the stop was wanted; only then may it be marked as one.
        """


class Clock(Protocol):
    """The clocks and the wait, so that a test can be the time."""

    def now(self) -> Moment:
        """Return the three clocks."""

    def wait(self, seconds: float, signals: Signals) -> None:
        """Wait until a time has passed or a signal came."""


class RealClock:
    """This machine's clocks."""

    def now(self) -> Moment:
        """Return the three clocks."""
        return Moment.now()

    def wait(self, seconds: float, signals: Signals) -> None:
        """Wait until a time has passed or a signal came."""
        signals.wait(seconds)


class Daemon:
    """Takes samples from a feed, judges them and publishes what is to be seen.

    Args:
        feed: where samples come from.
        judge: the conditions over the feed's stream.
        danger: decides when the pool is read faster.
        publish: takes the new snapshot after each tick; must not wait.
        log: a structlog logger whose writes do not wait.
        notifier: systemd's socket.
        sinks: what keeps samples.
        reload: called at SIGHUP; returns the new judge, or ``None`` to go on with the old one. It
            says itself what it did.
        recall: called once, before the first tick, to show the judge what went before.
        recorder: how the black box stands.
        memory_locked: whether the process is locked into memory, ``None`` where it did not try.
        clock: see :class:`Clock`.
        max_ticks: stop after that many ticks; ``None`` runs until a signal or the feed's end.
    """

    def __init__(
        self,
        *,
        feed: Feed,
        judge: Judge,
        danger: DangerMode,
        publish: Callable[[Snapshot], None],
        log: Any,
        notifier: Notifier,
        sinks: Sequence[Sink] = (),
        reload: Callable[[], Judge | None] | None = None,
        recall: Callable[[Judge, Moment], None] | None = None,
        recorder: Callable[[], RecorderStatus] | None = None,
        memory_locked: bool | None = None,
        clock: Clock | None = None,
        max_ticks: int | None = None,
    ) -> None:
        self.feed = feed
        self.judge = judge
        self.danger_mode = danger
        self._publish = publish
        self._log = log
        self._notifier = notifier
        self._sinks = tuple(sinks)
        self._reload = reload
        self._recall = recall
        self._recorder = recorder
        self._memory_locked = memory_locked
        self._clock = clock or RealClock()
        self._max_ticks = max_ticks
        self._latest = Latest(slow_seconds=max(30.0, STALE_READINGS * feed.interval_seconds))
        self._usage = SelfUsage()
        self._usage_due = float("-inf")
        self._cpu_seconds: float | None = None
        self._resident_bytes: int | None = None
        self._failing: dict[str, str] = {}
        self._raising: dict[str, str] = {}
        self._next = 0.0
        self._planned = 0.0
        self._started = 0.0
        self._late_high = 0.0
        self.ticks = 0
        self.missed_ticks = 0
        self.internal_errors = 0
        self.danger = False
        self._reload_success: bool | None = None
        self._reload_seconds: float | None = None

    def run(self) -> None:
        """Run until a signal asks to stop, or the feed ends. Signals are handled only in here."""
        with Signals() as signals:
            self.start()
            clean = False
            try:
                while signals.stopping is None and self.tick():
                    if self._max_ticks is not None and self.ticks >= self._max_ticks:
                        break
                    self._wait(signals)
                    while signals.reload:
                        signals.reload = False
                        self.reload()
                        self._wait(signals)
                clean = True
            finally:
                reason = signals.stopping.name if signals.stopping else "end_of_feed"
                self.stop(reason if clean else "error", clean=clean)

    def start(self) -> None:
        """Say that we are up, then start the sources: the first NVML call may take minutes."""
        moment = self._clock.now()
        self._started = moment.t
        self._notifier.send("READY=1", "STATUS=watching")
        self._log.info(
            "started", origin=self.feed.origin, interval_seconds=self.feed.interval_seconds
        )
        self.feed.start()
        if self._recall is not None:
            self._recall(self.judge, moment)
        self._next = self._planned = self._clock.now().monotonic

    def tick(self) -> bool:
        """Read, judge, publish and keep one sample; return False where the feed has ended."""
        moment = self._clock.now()
        late = max(0.0, moment.monotonic - self._planned)
        sample = self.feed.read(replace(moment, late_seconds=late))
        if sample is None:
            return False
        self.ticks += 1
        self._late_high = max(late, 0.9 * self._late_high)
        self._take(sample, moment, late)
        self._notifier.alive(moment.monotonic)
        self._schedule(moment.monotonic)
        return True

    def stop(self, reason: str, *, clean: bool = True) -> None:
        """Tell systemd, end the feed and finish what was kept."""
        self._notifier.send("STOPPING=1")
        self._log.info("stopping", reason=reason, ticks=self.ticks)
        moment = self._clock.now()
        try:
            for sink in self._sinks:
                sink.close(moment, clean=clean)
        finally:
            self.feed.close()
            self._notifier.close()

    def reload(self) -> None:
        """Read the settings again; whatever is wrong with them, the old ones stay in force."""
        if self._reload is None:
            return
        moment = self._clock.now()
        self._notifier.send("RELOADING=1", f"MONOTONIC_USEC={int(moment.monotonic * 1e6)}")
        judge = self._reload()
        self._reload_success = judge is not None
        self._reload_seconds = moment.t
        if judge is not None and judge is not self.judge:
            self.judge = judge
            self._raising = {}
        self._notifier.send("READY=1")

    def _schedule(self, began: float) -> None:
        """Place the next tick on the grid; ticks that cannot be kept any more are counted.

        The next tick is planned for the first place on the grid after this one began, so that it
        is late by what this one took too long, and not once more by what made this one late.
        """
        interval = self.feed.interval_seconds
        self._planned = self._later(self._next + interval, began, interval)
        self._next = self._later(self._planned, self._clock.now().monotonic, interval)

    def _later(self, place: float, now: float, interval: float) -> float:
        """Return the first place on the grid, from ``place`` on, that has not passed."""
        missed = max(0, math.ceil((now - place) / interval))
        self.missed_ticks += missed
        return place + missed * interval

    def _wait(self, signals: Signals) -> None:
        """Wait for the next tick; in danger, read the pool alone meanwhile."""
        while signals.stopping is None and not signals.reload:
            left = self._next - self._clock.now().monotonic
            if left <= 0.0:
                return
            if not self.danger:
                self._clock.wait(left, signals)
                continue
            self._clock.wait(min(left, DANGER_INTERVAL_SECONDS), signals)
            moment = self._clock.now()
            if moment.monotonic < self._next - DANGER_INTERVAL_SECONDS / 2:
                sample = self.feed.read_memory(moment)
                if sample is not None:
                    self._take(sample, moment, 0.0)

    def _take(self, sample: Sample, moment: Moment, late: float) -> None:
        """Judge a sample, say what changed, and hand the new picture out."""
        started = time.perf_counter()
        events = self.judge.update(sample)
        judged = time.perf_counter()
        tick = self.judge.tick
        now = tick.now
        self.danger = self.danger_mode.update(tick)
        self._latest.update(sample, now)
        sources = self.feed.health()
        self._say(events)
        self._say_errors()
        self._say_sources(sources)
        self._measure(moment)
        for sink in self._sinks:
            sink.write(sample, events)
        self._publish(
            Snapshot(
                at_seconds=sample.t,
                latest=self._latest.merged(sample, now),
                standings=self.judge.standing(sample.t),
                measures=self.judge.measures,
                marks=self._latest.marks(now),
                identities=self.feed.identities(),
                machine=tick.machine,
                sources=sources,
                loop=self._health(late, judged - started, time.perf_counter() - started),
                origin=self.feed.origin,
                ready=True,
                recorder=None if self._recorder is None else self._recorder(),
            )
        )

    def _say(self, events: Sequence[Event]) -> None:
        for event in events:
            say = self._log.warning if event.to_state >= State.WARNING else self._log.info
            say(
                "condition_changed",
                gotcha=event.gotcha,
                condition=event.condition,
                subject=event.subject,
                before=event.from_state.label,
                after=event.to_state.label,
                sentence=event.sentence,
            )

    def _say_errors(self) -> None:
        """Count what raised; say each error of a condition once, not at every tick."""
        for name, error in self.judge.errors:
            self.internal_errors += 1
            text = repr(error)
            if self._raising.get(name) != text:
                self._raising[name] = text
                self._log.error("condition_raised", condition=name, error=text)

    def _say_sources(self, sources: Sequence[SourceHealth]) -> None:
        for health in sources:
            was = self._failing.get(health.source)
            if health.success is False and health.reason is not None:
                if was != health.reason:
                    self._failing[health.source] = health.reason
                    self._log.warning("source_failing", source=health.source, reason=health.reason)
            elif health.success and was is not None:
                del self._failing[health.source]
                self._log.info("source_recovered", source=health.source, reason=was)

    def _measure(self, moment: Moment) -> None:
        if moment.monotonic >= self._usage_due:
            self._usage_due = moment.monotonic + USAGE_INTERVAL_SECONDS
            self._cpu_seconds = sum(os.times()[:2])
            self._resident_bytes = self._usage.resident_bytes()

    def _health(self, late: float, judging: float, whole: float) -> LoopHealth:
        return LoopHealth(
            started_seconds=self._started,
            ticks=self.ticks,
            missed_ticks=self.missed_ticks,
            late_seconds=late,
            late_high_seconds=self._late_high,
            tick_duration_seconds=whole,
            judge_duration_seconds=judging,
            interval_seconds=self.feed.interval_seconds,
            danger=self.danger,
            internal_errors=self.internal_errors,
            cpu_seconds=self._cpu_seconds,
            resident_bytes=self._resident_bytes,
            config_reload_success=self._reload_success,
            config_reload_seconds=self._reload_seconds,
            memory_locked=self._memory_locked,
        )
