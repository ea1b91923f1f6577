"""Snapshots made by hand, so that every number on a page is one that stands here."""

from __future__ import annotations

import dataclasses
from typing import Any

from spark_watch.blackbox.ring import RecorderStatus
from spark_watch.detectors.judge import Standing
from spark_watch.export.snapshot import LoopHealth, Marks, Snapshot
from spark_watch.model import (
    GIB,
    Cpu,
    Finding,
    Gpu,
    GpuIdentity,
    Machine,
    Memory,
    Pressure,
    Process,
    Sample,
    State,
    Vm,
    Zone,
)
from spark_watch.sources.reading import SourceHealth

MACHINE = Machine(gpu_name="NVIDIA GB10", driver_version="580.173.02", memory_total_bytes=122 * GIB)

MEMORY = Memory(
    total_bytes=122 * GIB,
    free_bytes=3 * GIB,
    available_bytes=9 * GIB,
    cached_bytes=6 * GIB,
    buffers_bytes=GIB,
    anonymous_bytes=20 * GIB,
    shared_bytes=GIB // 2,
    swap_total_bytes=16 * GIB,
    swap_free_bytes=15 * GIB,
    huge_pages_total=4,
    huge_pages_free=1,
    huge_page_bytes=2 * 1024**2,
)

GPU = Gpu(
    index=0,
    power_watts=41.5,
    temperature_celsius=63.0,
    sm_hertz=2.496e9,
    utilization_ratio=0.96,
    event_reasons=("sw_power_cap",),
    event_seconds={"sw_power_cap": 10.5, "hw_thermal_slowdown": 0.0},
    energy_joules=0.0,
    performance_state=0,
)

SERVER = Process(
    pid=1234,
    name="VLLM::EngineCore",
    kind="compute",
    engine="vllm",
    container="3f2a9c1b7d60",
    gpu_bytes=60 * GIB,
    resident_bytes=5 * GIB,
    swapped_bytes=0,
    major_faults=237,
    claim_ratio=0.5,
)
DESKTOP = Process(pid=900, name="Xorg", kind="graphics", gpu_bytes=GIB // 16)
LAUNCHER = Process(pid=1200, name="vllm", kind="launcher", engine="vllm")

SAMPLE = Sample(
    t=1_790_000_000.0,
    monotonic_seconds=5000.0,
    gpus=(GPU,),
    memory=MEMORY,
    pressure=Pressure(some_avg10_ratio=0.02, full_avg10_ratio=0.0, some_seconds=1.5),
    vm=Vm(swapped_in_bytes=4096, swapped_out_bytes=8192, major_faults=100, oom_kills=0),
    rails={"dla": 0.5, "total": 90.25, "prochot": 1.0, "pl_level": 2.0},
    free_blocks={4096: 10, 4 * 1024**2: 3},
    zones=(
        Zone(zone=0, type="acpitz", temperature_celsius=71.5),
        Zone(zone=1, type="acpitz", temperature_celsius=None),
        Zone(zone=2, type="acpitz", temperature_celsius=68.0),
    ),
    cpu=Cpu(busy_ratio=0.25, busiest_core_ratio=0.75, load1=3.5),
    processes=(DESKTOP, LAUNCHER, SERVER),
)


def standing(
    condition: str,
    state: State,
    *,
    gotcha: str = "G3",
    subject: str = "host",
    changed_at: float | None = None,
    changes: dict[State, int] | None = None,
    sentence: str = "It is so.",
    remedy: str = "",
) -> Standing:
    """Return how a condition of that name stands."""
    finding = Finding(
        at_seconds=SAMPLE.t,
        since_seconds=SAMPLE.t - 60.0,
        gotcha=gotcha,
        condition=condition,
        subject=subject,
        state=state,
        template=sentence,
        remedy=remedy,
    )
    return Standing(finding, (finding,), changed_at, changes or {})


SNAPSHOT = Snapshot(
    at_seconds=SAMPLE.t,
    latest=SAMPLE,
    standings=(
        standing(
            "memory_low",
            State.WARNING,
            changed_at=1_789_999_940.0,
            changes={State.OK: 1, State.WARNING: 2},
            sentence="The host has 6.0 GiB available.",
            remedy="Stop a job.",
        ),
        standing("gpu_hot", State.UNKNOWN, gotcha="G4", subject="gpu0"),
    ),
    measures={
        ("memory_exhaustion_seconds", ()): 12.5,
        ("gpu_event_reason_ratio", ("0", "sw_power_cap")): 0.25,
    },
    marks={
        "memory_available_bytes": {"": Marks(low=8.0 * GIB, high=10.0 * GIB)},
        "memory_free_bytes": {"": Marks(low=2.0 * GIB, high=3.0 * GIB)},
        "gpu_power_watts": {"0": Marks(low=14.0, high=88.0)},
        "gpu_sm_clock_hertz": {"0": Marks(low=7.0e8, high=2.5e9)},
    },
    identities=(
        GpuIdentity(index=0, name="NVIDIA GB10", uuid="GPU-1", driver_version="580.173.02"),
    ),
    machine=MACHINE,
    sources=(
        SourceHealth(
            source="nvml",
            success=False,
            reason="late",
            duration_seconds=0.004,
            last_success_seconds=1_789_999_988.0,
            pending_seconds=12.0,
            errors={"gpu_is_lost": 2, "timeout": 1},
        ),
        SourceHealth(source="meminfo", success=True, duration_seconds=0.0001),
        SourceHealth(source="rails"),
    ),
    loop=LoopHealth(
        started_seconds=1_789_990_000.0,
        ticks=10_000,
        missed_ticks=3,
        late_seconds=0.001,
        late_high_seconds=0.5,
        tick_duration_seconds=0.0005,
        judge_duration_seconds=0.0002,
        cpu_seconds=7.5,
        resident_bytes=48 * 1024**2,
        memory_locked=True,
    ),
    origin="replay:a-file-name.jsonl",
    ready=True,
    recorder=RecorderStatus(
        active=False,
        reason="no_space",
        size_bytes=33_554_432,
        segments=312,
        written_samples=9_990,
        dropped_samples=4,
        last_sync_seconds=1_789_999_900.0,
        errors={"no_space": 3, "io_error": 1},
    ),
)
"""One box under load with much to tell and some things missing."""


def changed(**parts: Any) -> Snapshot:
    """Return the snapshot with other parts in its newest sample."""
    return dataclasses.replace(SNAPSHOT, latest=dataclasses.replace(SAMPLE, **parts))
