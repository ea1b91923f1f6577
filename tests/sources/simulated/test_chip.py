"""Power, heat and clock of the simulated chip lie where owners of real ones measured them."""

import random

import pytest

from spark_watch.sources.simulated.chip import MHZ, Chip, Work


@pytest.fixture
def chip() -> Chip:
    """A unit in order, at rest with nothing resident."""
    return Chip(random.Random(3))  # noqa: S311 - noise, not a secret


@pytest.mark.parametrize(
    ("work", "resident", "watts", "megahertz", "celsius"),
    [
        pytest.param(None, False, (3, 6), (208, 208), (36, 45), id="deep-idle"),
        pytest.param(None, True, (10, 13), (2398, 2411), (40, 50), id="resident"),
        pytest.param(Work(40.0), True, (37, 44), (2460, 2515), (54, 62), id="decode"),
        pytest.param(Work(90.0, sag=0.07), True, (85, 95), (2240, 2330), (74, 84), id="prefill"),
        pytest.param(Work(99.0, sag=0.01), True, (95, 102), (2400, 2460), (78, 88), id="plateau"),
    ],
)
def test_an_hour_of_work_settles_where_it_was_measured(  # noqa: PLR0917 - a row of a table
    chip: Chip,
    work: Work | None,
    resident: bool,
    watts: tuple[int, int],
    megahertz: tuple[int, int],
    celsius: tuple[int, int],
) -> None:
    """After an hour, power, clock and die temperature lie in the recorded range of that work."""
    chip.resident = resident
    if work is not None:
        chip.run(1, work)
    for _ in range(720):
        chip.advance(5.0)
    gpu = chip.reading()
    assert gpu.power_watts is not None
    assert gpu.sm_hertz is not None
    assert gpu.temperature_celsius is not None
    assert watts[0] <= gpu.power_watts <= watts[1]
    assert megahertz[0] <= gpu.sm_hertz / MHZ <= megahertz[1]
    assert celsius[0] <= gpu.temperature_celsius <= celsius[1]


def test_settling_is_where_an_hour_leads(chip: Chip) -> None:
    """``settle`` gives the temperature that the physics reaches by itself."""
    chip.run(1, Work(60.0))
    for _ in range(1_440):
        chip.advance(5.0)
    reached = chip.die_celsius
    chip.settle()
    assert chip.die_celsius == pytest.approx(reached, abs=0.3)


def test_heat_comes_in_three_steps(chip: Chip) -> None:
    """Load shows on the die in a second, and most of it only in minutes, as recordings do."""
    chip.resident = True
    chip.settle()
    start = chip.die_celsius
    chip.run(1, Work(90.0))
    for _ in range(3):
        chip.advance(1.0)
    soon = chip.die_celsius - start
    for _ in range(1_200):
        chip.advance(1.0)
    late = chip.die_celsius - start
    assert 5 < soon < 0.4 * late
    assert late == pytest.approx(0.42 * (90.0 - 11.2), abs=2.0)


def test_the_hottest_zone_leads_the_die_by_ten_degrees_under_load(chip: Chip) -> None:
    """Seven ``acpitz`` zones; the hottest is 6 to 12 C above the die at 90 W (maci0's toolkit)."""
    chip.run(1, Work(90.0))
    chip.settle()
    zones = chip.zones()
    temperatures = [zone.temperature_celsius for zone in zones]
    assert [zone.zone for zone in zones] == list(range(7))
    assert {zone.type for zone in zones} == {"acpitz"}
    hottest = max(value for value in temperatures if value is not None)
    assert 6 < hottest - chip.die_celsius < 12


def test_short_air_runs_the_slowdown_counter_and_costs_clock(chip: Chip) -> None:
    """Above the trip point the counter takes its share of the time, and never more than all."""
    chip.run(1, Work(90.0, sag=0.06))
    chip.settle()
    before = chip.reading()
    chip.kelvin_per_watt = 0.75
    for _ in range(1_200):
        chip.advance(1.0)
    after = chip.reading()
    assert before.event_seconds is not None
    assert after.event_seconds is not None
    grown = after.event_seconds["sw_thermal_slowdown"] - before.event_seconds["sw_thermal_slowdown"]
    assert 0.1 * 1_200 < grown < 1_200
    assert before.sm_hertz is not None
    assert after.sm_hertz is not None
    assert after.sm_hertz < 0.9 * before.sm_hertz
    assert chip.board_celsius < 104.8


def test_a_stuck_chip_looks_well_at_rest(chip: Chip) -> None:
    """Stuck, it idles at 2.4 GHz; under load it reads 700 MHz, 96 % and under 25 W, no bit set.

    Blackwellboy/model-serving-minefield trap 124 and hasso5703/dgx-spark-qwen38#8.
    """
    chip.resident = True
    chip.stuck_hertz = 700 * MHZ
    chip.settle()
    idle = chip.reading()
    chip.run(1, Work(40.0))
    for _ in range(10):
        chip.advance(1.0)
    loaded = chip.reading()
    assert idle.sm_hertz is not None
    assert idle.sm_hertz > 2_390 * MHZ
    assert loaded.sm_hertz is not None
    assert 650 * MHZ < loaded.sm_hertz < 750 * MHZ
    assert loaded.power_watts is not None
    assert 12 < loaded.power_watts < 25
    assert loaded.utilization_ratio is not None
    assert loaded.utilization_ratio >= 0.94
    assert loaded.event_reasons == ()


def test_a_clock_lock_is_never_exceeded(chip: Chip) -> None:
    """Locked at 2184 MHz, no reading lies above it, at rest or loaded."""
    chip.locked_hertz = 2_184 * MHZ
    chip.resident = True
    chip.settle()
    clocks = [chip.reading().sm_hertz or 0.0]
    chip.run(1, Work(32.0))
    for _ in range(50):
        chip.advance(1.0)
        clocks.append(chip.reading().sm_hertz or 0.0)
    assert max(clocks) <= 2_184 * MHZ
    assert min(clocks) > 2_100 * MHZ


def test_energy_is_the_integral_of_power(chip: Chip) -> None:
    """A minute at 40 W adds 2.4 kJ."""
    chip.run(1, Work(40.0))
    chip.settle()
    before = chip.reading().energy_joules
    for _ in range(60):
        chip.advance(1.0)
    after = chip.reading().energy_joules
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(60 * 40.0, rel=0.02)


def test_readings_come_in_the_steps_of_the_sensors(chip: Chip) -> None:
    """Whole degrees, hundredths of a watt, whole per cent, clocks that are multiples of 6.5 MHz."""
    chip.run(1, Work(45.0))
    for _ in range(20):
        chip.advance(1.0)
        gpu = chip.reading()
        assert gpu.temperature_celsius == int(gpu.temperature_celsius or 0)
        assert gpu.power_watts == round(gpu.power_watts or 0, 2)
        assert gpu.utilization_ratio == round(gpu.utilization_ratio or 0, 2)
        assert (gpu.sm_hertz or 0) / MHZ in {int(6.5 * step) for step in range(460)}


def test_short_events_show_in_the_counters_alone(chip: Chip) -> None:
    """A slowdown between two readings adds to the counter of its kind and to nothing else."""
    before = dict(chip.reading().event_seconds or {})
    chip.count_slowdown(software=0.25, hardware=0.5)
    after = dict(chip.reading().event_seconds or {})
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown == {"sw_thermal_slowdown": 0.25, "hw_thermal_slowdown": 0.5}
    assert chip.reading().event_reasons == ("gpu_idle",)
