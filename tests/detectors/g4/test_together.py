"""All G4 conditions over one stream: bounded, independent of where it starts, at any interval."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Sample
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.settings.g4 import (
    BoardHotSettings,
    GpuHotSettings,
    LowPowerStateSettings,
    ThermalSlowdownSettings,
)
from spark_watch.sources.simulated.source import SimulatedSource
from tests.detectors.g4.gpus import at, gpu
from tests.detectors.timelines import GB10

HARDWARE = "hw_thermal_slowdown"
SOFTWARE = "sw_thermal_slowdown"


def judge_of(interval_seconds: float = 1.0) -> Judge:
    """Return a judge of the G4 conditions alone."""
    settings = ConditionSettings()
    kinds = [kind for kind in CATALOGUE if kind.gotcha == "G4" and kind.part in {"gpus", "zones"}]
    return Judge(
        [kind(getattr(settings, kind.name)) for kind in kinds],
        Timeline(interval_seconds=interval_seconds, machine=GB10),
    )


def days(count: int, interval: float) -> Iterator[Sample]:
    """Yield a box that changes its load, clock and heat all the time, on two GPUs."""
    for n in range(count):
        busy = n % 400 < 300
        stuck = n % 4000 < 40
        percent = 96.0 if busy else 2.0
        mhz = 700.0 + n % 97 if stuck else 1800.0 + 7.0 * (n % 101)
        seconds = {SOFTWARE: 0.03 * n, HARDWARE: 0.001 * n}
        gpus = tuple(
            gpu(
                percent,
                mhz,
                watts=30.0 + 0.37 * (n % 173),
                celsius=60.0 + n % 31,
                reasons=(),
                seconds=seconds if n % 5 == 0 else None,
                index=index,
            )
            for index in (0, 1)
        )
        yield at(n * interval, *gpus, zones=[("acpitz", 70.0 + n % 37)])


def test_a_hundred_thousand_samples_stay_bounded() -> None:
    """What is remembered after a week is no more than after the first two fifths of it."""
    judge = judge_of(6.048)
    sizes = []
    for n, sample in enumerate(days(100_000, 6.048)):
        judge.update(sample)
        if n in {39_999, 99_999}:
            remembered = [track.condition.__dict__ for track in judge._tracks]
            sizes.append(len(pickle.dumps((remembered, judge._timeline._shared))))
    assert not judge.errors
    assert sizes[1] < 1.1 * sizes[0]
    assert sizes[1] < 500_000


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 5.0, 10.0, 16.0])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("healthy-decode", set()),
        ("healthy-training", set()),
        ("idle", set()),
        ("stuck-low-power", {"low_power_state"}),
        ("thermal-throttle", {"thermal_slowdown", "power_plateau", "board_hot", "gpu_hot"}),
    ],
)
def test_simulated_box(name: str, expected: set[str], interval: float) -> None:
    """Each story raises the conditions that its cause would, at any interval, and no other."""
    source = SimulatedSource(name, interval_seconds=interval)
    judge = judge_of(interval)
    events = [event for sample in source.samples() for event in judge.update(sample)]
    assert not judge.errors
    raised = {
        event.condition for event in events if event.to_state.label in {"warning", "critical"}
    }
    assert raised == expected


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (GpuHotSettings, {"warning_celsius": 80.0}),
        (LowPowerStateSettings, {"clear_hertz": 9e8}),
        (LowPowerStateSettings, {"warning_seconds": 30.0}),
        (ThermalSlowdownSettings, {"software_warning_ratio": 0.2}),
        (ThermalSlowdownSettings, {"hardware_warning_seconds": 20.0}),
        (BoardHotSettings, {"leave_celsius": 95.0}),
        (BoardHotSettings, {"critical_celsius": 93.0}),
    ],
)
def test_impossible_combinations_are_refused(
    settings: type[GpuHotSettings], values: dict[str, float]
) -> None:
    """Levels in the wrong order stop the start instead of making a rule that never clears."""
    with pytest.raises(ValueError, match="must be"):
        settings(**values)


def test_every_level_is_a_setting_with_bounds_and_a_reason() -> None:
    """No field of the G4 settings lacks a description or a bound."""
    for kind in CATALOGUE:
        if kind.gotcha != "G4":
            continue
        model = ConditionSettings.model_fields[kind.name].annotation
        assert model is not None
        for name, field in model.model_fields.items():
            assert field.description, f"{kind.name}.{name}"
            assert field.metadata, f"{kind.name}.{name}"
