"""Windows keep what their time says, know how much they have seen, and never grow."""

from __future__ import annotations

import pytest

from spark_watch.detectors.windows import Buckets, Recent, Tally


def test_recent_keeps_its_seconds() -> None:
    """After ten readings a second apart a window of 4 s holds the last five."""
    window = Recent(4.0)
    for now in range(10):
        window.add(float(now), now * 10.0)
    assert list(window) == [(5.0, 50.0), (6.0, 60.0), (7.0, 70.0), (8.0, 80.0), (9.0, 90.0)]
    assert (len(window), window.span_seconds, window.full) == (5, 4.0, True)
    assert window[-1] == (9.0, 90.0)
    assert window.at(6.9) == 60.0
    assert window.at(4.9) is None
    assert window.median() == 70.0


def test_recent_is_not_full_before_its_time() -> None:
    """Three seconds of readings do not fill a window of four."""
    window = Recent(4.0)
    for now in range(4):
        window.add(float(now), 1.0)
    assert not window.full
    assert Recent(4.0).median() is None
    assert Recent(4.0).span_seconds == 0.0


def test_recent_reaches_further_back_on_request() -> None:
    """At long intervals a rule keeps three intervals instead of its few seconds."""
    window = Recent(4.0)
    for now in (0.0, 60.0, 120.0, 180.0, 240.0):
        window.add(now, now, keep_seconds=180.0)
    assert [seconds for seconds, _ in window] == [60.0, 120.0, 180.0, 240.0]


def test_recent_forgets_what_a_long_gap_made_old() -> None:
    """After a gap only the newest reading is left."""
    window = Recent(4.0)
    window.add(0.0, 1.0)
    window.add(600.0, 2.0)
    assert list(window) == [(600.0, 2.0)]
    window.clear()
    assert len(window) == 0


def test_recent_is_bounded_at_any_rate() -> None:
    """A hundred thousand readings in one second stay within the capacity."""
    window = Recent(4.0, capacity=100)
    for n in range(100_000):
        window.add(n * 1e-5, 1.0)
    assert len(window) == 100


def test_bucket_holds_mean_and_extremes() -> None:
    """Of 3, 1 and 5 in one stretch: mean 3, lowest 1, highest 5, first 3, last 5."""
    buckets = Buckets(60.0, 10.0)
    assert buckets.add(100.0, 3.0)
    assert not buckets.add(101.0, 1.0)
    assert not buckets.add(109.0, 5.0)
    (one,) = buckets
    assert (one.start, one.count, one.mean, one.low, one.high, one.first, one.last) == (
        100.0,
        3,
        3.0,
        1.0,
        5.0,
        3.0,
        5.0,
    )


@pytest.mark.parametrize("interval", [0.25, 1.0, 16.0, 60.0])
def test_buckets_are_full_after_their_time(interval: float) -> None:
    """A window of 600 s is full after 95 % of it at any interval, and not before."""
    buckets = Buckets(600.0, 10.0)
    now = 0.0
    while not buckets.full:
        buckets.add(now, 1.0)
        now += interval
    last = now - interval
    assert 570.0 <= last < 570.0 + interval


def test_buckets_forget_what_is_older_than_the_window() -> None:
    """A minute of stretches never reaches further back than a minute and one stretch."""
    buckets = Buckets(60.0, 10.0)
    for now in range(1000):
        buckets.add(float(now), float(now))
    assert buckets[0].start == 930.0
    assert buckets[-1].last == 999.0
    assert 60.0 <= buckets.span_seconds <= 70.0


def test_stretches_of_a_fraction_hold_together() -> None:
    """Readings a hundredth apart in stretches of a tenth make ten stretches a second."""
    buckets = Buckets(10.0, 0.1)
    for n in range(100):
        buckets.add(n / 100 + 0.005, 1.0)
    assert len(buckets) == 10


def test_buckets_are_bounded_over_a_week() -> None:
    """A week of readings every minute leaves no more stretches than the window has."""
    buckets = Buckets(1200.0, 30.0)
    for minute in range(7 * 24 * 60):
        buckets.add(minute * 60.0, 1.0)
    assert len(buckets) <= 42
    buckets.clear()
    assert (len(buckets), buckets.span_seconds, buckets.full) == (0, 0.0, False)


def test_tally_counts_what_the_window_holds() -> None:
    """A count leaves when it is older than the window, not when it is as old."""
    tally = Tally(60.0)
    assert tally.add(0.0, 3) == 3
    assert tally.add(30.0, 4) == 7
    assert tally.add(60.0, 0) == 7
    assert tally.add(61.0, 0) == 4
    assert tally.add(91.0, 0) == 0


def test_tally_is_full_once_the_window_was_watched() -> None:
    """95 % of it must have been read since the beginning, or since it began anew."""
    tally = Tally(60.0)
    assert not tally.full(1000.0)
    tally.add(0.0, 0)
    assert not tally.full(56.0)
    assert tally.full(57.0)
    tally.restart()
    tally.add(100.0, 0)
    assert not tally.full(156.0)
    assert tally.full(157.0)


def test_tally_is_bounded_at_any_rate() -> None:
    """A hundred counts a second for ten windows is kept in parts of a 64th of the window."""
    tally = Tally(60.0)
    for index in range(60_000):
        tally.add(index / 100.0, 1)
    assert len(tally._counts) <= 66
    assert 6000 <= tally.total <= 6000 * 66 / 64
