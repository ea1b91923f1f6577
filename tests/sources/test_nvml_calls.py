"""What one GPU is asked and what its answers mean."""

from __future__ import annotations

import pynvml
import pytest

from spark_watch.model import GpuIdentity
from spark_watch.sources.nvml_calls import (
    Device,
    DeviceLost,
    SessionLost,
    believable,
    counters_of,
    merged,
    names_of,
    shares_memory,
)
from spark_watch.sources.nvml_gate import Gate
from spark_watch.sources.nvml_units import NANOSECONDS, CounterUnit
from tests.stand.nvml_stand import NvmlStand

GIB = 2**30


def device(stand: NvmlStand, *, index: int = 0, nanoseconds: bool = True) -> Device:
    """Take hold of a GPU of the box, with its counters' unit known or not."""
    unit = CounterUnit()
    if nanoseconds:
        unit.per_second = NANOSECONDS
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    version = pynvml.nvmlSystemGetDriverVersion()
    assert stand.gpus
    return Device(Gate(), handle, index=index, driver_version=version, unit=unit)


def test_a_gb10_in_base_units(gb10: NvmlStand) -> None:
    """13.5 W, 48 C, 2.405 GHz, 3 %, P0, no reason; no device memory, because it has none."""
    gpu = device(gb10).read(0.0, counters=True, energy=True, memory_total_bytes=120 * GIB)
    assert (gpu.index, gpu.power_watts, gpu.temperature_celsius) == (0, 13.5, 48.0)
    assert (gpu.sm_hertz, gpu.utilization_ratio, gpu.performance_state) == (2.405e9, 0.03, 0)
    assert (gpu.event_reasons, gpu.energy_joules) == ((), 10_024.0)
    assert gpu.event_seconds == {
        "sw_power_cap": 10_800.0,
        "sync_boost": 0.0,
        "sw_thermal_slowdown": 27.6,
        "hw_thermal_slowdown": 1.195,
        "hw_power_brake_slowdown": 0.0,
    }
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (None, None)
    assert gb10.calls("nvmlDeviceGetMemoryInfo_v2") == 0


def test_a_gb10_is_identified(gb10: NvmlStand) -> None:
    """Name, UUID, driver, 3003 MHz and capability 12.1 are read once; MIG is unknown to it."""
    known = device(gb10)
    assert known.partitioned is False
    assert known.identity == GpuIdentity(
        index=0,
        name="NVIDIA GB10",
        uuid="GPU-00000000-0000-4000-8000-000000000000",
        driver_version="580.173.02",
        max_sm_hertz=3.003e9,
        compute_capability=(12, 1),
    )


def test_a_discrete_gpu_has_its_own_memory(h200: NvmlStand) -> None:
    """The driver's reserve is not "used": 1 GiB of 143771 MiB, idle as its only reason."""
    h200.gpus[0].memory_used_bytes = GIB
    gpu = device(h200).read(0.0, counters=False, energy=False, memory_total_bytes=2048 * GIB)
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (143_771 * 2**20, GIB)
    assert gpu.event_reasons == ("gpu_idle",)
    assert (gpu.event_seconds, gpu.energy_joules) == (None, None)


def test_counters_of_an_unknown_unit_are_absent(gb10: NvmlStand) -> None:
    """They are read, so that the unit can be found, and not given out."""
    unsettled = device(gb10, nanoseconds=False)
    gpu = unsettled.read(0.0, counters=True, energy=False, memory_total_bytes=None)
    assert gpu.event_seconds is None
    assert gb10.calls("nvmlDeviceGetFieldValues") == 1
    gb10.gpus[0].set_field("sw_power_cap", 10_805 * 10**9)
    gpu = unsettled.read(5.0, counters=True, energy=False, memory_total_bytes=None)
    assert gpu.event_seconds is not None
    assert gpu.event_seconds["sw_power_cap"] == 10_805.0


