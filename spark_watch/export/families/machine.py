"""GPUs, thermal zones, power rails and CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import Marks, Snapshot
from spark_watch.model import Gpu


def _gpu(pick: Callable[[Gpu], float | None]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (((str(gpu.index),), pick(gpu)) for gpu in snapshot.latest.gpus or ())

    return read


def _info(snapshot: Snapshot) -> Samples:
    return (
        (
            (str(gpu.index), gpu.name or "", gpu.uuid or "", gpu.driver_version or ""),
            1.0,
        )
        for gpu in snapshot.identities
    )


def _reasons(snapshot: Snapshot) -> Samples:
    return (
        ((str(gpu.index), reason), 1.0)
        for gpu in snapshot.latest.gpus or ()
        for reason in gpu.event_reasons or ()
    )


def _reason_seconds(snapshot: Snapshot) -> Samples:
    return (
        ((str(gpu.index), reason), seconds)
        for gpu in snapshot.latest.gpus or ()
        for reason, seconds in sorted((gpu.event_seconds or {}).items())
    )


def _mark(name: str, pick: Callable[[Marks], float]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (
            ((index,), pick(marks)) for index, marks in sorted(snapshot.marks.get(name, {}).items())
        )

    return read


def _zones(snapshot: Snapshot) -> Samples:
    return (
        ((str(zone.zone), zone.type), zone.temperature_celsius)
        for zone in snapshot.latest.zones or ()
    )


def _hottest(snapshot: Snapshot) -> Samples:
    readings = [
        zone.temperature_celsius
        for zone in snapshot.latest.zones or ()
        if zone.temperature_celsius is not None
    ]
    return one(max(readings, default=None))


def _cpu(field: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        cpu = snapshot.latest.cpu
        return one(getattr(cpu, field) if cpu is not None else None)

    return read


RAIL_FLAGS: Final = frozenset({"prochot", "pl_level", "tj_max_c"})
"""What the rail driver tells beside watts."""


def _rails(snapshot: Snapshot) -> Samples:
    rails = snapshot.latest.rails or {}
    return (((name,), watts) for name, watts in sorted(rails.items()) if name not in RAIL_FLAGS)


def _rail_flag(name: str) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return one((snapshot.latest.rails or {}).get(name))

    return read


FAMILIES: Final = (
    Family(
        "gpu_info",
        "gauge",
        "Names of the GPU, constant 1, from nvmlDeviceGetName, nvmlDeviceGetUUID and "
        "nvmlSystemGetDriverVersion.",
        _info,
        ("gpu", "name", "uuid", "driver_version"),
    ),
    Family(
        "gpu_power_watts",
        "gauge",
        "Power of the GPU rail alone, not of the board or the adapter: nvmlDeviceGetPowerUsage.",
        _gpu(lambda gpu: gpu.power_watts),
        ("gpu",),
    ),
    Family(
        "gpu_power_low_watts",
        "gauge",
        "Lowest power of the last 60 s: nvmlDeviceGetPowerUsage.",
        _mark("gpu_power_watts", lambda marks: marks.low),
        ("gpu",),
    ),
    Family(
        "gpu_power_high_watts",
        "gauge",
        "Highest power of the last 60 s: nvmlDeviceGetPowerUsage.",
        _mark("gpu_power_watts", lambda marks: marks.high),
        ("gpu",),
    ),
    Family(
        "gpu_temperature_celsius",
        "gauge",
        "Temperature of the GPU die: nvmlDeviceGetTemperatureV.",
        _gpu(lambda gpu: gpu.temperature_celsius),
        ("gpu",),
    ),
    Family(
        "gpu_sm_clock_hertz",
        "gauge",
        "Clock of the multiprocessors: nvmlDeviceGetClockInfo(SM).",
        _gpu(lambda gpu: gpu.sm_hertz),
        ("gpu",),
    ),
    Family(
        "gpu_sm_clock_low_hertz",
        "gauge",
        "Lowest clock of the last 60 s: nvmlDeviceGetClockInfo(SM).",
        _mark("gpu_sm_clock_hertz", lambda marks: marks.low),
        ("gpu",),
    ),
    Family(
        "gpu_sm_clock_high_hertz",
        "gauge",
        "Highest clock of the last 60 s: nvmlDeviceGetClockInfo(SM).",
        _mark("gpu_sm_clock_hertz", lambda marks: marks.high),
        ("gpu",),
    ),
    Family(
        "gpu_utilization_ratio",
        "gauge",
        "Share of time in which some kernel was resident, which is not progress: "
        "nvmlDeviceGetUtilizationRates.",
        _gpu(lambda gpu: gpu.utilization_ratio),
        ("gpu",),
    ),
    Family(
        "gpu_performance_state",
        "gauge",
        "Performance state, 0 fastest to 15: nvmlDeviceGetPerformanceState.",
        _gpu(lambda gpu: gpu.performance_state),
        ("gpu",),
    ),
    Family(
        "gpu_energy_joules",
        "counter",
        "Energy since the driver was loaded: nvmlDeviceGetTotalEnergyConsumption.",
        _gpu(lambda gpu: gpu.energy_joules),
        ("gpu",),
    ),
    Family(
        "gpu_memory_size_bytes",
        "gauge",
        "Device memory, absent on a GB10, which has none: nvmlDeviceGetMemoryInfo.",
        _gpu(lambda gpu: gpu.memory_total_bytes),
        ("gpu",),
    ),
    Family(
        "gpu_memory_used_bytes",
        "gauge",
        "Device memory in use, absent on a GB10: nvmlDeviceGetMemoryInfo.",
        _gpu(lambda gpu: gpu.memory_used_bytes),
        ("gpu",),
    ),
    Family(
        "gpu_event_reason_active",
        "gauge",
        "Constant 1 for each reason that holds the clock down now: "
        "nvmlDeviceGetCurrentClocksEventReasons.",
        _reasons,
        ("gpu", "reason"),
    ),
    Family(
        "gpu_event_reason_seconds",
        "counter",
        "Time in which a reason held the clock down: nvmlDeviceGetFieldValues.",
        _reason_seconds,
        ("gpu", "reason"),
    ),
    Family(
        "thermal_zone_celsius",
        "gauge",
        "Temperature of a thermal zone: /sys/class/thermal/thermal_zone*/temp.",
        _zones,
        ("zone", "type"),
    ),
    Family(
        "thermal_hottest_celsius",
        "gauge",
        "Temperature of the hottest thermal zone: /sys/class/thermal/thermal_zone*/temp.",
        _hottest,
    ),
    Family(
        "rail_watts",
        "gauge",
        "Power of a rail, only where the spbm driver is loaded: /sys/class/hwmon.",
        _rails,
        ("rail",),
    ),
    Family(
        "rail_prochot_active",
        "gauge",
        "1 while the board holds the chip down, only with the spbm driver: /sys/class/hwmon.",
        _rail_flag("prochot"),
    ),
    Family(
        "cpu_busy_ratio",
        "gauge",
        "Share of CPU time in use over all cores: /proc/stat.",
        _cpu("busy_ratio"),
    ),
    Family(
        "cpu_busiest_core_ratio",
        "gauge",
        "Share of time in use on the busiest core: /proc/stat.",
        _cpu("busiest_core_ratio"),
    ),
    Family(
        "cpu_clock_hertz",
        "gauge",
        "Clock of the fastest core now: cpufreq/policy*/scaling_cur_freq.",
        _cpu("max_hertz"),
    ),
    Family("cpu_load1", "gauge", "Load average of one minute: /proc/loadavg.", _cpu("load1")),
)
