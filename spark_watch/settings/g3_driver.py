"""Levels of the G3 conditions about the driver: calls that hang, allocations that fail, faults."""

from typing import Self

from pydantic import Field, model_validator

from spark_watch.settings.frozen import Frozen


class DriverStalledSettings(Frozen):
    """When an NVML call that has not come back counts as a stalled driver."""

    warning_seconds: float = Field(
        default=10.0,
        ge=1.0,
        le=600.0,
        description="How long a call must be out; a healthy one takes microseconds, and in wedges "
        "they were out for 491 to 737 s (MiaAI-Lab/DeepSeek-v4.1-Flash-DGX-Sparks#23).",
    )
    critical_seconds: float = Field(
        default=60.0,
        ge=1.0,
        le=3600.0,
        description="From here on it is critical; a firmware time-out of 45 s, from which drivers "
        "recover, is shorter (NVIDIA/open-gpu-kernel-modules#446).",
    )
    low_memory_critical_seconds: float = Field(
        default=20.0,
        ge=1.0,
        le=3600.0,
        description="The same while little memory is available: the driver holds its lock as it "
        "waits for pages (NVIDIA/open-gpu-kernel-modules, nv_alloc_pages).",
    )
    low_memory_gib: float = Field(
        default=8.0,
        ge=0.0,
        le=128.0,
        description="Available memory below which the shorter time holds, for a pool of 121.7 GiB; "
        "a start fell below it in its last 2 s (vllm-project/vllm#56824).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.critical_seconds < self.warning_seconds:
            raise ValueError("critical_seconds must be at least warning_seconds")
        return self


class TelemetryGapSettings(Frozen):
    """When a hole in our own recording counts."""

    gap_seconds: float = Field(
        default=60.0,
        ge=5.0,
        le=86400.0,
        description="A hole must be longer; blind gaps of 627 s and 7196 s were all that was left "
        "of two freezes (AEON-7/vllm-ultimate-dgx-spark#9).",
    )
    gap_intervals: float = Field(
        default=20.0,
        ge=2.0,
        le=10000.0,
        description="And longer than so many intervals of the recording: at 10 s and more a "
        "minute's hole is a few lost samples.",
    )
    stand_seconds: float = Field(
        default=900.0,
        ge=60.0,
        le=86400.0,
        description="How long it is shown after it ended; Prometheus and a person must both see "
        "it (AEON-7/vllm-ultimate-dgx-spark#9).",
    )


class DriverAllocationFailuresSettings(Frozen):
    """When lines of the driver that it got no memory are more than a retry."""

    window_seconds: float = Field(
        default=60.0,
        ge=5.0,
        le=3600.0,
        description="Lines are counted over this time; bursts before a wedge lasted from under a "
        "second to 21 s (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    burst_lines: int = Field(
        default=20,
        ge=1,
        le=100_000,
        description="So many lines are a warning by themselves; a healthy host wrote 16 in a "
        "second (vllm-project/vllm#56824), a failing start 75 (vllm-project/vllm#54200).",
    )
    strained_lines: int = Field(
        default=5,
        ge=1,
        le=100_000,
        description="So many are one where memory is short as well; good starts wrote one to three "
        "(vllm-project/vllm#56824).",
    )
    leave_lines: int = Field(
        default=5,
        ge=1,
        le=100_000,
        description="With fewer the warning ends; good starts wrote one to three "
        "(vllm-project/vllm#56824).",
    )
    low_memory_gib: float = Field(
        default=12.0,
        ge=0.0,
        le=128.0,
        description="Available memory below which it is short, for a pool of 121.7 GiB; a box "
        "with 14.3 GiB left wrote no line (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    driver_ratio: float = Field(
        default=0.85,
        gt=0.0,
        le=1.0,
        description="Share of the pool in the driver's hands above which it is short; lines came "
        "from 101 of 121.7 GiB on (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.leave_lines <= self.strained_lines <= self.burst_lines:
            raise ValueError(
                "leave_lines must be at most strained_lines, and that at most burst_lines"
            )
        return self


class DriverFaultSettings(Frozen):
    """Which messages of the driver and of the kernel are faults, and for how long."""

    critical_xids: frozenset[int] = Field(
        default=frozenset({48, 62, 64, 74, 79, 95, 119, 120, 154}),
        description="Xid numbers after which the GPU cannot be relied on: uncorrectable memory "
        "errors, halted firmware, a GPU off the bus or in need of a reset "
        "(docs.nvidia.com/deploy/xid-errors).",
    )
    stand_seconds: float = Field(
        default=3600.0,
        ge=60.0,
        le=604800.0,
        description="How long a fault stands after its last line; Xid 119, 120 and 154 followed "
        "one another within a minute (NVIDIA/open-gpu-kernel-modules#446).",
    )


class DriverMemoryCreepSettings(Frozen):
    """When memory that the driver took and did not return counts as creeping."""

    grown_gib: float = Field(
        default=0.5,
        gt=0.0,
        le=64.0,
        description="How much more the driver must hold, for a pool of 121.7 GiB; steps of 0.8 "
        "and 0.9 GiB were never returned (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    leave_gib: float = Field(
        default=0.25,
        ge=0.0,
        le=64.0,
        description="Less than this above where it began, it has been returned "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    first_prompt_gib: float = Field(
        default=1.0,
        ge=0.0,
        le=64.0,
        description="One step up to this size is the engine's first large prompt and is no news "
        "(0.8 GiB in MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    window_seconds: float = Field(
        default=600.0,
        ge=60.0,
        le=86400.0,
        description="How long it must not have been returned; a stopped container's memory came "
        "back within four minutes (Blackwellboy/model-serving-minefield).",
    )
    settle_seconds: float = Field(
        default=900.0,
        ge=0.0,
        le=86400.0,
        description="How long after a GPU process began or ended the driver's memory is its "
        "business; loads take up to 550 s (luisefigueroa/pulsar-gb10-vllm-stack).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.leave_gib > self.grown_gib:
            raise ValueError("leave_gib must be at most grown_gib")
        return self
