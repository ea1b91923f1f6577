"""Levels of the G4 condition about restarts of the machine."""

from pydantic import Field

from spark_watch.settings.frozen import Frozen


class UncleanRebootSettings(Frozen):
    """How long an unclean restart of the machine is shown, and what stood before it."""

    stand_seconds: float = Field(
        default=86400.0,
        ge=60.0,
        le=2592000.0,
        description="How long it stands unless acknowledged; two within it are critical (14 stops "
        "in 4 days on one of three units, NVIDIA/open-gpu-kernel-modules#1358).",
    )
    precursor_seconds: float = Field(
        default=600.0,
        ge=10.0,
        le=86400.0,
        description="What stood this long before the last sample is told; memory and heat led by "
        "seconds to minutes (NVIDIA/open-gpu-kernel-modules#1358).",
    )
