"""Danger mode comes on in time for a collapse, and goes when half a minute gave no cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from spark_watch.detectors.g3_memory.danger import DangerMode
from spark_watch.detectors.timeline import Timeline
from spark_watch.settings.g3 import MemoryCollapseSettings
from tests.detectors.g3.pool import PUBLISHED, TOTAL, available, every, line, seeded
from tests.detectors.timelines import GB10


def danger(
    gib: Callable[[float], float | None], moments: Sequence[float], total: int | None = TOTAL
) -> list[float]:
    """Return the moments at which danger stands."""
    timeline = Timeline(machine=GB10)
    mode = DangerMode(MemoryCollapseSettings())
    return [
        moment
        for moment, sample in zip(moments, available(moments, gib, total=total), strict=True)
        if mode.update(timeline.place(sample))
    ]


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 2.0])
def test_published_collapse(interval: float) -> None:
    """Two seconds into the published fall danger stands, two before the warning."""
    assert min(danger(line(PUBLISHED), every(interval, 11.0))) <= 4.0


def test_goes_after_half_a_minute() -> None:
    """The last fall is read at 11 s; danger stands until 41 s."""
    assert max(danger(line(PUBLISHED), every(1.0, 60.0))) == 41.0


def test_lost_readings_do_not_end_it() -> None:
    """While nothing is read the half minute runs on, no longer."""
    shape = line(PUBLISHED)
    said = danger(lambda second: shape(second) if second <= 9 else None, every(1.0, 60.0))
    assert max(said) == 39.0


def test_little_memory_that_moves() -> None:
    """At 2.4 GiB a move by 0.3 GiB in 4 s is cause, up or down; at 2.6 GiB it is not."""
    assert danger(line([(0, 2.4), (10, 2.4), (12, 2.1)]), every(1.0, 20.0))[0] == 12.0
    assert danger(line([(0, 2.0), (10, 2.0), (12, 2.3)]), every(1.0, 20.0))[0] == 12.0
    assert danger(line([(0, 3.0), (10, 3.0), (11, 2.6)]), every(1.0, 20.0)) == []


@pytest.mark.parametrize("level", [1.7, 6.0, 30.0, 110.0])
def test_quiet_boxes_are_not_in_danger(level: float) -> None:
    """Noise of 0.1 GiB in 5 s is no cause at any level, for an hour."""
    rng = seeded(13)
    levels = [level + rng.uniform(-0.08, 0.08) for _ in range(721)]
    assert danger(lambda second: levels[int(second / 5.0)], every(1.0, 3600.0)) == []


def test_slow_load_far_from_the_floor_is_no_danger() -> None:
    """At 0.5 GiB/s from 100 GiB the floor is minutes away until 34 GiB are left."""
    first = danger(line([(0, 100.0), (160, 20.0)]), every(1.0, 160.0))[0]
    assert 130.0 <= first <= 134.0
