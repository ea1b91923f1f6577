"""Moments on one timeline: it never goes back, and it knows intervals, holes, sleeps, restarts."""

from __future__ import annotations

import pytest

from spark_watch.detectors.timeline import PARTS, REFERENCE_POOL_BYTES, Cadence, Timeline
from spark_watch.model import GIB, SOURCE_PARTS, Gpu, Machine, Memory, Pressure, Sample

GPUS = (Gpu(index=0),)


def sample(
    t: float,
    *,
    monotonic: float | None = None,
    boottime: float | None = None,
    boot_id: str | None = None,
) -> Sample:
    """Return a sample with one GPU and these clocks."""
    return Sample(
        t=t,
        monotonic_seconds=monotonic,
        boottime_seconds=boottime,
        boot_id=boot_id,
        gpus=GPUS,
    )


def test_monotonic_clock_leads() -> None:
    """Where the monotonic clock is there, the wall clock does not move the timeline."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=50.0))
    tick = timeline.place(sample(1e9 + 7200.0, monotonic=51.0))
    assert tick.now == 1.0
    assert tick.since_last_seconds == 1.0
    assert tick.wall_step_seconds == 7199.0


def test_wall_clock_leads_without_a_monotonic_one() -> None:
    """A trace with ``t`` alone is placed by it, and its gaps are gaps."""
    timeline = Timeline()
    timeline.place(sample(1e9))
    assert timeline.place(sample(1e9 + 600.0)).now == 600.0


def test_wall_time_going_back_is_noted_never_refused() -> None:
    """An hour back in ``t`` alone is one interval forward on the timeline, with the step noted."""
    timeline = Timeline(interval_seconds=5.0)
    timeline.place(sample(1e9))
    tick = timeline.place(sample(1e9 - 3600.0))
    assert tick.now == 5.0
    assert tick.wall_step_seconds == -3600.0
    assert not tick.rebooted
    assert timeline.place(sample(1e9 - 3595.0)).now == 10.0


def test_wall_time_going_back_under_a_monotonic_clock_is_noted() -> None:
    """With a monotonic clock the step is the difference of the two."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=50.0))
    tick = timeline.place(sample(1e9 - 99.0, monotonic=51.0))
    assert (tick.now, tick.wall_step_seconds) == (1.0, -100.0)


def test_slewing_is_no_step() -> None:
    """Milliseconds between the two clocks are not noted: 0.4 s in one second is slewing."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=50.0))
    assert timeline.place(sample(1e9 + 1.4, monotonic=51.0)).wall_step_seconds == 0.0


def test_two_samples_of_one_moment_go_forward() -> None:
    """A second sample with the same ``t`` is one interval later and no step."""
    timeline = Timeline(interval_seconds=2.0)
    timeline.place(sample(1e9))
    tick = timeline.place(sample(1e9))
    assert (tick.now, tick.wall_step_seconds) == (2.0, 0.0)


def test_suspend_does_not_pass_on_the_timeline() -> None:
    """Eight hours asleep are seen in CLOCK_BOOTTIME alone: no gap, no step, and noted."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=50.0, boottime=50.0))
    tick = timeline.place(sample(1e9 + 28801.0, monotonic=51.0, boottime=28851.0))
    assert tick.now == 1.0
    assert tick.suspended_seconds == 28800.0
    assert tick.wall_step_seconds == 0.0
    assert not tick.rebooted


def test_restart_of_the_machine() -> None:
    """Another boot id is a restart; the wall clock spans the two boots."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=5000.0, boot_id="a"))
    tick = timeline.place(sample(1e9 + 90.0, monotonic=20.0, boot_id="b"))
    assert tick.rebooted
    assert tick.now == 90.0
    assert not timeline.place(sample(1e9 + 91.0, monotonic=21.0, boot_id="b")).rebooted


def test_restart_is_not_missed_where_the_id_was_unreadable_for_a_while() -> None:
    """The id is held against the last one known, not against the sample before."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=5000.0, boot_id="a"))
    timeline.place(sample(1e9 + 1.0, monotonic=5001.0))
    assert timeline.place(sample(1e9 + 90.0, boot_id="b")).rebooted