def test_a_field_that_fails_alone_costs_its_own_value(gb10: NvmlStand) -> None:
    """The others stand; an entry that is not supported is not asked again, one that failed is."""
    gb10.gpus[0].set_field("sync_boost", error=999)
    gb10.gpus[0].set_field("hw_power_brake_slowdown", error=3)
    partial = device(gb10)
    gpu = partial.read(0.0, counters=True, energy=False, memory_total_bytes=None)
    assert gpu.event_seconds is not None
    assert set(gpu.event_seconds) == {"sw_power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown"}
    assert partial.failures == ["unknown"]
    gb10.gpus[0].set_field("sync_boost", 5 * 10**9)
    gb10.gpus[0].set_field("hw_power_brake_slowdown", 5 * 10**9)
    gpu = partial.read(5.0, counters=True, energy=False, memory_total_bytes=None)
    assert gpu.event_seconds is not None
    assert gpu.event_seconds["sync_boost"] == 5.0
    assert "hw_power_brake_slowdown" not in gpu.event_seconds


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("580.82.09", {74, 76, 269, 270, 271}),
        ("595.45.04", {74, 76, 269, 270, 271}),
        ("580.65.06", {74, 76}),
        ("575.57.08", {74, 76}),
        ("not a version", {74, 76}),
        ("", {74, 76}),
    ],
)
def test_an_old_driver_is_not_asked_for_numbers_that_meant_something_else(
    version: str, fields: set[int]
) -> None:
    """269 to 271 are event counters only from 580.82 on; before, they were power smoothing."""
    assert set(counters_of(version)) == fields


def test_a_counter_of_no_unsigned_type_is_left_out(gb10: NvmlStand) -> None:
    """A double (type 0) where a count was expected is not read as one; 32 bits (type 1) are."""
    gb10.gpus[0].set_field("sw_power_cap", 7 * 10**9, value_type=0)
    gb10.gpus[0].set_field("sync_boost", 4 * 10**9, value_type=1)
    gpu = device(gb10).read(0.0, counters=True, energy=False, memory_total_bytes=None)
    assert gpu.event_seconds is not None
    assert "sw_power_cap" not in gpu.event_seconds
    assert gpu.event_seconds["sync_boost"] == 4.0


def test_the_pool_is_not_taken_for_device_memory(h200: NvmlStand) -> None:
    """A GPU whose total is the host's has no memory of its own, whatever it is called."""
    gpu = device(h200).read(
        0.0, counters=False, energy=False, memory_total_bytes=143_771 * 2**20 - GIB
    )
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (None, None)


def test_zero_degrees_is_no_temperature(gb10: NvmlStand) -> None:
    """A sensor that is not there reads 0 C."""
    gb10.gpus[0].temperature_celsius = 0
    gpu = device(gb10).read(0.0, counters=False, energy=False, memory_total_bytes=None)
    assert gpu.temperature_celsius is None


def test_an_older_driver_gives_its_temperature_the_old_way(gb10: NvmlStand) -> None:
    """The deprecated call answers where the current one is missing, which is not repeated."""
    gb10.fail("nvmlDeviceGetTemperatureV", 13)
    older = device(gb10)
    for at in (0.0, 1.0):
        gpu = older.read(at, counters=False, energy=False, memory_total_bytes=None)
        assert gpu.temperature_celsius == 48.0
    assert gb10.calls("nvmlDeviceGetTemperatureV") == 1
    assert older.failures == []


def test_an_unknown_performance_state_is_absent(gb10: NvmlStand) -> None:
    """NVML's 32 means "unknown", and states end at 15."""
    gb10.gpus[0].performance_state = 32
    gpu = device(gb10).read(0.0, counters=False, energy=False, memory_total_bytes=None)
    assert gpu.performance_state is None


def test_one_call_that_fails_costs_one_value(gb10: NvmlStand) -> None:
    """Power times out: it is ``None``, the reason is told, the rest is there."""
    gb10.fail("nvmlDeviceGetPowerUsage", 10)
    partial = device(gb10)
    gpu = partial.read(0.0, counters=False, energy=False, memory_total_bytes=None)
    assert (gpu.power_watts, gpu.sm_hertz, partial.failures) == (None, 2.405e9, ["timeout"])
    partial.end_turn()


def test_a_reading_without_an_answer_is_a_lost_gpu(gb10: NvmlStand) -> None:
    """A driver that answers "unknown" to everything has gone from under us."""
    gone = device(gb10)
    gb10.fail_all(999)
    gone.begin_turn()
    gone.read(0.0, counters=True, energy=True, memory_total_bytes=None)
    with pytest.raises(DeviceLost) as raised:
        gone.end_turn()
    assert raised.value.reason == "unknown"


