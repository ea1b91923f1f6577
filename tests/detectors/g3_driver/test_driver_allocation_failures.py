"""Timelines of ``driver_allocation_failures``: many lines, or some where memory is short."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g3_driver.driver_allocation_failures import DriverAllocationFailures
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import GIB, Failure, KernelEvent, Machine, Memory, Sample, State
from spark_watch.settings.g3_driver import DriverAllocationFailuresSettings
from tests.detectors.g3_driver.said import Said
from tests.detectors.timelines import GB10, play, squeeze

TOTAL = 121.7


def pool(available_gib: float, residual_gib: float) -> Memory:
    """Return a pool of which the driver holds so much."""
    return Memory(
        total_bytes=round(TOTAL * GIB),
        free_bytes=round((TOTAL - residual_gib) * GIB),
        available_bytes=round(available_gib * GIB),
        cached_bytes=0,
        buffers_bytes=0,
        anonymous_bytes=0,
    )


def samples(
    lines: Sequence[int | None],
    *,
    available_gib: float = 40.0,
    residual_gib: float = 60.0,
    interval: float = 1.0,
    start: float = 0.0,
) -> list[Sample]:
    """Return a sample for each count of lines; None is a log that could not be read."""
    made = []
    for index, count in enumerate(lines):
        failed: tuple[Failure, ...] = ()
        events: tuple[KernelEvent, ...] | None = ()
        if count is None:
            failed = (Failure(source="kernel_log", reason="permission_denied"),)
            events = None
        elif count:
            # an Xid beside the lines is no line
            events = (
                KernelEvent(kind="nv_err_no_memory", count=count),
                KernelEvent(kind="xid", code=31, count=50),
            )
        made.append(
            Sample(
                t=1e9 + start + index * interval,
                kernel=events,
                failed=failed,
                memory=pool(available_gib, residual_gib),
            )
        )
    return made


def timeline(made: list[Sample], *, interval: float = 1.0, machine: Machine = GB10) -> str:
    """Play the samples and return the squeezed timeline."""
    states, _ = play(
        DriverAllocationFailures(DriverAllocationFailuresSettings()),
        made,
        interval_seconds=interval,
        machine=machine,
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # ok is said once 57 of the 60 s were read
        pytest.param([0] * 90, "?57 .33", id="healthy"),
        pytest.param([0] * 60 + [3] + [0] * 70, "?57 .3 i61 .10", id="a-healthy-start"),
        pytest.param([0] * 60 + [20] + [0] * 70, "?57 .3 w61 .10", id="fault"),
        pytest.param([0] * 60 + [19] + [0] * 70, "?57 .3 i61 .10", id="one-line-short"),
        pytest.param([0] * 60 + [1] * 20, "?57 .3 i19 w1", id="twenty-one-by-one"),
        pytest.param([0] * 60 + [19] + [0] * 60 + [1], "?57 .3 i62", id="a-minute-apart"),
        # the 20 leave at second 121, the 5 later hold the warning up to second 160
        pytest.param(
            [0] * 60 + [20] + [0] * 39 + [5] + [0] * 70,
            "?57 .3 w101 .10",
            id="between-leave-and-enter",
        ),
        pytest.param(
            [0] * 60 + [20] + [0] * 39 + [4] + [0] * 70,
            "?57 .3 w61 i40 .10",
            id="fewer-than-leave",
        ),
        pytest.param([0] * 60 + [20] + [None] * 40, "?57 .3 w31 ?10", id="lost-reading"),
        pytest.param([None] * 40, "?40", id="log-not-readable"),
        pytest.param([25, 0, 0], "w3", id="warm-up-may-raise"),
        pytest.param([0] * 30, "?30", id="warm-up-says-no-ok"),
    ],
)
def test_timeline(lines: list[int | None], expected: str) -> None:
    """The state at every second is the one worked out beside the lines."""
    assert timeline(samples(lines)) == expected


@pytest.mark.parametrize(
    ("available", "residual", "expected"),
    [
        pytest.param(40.0, 60.0, "i1", id="much-memory"),
        pytest.param(11.9, 60.0, "w1", id="little-available"),
        pytest.param(12.1, 60.0, "i1", id="just-enough-available"),
        # 85 % of 121.7 GiB are 103.4
        pytest.param(40.0, 103.5, "w1", id="the-driver-holds-it"),
        pytest.param(40.0, 103.4, "i1", id="the-driver-holds-just-less"),
    ],
)
def test_five_lines_count_where_memory_is_short(
    available: float, residual: float, expected: str
) -> None:
    """Five lines are a warning where the pool is short by either measure."""
    made = samples([5], available_gib=available, residual_gib=residual)
    assert timeline(made) == expected
    made = samples([4], available_gib=available, residual_gib=residual)
    assert timeline(made) == "i1"


def test_unknown_memory_is_not_short() -> None:
    """Where the pool was not read five lines are no more than five lines."""
    made = [Sample(t=1e9, kernel=(KernelEvent(kind="nv_err_no_memory", count=5),))]
    assert timeline(made) == "i1"


def test_with_a_collapse_it_is_critical() -> None:
    """Both at once are critical, and only while both stand."""
    judge = Judge(
        [
            Said({70.0: State.WARNING, 80.0: State.OK}),
            DriverAllocationFailures(DriverAllocationFailuresSettings()),
        ],
        Timeline(machine=GB10),
    )
    states = []
    for sample in samples([0] * 60 + [20] + [0] * 30):
        judge.update(sample)
        states.append(judge.states()["driver_allocation_failures"].label[0])
    assert squeeze("".join(states)) == "u57 o3 w10 c10 w11"


@pytest.mark.parametrize(
    ("lines", "collapse", "expected"),
    [
        (20, State.WARNING, State.CRITICAL),
        (19, State.WARNING, State.WARNING),
        (5, State.WARNING, State.WARNING),
        (5, State.CRITICAL, State.CRITICAL),
        (20, State.INFO, State.WARNING),
    ],
)
def test_few_lines_need_a_critical_collapse(lines: int, collapse: State, expected: State) -> None:
    """A start-up's dip may raise a warning of a collapse and five lines: that is no crisis."""
    judge = Judge(
        [Said({0.0: collapse}), DriverAllocationFailures(DriverAllocationFailuresSettings())],
        Timeline(machine=GB10),
    )
    judge.update(samples([lines], available_gib=5.8)[0])
    assert judge.states()["driver_allocation_failures"] is expected


