"""Levels of the G3 conditions about the driver: calls that hang, allocations that fail, faults."""

from pydantic import Field

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
