"""The unit of the clock event counters, on whole timelines worked out by hand."""

from __future__ import annotations

import pytest

from spark_watch.sources.nvml_units import MICROSECONDS, NANOSECONDS, CounterUnit

CAP = "sw_power_cap"
HOT = "sw_thermal_slowdown"


class Box:
    """A GPU whose counter of one reason grows by a share of the time, in a unit of the box.

    Looked at once a second, with the counters read every fifth time, as the source does.
    """

    def __init__(self, unit: float, *, total: int = 0) -> None:
        self.unit = CounterUnit()
        self._per_second = unit
        self._at = 0
        self.total = total

    def run(self, seconds: int, share: float, *stands: str, name: str = CAP) -> float | None:
        """Let time pass and return the unit that is then known."""
        for _ in range(seconds):
            counters = {name: self.total} if self._at % 5 == 0 else None
            self.unit.feed(float(self._at), stands, counters)
            self._at += 1
            self.total += round(share * self._per_second)
        return self.unit.per_second


def test_nothing_is_known_at_the_first_look() -> None:
    """One total, however large, proves nothing: the condition above stays unknown."""
    unit = CounterUnit()
    unit.feed(0.0, (CAP,), {CAP: 10_800 * 10**9})
    assert unit.per_second is None
    assert unit.seconds({CAP: 10_800 * 10**9}) is None


def test_an_idle_box_stays_unknown() -> None:
    """An hour without growth and without a bit leaves the unit open."""
    assert Box(NANOSECONDS, total=27_600_000_000).run(3600, 0.0, "gpu_idle") is None


def test_nanoseconds_at_the_power_cap_are_known_after_one_interval() -> None:
    """Five seconds at the cap are 5e9 counts; microseconds allow 17.5e6 at most (5 x 1.5 + 10)."""
    box = Box(NANOSECONDS)
    assert box.run(5, 1.0, CAP) is None
    assert box.run(1, 1.0, CAP) == NANOSECONDS
    assert box.unit.seconds({CAP: 28_172_167_936}) == {CAP: 28.172167936}


def test_a_small_share_proves_nanoseconds_without_a_bit() -> None:
    """One per cent of five seconds is 50e6 counts, still more than microseconds allow."""
    assert Box(NANOSECONDS).run(6, 0.01) == NANOSECONDS


def test_a_share_that_both_units_allow_proves_nothing() -> None:
    """0.1 % in nanoseconds is a full share in microseconds: without a bit that stood, unknown."""
    assert Box(NANOSECONDS).run(600, 0.001) is None
    assert Box(MICROSECONDS).run(600, 1.0) is None


def test_a_counter_that_moves_in_leaps_proves_nothing() -> None:
    """Microseconds that are only brought up to date every 10 s leap by 10e6 within 5 s."""
    unit = CounterUnit()
    for at in range(0, 600, 5):
        unit.feed(float(at), (), {CAP: at // 10 * 10 * 10**6})
    assert unit.per_second is None


def test_ten_seconds_are_not_nine() -> None:
    """With the counters read at every look the stand is proved at its tenth second."""
    unit = CounterUnit()
    known = []
    for at in range(11):
        unit.feed(float(at), (CAP,), {CAP: at * 10**6})
        known.append(unit.per_second)
    assert known == [None] * 10 + [MICROSECONDS]


def test_a_bit_that_stood_for_ten_seconds_proves_microseconds() -> None:
    """Ten seconds and 10e6 counts with the bit seen every second; not after nine."""
    box = Box(MICROSECONDS)
    assert box.run(10, 1.0, CAP) is None
    assert box.run(1, 1.0, CAP) == MICROSECONDS
    assert box.unit.seconds({CAP: 39_595}) == {CAP: 0.039595}


def test_a_bit_seen_to_fall_once_proves_nothing() -> None:
    """A stand is broken by one look without the bit, and has to be whole again."""
    box = Box(MICROSECONDS)
    for _ in range(20):
        assert box.run(8, 1.0, CAP) is None
        assert box.run(1, 1.0) is None


def test_a_bit_not_looked_at_is_not_a_stand() -> None:
    """Looks a minute apart cannot say that a bit stood in between."""
    unit = CounterUnit()
    for minute in range(60):
        unit.feed(minute * 60.0, (CAP,), {CAP: minute * 60 * 10**6})
    assert unit.per_second is None


def test_a_reason_that_could_not_be_read_breaks_the_stand() -> None:
    """``None`` for the mask is not "the bit still stands"."""
    unit = CounterUnit()
    for second in range(30):
        unit.feed(float(second), None if second % 9 == 8 else (CAP,), {CAP: second * 10**6})
    assert unit.per_second is None


def test_a_counter_that_starts_anew_does_not_unsettle_the_unit() -> None:
    """A driver reload sets the totals to 0: no growth, no proof, and the unit stays."""
    box = Box(NANOSECONDS)
    assert box.run(11, 0.5, CAP) == NANOSECONDS
    box.total = 0
    assert box.run(30, 0.5, CAP) == NANOSECONDS


def test_a_reset_in_a_stand_starts_the_stand_anew() -> None:
    """Microseconds that fall to 0 after eight seconds need another ten."""
    box = Box(MICROSECONDS, total=10**9)
    assert box.run(8, 1.0, CAP) is None
    box.total = 0
    assert box.run(12, 1.0, CAP) is None  # stood since second 10, known at second 20
    assert box.run(1, 1.0, CAP) == MICROSECONDS


def test_a_jump_beyond_any_clock_proves_nothing() -> None:
    """Growth that even nanoseconds do not allow is a broken reading, not a proof."""
    unit = CounterUnit()
    unit.feed(0.0, (), {CAP: 0})
    unit.feed(5.0, (), {CAP: 2**63})
    assert unit.per_second is None


def test_every_counter_may_prove_the_unit_for_all() -> None:
    """The thermal counter is readable in seconds once the power cap has settled the unit."""
    box = Box(NANOSECONDS)
    assert box.run(6, 1.0, CAP) == NANOSECONDS
    assert box.unit.seconds({HOT: 27_600_000_000}) == {HOT: 27.6}


@pytest.mark.parametrize(
    ("first", "second"), [(NANOSECONDS, MICROSECONDS), (MICROSECONDS, NANOSECONDS)]
)
def test_two_proofs_that_contradict_each_other_leave_it_unknown(
    first: float, second: float
) -> None:
    """Counters of two units in one driver are not understood, and nothing is said from then on."""
    unit = CounterUnit()
    known = []
    for begin, name, rate in ((0, CAP, first), (20, HOT, second), (40, CAP, first)):
        for at in range(begin, begin + 20):
            unit.feed(float(at), (CAP, HOT), {name: int(at * rate)})
        known.append(unit.per_second)
    assert known == [first, None, None]