def test_a_collapse_alone_is_not_ours() -> None:
    """Four lines during a collapse stay a note."""
    judge = Judge(
        [
            Said({0.0: State.CRITICAL}),
            DriverAllocationFailures(DriverAllocationFailuresSettings()),
        ],
        Timeline(machine=GB10),
    )
    for sample in samples([4] + [0] * 30):
        judge.update(sample)
    assert judge.states()["driver_allocation_failures"] is State.INFO


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # 57 s are 228 samples; a minute and the sample itself are 241
        pytest.param(0.25, "?228 .12 w241 .59", id="quarter-second"),
        pytest.param(10.0, "?6 .234 w7 .293", id="ten-seconds"),
        pytest.param(60.0, "?1 .239 w2 .298", id="a-minute"),
    ],
)
def test_interval(interval: float, expected: str) -> None:
    """A minute is a minute at any interval."""
    lines: Sequence[int | None] = [0] * 240 + [20] + [0] * 299
    assert timeline(samples(lines, interval=interval), interval=interval) == expected


def test_long_gap_needs_a_new_minute() -> None:
    """After ten minutes that nobody read, ok needs a minute again."""
    made = samples([0] * 60) + samples([0] * 60, start=660.0)
    assert timeline(made) == "?57 .3 ?57 .3"


def test_other_machine_is_not_judged() -> None:
    """The counts are those of a GPU that lives in the host's memory."""
    assert timeline(samples([30]), machine=Machine(gpu_name="NVIDIA H200")) == "?1"


def test_sentence() -> None:
    """Lines, time, what is available and what the driver holds."""
    _, events = play(
        DriverAllocationFailures(DriverAllocationFailuresSettings()),
        samples([75], available_gib=22.5, residual_gib=84.0),
    )
    assert events[0].sentence == (
        "The driver wrote NV_ERR_NO_MEMORY in the last 60 s, lines: 75; 22.5 GiB are available, "
        "the driver holds 84.0 GiB."
    )


@given(st.lists(st.integers(min_value=0, max_value=30), max_size=120))
def test_looser_level_fires_no_later(lines: list[int]) -> None:
    """With a lower count for a burst no warning comes later."""
    made = samples(lines)
    firsts = []
    for burst in (10, 20):
        rule = DriverAllocationFailures(DriverAllocationFailuresSettings(burst_lines=burst))
        states, _ = play(rule, made)
        firsts.append(states.find("w") if "w" in states else 999)
    assert firsts[0] <= firsts[1]


def test_a_flood_needs_no_memory() -> None:
    """Lines at every sample for hours are kept in about as many parts as the window has."""
    rule = DriverAllocationFailures(DriverAllocationFailuresSettings())
    play(rule, samples([3] * 20_000, interval=0.25), interval_seconds=0.25)
    assert len(rule._lines._counts) <= 66
