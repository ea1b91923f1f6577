"""Levels of the G4 conditions: throttling, stuck low power, heat, spontaneous reboot."""

from pydantic import Field

from spark_watch.settings.frozen import Frozen


class GpuHotSettings(Frozen):
    """When the GPU die counts as hot."""

    warning_celsius: float = Field(
        default=88.0,
        ge=40.0,
        le=120.0,
        description="Die temperature from which it is hot; healthy soaks reach 86 C "
        "(luisefigueroa/pulsar-gb10-vllm-stack), stops were seen at 91-92 C "
        "(NVIDIA/open-gpu-kernel-modules#1358).",
    )
    leave_celsius: float = Field(
        default=85.0, ge=40.0, le=120.0, description="Below this it has cooled down."
    )
    hold_seconds: float = Field(
        default=60.0, ge=0.0, le=3600.0, description="How long it must have been that hot."
    )