@pytest.mark.parametrize(
    ("code", "lost"),
    [(15, DeviceLost), (16, DeviceLost), (1, SessionLost), (9, SessionLost), (18, SessionLost)],
)
def test_losses_end_the_reading(
    gb10: NvmlStand, code: int, lost: type[DeviceLost | SessionLost]
) -> None:
    """A GPU or a session that is gone is not asked the remaining questions."""
    going = device(gb10)
    gb10.fail("nvmlDeviceGetPowerUsage", code)
    with pytest.raises(lost):
        going.read(0.0, counters=False, energy=False, memory_total_bytes=None)
    assert gb10.calls("nvmlDeviceGetUtilizationRates") == 0


def test_a_loss_that_only_one_entry_tells_is_a_loss(gb10: NvmlStand) -> None:
    """The query of the counters succeeds, and each entry says that the GPU is gone."""
    gb10.gpus[0].set_field("sw_power_cap", error=15)
    with pytest.raises(DeviceLost):
        device(gb10).read(0.0, counters=True, energy=False, memory_total_bytes=None)


def test_an_unreadable_name_is_a_failure_like_any_other(gb10: NvmlStand) -> None:
    """Bytes that are no text do not end the reading with an error of our own."""
    gb10.gpus[0].name = b"\xff\xfe"
    with pytest.raises(DeviceLost) as raised:
        device(gb10)
    assert raised.value.reason == "malformed"


def test_counters_that_are_all_unsupported_are_not_asked_again(gb10: NvmlStand) -> None:
    """Once every entry was refused the query itself is no longer made."""
    for name in ("sw_power_cap", "sync_boost", "sw_thermal_slowdown"):
        gb10.gpus[0].set_field(name, error=3)
    for name in ("hw_thermal_slowdown", "hw_power_brake_slowdown"):
        gb10.gpus[0].set_field(name, error=3)
    bare = device(gb10)
    for at in (0.0, 5.0):
        gpu = bare.read(at, counters=True, energy=False, memory_total_bytes=None)
        assert gpu.event_seconds is None
    assert gb10.calls("nvmlDeviceGetFieldValues") == 1
    assert bare.failures == []


def test_a_gpu_without_a_name_is_not_taken(gb10: NvmlStand) -> None:
    """Nothing can be judged of a nameless GPU, so it is tried again like a lost one."""
    gb10.fail("nvmlDeviceGetName", 999)
    with pytest.raises(DeviceLost):
        device(gb10)


def test_a_partitioned_gpu_says_so(h200: NvmlStand) -> None:
    """With MIG on, the whole card's memory is not one device's and is left out."""
    h200.gpus[0].mig_mode = 1
    h200.fail("nvmlDeviceGetUtilizationRates", 3)
    split = device(h200)
    gpu = split.read(0.0, counters=False, energy=False, memory_total_bytes=None)
    assert split.partitioned is True
    assert (gpu.memory_total_bytes, gpu.utilization_ratio, split.failures) == (None, None, [])


def test_mig_that_cannot_be_asked_is_unknown(h200: NvmlStand) -> None:
    """An error is neither "split" nor "whole", so memory is left out as well."""
    h200.fail("nvmlDeviceGetMigMode", 999)
    unclear = device(h200)
    gpu = unclear.read(0.0, counters=False, energy=False, memory_total_bytes=None)
    assert (unclear.partitioned, gpu.memory_total_bytes) == (None, None)


