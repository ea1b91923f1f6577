"""The stand-in NVML, seen by an unmodified ``pynvml`` in a process of its own.

Everything the stand promises is checked from outside once, so that a test built on it may trust it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from tests.stand import nvml_stand
from tests.stand.nvml_stand import NvmlStand


def ask(script: str, environment: dict[str, str]) -> str:
    """Run a few lines of ``pynvml`` in a new process and return what they print."""
    lines = f"from pynvml import *\n{script}"
    done = subprocess.run(
        [sys.executable, "-c", lines],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_a_new_process_sees_the_box(gb10: NvmlStand, nvml_library: Path) -> None:
    """``LD_LIBRARY_PATH`` and the box's variable are all that an unmodified client needs."""
    script = (
        "nvmlInit(); gpu = nvmlDeviceGetHandleByIndex(0)\n"
        "print(nvmlSystemGetDriverVersion(), nvmlDeviceGetName(gpu), nvmlDeviceGetPowerUsage(gpu),"
        " nvmlDeviceGetCudaComputeCapability(gpu), nvmlDeviceGetPciInfo(gpu).busId)"
    )
    answer = ask(script, gb10.environment(nvml_library))
    assert answer == "580.173.02 NVIDIA GB10 13500 (12, 1) 0000000F:01:00.0"


def test_without_a_box_no_driver_is_loaded(nvml_library: Path) -> None:
    """The library alone behaves as on a machine without a GPU: NVML error 9 at the start."""
    script = "try: nvmlInit()\nexcept NVMLError as error: print(error.value)"
    environment = {"LD_LIBRARY_PATH": str(nvml_library.parent), nvml_stand.VARIABLE: ""}
    assert ask(script, environment) == "9"


def test_both_sides_agree_on_the_layout(nvml_library: Path) -> None:
    """Loading compares the size of the box in C and in Python, and here they are the same."""
    nvml_stand.load(nvml_library)


@pytest.fixture
def device(gb10: NvmlStand) -> object:
    """A handle on the first GPU of a GB10 in this process."""
    assert gb10.gpus
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def test_a_write_is_what_the_next_call_returns(gb10: NvmlStand, device: object) -> None:
    """Nothing is cached on the way: 13.5 W, a write, 42 W."""
    assert pynvml.nvmlDeviceGetPowerUsage(device) == 13_500
    gb10.gpus[0].power_milliwatts = 42_000
    assert pynvml.nvmlDeviceGetPowerUsage(device) == 42_000


@pytest.mark.parametrize("error", [3, 13, 15, 999])
def test_one_call_fails_as_scripted_and_heals(gb10: NvmlStand, device: object, error: int) -> None:
    """Any return code can be given to one function, and taken back."""
    gb10.fail("nvmlDeviceGetPowerUsage", error)
    with pytest.raises(pynvml.NVMLError) as raised:
        pynvml.nvmlDeviceGetPowerUsage(device)
    assert raised.value.value == error
    assert pynvml.nvmlDeviceGetTemperatureV(device, 0) == 48
    gb10.fail("nvmlDeviceGetPowerUsage", 0)
    assert pynvml.nvmlDeviceGetPowerUsage(device) == 13_500


def test_a_field_fails_alone(gb10: NvmlStand, device: object) -> None:
    """The query succeeds as a whole: 74 has a value, 269 its own error, 82 was never set."""
    gb10.gpus[0].set_field("sw_thermal_slowdown", error=999)
    values = pynvml.nvmlDeviceGetFieldValues(device, [74, 269, 82])
    assert [value.nvmlReturn for value in values] == [0, 999, 3]
    assert values[0].value.ullVal == 10_800 * 10**9


def test_the_full_process_list_comes_through(gb10: NvmlStand, device: object) -> None:
    """950 processes are listed after the size was negotiated, and unknown memory stays unknown."""
    gb10.gpus[0].set_processes(compute=[(pid, pid << 20) for pid in range(1, 950)] + [(7777, None)])
    listed = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(device)
    assert len(listed) == 950
    assert (listed[41].pid, listed[41].usedGpuMemory) == (42, 42 << 20)
    assert (listed[949].pid, listed[949].usedGpuMemory) == (7777, None)


def test_a_restarted_driver_ends_the_session(gb10: NvmlStand, device: object) -> None:
    """Calls of the old session are "uninitialised" until the next init, which sees the version."""
    gb10.restart_driver("595.45.04")
    with pytest.raises(pynvml.NVMLError) as raised:
        pynvml.nvmlDeviceGetPowerUsage(device)
    assert raised.value.value == pynvml.NVML_ERROR_UNINITIALIZED
    pynvml.nvmlInit()
    assert pynvml.nvmlSystemGetDriverVersion() == "595.45.04"


def test_calls_are_counted(gb10: NvmlStand, device: object) -> None:
    """A test can tell how often the driver was asked: twice more, and nothing else."""
    before = gb10.calls("nvmlDeviceGetPowerUsage")
    pynvml.nvmlDeviceGetPowerUsage(device)
    pynvml.nvmlDeviceGetPowerUsage(device)
    assert gb10.calls("nvmlDeviceGetPowerUsage") == before + 2
    assert gb10.calls("nvmlDeviceGetUtilizationRates") == 0


def test_a_discrete_gpu_has_memory_of_its_own(h200: NvmlStand) -> None:
    """Version 1 counts the driver's reserve as used, version 2 does not (H200, 2026-11-30)."""
    h200.gpus[0].memory_used_bytes = 2**30
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetMemoryInfo(gpu).used == 2**30 + 610 * 2**20
    assert pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2).used == 2**30
