"""Timelines of ``driver_memory_creep``: memory that the driver took and does not give back.

Played every 10 s: where the driver's memory began is known after 570 s (57 samples), and a step is
judged when the last stretch of 30 s with a reading before it is over for ten minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g3_driver.driver_memory_creep import DriverMemoryCreep
from spark_watch.model import GIB, Failure, Machine, Memory, Process, Sample
from spark_watch.settings.g3_driver import DriverMemoryCreepSettings
from tests.detectors.timelines import GB10, play, squeeze

SERVER = Process(pid=11, name="python3", kind="compute", engine="vllm", started_seconds=100.0)
LAUNCHER = Process(pid=10, name="python3", kind="launcher", started_seconds=90.0)
OTHER = Process(pid=31, name="python3", kind="compute", started_seconds=20_000.0)
UPTIME = 30_000.0


def memory(residual_gib: float, total_gib: float = 121.7) -> Memory:
    """Return a pool of which the driver holds so much and nobody else anything."""
    return Memory(
        total_bytes=round(total_gib * GIB),
        free_bytes=round(total_gib * GIB) - round(residual_gib * GIB),
        cached_bytes=0,
        buffers_bytes=0,
        anonymous_bytes=0,
    )


def at(
    second: float,
    residual_gib: float | None,
    processes: tuple[Process, ...] | None = (SERVER,),
    *,
    uptime: float | None = UPTIME,
) -> Sample:
    """Return a sample; ``residual_gib`` None is a pool that could not be read."""
    return Sample(
        t=1e9 + second,
        boottime_seconds=None if uptime is None else uptime + second,
        memory=None if residual_gib is None else memory(residual_gib),
        failed=(Failure(source="meminfo", reason="malformed"),) if residual_gib is None else (),
        processes=processes,
    )


def every(
    seconds: float, residuals: Sequence[float | None], processes: tuple[Process, ...] = (SERVER,)
) -> list[Sample]:
    """Return a sample for each reading."""
    return [at(index * seconds, gib, processes) for index, gib in enumerate(residuals)]


def timeline(made: list[Sample], *, interval: float = 10.0, machine: Machine = GB10) -> str:
    """Play the samples and return the squeezed timeline."""
    states, _ = play(
        DriverMemoryCreep(DriverMemoryCreepSettings()),
        made,
        interval_seconds=interval,
        machine=machine,
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("residuals", "expected"),
    [
        pytest.param([96.0] * 200, "?57 .143", id="healthy"),
        # the stretch from 990 to 1020 holds the last reading before the step at 1000: 1620
        pytest.param([96.0] * 100 + [98.0] * 100, "?57 .105 i38", id="fault"),
        pytest.param([96.0] * 100 + [98.0] * 62, "?57 .105", id="one-tick-short"),
        pytest.param([96.0] * 100 + [96.5] * 100, "?57 .143", id="no-more-than-the-level"),
        pytest.param([96.0] * 100 + [96.8] * 200, "?57 .243", id="first-large-prompt"),
        pytest.param(
            [96.0] * 100 + [96.8] * 100 + [97.7] * 100, "?57 .204 i39", id="and-another-one"
        ),
        pytest.param([96.0] * 100 + [98.0] * 50 + [96.1] * 150, "?57 .243", id="returned"),
        # one reading at the start's level, at 1300: its stretch is over at 1320
        pytest.param([96.0] * 100 + [98.0] * 30 + [96.0] + [98.0] * 69, "?57 .135 i8", id="dip"),
        pytest.param(
            [96.0] * 100 + [98.0] * 80 + [96.4] * 10 + [96.2] * 10,
            "?57 .105 i28 .10",
            id="between-leave-and-enter",
        ),
        pytest.param([96.0] * 100 + [56.0] * 100 + [96.0] * 100, "?57 .243", id="sleeps-and-wakes"),
        pytest.param([96.0] * 100 + [98.0] * 80 + [None] * 5, "?57 .105 i21 ?2", id="lost-reading"),
    ],
)
def test_timeline(residuals: list[float | None], expected: str) -> None:
    """The state every ten seconds is the one worked out beside the readings."""
    assert timeline(every(10.0, residuals)) == expected


def test_a_process_starts_or_ends() -> None:
    """Its memory is its own for 900 s, and the new start is known 570 s after that."""
    made = every(10.0, [60.0] * 100)
    made += [at(1000.0 + 10 * i, 60.0 + min(30, i), (SERVER, OTHER)) for i in range(200)]
    assert timeline(made) == "?57 .43 ?147 .53"
    ends = [*made[:100], *[at(1000.0 + 10 * i, 1.0, ()) for i in range(200)]]
    assert timeline(ends) == "?57 .43 ?147 .53"


def test_a_launcher_is_no_gpu_process() -> None:
    """It comes and goes without memory of the GPU."""
    made = every(10.0, [60.0] * 100)
    made += [at(1000.0 + 10 * i, 60.0, (SERVER, LAUNCHER)) for i in range(50)]
    assert timeline(made) == "?57 .93"


def test_restart_of_the_process_under_its_pid() -> None:
    """Another start time is another process."""
    again = Process(pid=11, kind="compute", started_seconds=UPTIME + 1000.0)
    made = every(10.0, [60.0] * 100) + [at(1000.0 + 10 * i, 70.0, (again,)) for i in range(100)]
    assert timeline(made) == "?57 .43 ?100"


def test_process_of_unknown_age_may_have_just_begun() -> None:
    """Without an uptime the first list counts as a start; a young process is waited for."""
    made = [at(10.0 * index, 60.0, uptime=None) for index in range(160)]
    assert timeline(made) == "?147 .13"
    # started 400 s before the first sample: 500 s are left to wait
    made = [at(10.0 * index, 60.0, (OTHER,), uptime=20_400.0) for index in range(160)]
    assert timeline(made) == "?107 .53"


def test_without_processes_nothing_is_known() -> None:
    """A start that nobody could see would look like creeping; an old list holds for a while."""
    assert timeline([at(10.0 * index, 60.0, None) for index in range(100)]) == "?100"
    made = every(10.0, [60.0] * 100) + [at(1000.0 + 10 * i, 60.0, None) for i in range(10)]
    # the list of second 990 is stale after 30 s
    assert timeline(made) == "?57 .46 ?7"


def test_long_gap() -> None:
    """After a hole the level alone may say ok; more than that is not known for ten minutes."""
    made = every(10.0, [96.0] * 100)
    assert timeline([*made, *[at(5000.0 + 10 * i, 96.0) for i in range(10)]]) == "?57 .53"
    late = [at(5000.0 + 10 * i, 98.0) for i in range(70)]
    assert timeline([*made, *late]) == "?57 .43 ?57 i13"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # the start after 570 s; the step after 1000 s is judged at 1620 s
        pytest.param(1.0, "?570 .1050 i380", id="a-second"),
        pytest.param(10.0, "?57 .105 i38", id="ten-seconds"),
        pytest.param(60.0, "?10 .17 i6", id="a-minute"),
    ],
)
def test_interval(interval: float, expected: str) -> None:
    """Ten minutes are ten minutes at any interval."""
    before, after = round(1000 / interval), round(1000 / interval)
    made = every(interval, [96.0] * before + [98.0] * (after - (1 if interval == 60.0 else 0)))
    assert timeline(made, interval=interval) == expected


def test_level_scales_with_the_pool() -> None:
    """On a quarter of the pool an eighth of a GiB is the level."""
    quarter = Machine(gpu_name="NVIDIA GB10", memory_total_bytes=round(121.7 / 4 * GIB))
    made = [
        Sample(
            t=1e9 + 10 * index,
            boottime_seconds=UPTIME + 10 * index,
            processes=(SERVER,),
            memory=memory(20.0 if index < 100 else 20.3, 121.7 / 4),
        )
        for index in range(200)
    ]
    assert timeline(made, machine=quarter) == "?57 .105 i38"


def test_other_machine_is_not_judged() -> None:
    """On a discrete card the driver's share of host memory is not the GPU's."""
    made = every(10.0, [96.0] * 100 + [98.0] * 100)
    assert timeline(made, machine=Machine(gpu_name="NVIDIA H200")) == "?200"


def test_sentence() -> None:
    """How much, how much more, since when."""
    _, events = play(
        DriverMemoryCreep(DriverMemoryCreepSettings()),
        every(10.0, [96.0] * 100 + [98.0] * 100),
        interval_seconds=10.0,
    )
    assert events[-1].sentence == (
        "The driver holds 98.0 GiB, 2.0 GiB more than 27 min ago, for 600 s and more, and no GPU "
        "process has begun since."
    )


@settings(max_examples=30)
@given(st.floats(min_value=0.0, max_value=120.0), st.integers(min_value=0, max_value=20))
def test_constant_never_fires(gib: float, noise: int) -> None:
    """Noise of less than the level around any constant stays quiet."""
    made = every(10.0, [min(121.0, gib + 0.02 * ((7 * i) % (noise + 1))) for i in range(150)])
    assert "i" not in timeline(made)


def test_a_week_needs_no_memory() -> None:
    """A week at a minute's interval keeps one window."""
    rule = DriverMemoryCreep(DriverMemoryCreepSettings())
    play(rule, every(60.0, [96.0] * 10_080), interval_seconds=60.0)
    assert len(rule._window) <= 22
