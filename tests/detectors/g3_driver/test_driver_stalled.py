"""Timelines of ``driver_stalled``: a call that does not come back is said, a slow start is not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g3_driver.driver_stalled import DriverStalled
from spark_watch.model import GIB, Failure, Gpu, Machine, Memory, Sample
from spark_watch.settings.g3_driver import DriverStalledSettings
from tests.detectors.timelines import play, squeeze

ANSWER = "answer"
NOTHING = "nothing"
REFUSED = "refused"
UNSUPPORTED = "unsupported"

Step = float | str
"""Seconds for which a call is out, or what came instead."""


def out(first: int, last: int) -> list[Step]:
    """Return a call that is out for ``first`` seconds, then a second more, up to ``last``."""
    return [float(seconds) for seconds in range(first, last + 1)]


def samples(
    steps: Iterable[Step], *, interval: float = 1.0, available_gib: float | None = 40.0
) -> list[Sample]:
    """Return a sample for each step; ``available_gib`` None leaves the pool unread."""
    memory = None
    if available_gib is not None:
        memory = Memory(total_bytes=121 * GIB, available_bytes=round(available_gib * GIB))
    made = []
    for index, step in enumerate(steps):
        reasons = {REFUSED: "timeout", UNSUPPORTED: "not_supported"}
        made.append(
            Sample(
                t=1e9 + index * interval,
                gpus=(Gpu(index=0),) if step == ANSWER else None,
                pending={"nvml": step} if isinstance(step, float) else {},
                failed=(Failure(source="nvml", reason=reasons[step]),) if step in reasons else (),
                memory=memory,
            )
        )
    return made


def timeline(made: list[Sample], *, interval: float = 1.0, machine: Machine | None = None) -> str:
    """Play the samples and return the squeezed timeline."""
    states, _ = play(
        DriverStalled(DriverStalledSettings()),
        made,
        interval_seconds=interval,
        machine=machine or Machine(gpu_name="NVIDIA GB10", memory_total_bytes=round(121.7 * GIB)),
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([ANSWER] * 90, ".90", id="healthy"),
        pytest.param([ANSWER] * 10 + out(1, 70), ".20 w50 c10", id="fault"),
        pytest.param([ANSWER] * 10 + out(1, 10) + [ANSWER] * 5, ".25", id="one-tick-short"),
        pytest.param([ANSWER, *out(1, 15), ANSWER], ".11 w5 .1", id="answers-again"),
        pytest.param([ANSWER, *out(1, 15), *out(1, 9)], ".11 w14", id="another-call-is-no-answer"),
        pytest.param([*out(1, 60), ANSWER, ANSWER], "?60 .2", id="slow-first-call"),
        pytest.param(out(1, 70), "?60 c10", id="first-call-never-returns"),
        pytest.param([UNSUPPORTED] * 90, "?90", id="not-supported"),
        pytest.param([NOTHING] * 5, "?5", id="nvml-never-asked"),
        pytest.param([ANSWER, *out(1, 15), *[REFUSED] * 40], ".11 w35 ?10", id="lost-reading"),
        pytest.param([ANSWER, *[NOTHING] * 20, ANSWER], ".22", id="not-due"),
    ],
)
def test_timeline(steps: list[Step], expected: str) -> None:
    """The state at every second is the one worked out beside the calls."""
    assert timeline(samples(steps)) == expected


def test_little_memory_makes_it_critical_sooner() -> None:
    """With 5 GiB available it is critical after 20 s; with 9 it waits for the minute."""
    steps: list[Step] = [ANSWER, *out(1, 30)]
    assert timeline(samples(steps, available_gib=5.0)) == ".11 w10 c10"
    assert timeline(samples(steps, available_gib=9.0)) == ".11 w20"


def test_level_scales_with_the_pool() -> None:
    """On half the pool 5 GiB is not little: the level is 4."""
    half = Machine(gpu_name="NVIDIA GB10", memory_total_bytes=round(121.7 / 2 * GIB))
    made = [
        Sample(
            t=sample.t,
            gpus=sample.gpus,
            pending=sample.pending,
            memory=Memory(available_bytes=5 * GIB),
        )
        for sample in samples([ANSWER, *out(1, 30)])
    ]
    assert timeline(made, machine=half) == ".11 w20"


def test_old_memory_reading_does_not_count() -> None:
    """What the pool was 31 s ago and more says nothing: the minute holds again."""
    made = samples([ANSWER], available_gib=5.0) + [
        Sample(t=1e9 + 45 + seconds, pending={"nvml": 45.0 + seconds}) for seconds in range(20)
    ]
    assert timeline(made) == ".1 w16 c4"


def test_any_machine_is_judged() -> None:
    """A discrete card's driver can stall as well."""
    made = samples([ANSWER, *out(1, 15)])
    assert timeline(made, machine=Machine(gpu_name="NVIDIA H200")) == ".11 w5"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # out for 0.25, 0.5, ... 10 s, then above
        pytest.param(0.25, ".41 w4", id="quarter-second"),
        # out for 10 s, 20 to 60 s, then above a minute
        pytest.param(10.0, ".2 w5 c38", id="ten-seconds"),
        pytest.param(60.0, ".1 w1 c43", id="a-minute"),
    ],
)
def test_interval_does_not_matter(interval: float, expected: str) -> None:
    """The source measures the time, so the state follows it at any interval."""
    steps: list[Step] = [ANSWER, *(interval * index for index in range(1, 45))]
    assert timeline(samples(steps, interval=interval), interval=interval) == expected


def test_sentence_names_time_level_and_memory() -> None:
    """The sentence holds what an operator needs, and the remedy what not to do."""
    _, events = play(
        DriverStalled(DriverStalledSettings()),
        samples([ANSWER, *out(1, 61)], available_gib=30.0),
    )
    assert [event.sentence for event in events[1:]] == [
        "An NVML call has been out for 11 s (level 10 s); 30.0 GiB are available.",
        "An NVML call has been out for 61 s (level 60 s); 30.0 GiB are available.",
    ]
    assert "D state" in events[2].remedy


@given(st.lists(st.sampled_from(["answer", "nothing", "refused"]), min_size=1, max_size=80))
def test_without_a_long_call_it_never_fires(steps: list[str]) -> None:
    """Whatever else NVML does, only a call that is out raises it."""
    assert not set(timeline(samples(list(steps)))) & set("iwc")


@given(
    st.lists(st.floats(min_value=0.0, max_value=200.0), min_size=1, max_size=60),
    st.floats(min_value=1.0, max_value=50.0),
    st.floats(min_value=0.0, max_value=1e6),
)
def test_looser_level_fires_no_later_and_the_start_does_not_matter(
    calls: list[float], level: float, shift: float
) -> None:
    """A lower level is never behind a higher one, and moving the whole series changes nothing."""
    made = samples([ANSWER, *calls])
    moved = [
        Sample(t=sample.t + shift, gpus=sample.gpus, pending=sample.pending, memory=sample.memory)
        for sample in made
    ]
    loose, _ = play(DriverStalled(DriverStalledSettings(warning_seconds=level)), made)
    tight, _ = play(DriverStalled(DriverStalledSettings(warning_seconds=level + 5.0)), made)
    again, _ = play(DriverStalled(DriverStalledSettings(warning_seconds=level)), moved)
    first = [min((s.find(c) for c in "wc" if c in s), default=999) for s in (loose, tight)]
    assert first[0] <= first[1]
    assert again == loose