def test_restart_without_ids_is_a_monotonic_clock_that_goes_back() -> None:
    """An exported trace has no ids; the restart is said once, also when an id turns up later."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=5000.0, boot_id="a"))
    assert timeline.place(sample(1e9 + 90.0, monotonic=20.0)).rebooted
    assert not timeline.place(sample(1e9 + 91.0, monotonic=21.0, boot_id="b")).rebooted


def test_same_id_is_the_same_boot_whatever_the_clock_says() -> None:
    """Samples of one boot out of order are not a restart."""
    timeline = Timeline()
    timeline.place(sample(1e9, monotonic=50.0, boot_id="a"))
    tick = timeline.place(sample(1e9 + 1.0, monotonic=40.0, boot_id="a"))
    assert (tick.now, tick.rebooted) == (1.0, False)


def test_interval_is_the_headers_until_three_are_measured() -> None:
    """The header says 10 s, the samples come every 2: the third gap decides."""
    timeline = Timeline(interval_seconds=10.0)
    intervals = [timeline.place(sample(1e9 + 2.0 * n)).interval("gpus") for n in range(5)]
    assert intervals == [10.0, 10.0, 10.0, 2.0, 2.0]


def test_parts_have_their_own_pace() -> None:
    """A part read every tenth sample has ten times the interval, and is stale after three of it."""
    timeline = Timeline(interval_seconds=1.0)
    for n in range(60):
        pressure = Pressure() if n % 20 == 0 else None
        tick = timeline.place(Sample(t=1e9 + n, gpus=GPUS, pressure=pressure))
    assert tick.interval("gpus") == 1.0
    assert tick.stale_after("gpus") == 30.0
    timeline.place(Sample(t=1e9 + 60.0, pressure=Pressure()))
    assert tick.interval("pressure") == 20.0
    assert tick.stale_after("pressure") == 60.0


def test_one_hole_does_not_change_the_interval() -> None:
    """The median of nine gaps is not moved by one of them."""
    pace = Cadence(1.0)
    for moment in (0.0, 1.0, 2.0, 3.0, 603.0):
        pace.see(moment)
    assert pace.interval_seconds == 1.0


@pytest.mark.parametrize(("gap", "hole"), [(3.4, False), (3.6, True)])
def test_hole_is_more_than_three_intervals_and_a_half(gap: float, hole: bool) -> None:
    """Jitter of three missed readings is no hole, more is."""
    timeline = Timeline()
    for n in range(6):
        timeline.place(sample(1e9 + n))
    tick = timeline.place(sample(1e9 + 5.0 + gap))
    assert tick.hole("gpus") is hole
    assert not timeline.place(sample(1e9 + 6.0 + gap)).hole("gpus")


def test_every_source_fills_a_part_with_a_pace() -> None:
    """No source's part lacks an interval, so that a lost reading of any can be stale."""
    assert set(SOURCE_PARTS.values()) <= set(PARTS)


def test_levels_in_gib_scale_with_the_pool() -> None:
    """On half the pool a level of 8 GiB is one of 4 GiB."""
    half = round(REFERENCE_POOL_BYTES / 2)
    tick = Timeline().place(Sample(t=1e9, memory=Memory(total_bytes=half)))
    assert tick.gib(8.0) == pytest.approx(4 * GIB, rel=1e-9)


def test_pool_is_the_headers_until_it_is_read() -> None:
    """The header's pool scales levels until meminfo says what it is."""
    timeline = Timeline(machine=Machine(memory_total_bytes=round(REFERENCE_POOL_BYTES / 2)))
    assert timeline.place(sample(1e9)).scale == pytest.approx(0.5)
    memory = Memory(total_bytes=round(REFERENCE_POOL_BYTES))
    assert timeline.place(Sample(t=1e9 + 1, memory=memory)).scale == pytest.approx(1.0)


def test_machine_of_a_sample_replaces_the_headers() -> None:
    """What is known later is known better; before anything is known nothing is claimed."""
    timeline = Timeline()
    assert timeline.place(sample(1e9)).is_gb10 is None
    known = Sample(t=1e9 + 1, machine=Machine(gpu_name="NVIDIA GB10"))
    assert timeline.place(known).is_gb10 is True
    assert timeline.place(sample(1e9 + 2)).is_gb10 is True
    other = Sample(t=1e9 + 3, machine=Machine(gpu_name="NVIDIA H200"))
    assert timeline.place(other).is_gb10 is False
