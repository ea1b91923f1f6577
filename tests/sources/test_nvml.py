"""The thread that reads NVML, and that nothing else ever waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pynvml
import pytest

from spark_watch.sources.nvml import NvmlReading, NvmlSource
from tests.stand.nvml_stand import VARIABLE, NvmlStand

POWER = "nvmlDeviceGetPowerUsage"
FAST = 0.01
DEADLINE_SECONDS = 10.0


def until(true: Callable[[], object]) -> None:
    """Return as soon as it is true; the threads of this file do the work meanwhile."""
    patience = threading.Event()
    end = time.monotonic() + DEADLINE_SECONDS
    while not true():
        assert time.monotonic() < end, "it did not come true in ten seconds"
        patience.wait(0.002)


@pytest.fixture
def source(gb10: NvmlStand) -> Iterator[NvmlSource]:
    """A source that reads a hundred times a second, stopped at the end whatever the test did."""
    source = NvmlSource(period_seconds=FAST)
    yield source
    gb10.release()
    source.close(DEADLINE_SECONDS)


def powers(reading: NvmlReading | None) -> list[float | None]:
    """Return the power of every GPU in a reading."""
    return [gpu.power_watts for gpu in reading.gpus or ()] if reading else []


def test_before_it_is_started_nothing_is_known(source: NvmlSource, gb10: NvmlStand) -> None:
    """No reading, nothing pending, and NVML is not touched."""
    assert source.latest() is None
    assert source.pending_seconds(time.monotonic()) is None
    assert gb10.calls("nvmlInitWithFlags") == 0


def test_readings_follow_one_another(source: NvmlSource, gb10: NvmlStand) -> None:
    """The first comes on its own, and a changed value is in a later one, another object."""
    source.start()
    first = source.wait(DEADLINE_SECONDS)
    assert powers(first) == [13.5]
    gb10.gpus[0].power_milliwatts = 42_000
    until(lambda: powers(source.latest()) == [42.0])
    assert source.latest() is not first
    assert source.calls > 10
    assert source.errors == {}
    until(lambda: source.last_duration_seconds is not None)


def test_a_call_that_is_out_blocks_nobody(source: NvmlSource, gb10: NvmlStand) -> None:
    """In a stall of minutes the last reading stays at hand and one call is out, told as late."""
    source.start()
    source.wait(DEADLINE_SECONDS)
    gb10.stall(POWER, 600.0)
    until(lambda: gb10.stalled)
    kept, calls, now = source.latest(), source.calls, time.monotonic()
    assert powers(kept) == [13.5]
    assert source.pending_seconds(now + 0.5) is None
    later = source.pending_seconds(now + 600.0)
    assert later is not None
    assert 600.0 <= later < 600.0 + DEADLINE_SECONDS
    assert (gb10.stalled, source.calls, source.latest()) == (1, calls, kept)
    gb10.gpus[0].power_milliwatts = 50_000
    gb10.release()
    until(lambda: powers(source.latest()) == [50.0])
    assert source.pending_seconds(time.monotonic()) is None


def test_a_reading_is_no_newer_than_its_oldest_value(source: NvmlSource, gb10: NvmlStand) -> None:
    """A turn that stalls half way is stamped with its begin, and so looks as old as it is."""
    gb10.stall("nvmlDeviceGetUtilizationRates", 600.0)
    source.start()
    until(lambda: gb10.stalled)
    stalled_at = time.monotonic()
    gb10.release()
    reading = source.wait(DEADLINE_SECONDS)
    assert reading is not None
    assert reading.at_monotonic <= stalled_at


def test_a_start_that_hangs_is_late_too(source: NvmlSource, gb10: NvmlStand) -> None:
    """The very first call may be the one that does not come back."""
    gb10.stall("nvmlInitWithFlags", 600.0)
    source.start()
    until(lambda: gb10.stalled)
    assert source.wait(0.0) is None
    assert source.pending_seconds(time.monotonic() + 61.0) is not None


def test_closing_gives_nvml_back(source: NvmlSource, gb10: NvmlStand) -> None:
    """A free thread ends at once, after it has shut NVML down."""
    source.start()
    source.wait(DEADLINE_SECONDS)
    source.close(DEADLINE_SECONDS)
    assert gb10.calls("nvmlShutdown") == 1
    calls = source.calls
    source.close()
    assert source.calls == calls


def test_closing_does_not_wait_for_a_stuck_driver(source: NvmlSource, gb10: NvmlStand) -> None:
    """It returns after its timeout, leaves NVML as it is, and the thread cannot keep us alive."""
    source.start()
    source.wait(DEADLINE_SECONDS)
    gb10.stall(POWER, 600.0)
    until(lambda: gb10.stalled)
    begun = time.monotonic()
    source.close(0.05)
    assert time.monotonic() - begun < DEADLINE_SECONDS
    assert gb10.calls("nvmlShutdown") == 0
    [thread] = [thread for thread in threading.enumerate() if thread.name == "nvml"]
    assert thread.daemon
    gb10.release()
    until(lambda: gb10.calls("nvmlShutdown") == 1)


def test_closing_before_the_start_is_allowed(gb10: NvmlStand) -> None:
    """A source that was never started has nothing to stop."""
    NvmlSource().close()
    assert gb10.calls("nvmlShutdown") == 0


def test_the_thread_outlives_what_nobody_expected(
    source: NvmlSource, gb10: NvmlStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of our own is a lost session with its name in each reading, until the next begin."""
    monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: 1 // 0)
    source.start()
    first = source.wait(DEADLINE_SECONDS)
    until(lambda: source.latest() is not first)
    for reading in (first, source.latest()):
        assert reading is not None
        assert [failure.reason for failure in reading.failures] == ["unexpected_zerodivisionerror"]
        assert reading.gpus is None
    monkeypatch.undo()
    monkeypatch.setenv(VARIABLE, str(gb10.path))
    until(lambda: powers(source.latest()) == [13.5])


def test_other_threads_keep_their_stack(source: NvmlSource) -> None:
    """The small stack is for this thread alone."""
    usual = threading.stack_size(2 << 20)
    source.start()
    assert threading.stack_size(usual) == 2 << 20
