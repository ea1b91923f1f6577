"""Timelines of ``unattributed_memory``: the driver holds more than the list explains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g6_contention.unattributed_memory import UnattributedMemory
from spark_watch.model import GIB, Failure, Machine, Memory, Process, Sample
from spark_watch.settings.g6 import UnattributedMemorySettings
from tests.detectors.g6.rows import launcher, listing, process
from tests.detectors.timelines import GB10, play, squeeze

SERVER: tuple[Process, ...] = (
    launcher(10, gpu_bytes=90 * GIB),
    process(11, 36.0, launcher_pid=10),
    process(41, 1.0, kind="graphics"),
)
"""37 GiB; what is said of a launcher is not counted."""
UNSIZED: tuple[Process, ...] = (*SERVER, process(51))


def timeline(
    parts: list[tuple[int, float | None, tuple[Process, ...] | None]],
    *,
    interval: float = 1.0,
    machine: Machine = GB10,
) -> str:
    """Play (samples, driver memory in GiB, list) and return the squeezed timeline."""
    made: list[Sample] = []
    for count, residual, rows in parts:
        for _ in range(count):
            failed = (Failure(source="processes", reason="timeout"),) if rows is None else ()
            made.append(
                listing(
                    len(made) * interval,
                    rows,
                    available_gib=None if residual is None else 20.0,
                    residual_gib=residual or 0.0,
                    failed=failed,
                )
            )
    states, _ = play(
        UnattributedMemory(UnattributedMemorySettings()),
        made,
        interval_seconds=interval,
        machine=machine,
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([(90, 46.0, SERVER)], ".90", id="the-usual-nine"),
        pytest.param([(90, 53.0, SERVER)], ".90", id="sixteen"),
        pytest.param([(5, 46.0, SERVER), (70, 54.0, SERVER)], ".65 i10", id="fault"),
        pytest.param([(5, 46.0, SERVER), (60, 54.0, SERVER)], ".65", id="one-tick-short"),
        pytest.param(
            [(5, 46.0, SERVER), (50, 54.0, SERVER), (1, 52.0, SERVER), (50, 54.0, SERVER)],
            ".106",
            id="dip",
        ),
        pytest.param(
            [(5, 46.0, SERVER), (70, 54.0, SERVER), (9, 50.0, SERVER), (9, 48.9, SERVER)],
            ".65 i19 .9",
            id="between-leave-and-enter",
        ),
        pytest.param([(70, 54.0, SERVER)], "?60 i10", id="warm-up"),
        pytest.param([(70, 80.0, ())], "?60 i10", id="nobody-listed"),
        pytest.param([(70, 9.0, ())], ".70", id="nobody-there"),
        pytest.param([(90, 54.0, UNSIZED)], "?90", id="a-size-is-missing"),
        pytest.param([(90, 46.0, UNSIZED)], ".90", id="a-size-is-missing-but-explained"),
        pytest.param([(70, 54.0, SERVER), (9, 54.0, UNSIZED)], "?60 i10 ?9", id="one-appears"),
        pytest.param(
            [(5, 46.0, SERVER), (70, 54.0, SERVER), (40, 54.0, None)], ".65 i40 ?10", id="lost"
        ),
        pytest.param([(90, None, SERVER)], "?90", id="pool-unread"),
        pytest.param([(20, 46.0, SERVER), (80, None, SERVER)], ".50 ?50", id="pool-lost"),
    ],
)
def test_timeline(
    parts: list[tuple[int, float | None, tuple[Process, ...] | None]], expected: str
) -> None:
    """The state at every second is the one worked out beside the numbers."""
    assert timeline(parts) == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        pytest.param(0.25, ".242 i58", id="quarter-second"),
        pytest.param(10.0, ".8 i292", id="ten-seconds"),
        pytest.param(60.0, ".4 i296", id="a-minute-three-samples"),
    ],
)
def test_interval(interval: float, expected: str) -> None:
    """A minute at any interval, and three samples at the least."""
    parts: list[tuple[int, float | None, tuple[Process, ...] | None]] = [
        (2, 46.0, SERVER),
        (298, 54.0, SERVER),
    ]
    assert timeline(parts, interval=interval) == expected


def test_long_gap_starts_the_hold_anew() -> None:
    """Nobody saw the numbers in a hole."""
    made = [listing(float(s), SERVER, residual_gib=46.0) for s in range(5)]
    made += [listing(5.0 + s, SERVER, residual_gib=54.0) for s in range(50)]
    made += [listing(500.0 + s, SERVER, residual_gib=54.0) for s in range(61)]
    states, _ = play(UnattributedMemory(UnattributedMemorySettings()), made)
    assert squeeze(states) == ".115 i1"


def test_level_scales_with_the_pool() -> None:
    """On half the pool the level is 8 GiB."""
    half = round(121.7 / 2 * GIB)
    memory = Memory(
        total_bytes=half,
        free_bytes=half - 46 * GIB,
        cached_bytes=0,
        buffers_bytes=0,
        anonymous_bytes=0,
    )
    made = [Sample(t=1e9 + s, processes=SERVER, memory=memory) for s in range(65)]
    states, _ = play(UnattributedMemory(UnattributedMemorySettings()), made)
    assert squeeze(states) == "?60 i5"


def test_other_machine_is_not_judged() -> None:
    """On a discrete card the two numbers are of two memories."""
    machine = Machine(gpu_name="NVIDIA H200")
    assert timeline([(90, 54.0, SERVER)], machine=machine) == "?90"


def test_sentences() -> None:
    """With a list it says how much is missing, without one where the list may be."""
    made = [listing(float(s), SERVER, residual_gib=60.0) for s in range(61)]
    _, events = play(UnattributedMemory(UnattributedMemorySettings()), made)
    assert events[-1].sentence == (
        "The driver holds 60.0 GiB, 23.0 GiB more than the 2 listed processes (level 16.0 GiB), "
        "for 60 s."
    )
    made = [listing(float(s), SERVER[:2], residual_gib=90.0) for s in range(61)]
    _, events = play(UnattributedMemory(UnattributedMemorySettings()), made)
    assert "more than the 1 listed process (level" in events[-1].sentence
    made = [listing(float(s), (), residual_gib=60.0) for s in range(61)]
    _, events = play(UnattributedMemory(UnattributedMemorySettings()), made)
    assert "another pid namespace" in events[-1].sentence
    assert "--pid=host" in events[-1].remedy


@given(st.floats(min_value=0.0, max_value=16.0), st.integers(min_value=0, max_value=5))
def test_small_gaps_never_fire(gap: float, processes: int) -> None:
    """Up to the level it is ok, however many processes share the rest."""
    rows = tuple(process(10 + index, 20.0) for index in range(processes))
    assert timeline([(70, min(121.0, 20.0 * processes + gap), rows)]) == ".70"
