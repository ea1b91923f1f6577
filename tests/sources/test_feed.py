"""A recording or a simulation as a feed."""

from __future__ import annotations

from spark_watch.model import (
    SOURCE_PARTS,
    Failure,
    Gpu,
    GpuIdentity,
    Machine,
    Memory,
    Sample,
)
from spark_watch.sources.feed import Moment, Played
from spark_watch.sources.reading import SourceHealth

NOW = Moment(t=9.0, monotonic=9.0, boottime=9.0)
GB10 = Machine(gpu_name="NVIDIA GB10", driver_version="580.173.02")


def played(*samples: Sample, speed: float = 1.0) -> Played:
    """Return these samples as a feed."""
    return Played(iter(samples), origin="replay:x", interval_seconds=2.0, speed=speed)


def health_of(feed: Played, source: str) -> SourceHealth:
    """Return one source's record."""
    return next(one for one in feed.health() if one.source == source)


def test_samples_come_in_their_order_and_end() -> None:
    """Every reading is the next sample, untouched, whatever the time; then ``None`` for good."""
    first, second = Sample(t=1.0), Sample(t=2.0)
    feed = played(first, second)
    feed.start()
    assert feed.read(NOW) is first
    assert feed.read_memory(NOW) is None
    assert feed.read(NOW) is second
    assert (feed.read(NOW), feed.read(NOW)) == (None, None)
    feed.close()


def test_fast_time_is_a_shorter_interval() -> None:
    """At thirtyfold speed two seconds of a recording take a fifteenth of a second."""
    assert played(speed=30.0).interval_seconds == 2.0 / 30.0


def test_a_part_is_a_success_and_a_failure_is_one() -> None:
    """What each sample holds or lacks is told of its source, with counts by reason."""
    feed = played(
        Sample(t=5.0, memory=Memory(), failed=(Failure(source="nvml", reason="timeout"),)),
        Sample(t=6.0, failed=(Failure(source="nvml", reason="timeout"),), pending={"nvml": 4.0}),
        Sample(t=7.0, gpus=(Gpu(index=0),)),
    )
    assert {one.source for one in feed.health()} == set(SOURCE_PARTS)
    assert {one.success for one in feed.health()} == {None}
    feed.read(NOW)
    feed.read(NOW)
    assert health_of(feed, "meminfo") == SourceHealth(
        source="meminfo", success=True, last_success_seconds=5.0
    )
    assert health_of(feed, "nvml") == SourceHealth(
        source="nvml", success=False, reason="timeout", pending_seconds=4.0, errors={"timeout": 2}
    )
    assert health_of(feed, "thermal").success is None
    feed.read(NOW)
    assert health_of(feed, "nvml") == SourceHealth(
        source="nvml", success=True, last_success_seconds=7.0, errors={"timeout": 2}
    )


def test_the_machine_is_the_newest_that_was_told() -> None:
    """Before any name there is no GPU to name, afterwards the one of the newest sample."""
    feed = played(Sample(t=1.0), Sample(t=2.0, machine=GB10), Sample(t=3.0))
    feed.read(NOW)
    assert feed.identities() == ()
    feed.read(NOW)
    feed.read(NOW)
    assert feed.machine is GB10
    assert feed.identities() == (
        GpuIdentity(index=0, name="NVIDIA GB10", driver_version="580.173.02"),
    )
