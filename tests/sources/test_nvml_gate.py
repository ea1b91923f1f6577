"""The one door to NVML: the four ways a call ends."""

from __future__ import annotations

import pynvml
import pytest

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.sources.nvml_gate import REASONS, Gate
from tests.stand.nvml_stand import NvmlStand

POWER = "nvmlDeviceGetPowerUsage"


@pytest.fixture
def handle(gb10: NvmlStand) -> object:
    """The first GPU of a box that has started."""
    assert gb10.gpus
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def test_a_value_comes_back(handle: object) -> None:
    """What the driver says is what the caller gets, counted as one call without an error."""
    gate = Gate()
    assert gate.call(pynvml.nvmlDeviceGetPowerUsage, handle, gpu=0) == 13_500
    assert (gate.calls, gate.errors, gate.outstanding_since) == (1, {}, None)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (3, "not_supported"),
        (13, "function_not_found"),
        (25, "argument_version_mismatch"),
        (26, "deprecated"),
    ],
)
def test_not_supported_is_remembered(
    gb10: NvmlStand, handle: object, code: int, reason: str
) -> None:
    """The driver is asked once for each GPU until it is forgotten, and no error is counted."""
    gb10.fail(POWER, code)
    gate = Gate()
    for _ in range(3):
        with pytest.raises(Unsupported) as raised:
            gate.call(pynvml.nvmlDeviceGetPowerUsage, handle, gpu=0)
        assert raised.value.reason == reason
    assert (gb10.calls(POWER), gate.calls, gate.errors) == (1, 1, {})
    gb10.fail(POWER, 0)
    assert gate.call(pynvml.nvmlDeviceGetPowerUsage, handle, gpu=1) == 13_500
    gate.forget()
    assert gate.call(pynvml.nvmlDeviceGetPowerUsage, handle, gpu=0) == 13_500


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "uninitialized"),
        (4, "no_permission"),
        (9, "driver_not_loaded"),
        (10, "timeout"),
        (15, "gpu_is_lost"),
        (16, "reset_required"),
        (18, "lib_rm_version_mismatch"),
        (20, "memory"),
        (999, "unknown"),
        (4711, "error_4711"),
    ],
)
def test_an_error_is_for_this_time(gb10: NvmlStand, handle: object, code: int, reason: str) -> None:
    """It carries NVML's own name in snake case, is counted, and the next call is made."""
    gb10.fail(POWER, code)
    gate = Gate()
    for _ in range(2):
        with pytest.raises(Unavailable) as raised:
            gate.call(pynvml.nvmlDeviceGetPowerUsage, handle, gpu=0)
        assert raised.value.reason == reason
    assert gb10.calls(POWER) == 2
    assert gate.errors == {reason: 2}
    gb10.fail(POWER, 0)
    assert gate.call(pynvml.nvmlDeviceGetPowerUsage, handle, gpu=0) == 13_500


def test_a_call_that_is_out_shows_since_when() -> None:
    """While it is out the clock's reading at its start stands; afterwards nothing does."""
    seen = []
    gate = Gate(clock=lambda: 42.0)
    gate.call(lambda: seen.append(gate.outstanding_since))
    assert seen == [42.0]
    assert gate.outstanding_since is None


def test_every_nvml_code_has_a_name() -> None:
    """The names are those of the header, so a label never holds a bare number that has one."""
    assert REASONS[15] == "gpu_is_lost"
    assert REASONS[18] == "lib_rm_version_mismatch"
    assert all(reason == reason.lower() for reason in REASONS.values())
