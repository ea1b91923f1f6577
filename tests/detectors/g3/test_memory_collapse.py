"""Timelines of ``memory_collapse``: warned seconds before the pool is gone, silent on loads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_watch.detectors.g3_memory.memory_collapse import MemoryCollapse
from spark_watch.model import State
from spark_watch.settings.g3 import MemoryCollapseSettings
from tests.detectors.g3.pool import PUBLISHED, TOTAL, available, every, line
from tests.detectors.timelines import play, squeeze

INTERVALS = [0.25, 0.5, 1.0, 2.0]


def collapse(**levels: float) -> MemoryCollapse:
    """Return a fresh condition, with other levels where they are given."""
    return MemoryCollapse(MemoryCollapseSettings.model_validate(levels))


def states(
    gib: Callable[[float], float | None],
    until: float,
    interval: float = 1.0,
    *,
    total: int | None = TOTAL,
) -> str:
    """Return the squeezed states of a stretch of available memory."""
    samples = available(every(interval, until), gib, total=total)
    return squeeze(play(collapse(), samples, interval_seconds=interval)[0])


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("total", [TOTAL, None], ids=["total", "no-total"])
def test_published_collapse(interval: float, total: int | None) -> None:
    """The warning stands 5 s before the end (at 6 s of 11) and the critical above 5 GiB."""
    gib = line(PUBLISHED)
    samples = available(every(interval, 11.0), gib, total=total)
    _, events = play(collapse(), samples, interval_seconds=interval)
    first = {event.to_state: event.elapsed_seconds for event in reversed(events)}
    assert first[State.WARNING] == 6.0
    assert gib(first[State.CRITICAL]) >= 5.0
    assert [event.to_state for event in events] == [State.OK, State.WARNING, State.CRITICAL]


@pytest.mark.parametrize(
    ("points", "until", "expected"),
    [
        pytest.param([(0, 60)], 9, ".10", id="level-alone-is-ok-at-once"),
        pytest.param([(0, 10)], 39, "?31 .9", id="warm-up"),
        pytest.param([(0, 30), (40, 30), (41, 12.7)], 44, ".41 w4", id="one-large-spike"),
        pytest.param([(0, 34), (40, 34), (41.5, 12.7)], 43, ".41 w1 c2", id="34-to-12.7-in-1.5-s"),
        pytest.param([(0, 9.9), (36, 9.9), (39, 2.4)], 39, "?31 .7 c2", id="9.9-to-2.4-in-3-s"),
        pytest.param([(0, 7), (40, 7), (41, 0.7)], 41, "?31 .10 c1", id="gone-in-one-second"),
        pytest.param([(0, 0.74)], 3, "c4", id="nothing-left"),
        pytest.param([(0, 6)], 100, "?31 .70", id="parked-swap-flat-at-6"),
        pytest.param([(0, 12), (40, 12), (41, 10), (42, 12)], 60, "?31 .30", id="one-dip-of-2"),
        pytest.param(
            [(0, 20), (40, 20), (41, 7.7), (43, 20)], 60, "?31 .10 w12 .8", id="start-up-dip-to-7.7"
        ),
        pytest.param([(0, 115), (20, 115), (70, 15)], 120, ".121", id="load-at-2-ends-at-15"),
        pytest.param([(0, 115), (20, 115), (73.5, 8)], 120, ".121", id="load-at-2-ends-at-8"),
        pytest.param([(0, 115), (20, 115), (649, 8)], 700, ".701", id="load-at-0.17-ends-at-8"),
    ],
)
def test_timeline(points: list[tuple[float, float]], until: float, expected: str) -> None:
    """The state at every second is the one worked out beside the straight lines of memory."""
    assert states(line(points), until) == expected
