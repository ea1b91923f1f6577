"""What stays on the page between two readings, and what leaves it."""

from __future__ import annotations

from spark_watch.export.snapshot import Latest, Marks
from spark_watch.model import GIB, Cpu, Gpu, Memory, Sample, Zone


def sample(t: float, **parts: object) -> Sample:
    """Return a sample with those parts."""
    return Sample(t=t, monotonic_seconds=t, **parts)  # type: ignore[arg-type]  # parts by name


def zones(celsius: float) -> tuple[Zone, ...]:
    """Return one zone at that temperature."""
    return (Zone(zone=0, type="acpitz", temperature_celsius=celsius),)


def test_a_part_that_was_not_due_is_filled_in() -> None:
    """Between two readings of a slow source its last value stands."""
    latest = Latest()
    latest.update(sample(0.0, zones=zones(50.0)), 0.0)
    merged = latest.merged(sample(9.0), 9.0)
    assert merged.zones == zones(50.0)
    assert merged.t == 9.0


def test_a_part_that_stays_away_leaves_the_page() -> None:
    """A value of 30 s stands, one of 31 s is gone: nobody knows it any more."""
    latest = Latest()
    latest.update(sample(0.0, zones=zones(50.0)), 0.0)
    assert latest.merged(sample(30.0), 30.0).zones is not None
    assert latest.merged(sample(30.5), 30.5).zones is None


def test_a_slow_part_has_three_of_its_own_intervals() -> None:
    """What comes every 20 s stands for 60 s."""
    latest = Latest()
    for t in (0.0, 20.0, 40.0):
        latest.update(sample(t, zones=zones(t)), t)
    assert latest.merged(sample(100.0), 100.0).zones == zones(40.0)
    assert latest.merged(sample(100.5), 100.5).zones is None


def test_an_outage_is_no_pace() -> None:
    """After ten minutes away and one reading, a part is stale after 30 s again, not 30 min."""
    latest = Latest()
    for t in (0.0, 1.0, 2.0, 602.0):
        latest.update(sample(t, cpu=Cpu(load1=t)), t)
    assert latest.merged(sample(632.0), 632.0).cpu is not None
    assert latest.merged(sample(632.5), 632.5).cpu is None


def test_counters_that_come_seldom_stand_in_between() -> None:
    """Energy and event times, read every few seconds, stay beside the newer power."""
    latest = Latest()
    times = {"sw_power_cap": 0.0}
    latest.update(sample(0.0, gpus=(Gpu(index=0, energy_joules=5.0, event_seconds=times),)), 0.0)
    now = sample(1.0, gpus=(Gpu(index=0, power_watts=20.0),))
    latest.update(now, 1.0)
    assert latest.merged(now, 1.0).gpus == (
        Gpu(index=0, power_watts=20.0, energy_joules=5.0, event_seconds=times),
    )


def test_a_counter_at_zero_replaces_the_older_one() -> None:
    """After a restart of the driver 0 J is a reading, and no reason had any time."""
    latest = Latest()
    old = Gpu(index=0, energy_joules=5.0, event_seconds={"sw_power_cap": 9.0})
    new = Gpu(index=0, energy_joules=0.0, event_seconds={})
    for t, gpu in ((0.0, old), (1.0, new)):
        latest.update(sample(t, gpus=(gpu,)), t)
    assert latest.merged(sample(1.0, gpus=(new,)), 1.0).gpus == (new,)


def test_a_counter_that_stays_away_leaves_the_page() -> None:
    """A counter that was last read 31 s ago is gone although its GPU still answers."""
    latest = Latest()
    latest.update(sample(0.0, gpus=(Gpu(index=0, energy_joules=5.0),)), 0.0)
    shown = []
    for t in (15.0, 30.0, 31.0):
        now = sample(t, gpus=(Gpu(index=0, power_watts=t),))
        latest.update(now, t)
        shown.append([gpu.energy_joules for gpu in latest.merged(now, t).gpus or ()])
    assert shown == [[5.0], [5.0], [None]]


def test_water_marks_reach_back_a_minute() -> None:
    """The extremes of the last 60 s stand, those before do not; a GPU that has gone has none."""
    latest = Latest()
    for t, gib, watts in ((0.0, 90, 10.0), (1.0, 2, 99.0), (30.0, 50, 20.0), (61.0, 40, None)):
        gpus = (Gpu(index=0, power_watts=watts),)
        latest.update(sample(t, memory=Memory(available_bytes=gib * GIB), gpus=gpus), t)
    assert latest.marks(61.0) == {
        "memory_available_bytes": {"": Marks(low=2 * GIB, high=50 * GIB)},
        "gpu_power_watts": {"0": Marks(low=20.0, high=99.0)},
    }
    assert latest.marks(90.5) == {
        "memory_available_bytes": {"": Marks(low=40 * GIB, high=40 * GIB)},
    }
