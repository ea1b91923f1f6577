"""Timelines of ``telemetry_gap``: a hole in our own recording is said for a quarter of an hour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g3_driver.telemetry_gap import TelemetryGap
from spark_watch.model import GIB, Gpu, Memory, Sample, Zone
from spark_watch.settings.g3_driver import TelemetryGapSettings
from tests.detectors.timelines import play, squeeze


def at(second: float, **more: Any) -> Sample:
    """Return a sample of one boot whose three clocks agree."""
    fields: dict[str, Any] = {
        "t": 1e9 + second,
        "monotonic_seconds": 500.0 + second,
        "boottime_seconds": 500.0 + second,
        "boot_id": "a",
        **more,
    }
    return Sample(**fields)


def every(interval: float, count: int, start: float = 0.0) -> list[Sample]:
    """Return ``count`` samples, the first at ``start``."""
    return [at(start + index * interval) for index in range(count)]


def timeline(made: Iterable[Sample], *, own: bool = True, interval: float = 1.0) -> str:
    """Play the samples as our own recording and return the squeezed timeline."""
    states, _ = play(
        TelemetryGap(TelemetryGapSettings()), made, own_recording=own, interval_seconds=interval
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("interval", "before", "gap", "expected"),
    [
        pytest.param(1.0, 30, 1.0, "?1 .59", id="healthy"),
        pytest.param(1.0, 30, 61.0, "?1 .29 w30", id="fault"),
        pytest.param(1.0, 30, 60.0, "?1 .59", id="one-tick-short"),
        pytest.param(1.0, 3, 61.0, "?1 .2 w30", id="warm-up"),
        pytest.param(0.25, 30, 60.25, "?1 .29 w30", id="quarter-second"),
        pytest.param(10.0, 30, 190.0, "?1 .59", id="ten-seconds-nineteen-lost"),
        pytest.param(10.0, 30, 210.0, "?1 .29 w30", id="ten-seconds-more-lost"),
        # it stands for fifteen samples of a minute
        pytest.param(60.0, 30, 1260.0, "?1 .29 w15 .15", id="a-minute"),
        pytest.param(60.0, 30, 1200.0, "?1 .59", id="a-minute-one-tick-short"),
    ],
)
def test_timeline(interval: float, before: int, gap: float, expected: str) -> None:
    """A hole counts above a minute and above twenty intervals, whichever is longer."""
    made = every(interval, before)
    made += every(interval, 30, start=(before - 1) * interval + gap)
    assert timeline(made, interval=interval) == expected


def test_it_stands_for_a_quarter_of_an_hour() -> None:
    """After 900 s without another hole it is ok again."""
    made = every(1.0, 10) + every(1.0, 910, start=80.0)
    assert timeline(made) == "?1 .9 w900 .10"


def test_jitter_is_no_hole() -> None:
    """Irregular samples up to 59 s apart stay quiet."""
    seconds = [0.0, 1.0, 1.3, 9.0, 50.0, 51.0, 110.0, 111.0, 170.0]
    assert timeline([at(second) for second in seconds]) == "?1 .8"


def test_suspend_is_no_hole() -> None:
    """A machine that slept for an hour was not watched because there was nothing to watch."""
    made = every(1.0, 10) + [
        at(
            9.0 + second,
            t=1e9 + 3609.0 + second,
            boottime_seconds=4109.0 + second,
        )
        for second in range(1, 10)
    ]
    assert timeline(made) == "?1 .18"


def test_wall_clock_step_is_no_hole() -> None:
    """The wall clock going a day ahead or back is not time without a sample."""
    made = every(1.0, 10)
    made += [at(second, t=1e9 + 86400.0 + second) for second in range(10, 20)]
    made += [at(second, t=1e9 - 86400.0 + second) for second in range(20, 30)]
    assert timeline(made) == "?1 .29"


def test_clean_stop_is_no_hole() -> None:
    """After a sample that says the recorder was stopped nobody was meant to watch."""
    made = [*every(1.0, 9), at(9.0, stopped=True), *every(1.0, 10, start=3600.0)]
    assert timeline(made) == "?1 .19"


def test_restart_of_the_machine_is_not_ours() -> None:
    """A new boot starts anew: nothing can be said at its first sample, and no gap is."""
    made = every(1.0, 10) + [
        at(4000.0 + second, monotonic_seconds=20.0 + second, boottime_seconds=20.0, boot_id="b")
        for second in range(5)
    ]
    assert timeline(made) == "?1 .9 ?1 .4"


def test_killed_daemon_leaves_a_hole() -> None:
    """In the same boot, without a stop, ten minutes are a hole: the watch was not meant to end."""
    assert timeline(every(1.0, 10) + every(1.0, 5, start=609.0)) == "?1 .9 w5"


def test_other_tools_recordings_are_not_judged() -> None:
    """A log of another tool may pause at will."""
    assert timeline(every(1.0, 5) + every(1.0, 5, start=900.0), own=False) == "?10"


def test_sentence_says_what_was_seen_last() -> None:
    """The newest reading of each part before the hole stands in the sentence."""
    made = [
        at(0.0, zones=(Zone(zone=0, type="acpitz", temperature_celsius=93.0),)),
        at(1.0, memory=Memory(available_bytes=round(0.3 * GIB))),
        at(2.0, gpus=(Gpu(index=0, temperature_celsius=67.0),)),
        at(3.0, pending={"nvml": 12.0}),
        at(630.0),
    ]
    _, events = play(TelemetryGap(TelemetryGapSettings()), made, own_recording=True)
    assert events[-1].sentence == (
        "No sample for 10 min (level 60 s), until 0 s ago; the last before it showed 0.3 GiB "
        "available, hottest zone 93 C, GPU die 67 C, a call to nvml out for 12 s."
    )


@given(st.lists(st.floats(min_value=0.01, max_value=60.0), max_size=100))
def test_samples_within_a_minute_never_fire(steps: list[float]) -> None:
    """However irregular they come, holes of up to a minute are none."""
    moment, made = 0.0, [at(0.0)]
    for step in steps:
        moment += step
        made.append(at(moment))
    assert "w" not in timeline(made)


def test_a_week_needs_no_memory() -> None:
    """A week at a minute's interval with a hole each day keeps one record of the last hole."""
    made = [at(60.0 * index + 3600.0 * (index // 1440)) for index in range(7 * 1440)]
    rule = TelemetryGap(TelemetryGapSettings())
    states, _ = play(rule, made, own_recording=True, interval_seconds=60.0)
    assert states.count("w") == 6 * 15
    assert len(vars(rule)) == 5
