"""The ring behind the charts."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

from spark_watch.export.status.history import SLOTS, History
from spark_watch.model import Gpu, Memory, Sample, Zone


def test_a_point_has_what_the_charts_show() -> None:
    """The first GPU's values, the hottest zone, and nothing in the place of what is missing."""
    history = History()
    history.add(
        100.0,
        Sample(
            t=100.0,
            memory=Memory(available_bytes=7, free_bytes=3),
            gpus=(Gpu(index=0, power_watts=40.0), Gpu(index=1, power_watts=9.0)),
            zones=(
                Zone(zone=0, type="acpitz", temperature_celsius=70.0),
                Zone(zone=1, type="acpitz", temperature_celsius=None),
                Zone(zone=2, type="acpitz", temperature_celsius=71.0),
            ),
        ),
    )
    history.add(102.0, Sample(t=102.0))
    first, second = history.points(102.0)
    assert (first.available_bytes, first.free_bytes) == (7, 3)
    assert (first.power_watts, first.die_celsius, first.sm_hertz) == (40.0, None, None)
    assert first.board_celsius == 71.0
    assert second.available_bytes is None
    assert second.board_celsius is None


def test_ten_minutes_are_kept_and_no_more() -> None:
    """Of an hour at four readings a second the last 600 s stand there, a point in two seconds."""
    history = History()
    for quarter in range(4 * 3600):
        history.add(quarter / 4, Sample(t=quarter / 4))
    moments = [point.at_seconds for point in history.points(3599.75)]
    assert len(moments) == SLOTS == 300
    assert (moments[0], moments[-1]) == (3001.75, 3599.75)
    assert {later - earlier for earlier, later in pairwise(moments)} == {2.0}


def test_a_clock_that_is_set_back_leaves_no_future() -> None:
    """What was seen under the later time is not shown, and the new time begins alone."""
    history = History()
    history.add(10_000.0, Sample(t=10_000.0))
    history.add(9_000.0, Sample(t=9_000.0))
    assert [point.at_seconds for point in history.points(9_000.0)] == [9_000.0]


def test_it_stays_below_300_kilobytes() -> None:
    """A full ring with every value its own object costs less than 300 KB."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        history = History()
        for second in range(2000):
            history.add(
                1.7e9 + second,
                Sample(
                    t=0.0,
                    memory=Memory(available_bytes=second << 40, free_bytes=second << 41),
                    gpus=(
                        Gpu(
                            index=0,
                            power_watts=second / 7,
                            temperature_celsius=second / 9,
                            sm_hertz=second / 11,
                        ),
                    ),
                    zones=(Zone(zone=0, type="acpitz", temperature_celsius=second / 13),),
                ),
            )
        assert tracemalloc.get_traced_memory()[0] - before < 300_000
    finally:
        tracemalloc.stop()
