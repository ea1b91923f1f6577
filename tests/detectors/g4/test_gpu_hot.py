"""Timelines of ``gpu_hot``: a hot die is said after a minute, a lost reading never clears it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g4_power.gpu_hot import GpuHot
from spark_watch.model import Failure, Gpu, Machine, Sample
from spark_watch.settings.g4 import GpuHotSettings
from tests.detectors.timelines import play, squeeze


def at(second: float, celsius: float | None) -> Sample:
    """Return a sample with one GPU at a temperature, or with NVML failing."""
    if celsius is None:
        return Sample(t=1e9 + second, failed=(Failure(source="nvml", reason="timeout"),))
    return Sample(t=1e9 + second, gpus=(Gpu(index=0, temperature_celsius=celsius),))


@pytest.mark.parametrize(
    ("celsius", "expected"),
    [
        pytest.param([86.0] * 90, ".90", id="healthy-86-soak"),
        pytest.param([80.0] + [91.0] * 70, ".61 w10", id="fault"),
        pytest.param([80.0] + [91.0] * 60, ".61", id="one-tick-short"),
        pytest.param([80.0] + [91.0] * 59 + [87.0] + [91.0] * 30, ".91", id="dip"),
        pytest.param([80.0] + [91.0] * 61 + [86.0] * 20, ".61 w21", id="between-leave-and-enter"),
        pytest.param([80.0] + [91.0] * 61 + [84.0] * 3, ".61 w1 .3", id="cools"),
        pytest.param([80.0] + [91.0] * 61 + [None] * 40, ".61 w31 ?10", id="lost-reading"),
        pytest.param([91.0] * 70, "?60 w10", id="warm-up"),
    ],
)
def test_timeline(celsius: list[float | None], expected: str) -> None:
    """The state at every second is the one worked out beside the temperatures."""
    samples = [at(second, value) for second, value in enumerate(celsius)]
    states, _ = play(GpuHot(GpuHotSettings()), samples)
    assert squeeze(states) == expected


def test_other_machine_is_not_judged() -> None:
    """On a discrete card the level means nothing and the state stays unknown."""
    samples = [at(second, 95.0) for second in range(90)]
    states, _ = play(GpuHot(GpuHotSettings()), samples, machine=Machine(gpu_name="NVIDIA H200"))
    assert squeeze(states) == "?90"


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 5.0, 10.0, 16.0, 60.0])
def test_every_interval(interval: float) -> None:
    """A minute at any interval, or three samples where those take longer."""
    samples = [at(n * interval, 91.0 if n else 80.0) for n in range(260)]
    states, _ = play(GpuHot(GpuHotSettings()), samples, interval_seconds=interval)
    held = {16.0: 4, 60.0: 2}.get(interval, round(60 / interval))
    assert squeeze(states) == f".{1 + held} w{259 - held}"


def test_long_gap_starts_the_hold_anew() -> None:
    """Forty hot seconds before and after ten minutes of nothing are no minute."""
    samples = [at(n, 91.0 if n else 80.0) for n in range(40)]
    samples += [at(640 + n, 91.0) for n in range(40)]
    states, _ = play(GpuHot(GpuHotSettings()), samples)
    assert squeeze(states) == ".80"


def test_irregular_intervals() -> None:
    """Seconds count, not samples."""
    seconds = (0.0, 1.0, 2.5, 3.0, 5.0, 8.0, 9.5)
    samples = [at(second, 91.0 if second else 80.0) for second in seconds]
    states, _ = play(GpuHot(GpuHotSettings(hold_seconds=7.0)), samples)
    assert squeeze(states) == ".5 w2"


def test_restart_of_the_machine_starts_anew() -> None:
    """A hot die of the boot before is not held against this one."""
    hot = [replace(at(n, 91.0), boot_id="a") for n in range(70)]
    cool = [replace(at(90 + n, 91.0), boot_id="b") for n in range(10)]
    states, _ = play(GpuHot(GpuHotSettings()), hot + cool)
    assert squeeze(states) == "?60 w10 ?10"


def test_each_gpu_has_its_own_temperature() -> None:
    """The hot one of two is named, with its temperature."""
    samples = [
        Sample(
            t=1e9 + n,
            gpus=(Gpu(index=0, temperature_celsius=70.0), Gpu(index=1, temperature_celsius=91.0)),
        )
        for n in range(70)
    ]
    _, events = play(GpuHot(GpuHotSettings()), samples)
    assert [(event.subject, event.sentence) for event in events] == [
        ("gpu1", "GPU 1 die at 91 C, at or near 88 C for 60 s.")
    ]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    celsius=st.lists(st.floats(60.0, 100.0), min_size=1, max_size=90),
    lower=st.floats(0.0, 3.0),
)
def test_looser_level_never_fires_later(celsius: list[float], lower: float) -> None:
    """With a lower level or a shorter hold a warning comes no later."""

    def first(**values: float) -> int:
        samples = [at(n, one) for n, one in enumerate(celsius)]
        states, _ = play(GpuHot(GpuHotSettings(**values)), samples)
        return states.find("w") + 1 or 999

    assert first(warning_celsius=88.0 - lower, hold_seconds=5.0) <= first(hold_seconds=5.0)
    assert first(hold_seconds=2.0) <= first(hold_seconds=5.0)
