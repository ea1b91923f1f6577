"""The wall clock steps by years, the machine sleeps: neither is a hole, a restart or a reason."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from spark_watch.blackbox.ring import FOLDER, RingFolder
from spark_watch.blackbox.trace import read_trace
from spark_watch.daemon.loop import Daemon
from spark_watch.daemon.notify import Notifier
from spark_watch.daemon.recorder import BlackBox
from spark_watch.daemon.replay import judge_for
from spark_watch.detectors.g3_memory.danger import DangerMode
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import State
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.feed import Moment
from tests.daemon.stage import EPOCH, StageClock, StageFeed
from tests.daemon.test_recorder import HEADER, Log

YEAR = 365.25 * 86400.0


class Steps(StageClock):
    """A clock whose wall time and whose sleep change at given ticks.

    Args:
        walls: seconds since the start to the offset of the wall clock from then on.
        sleeps: the same for the time that the machine has slept in all.
    """

    def __init__(self, walls: dict[float, float], sleeps: dict[float, float]) -> None:
        super().__init__()
        self.walls = walls
        self.sleeps = sleeps

    def now(self) -> Moment:
        """Return the three clocks."""
        moment = super().now()
        wall = [offset for at, offset in self.walls.items() if at <= self.monotonic]
        sleep = [slept for at, slept in self.sleeps.items() if at <= self.monotonic]
        return dataclasses.replace(
            moment,
            t=moment.t + (wall or [0.0])[-1],
            boottime=moment.boottime + (sleep or [0.0])[-1],
        )


@pytest.mark.parametrize(
    ("walls", "sleeps"),
    [
        ({60.0: 5 * YEAR}, {}),
        ({60.0: -5 * YEAR}, {}),
        ({30.0: -20 * YEAR, 60.0: 20 * YEAR, 90.0: 0.0}, {}),
        ({60.0: 8 * 3600.0}, {60.0: 8 * 3600.0}),
    ],
    ids=["years on", "years back", "both ways", "a night asleep"],
)
def test_steps_of_the_clock(
    tmp_path: Path, walls: dict[float, float], sleeps: dict[float, float]
) -> None:
    """Every sample is kept under the time it was given, and no condition is raised by the step."""
    clock = Steps(walls, sleeps)
    feed = StageFeed(clock)
    log = Log()
    published: list[Snapshot] = []
    judge = judge_for(HEADER, ConditionSettings())
    black_box = BlackBox(
        tmp_path,
        HEADER,
        max_bytes=1 << 20,
        log=log,
        judge=lambda: judge,
        kmsg_path=tmp_path / "kmsg",
        tail_seconds=600.0,
        back_seconds=86400.0,
    )
    daemon = Daemon(
        feed=feed,
        judge=judge,
        danger=DangerMode(ConditionSettings().memory_collapse),
        publish=published.append,
        log=log,
        notifier=Notifier({}),
        sinks=[black_box],
        recall=black_box.recall,
        recorder=lambda: black_box.status,
        clock=clock,
        max_ticks=200,
    )
    daemon.run()
    kept = []
    for segment in RingFolder(tmp_path / FOLDER).segments():
        with read_trace(segment.path) as reader:
            kept += [one for one in reader if not one.stopped]
    assert len(kept) == 200
    assert daemon.missed_ticks == 0
    assert kept[0].t == EPOCH
    assert [one.monotonic_seconds for one in kept] == [float(tick) for tick in range(200)]
    raised = {
        standing.finding.condition
        for snapshot in published
        for standing in snapshot.standings
        if standing.finding.state >= State.WARNING
    }
    assert raised == set()
    assert published[-1].at_seconds == kept[-1].t
