"""Timelines of ``gpu_hot``: a hot die is said after a minute, a lost reading never clears it."""

from __future__ import annotations

import pytest

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
