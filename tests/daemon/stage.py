"""A clock, a feed and a log that a test writes the play for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spark_watch.daemon.loop import Daemon
from spark_watch.daemon.notify import Notifier
from spark_watch.daemon.signals import Signals
from spark_watch.detectors.condition import Condition
from spark_watch.detectors.g3_memory.danger import DangerMode
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import GIB, Event, GpuIdentity, Machine, Memory, Sample
from spark_watch.settings.g3 import MemoryCollapseSettings
from spark_watch.sources.feed import Moment
from spark_watch.sources.reading import SourceHealth

EPOCH = 1_790_000_000.0


class StageClock:
    """Time that passes by waiting, and by what the feed says it costs.

    Args:
        overshoot: seconds by which every wait is too long.
    """

    def __init__(self, overshoot: float = 0.0) -> None:
        self.monotonic = 0.0
        self.overshoot = overshoot
        self.at: dict[float, Callable[[], None]] = {}

    def now(self) -> Moment:
        """Return the three clocks."""
        return Moment(EPOCH + self.monotonic, self.monotonic, self.monotonic)

    def wait(self, seconds: float, signals: Signals) -> None:
        """Let the time pass, or end at the first thing that is to happen in it."""
        end = self.monotonic + seconds + self.overshoot
        for moment in sorted(self.at):
            if self.monotonic <= moment < end:
                self.monotonic = moment
                self.at.pop(moment)()
                signals.wait(0.5)
                return
        self.monotonic = end


class StageFeed:
    """Samples of a pool, with the moments at which they were asked for.

    Args:
        clock: moved on by what a reading costs.
        available: GiB available at a moment.
    """

    origin = "live"
    own_recording = True
    machine: Machine | None = None

    def __init__(
        self,
        clock: StageClock,
        available: Callable[[float], float] = lambda _: 60.0,
        *,
        interval_seconds: float = 1.0,
    ) -> None:
        self.clock = clock
        self.available = available
        self.interval_seconds = interval_seconds
        self.costs: dict[int, float] = {}
        self.read_at: list[float] = []
        self.memory_at: list[float] = []
        self.late: list[float | None] = []
        self.started = False
        self.closed = False
        self.ends_after: int | None = None
        self.raises: Exception | None = None
        self.sources: list[tuple[SourceHealth, ...]] = []

    def start(self) -> None:
        """Take note of it."""
        self.started = True

    def read(self, moment: Moment) -> Sample | None:
        """Return the pool, at the cost that is written for this reading."""
        if self.raises is not None:
            raise self.raises
        if self.ends_after is not None and len(self.read_at) >= self.ends_after:
            return None
        self.clock.monotonic += self.costs.get(len(self.read_at), 0.0)
        self.read_at.append(moment.monotonic)
        self.late.append(moment.late_seconds)
        return self._sample(moment)

    def read_memory(self, moment: Moment) -> Sample | None:
        """Return the pool."""
        self.memory_at.append(moment.monotonic)
        return self._sample(moment)

    def _sample(self, moment: Moment) -> Sample:
        memory = Memory(
            total_bytes=round(121.7 * GIB),
            available_bytes=round(self.available(moment.monotonic) * GIB),
        )
        return Sample(t=moment.t, monotonic_seconds=moment.monotonic, memory=memory)

    def identities(self) -> tuple[GpuIdentity, ...]:
        """Return no GPU."""
        return ()

    def health(self) -> tuple[SourceHealth, ...]:
        """Return what is written for the newest reading."""
        place = max(0, len(self.read_at) - 1)
        return self.sources[place] if place < len(self.sources) else ()

    def close(self) -> None:
        """Take note of it."""
        self.closed = True


class StageLog:
    """Keeps every line: level, event, values."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        """Return the method for a level, whichever it is."""

        def say(event: str, **values: Any) -> None:
            self.lines.append((level, event, values))

        return say

    def events(self) -> list[str]:
        """Return what was said, without the values."""
        return [event for _, event, _ in self.lines]


class StageSink:
    """Counts what it is given."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.closed_at: Moment | None = None
        self.clean: bool | None = None

    def write(self, sample: Sample, events: Sequence[Event]) -> None:
        """Keep the sample."""
        del events
        self.samples.append(sample)

    def close(self, moment: Moment, *, clean: bool) -> None:
        """Take note of it."""
        self.closed_at = moment
        self.clean = clean


def stage(
    feed: StageFeed, *, rules: Iterable[Condition[Any]] = (), **parts: Any
) -> tuple[Daemon, list[Snapshot], StageLog]:
    """Return a daemon on the stage, the snapshots it will publish and its log."""
    published: list[Snapshot] = []
    log = StageLog()
    given: dict[str, Any] = {
        "judge": Judge(rules, Timeline(interval_seconds=feed.interval_seconds)),
        "danger": DangerMode(MemoryCollapseSettings()),
        "publish": published.append,
        "log": log,
        "notifier": Notifier({}),
        "clock": feed.clock,
    }
    return Daemon(feed=feed, **(given | parts)), published, log
