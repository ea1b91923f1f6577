"""Timelines of ``bandwidth_ceiling``: bytes a second against what the memory gives."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spark_watch.detectors.g5_bandwidth.bandwidth_ceiling import BandwidthCeiling
from spark_watch.model import Machine, Sample
from spark_watch.settings.g5 import BandwidthCeilingSettings
from tests.detectors.g10.reports import at, loop, server
from tests.detectors.timelines import play, squeeze


def rule(**settings_: float) -> BandwidthCeiling:
    """Return the condition with its defaults, or with some of them replaced."""
    return BandwidthCeiling(BandwidthCeilingSettings(**settings_))


def moving(gigabytes: float, seconds: int = 120) -> list[Sample]:
    """Return a loop of one step a second that reports so many GB a step."""
    return [at(n, loop(n, 1.0, bytes_total=n * gigabytes * 1e9)) for n in range(seconds)]


def states(samples: list[Sample], **settings_: float) -> str:
    """Return the timeline, runs of one state written together."""
    return squeeze(play(rule(**settings_), samples)[0])


def test_at_the_ceiling() -> None:
    """200 GB/s, known after 57 s (95 % of the window), is information 30 s later."""
    assert states(moving(200)) == "?87 i33"


def test_below_the_ceiling() -> None:
    """100 GB/s is not bound by memory."""
    assert states(moving(100)) == "?57 .63"


def test_no_bytes_no_verdict() -> None:
    """An engine that says nothing of bytes cannot be judged."""
    samples = [at(n, server(11.0 * n)) for n in range(120)]
    assert states(samples) == "?120"


def test_bytes_of_a_step_as_set() -> None:
    """8 requests at 96 tokens/s are 12 decode steps; at 16 GB each they move 192 GB/s."""
    samples = [at(n, server(96.0 * n)) for n in range(120)]
    assert states(samples, bytes_per_step=16e9) == "?87 i33"
    steps = [at(n, loop(12 * n, 1 / 12)) for n in range(120)]
    assert states(steps, bytes_per_step=16e9) == "?87 i33"


def test_estimate_from_the_weights_is_labelled() -> None:
    """The same from the size of the weights, and the sentence calls it an estimate."""
    samples = [at(n, server(96.0 * n, model_bytes=16e9)) for n in range(120)]
    _, events = play(rule(), samples)
    assert [event.to_state.label for event in events] == ["info"]
    assert events[0].sentence == (
        "vllm moves 192 GB/s (an estimate from the size of its weights) and is memory bound (from "
        "180): plan with 180 to 192 GB/s, not with 273."
    )


def test_more_than_the_specification_is_no_reading() -> None:
    """A mixture of experts reads a part of its weights: 60 GB at 12 a second cannot be."""
    samples = [at(n, server(96.0 * n, model_bytes=60e9)) for n in range(120)]
    assert states(samples) == "?120"


def test_weights_say_nothing_of_training() -> None:
    """A training step reads its weights several times: their size is no estimate."""
    samples = [at(n, loop(n, 1.0, model_bytes=190e9)) for n in range(120)]
    assert states(samples) == "?120"


def test_own_probe_moves_the_level() -> None:
    """Where a pure read reaches 235 GB/s the ceiling begins at 188."""
    assert states(moving(185), probe_bytes_per_second=235e9) == "?57 .63"
    assert states(moving(190), probe_bytes_per_second=235e9) == "?87 i33"


def test_long_steps() -> None:
    """66 s a step: bytes come a minute apart, and the rate is that from step to step."""
    samples = [at(n, loop(n // 66, 66.0, bytes_total=n // 66 * 13.2e12)) for n in range(400)]
    timeline, _ = play(rule(), samples)
    assert set(timeline[200:]) == {"i"}


def test_rest_keeps_the_last_word() -> None:
    """A loop that rests for two minutes moves nothing, and what was judged stands."""
    samples = moving(100) + [
        at(n, loop(119, 1.0, bytes_total=119 * 100e9), percent=0) for n in range(120, 300)
    ]
    assert states(samples) == "?57 .243"


def test_reset_starts_anew() -> None:
    """A run that starts anew is watched for a window before it is judged."""
    samples = moving(100) + [at(120 + n, loop(n, 1.0, bytes_total=n * 100e9)) for n in range(100)]
    assert states(samples) == "?57 .63 ?57 .43"


def test_measure_is_published() -> None:
    """What is judged goes out under its own name."""
    condition = rule()
    play(condition, moving(100))
    assert condition.measures == {
        ("workload_memory_bytes_per_second", ("train",)): pytest.approx(100e9)
    }


def test_another_unit_is_not_judged() -> None:
    """These levels are a GB10's."""
    timeline, _ = play(rule(), moving(200), machine=Machine(gpu_name="NVIDIA H200"))
    assert set(timeline) == {"?"}


def test_budget_above_the_specification_is_refused() -> None:
    """Nobody can plan with more than there is."""
    with pytest.raises(ValidationError):
        BandwidthCeilingSettings(budget_high_bytes_per_second=300e9)
