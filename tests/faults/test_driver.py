"""The driver stalls, fails in every way it has a code for, goes away and comes back as another."""

from __future__ import annotations

import pytest

from tests.faults.box import FaultBox
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration

DRIVER_NOT_LOADED = 9
INIT = "nvmlInitWithFlags"
GPU_IS_LOST = 15
FOR_GOOD = frozenset({3, 13, 25, 26})
"""Codes by which a driver says that it does not have a function: an answer, no failure."""

RETRY_SECONDS = 80.0
"""A driver that says its library is not there is asked again after a minute."""

SOME = (1, 2, 10, 15, 20, 999)
EVERY = tuple(number for number in (*range(1, 31), 999) if number not in FOR_GOOD)


def stalls(box: FaultBox, seconds: float) -> None:
    """Let a call be out for that long, and see what the page says meanwhile and after it."""
    with box.daemon() as daemon:
        until(lambda: daemon.metric('gpu_power_watts{gpu="0"}'))
        box.stand.stall("nvmlDeviceGetPowerUsage", seconds + 3600.0)
        state = 'condition_state{condition="driver_stalled",gotcha="G3",state="%s"}'
        wanted = state % ("critical" if seconds > 60.0 else "warning")
        pending = 'source_pending_seconds{source="nvml"}'
        until(lambda: (daemon.metric(pending) or 0.0) >= seconds, seconds + PATIENCE_SECONDS)
        assert daemon.metric(wanted) == 1.0
        assert daemon.metric('source_success{source="nvml"}') == 0.0
        assert daemon.metric("memory_available_bytes") is not None
        assert daemon.metric("recording_active") == 1.0
        box.stand.release()
        until(lambda: daemon.metric('source_success{source="nvml"}') == 1.0)
        samples = box.stop(daemon)
    assert max(one.pending.get("nvml", 0.0) for one in samples) >= seconds
    assert all(one.memory is not None for one in samples)


def test_a_call_that_does_not_come_back(box: FaultBox) -> None:
    """A driver that is silent for twelve seconds is a warning, and costs no sample."""
    stalls(box, 12.0)


@pytest.mark.long
def test_a_call_that_is_out_for_ten_minutes(box: FaultBox) -> None:
    """A driver that is silent for ten minutes is critical, and costs no sample."""
    box.interval_seconds = 1.0
    stalls(box, 600.0)


def fails(box: FaultBox, errors: tuple[int, ...]) -> None:
    """Let every call fail with each of these codes in turn; the page names each, then recovers."""
    box.interval_seconds = 0.25
    with box.daemon() as daemon:
        until(lambda: daemon.metric('gpu_power_watts{gpu="0"}'))
        for error in errors:
            box.stand.fail_all(error)
            until(lambda: daemon.metric('source_success{source="nvml"}') == 0.0)
            assert daemon.metric("memory_available_bytes") is not None
            box.stand.fail_all(0)
            until(lambda: daemon.metric('source_success{source="nvml"}') == 1.0, RETRY_SECONDS)
        samples = box.stop(daemon)
    reasons = {one.reason for sample in samples for one in sample.failed if one.source == "nvml"}
    assert len(reasons) >= len(errors) // 2
    assert all(one.memory is not None for one in samples)


def test_the_common_errors(box: FaultBox) -> None:
    """Whatever the driver returns is a failure with a name, and the host's readings go on."""
    fails(box, SOME)


@pytest.mark.long
def test_every_error(box: FaultBox) -> None:
    """The same for each code that NVML has."""
    fails(box, EVERY)


def test_a_driver_that_goes_and_comes_back_as_another_version(box: FaultBox) -> None:
    """While it is away the GPU's readings are absent, not 0; afterwards the page names the new."""
    with box.daemon() as daemon:
        until(lambda: 'driver_version="580.173.02"' in daemon.get("/metrics"))
        box.stand.fail(INIT, DRIVER_NOT_LOADED)
        box.stand.fail_all(GPU_IS_LOST)
        box.stand.restart_driver("590.44.01")
        until(lambda: daemon.metric('source_success{source="nvml"}') == 0.0)
        box.stand.fail(INIT, 0)
        box.stand.fail_all(0)
        until(lambda: 'driver_version="590.44.01"' in daemon.get("/metrics"))
        until(lambda: daemon.metric('source_success{source="nvml"}') == 1.0)
        samples = box.stop(daemon)
    versions = [one.machine.driver_version for one in samples if one.machine is not None]
    assert versions[-1] == "590.44.01"
    assert "580.173.02" in versions


def test_nine_hundred_and_fifty_processes(box: FaultBox) -> None:
    """A full table of GPU processes is counted whole, listed in part, and delays nothing."""
    box.stand.gpus[0].set_processes(
        compute=[(4_000_000 + number, 1 << 20) for number in range(950)]
    )
    with box.daemon() as daemon:
        until(lambda: daemon.metric("gpu_processes") == 950.0)
        page = daemon.get("/metrics")
        assert page.count("sparkwatch_gpu_process_memory_bytes{") <= 32
        assert len([line for line in page.splitlines() if line[:1] != "#"]) <= 650
        box.stop(daemon)
