"""The sources around the simulated box: naming, pacing, gaps, and the demonstration."""

from itertools import islice, pairwise

import pytest

from spark_watch.errors import UsageError
from spark_watch.model import GIB, Sample
from spark_watch.sources.simulated import SCENARIOS, DemoSource, SimulatedSource, scenario_named


def test_an_unknown_name_lists_the_choices() -> None:
    """The error names what was asked for and every scenario there is."""
    with pytest.raises(UsageError) as refused:
        SimulatedSource("colapse")
    assert "'colapse'" in str(refused.value)
    assert all(name in str(refused.value) for name in SCENARIOS)


def test_a_name_gives_its_scenario() -> None:
    """The registry's key and the scenario's own name agree."""
    assert [scenario_named(name).name for name in SCENARIOS] == list(SCENARIOS)


@pytest.mark.parametrize("interval", [0.0, 0.2, 61.0])
def test_an_interval_out_of_range_is_refused(interval: float) -> None:
    """Only 0.25 to 60 s make sense, and the error says so."""
    with pytest.raises(UsageError, match=r"0\.25 to 60"):
        SimulatedSource("idle", interval_seconds=interval)


def test_samples_come_at_the_interval_from_the_given_start() -> None:
    """Ten minutes of idle at 60 s are eleven samples, the first at ``start``."""
    source = SimulatedSource("idle", interval_seconds=60.0, start=5_000.0)
    assert [sample.t for sample in source.samples()] == [5_000.0 + 60.0 * n for n in range(11)]


def test_reading_follows_the_callers_clock() -> None:
    """The first call is the beginning; later samples carry the caller's own time."""
    source = SimulatedSource("idle", seed=2)
    assert [source.read(now).t for now in (100.0, 101.0, 103.5)] == [100.0, 101.0, 103.5]


def test_reading_goes_on_after_the_end() -> None:
    """An hour after a ten-minute story the box is still there, as the story left it."""
    source = SimulatedSource("idle", seed=2)
    source.read(0.0)
    late = source.read(4_200.0)
    assert late.t == 4_200.0
    assert late.gpus is not None
    assert late.gpus[0].performance_state == 8


def test_reading_skips_the_time_without_power() -> None:
    """A caller that reads once a second sees the new boot at once, stamped after the outage.

    The last reading is at 239 s, the power goes at 240 and the box is up again at 355.
    """
    source = SimulatedSource("power-loss", seed=2)
    samples = [source.read(float(now)) for now in range(300)]
    steps = [after.t - before.t for before, after in pairwise(samples)]
    assert sorted(round(step) for step in steps) == [1] * 298 + [116]
    assert len({sample.boot_id for sample in samples}) == 2


def test_a_clock_that_steps_back_does_not_turn_the_story_back() -> None:
    """An earlier ``now`` gives the box as it already is."""
    source = SimulatedSource("idle")
    source.read(100.0)
    ahead = source.read(110.0)
    assert source.read(105.0).t == ahead.t


def demo(speed: float, real_seconds: int) -> list[tuple[str, Sample]]:
    """What a demonstration shows, once a second: the scenario on stage and its sample."""
    source = DemoSource(seed=1, speed=speed)
    shown = []
    for now in range(real_seconds):
        sample = source.read(float(now))
        shown.append((source.scenario.name, sample))
    return shown


def test_the_demonstration_shows_everything_in_a_few_minutes() -> None:
    """At 30 times every scenario has been on stage within 400 seconds, in order."""
    names = [name for name, _ in demo(30.0, 400)]
    assert list(dict.fromkeys(names)) == list(SCENARIOS)


def test_the_demonstrations_time_is_one_time() -> None:
    """It starts at the first ``now``, never goes back, and never jumps by more than an outage."""
    times = [sample.t for _, sample in demo(30.0, 400)]
    steps = [after - before for before, after in pairwise(times)]
    assert times[0] == 0.0
    assert min(steps) > 0
    assert max(steps) <= 30.0 + 115.0


def test_the_demonstration_is_one_boot_until_the_power_goes() -> None:
    """The boot id changes once, in the scenario that says so."""
    shown = demo(30.0, 400)
    changes = [
        name for (_, before), (name, after) in pairwise(shown) if before.boot_id != after.boot_id
    ]
    assert changes == ["power-loss"]


def test_the_demonstration_slows_down_for_a_collapse() -> None:
    """At least seven samples lie in the twelve seconds in which 30 GiB go."""
    shown = demo(30.0, 400)
    falling = [
        sample
        for name, sample in shown
        if name == "collapse"
        and sample.memory is not None
        and 0.7 < (sample.memory.available_bytes or 0) / GIB < 31
    ]
    assert len(falling) >= 7


def test_the_demonstration_goes_round() -> None:
    """After the last scenario comes the first."""
    names = [name for name, _ in demo(60.0, 300)]
    end = len(names) - names[::-1].index("power-loss")
    assert names[end] == "healthy-decode"


@pytest.mark.parametrize("speed", [0.5, 100.0])
def test_a_speed_out_of_range_is_refused(speed: float) -> None:
    """Only 1 to 60 times keep every detector's windows meaningful."""
    with pytest.raises(UsageError, match="1 to 60"):
        DemoSource(speed=speed)


def test_the_demonstration_as_a_stream_is_even_and_complete() -> None:
    """A sample every two seconds of the box's time but for the outage; round and round."""
    source = DemoSource(seed=1, interval_seconds=2.0, start=50.0)
    names, times = [], []
    for sample in islice(source.samples(), 5_000):
        names.append(source.scenario.name)
        times.append(sample.t)
    assert list(dict.fromkeys(names)) == list(SCENARIOS)
    assert times[0] == 50.0
    steps = {round(after - before, 2) for before, after in pairwise(times)}
    assert max(steps) > 100.0
    assert steps - {max(steps)} == {2.0}


def test_both_sources_know_their_machine() -> None:
    """The header of a trace can be written before the first sample is there."""
    for machine in (DemoSource().machine, SimulatedSource("idle").machine):
        assert machine.is_gb10
        assert machine.memory_total_bytes == 127_600_748 * 1024