@pytest.mark.parametrize(
    ("total", "used", "host", "answer"),
    [
        (140 * GIB, 1 * GIB, 2048 * GIB, True),
        (140 * GIB, 1 * GIB, None, True),
        (24 * GIB, 0, 23.4 * GIB, True),
        (0, 0, 121.7 * GIB, False),
        (121.7 * GIB, 9 * GIB, 121.7 * GIB, False),
        (122.5 * GIB, 9 * GIB, 121.7 * GIB, False),
        (8 * GIB, 9 * GIB, 121.7 * GIB, False),
    ],
)
def test_device_memory_is_believed_only_as_a_device_of_its_own(
    total: float, used: float, host: float | None, answer: bool
) -> None:
    """Nothing, more than all, and the host's own memory are not a GPU's."""
    host_bytes = None if host is None else int(host)
    assert believable(int(total), int(used), host_bytes) is answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [("NVIDIA GB10", True), ("NVIDIA N1X", True), (None, True), ("NVIDIA H200", False)],
)
def test_chips_that_share_memory_are_known_by_name(name: str | None, answer: bool) -> None:
    """An N1X gives small wrong numbers, so it is not asked either."""
    assert shares_memory(name) is answer


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0x0, ()),
        (0x1, ("gpu_idle",)),
        (0x4, ("sw_power_cap",)),
        (0x68, ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown")),
        (0x80, ("hw_power_brake_slowdown",)),
        (0x112, ("applications_clocks_setting", "sync_boost", "display_clock_setting")),
        (0x600, ("board_limit", "reliability")),
        (0x801, ("gpu_idle", "bit_11")),
    ],
)
def test_the_mask_is_read_as_nvidia_orders_it(mask: int, names: tuple[str, ...]) -> None:
    """Bit by bit as in ``nvml.h``; one that is not in it still shows that something stood."""
    assert names_of(mask) == names


def test_processes_of_all_lists_are_merged_by_pid(gb10: NvmlStand) -> None:
    """100 computes, 200 draws, 300 and 600 do both and hold what is known of them once."""
    gb10.gpus[0].set_processes(
        compute=[(100, 64 * GIB), (300, 5 * GIB), (400, None), (600, None)],
        graphics=[(200, 43 * 2**20), (300, 5 * GIB), (600, 2 * GIB)],
        mps=[(500, GIB)],
    )
    listed = device(gb10).processes()
    assert listed is not None
    processes = merged([listed])
    assert [(one.pid, one.kind, one.gpu_bytes, one.name) for one in processes] == [
        (100, "compute", 64 * GIB, None),
        (200, "graphics", 43 * 2**20, None),
        (300, "compute", 5 * GIB, None),
        (400, "compute", None, None),
        (500, "compute", GIB, None),
        (600, "compute", 2 * GIB, None),
    ]


def test_a_process_on_two_gpus_holds_both_parts() -> None:
    """Its memory is the sum, unless one part is unknown; one compute context makes it compute."""
    processes = merged(
        [
            [(7, "graphics", 1 * GIB), (8, "compute", None), (9, "graphics", GIB)],
            [(7, "compute", 2 * GIB), (8, "graphics", 2 * GIB)],
        ]
    )
    assert [(one.pid, one.kind, one.gpu_bytes) for one in processes] == [
        (7, "compute", 3 * GIB),
        (8, "compute", None),
        (9, "graphics", GIB),
    ]


def test_an_empty_list_is_not_a_missing_one(gb10: NvmlStand) -> None:
    """No process is a reading; a compute list that fails is none, whatever the others say."""
    quiet = device(gb10)
    assert quiet.processes() == []
    gb10.gpus[0].set_processes(graphics=[(200, GIB)])
    gb10.fail("nvmlDeviceGetComputeRunningProcesses", 4)
    assert quiet.processes() is None
    assert quiet.failures == ["no_permission"]


@pytest.mark.parametrize("code", [3, 6, 999])
def test_other_lists_that_fail_cost_nothing(gb10: NvmlStand, code: int) -> None:
    """MPS errors are not even told: few machines have it, and the compute list decides."""
    gb10.gpus[0].set_processes(compute=[(100, GIB)])
    gb10.fail("nvmlDeviceGetMPSComputeRunningProcesses", code)
    known = device(gb10)
    assert known.processes() == [(100, "compute", GIB)]
    assert known.failures == []


def test_the_longest_list_the_driver_gives(gb10: NvmlStand) -> None:
    """950 processes, the driver's own limit, come through whole."""
    gb10.gpus[0].set_processes(compute=[(pid, pid * 2**20) for pid in range(1, 951)])
    listed = device(gb10).processes()
    assert listed is not None
    processes = merged([listed])
    assert len(processes) == 950
    assert (processes[949].pid, processes[949].gpu_bytes) == (950, 950 * 2**20)
