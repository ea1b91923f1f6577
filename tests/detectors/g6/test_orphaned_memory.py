"""Timelines of ``orphaned_memory``: an engine that outlived the launcher we saw."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g6_contention.orphaned_memory import OrphanedMemory
from spark_watch.model import Failure, Machine, Process, Sample
from spark_watch.settings.g6 import OrphanedMemorySettings
from tests.detectors.g6.rows import launcher, listing, process
from tests.detectors.timelines import GB10, play, squeeze

Rows = tuple[Process, ...]

SERVED: Rows = (
    launcher(10, started_seconds=90.0),
    process(11, 101.8, engine="vllm", launcher_pid=10, started_seconds=100.0),
)
ORPHAN: Rows = (process(11, 101.8, engine="vllm", started_seconds=100.0),)
STILL_NAMED: Rows = (process(11, 101.8, engine="vllm", launcher_pid=10, started_seconds=100.0),)
SMALL: Rows = (process(11, 0.4, engine="vllm", started_seconds=100.0),)
UNSIZED: Rows = (process(11, engine="vllm", started_seconds=100.0),)
AGAIN: Rows = (
    launcher(20, started_seconds=200.0),
    process(11, 101.8, engine="vllm", launcher_pid=20, started_seconds=100.0),
)
PID_TAKEN: Rows = (
    launcher(10, started_seconds=5000.0),
    process(11, 101.8, engine="vllm", launcher_pid=10, started_seconds=100.0),
)
NEW_ENGINE: Rows = (process(11, 101.8, engine="vllm", started_seconds=900.0),)


def timeline(
    parts: list[tuple[int, Rows | None]], *, interval: float = 1.0, machine: Machine = GB10
) -> str:
    """Play lists of processes, each for so many samples, and return the squeezed timeline."""
    made: list[Sample] = []
    for count, rows in parts:
        for _ in range(count):
            failed = (Failure(source="processes", reason="timeout"),) if rows is None else ()
            made.append(listing(len(made) * interval, rows, failed=failed))
    states, _ = play(
        OrphanedMemory(OrphanedMemorySettings()), made, interval_seconds=interval, machine=machine
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([(90, SERVED)], ".90", id="healthy"),
        pytest.param([(90, ORPHAN)], ".90", id="daemonised-never-had-one"),
        pytest.param([(90, ())], ".90", id="nobody"),
        pytest.param([(10, SERVED), (90, ORPHAN)], ".70 w30", id="fault"),
        pytest.param([(10, SERVED), (60, ORPHAN), (9, ())], ".79", id="one-tick-short"),
        pytest.param([(10, SERVED), (90, ORPHAN), (5, ())], ".70 w30 .5", id="ended"),
        pytest.param([(10, SERVED), (50, ORPHAN), (1, SERVED), (50, ORPHAN)], ".111", id="dip"),
        pytest.param([(10, SERVED), (90, AGAIN)], ".100", id="another-launcher"),
        pytest.param([(10, SERVED), (90, STILL_NAMED)], ".70 w30", id="named-but-not-there"),
        pytest.param([(90, STILL_NAMED)], ".90", id="launcher-never-listed"),
        pytest.param([(10, STILL_NAMED), (90, ORPHAN)], ".70 w30", id="never-listed-then-gone"),
        pytest.param([(10, SERVED), (90, PID_TAKEN)], ".70 w30", id="its-pid-given-out-again"),
        pytest.param([(10, SERVED), (90, SMALL)], ".100", id="holds-next-to-nothing"),
        pytest.param([(10, SERVED), (90, UNSIZED)], ".70 w30", id="size-unknown"),
        pytest.param([(10, SERVED), (90, NEW_ENGINE)], ".100", id="another-process-of-that-pid"),
        pytest.param([(10, SERVED), (80, ORPHAN), (40, None)], ".70 w50 ?10", id="lost-reading"),
    ],
)
def test_timeline(parts: list[tuple[int, Rows | None]], expected: str) -> None:
    """The state at every second is the one worked out beside the lists."""
    assert timeline(parts) == expected


def test_small_again_does_not_end_it() -> None:
    """What stands ends when the process ends or has a launcher, not when it frees memory."""
    assert timeline([(10, SERVED), (70, ORPHAN), (20, SMALL), (5, AGAIN)]) == ".70 w30 .5"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        pytest.param(0.25, ".250 w50", id="quarter-second"),
        pytest.param(10.0, ".16 w284", id="ten-seconds"),
        pytest.param(60.0, ".12 w288", id="a-minute-three-samples"),
    ],
)
def test_interval(interval: float, expected: str) -> None:
    """A minute at any interval, and three samples at the least."""
    assert timeline([(10, SERVED), (290, ORPHAN)], interval=interval) == expected


def test_long_gap_starts_the_hold_anew() -> None:
    """In a hole the launcher may have been there again."""
    made = [listing(float(second), SERVED) for second in range(10)]
    made += [listing(10.0 + second, ORPHAN) for second in range(30)]
    made += [listing(500.0 + second, ORPHAN) for second in range(70)]
    states, _ = play(OrphanedMemory(OrphanedMemorySettings()), made)
    assert squeeze(states) == ".100 w10"


def test_hidden_processes_are_not_none() -> None:
    """An empty list while the driver holds 80 GiB cannot say that nobody is orphaned."""
    made = [listing(float(second), (), residual_gib=80.0) for second in range(5)]
    states, _ = play(OrphanedMemory(OrphanedMemorySettings()), made)
    assert states == "?????"


def test_any_machine_is_judged() -> None:
    """An orphan holds a discrete card's memory as well."""
    machine = Machine(gpu_name="NVIDIA H200")
    assert timeline([(10, SERVED), (90, ORPHAN)], machine=machine) == ".70 w30"


def test_subject_and_sentence() -> None:
    """Who holds how much, and whose launcher has been gone for how long."""
    made = [listing(float(second), SERVED) for second in range(10)]
    made += [listing(10.0 + second, ORPHAN) for second in range(70)]
    _, events = play(OrphanedMemory(OrphanedMemorySettings()), made)
    assert events[-1].subject == "vllm/11"
    assert events[-1].sentence == (
        "vllm/11 holds 101.8 GiB of GPU memory; its launcher, pid 10, has been gone for 60 s."
    )


@given(st.lists(st.sampled_from([SERVED, AGAIN, SMALL, NEW_ENGINE, ()]), max_size=59))
def test_less_than_a_minute_never_fires(rows: list[Rows]) -> None:
    """Whatever comes and goes within 59 s, nobody is orphaned yet."""
    assert "w" not in timeline([(1, SERVED), *((1, row) for row in rows)])


def test_a_week_of_comers_and_goers_leaves_nothing_behind() -> None:
    """Ten thousand servers, one after the other, are not remembered."""
    rule = OrphanedMemory(OrphanedMemorySettings())
    made = [
        listing(60.0 * index, (process(100 + index, 6.0, launcher_pid=9),))
        for index in range(10_000)
    ]
    play(rule, made, interval_seconds=60.0)
    assert len(rule._owners) == 1
