"""The run: what a GPU did since it last rested, bounded, and worked out once for each sample."""

from __future__ import annotations

import random

import pytest

from spark_watch.detectors.run import LARGEST_STEP, Quantiles, Run, runs
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Gpu, Sample


def reading(
    ratio: float | None, watts: float = 40.0, hertz: float = 2.4e9, celsius: float = 60.0
) -> Gpu:
    """Return one GPU."""
    return Gpu(
        index=0,
        utilization_ratio=ratio,
        power_watts=watts,
        sm_hertz=hertz,
        temperature_celsius=celsius,
    )


def follow(*stretches: tuple[int, Gpu]) -> Run:
    """Return the run after so many seconds of each reading."""
    run, now = Run(), 0.0
    for seconds, gpu in stretches:
        for _ in range(seconds):
            run.update(now, gpu, 1.0)
            now += 1.0
    return run


def test_quantiles_are_those_of_the_readings() -> None:
    """Of 1,001 values, the quantiles are right to half a bin."""
    values = [random.Random(7).uniform(0.0, 100.0) for _ in range(1)]  # noqa: S311 - a fixed seed
    values += [n / 10 for n in range(1000)]
    quantiles = Quantiles(0.5)
    for value in values:
        quantiles.add(0.0, value, 1.0)
    ordered = sorted(values)
    for share in (0.1, 0.5, 0.9):
        answer = quantiles.quantile(share)
        assert answer == pytest.approx(ordered[int(share * 1001)], abs=0.5)


def test_quantiles_weigh_by_time() -> None:
    """A value that stood for 9 of 10 seconds is the median, though it was read once."""
    quantiles = Quantiles(1.0)
    for value in (10.0, 10.0, 10.0):
        quantiles.add(0.0, value, 0.3)
    quantiles.add(1.0, 50.0, 9.1)
    assert quantiles.quantile(0.5) == 50.5
    assert quantiles.seconds == pytest.approx(10.0)


def test_no_readings_no_answer() -> None:
    """Without a reading there is no quantile, not 0."""
    assert Quantiles(1.0).quantile(0.5) is None


def test_six_hours_are_remembered() -> None:
    """What is older than six hours is forgotten, an hour at a time."""
    quantiles = Quantiles(1.0)
    for minute in range(60):
        quantiles.add(minute * 60.0, 90.0, 60.0)
    for minute in range(60, 7 * 60 + 1):
        quantiles.add(minute * 60.0, 40.0, 60.0)
    assert quantiles.quantile(1.0) == 40.5
    assert 5 * 3600.0 <= quantiles.seconds <= 6 * 3600.0


def test_no_reading_makes_memory_grow() -> None:
    """Whatever is read, there are no more bins than steps."""
    quantiles = Quantiles(0.5)
    noise = random.Random(3)  # noqa: S311 - a fixed seed
    for n in range(50_000):
        quantiles.add(float(n), noise.uniform(-1e9, 1e9), 1.0)
    assert len(quantiles._total) <= LARGEST_STEP + 1
    assert len(quantiles._slices) == 6


@pytest.mark.parametrize(
    ("ratio", "loaded"), [(None, None), (0.0, False), (0.79, False), (0.8, True), (0.96, True)]
)
def test_load(ratio: float | None, loaded: bool | None) -> None:
    """From 80 % on a GPU is loaded; without a reading nobody knows."""
    assert follow((1, reading(ratio))).loaded is loaded


def test_only_load_counts() -> None:
    """Idle power does not lower what the run can do."""
    run = follow((100, reading(0.96, 90.0)), (60, reading(0.0, 11.0)))
    assert run.power.quantile(0.1) == 90.25
    assert run.power.seconds == 100.0


def test_two_idle_minutes_end_a_run() -> None:
    """The next work after them is a run of its own; until then the old one is kept."""
    run = follow((100, reading(0.96, 90.0)), (121, reading(0.0, 11.0)))
    assert (run.number, run.power.quantile(0.5)) == (1, 90.25)
    run = follow((100, reading(0.96, 90.0)), (121, reading(0.0, 11.0)), (5, reading(0.96, 40.0)))
    assert (run.number, run.power.quantile(0.5)) == (2, 40.25)


def test_shorter_rest_does_not() -> None:
    """119 s of rest are a pause, and so are two minutes of a little work."""
    for pause in ((120, reading(0.0)), (300, reading(0.2))):
        run = follow((100, reading(0.96, 90.0)), pause, (5, reading(0.96, 40.0)))
        assert run.number == 1


def test_unread_utilisation_is_no_rest() -> None:
    """Two minutes without a reading of utilisation say nothing."""
    run = follow((100, reading(0.96)), (200, reading(None)), (5, reading(0.96)))
    assert run.number == 1


def test_hole_weighs_no_more_than_what_was_seen() -> None:
    """An hour without a reading adds three and a half intervals."""
    run = Run()
    run.update(0.0, reading(0.96, 90.0), 1.0)
    run.update(3600.0, reading(0.96, 40.0), 1.0)
    assert run.power.seconds == 4.5


def test_worked_out_once_for_all_rules() -> None:
    """Whoever asks second gets the same, and the reading was counted once."""
    timeline = Timeline()
    tick = timeline.place(Sample(t=1e9, gpus=(reading(0.96),)))
    first = runs(tick)
    assert runs(tick)[0] is first[0]
    assert first[0].power.seconds == 1.0
    tick = timeline.place(Sample(t=1e9 + 1, gpus=(reading(0.96),)))
    assert runs(tick)[0].power.seconds == 2.0
    tick = timeline.place(Sample(t=1e9 + 2))
    assert runs(tick)[0].power.seconds == 2.0


def test_restart_of_the_machine_begins_anew() -> None:
    """Another boot knows nothing of the runs before."""
    timeline = Timeline()
    runs(timeline.place(Sample(t=1e9, boot_id="a", gpus=(reading(0.96),))))
    assert runs(timeline.place(Sample(t=1e9 + 60, boot_id="b"))) == {}


def test_two_streams_do_not_mix() -> None:
    """Each timeline has its own runs."""
    one = Timeline().place(Sample(t=1e9, gpus=(reading(0.96),)))
    other = Timeline().place(Sample(t=1e9, gpus=(reading(0.96),)))
    assert runs(one)[0] is not runs(other)[0]
