"""Timelines of ``board_hot``: the hottest board zone, and the GPU slowed down with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g4_power.board_hot import BoardHot
from spark_watch.model import Gpu, Machine, Sample
from spark_watch.settings.g4 import BoardHotSettings
from tests.detectors.g4.gpus import at, gpu, lost
from tests.detectors.timelines import play, squeeze

HARDWARE = "hw_thermal_slowdown"
BUSY = gpu(96, 2400)


def rule(**settings_: float) -> BoardHot:
    """Return the condition with its defaults, or with some of them replaced."""
    return BoardHot(BoardHotSettings(**settings_))


def board(second: float, celsius: float, *gpus: Gpu) -> Sample:
    """Return a sample whose hottest board zone is the second of three, beside a hot NVMe."""
    zones = [("acpitz", celsius - 4), ("acpitz", celsius), ("acpitz", celsius - 9), ("nvme", 99.0)]
    return at(second, *gpus, zones=zones)


def boards(celsius: Sequence[float | None], interval: float = 1.0) -> list[Sample]:
    """Return a sample for each temperature, evenly spaced; ``None`` is a lost reading."""
    return [
        lost(n * interval, "thermal") if one is None else board(n * interval, one)
        for n, one in enumerate(celsius)
    ]


@pytest.mark.parametrize(
    ("celsius", "expected"),
    [
        pytest.param([85.0] * 60, ".60", id="healthy"),
        pytest.param(([95.8] + [92.5] * 59) * 5, "?1 .299", id="single-samples-of-95.8"),
        pytest.param([80.0] * 2 + [95.0] * 40, ".32 w10", id="fault"),
        pytest.param([80.0] * 2 + [95.0] * 30 + [80.0], ".33", id="one-tick-short"),
        pytest.param([80.0] * 2 + [101.0] * 20, ".12 c10", id="near-the-cut-off"),
        pytest.param([80.0] * 2 + [101.0] * 10 + [80.0], ".13", id="one-tick-short-of-critical"),
        pytest.param([80.0] + [95.0] * 29 + [93.9] + [95.0] * 29, ".60", id="dip"),
        pytest.param([80.0] + [95.0] * 40 + [92.0] * 200, ".31 w210", id="between-leave-and-enter"),
        pytest.param([80.0] + [95.0] * 40 + [85.0] * 40, ".31 w40 .10", id="cools"),
        pytest.param([80.0] + [95.0] * 40 + [85.0] * 30 + [92.0], ".31 w41", id="almost-cooled"),
        pytest.param([80.0] + [101.0] * 20 + [95.0] * 60, ".11 c70", id="critical-until-below-94"),
        pytest.param(
            # critical is left after 30 s below 94, and warning then stands between its levels
            [80.0] + [101.0] * 40 + [92.0] * 60,
            ".11 c60 w30",
            id="critical-to-warning",
        ),
        pytest.param([80.0] + [95.0] * 40 + [None] * 40, ".31 w40 ?10", id="lost-reading"),
        pytest.param([95.0] * 40, "?30 w10", id="warm-up"),
    ],
)
def test_timeline(celsius: Sequence[float | None], expected: str) -> None:
    """The state at every second is the one worked out beside the temperatures."""
    states, _ = play(rule(), boards(celsius))
    assert squeeze(states) == expected


def test_sentence_at_three_in_the_morning() -> None:
    """The event names the zone, its temperature, the level and for how long."""
    _, events = play(rule(), boards([80.0] + [101.2] * 40))
    assert events[-1].sentence == (
        "Board at 101.2 C (zone 1): near the cut-off, hot for 10 s (level 100 C, or less when "
        "slowed down)."
    )


def test_hot_while_hardware_slows_down_is_critical() -> None:
    """At 95 C a growing hardware counter makes it critical in ten seconds."""
    samples = [
        board(n, 80.0 if n < 20 else 95.0, gpu(96, 2400, seconds={HARDWARE: max(0.0, n - 19.0)}))
        for n in range(40)
    ]
    states, events = play(rule(), samples)
    assert squeeze(states) == ".30 c10"
    assert "hardware slowdown counted" in events[-1].sentence


def test_hardware_bit_counts_as_well() -> None:
    """Without a counter the bit that stands says the same."""
    slowed = gpu(96, 2400, reasons=("hw_slowdown", HARDWARE))
    samples = [board(n, 80.0 if n < 20 else 95.0, slowed) for n in range(40)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".30 c10"


def test_other_bits_say_nothing_of_heat() -> None:
    """A power cap, or a hardware slowdown at a change of power state, is not heat."""
    other = gpu(96, 2400, reasons=("sw_power_cap", "hw_slowdown"), seconds={HARDWARE: 44.0})
    samples = [board(n, 80.0 if n < 20 else 95.0, other) for n in range(70)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".50 w20"


def test_hot_while_the_clock_sags_is_critical() -> None:
    """At 95 C a clock of 2000 of the run's usual 2400 MHz makes it critical in ten seconds."""
    samples = [board(n, 80.0, BUSY) for n in range(100)]
    samples += [board(n, 95.0, gpu(96, 2000)) for n in range(100, 120)]
    states, events = play(rule(), samples)
    assert squeeze(states) == ".110 c10"
    assert "clock well below this run's median" in events[-1].sentence


@pytest.mark.parametrize(
    "sagging",
    [
        pytest.param(gpu(96, 2060), id="14-per-cent-lower"),
        pytest.param(gpu(20, 1500), id="not-loaded"),
    ],
)
def test_clock_that_says_nothing(sagging: Gpu) -> None:
    """A clock within 15 % of the run's median, or one without load, is not slowed down."""
    samples = [board(n, 80.0, BUSY) for n in range(100)]
    samples += [board(n, 95.0, sagging) for n in range(100, 150)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".130 w20"


def test_median_of_less_than_a_minute_says_nothing() -> None:
    """Half a minute into a run a clock has nothing to be held against."""
    samples = [board(n, 80.0, BUSY) for n in range(30)]
    samples += [board(n, 95.0, gpu(96, 2000)) for n in range(30, 55)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".55"


def test_locked_clock_is_not_slowed_down() -> None:
    """A run at 2000 MHz from its start is held against itself."""
    samples = [board(n, 95.0, gpu(96, 2000)) for n in range(100)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == "?30 w70"


def test_seventeen_hours_hot_with_a_flat_clock() -> None:
    """Single samples of up to 95.8 C among 93 C never raise anything."""
    celsius = [95.8 if n % 97 == 0 else 94.2 if n % 31 == 0 else 92.8 for n in range(12_240)]
    samples = [board(5.0 * n, one, gpu(96, 2380)) for n, one in enumerate(celsius)]
    states, _ = play(rule(), samples, interval_seconds=5.0)
    assert set(states[1:]) == {"."}


def test_only_zones_of_the_board_count() -> None:
    """Without an ``acpitz`` zone nothing can be said, however hot the rest is."""
    states, _ = play(rule(), [at(n, zones=[("nvme", 99.0), ("mlx5", 101.0)]) for n in range(40)])
    assert squeeze(states) == "?40"


def test_zone_without_a_value_is_left_out() -> None:
    """One unreadable zone does not hide the others; all unreadable is a lost reading."""
    samples = [at(n, zones=[("acpitz", None), ("acpitz", 70.0)]) for n in range(5)]
    samples += [at(n, zones=[("acpitz", None), ("acpitz", None)]) for n in range(5, 45)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".35 ?10"


@pytest.mark.parametrize("interval", [0.25, 0.5, 1.0, 5.0, 10.0, 16.0, 60.0])
def test_every_interval(interval: float) -> None:
    """Thirty seconds at any interval, or three samples where those take longer."""
    states, _ = play(rule(), boards([80.0] + [95.0] * 130, interval), interval_seconds=interval)
    held = {16.0: 2, 60.0: 2}.get(interval, round(30 / interval))
    assert squeeze(states) == f".{1 + held} w{130 - held}"


def test_zones_read_less_often_than_the_gpu() -> None:
    """Zones every ten seconds beside a GPU every second: the state stands in between."""
    samples = [
        board(n, 80.0 if n < 50 else 95.0, BUSY) if n % 10 == 0 else at(n, BUSY) for n in range(100)
    ]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".80 w20"


def test_long_gap_starts_the_hold_anew() -> None:
    """Twenty hot seconds before and after ten minutes of nothing are no thirty."""
    samples = [board(0, 80.0), *(board(n, 95.0) for n in range(1, 21))]
    samples += [board(n, 95.0) for n in range(620, 640)]
    states, _ = play(rule(), samples)
    assert squeeze(states) == ".41"


def test_restart_of_the_machine_starts_anew() -> None:
    """After a power-off by heat the first cool reading is ok."""
    hot = [at(n, boot_id="a", zones=[("acpitz", 95.0)]) for n in range(40)]
    cool = [at(90 + n, boot_id="b", zones=[("acpitz", 60.0)]) for n in range(5)]
    states, _ = play(rule(), hot + cool)
    assert squeeze(states) == "?30 w10 .5"


def test_another_unit_is_not_judged() -> None:
    """Zones of another board have other limits."""
    states, _ = play(rule(), boards([101.0] * 40), machine=Machine(gpu_name="NVIDIA H200"))
    assert squeeze(states) == "?40"


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    celsius=st.lists(st.floats(20.0, 104.0), min_size=1, max_size=90),
    level=st.floats(92.0, 100.0),
    lower=st.floats(0.0, 1.0),
)
def test_looser_level_never_fires_later(celsius: list[float], level: float, lower: float) -> None:
    """With a lower level something is raised no later."""

    def first(warning: float) -> int:
        states, _ = play(rule(warning_celsius=warning), boards(celsius))
        return min((n for n, state in enumerate(states) if state in "wc"), default=999)

    assert first(level - lower) <= first(level)
