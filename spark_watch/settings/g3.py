"""Levels of the G3 conditions that read the host's memory.

Levels in GiB are for a pool of 121.7 GiB and scale with the machine's.
"""

from pydantic import Field

from spark_watch.settings.frozen import Frozen


class MemoryCollapseSettings(Frozen):
    """When available memory is running out within seconds."""

    available_below_gib: float = Field(
        default=24.0,
        gt=0.0,
        le=121.0,
        description="At or above this much available memory nothing is called a collapse: the "
        "published one left its level at 28.97 GiB and passed 23.8 GiB 5 s before its end "
        "(vllm-project/vllm#56824).",
    )
    leave_above_gib: float = Field(
        default=26.0,
        gt=0.0,
        le=121.0,
        description="From here on a collapse is over at once; an engine that gives up returns tens "
        "of GiB (vllm-project/vllm#56824).",
    )
    floor_gib: float = Field(
        default=4.0,
        ge=0.0,
        le=60.0,
        description="Where the projection ends: from 9.9 GiB one box was at 2.4 GiB a single 3 s "
        "sample later and gone (RyderFreeman4Logos/gb10-services).",
    )
    warning_seconds: float = Field(
        default=15.0,
        gt=0.0,
        le=600.0,
        description="Warn when the floor is this close; the published collapse was 11 s away "
        "5 s before its end (vllm-project/vllm#56824).",
    )
    critical_seconds: float = Field(
        default=5.0,
        gt=0.0,
        le=600.0,
        description="Critical when the floor is this close; userspace freezes about 5 s after the "
        "first sign (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    critical_below_gib: float = Field(
        default=7.5,
        ge=0.0,
        le=60.0,
        description="Below this the host needs no second witness to be critical: healthy loads end "
        "at 8 GiB or more, a healthy start dips to 7.7 GiB (RyderFreeman4Logos/gb10-services).",
    )
    lost_gib: float = Field(
        default=1.5,
        gt=0.0,
        le=60.0,
        description="The least loss in 4 s that counts; serving boxes swing by more than 1 GiB at "
        "times (NousResearch/hermes-agent#90713).",
    )
    step_gib: float = Field(
        default=6.0,
        gt=0.0,
        le=60.0,
        description="One fall as large as this counts alone; a single spike of 7.4 GiB preceded a "
        "wedge (RyderFreeman4Logos/gb10-services).",
    )
    faster_ratio: float = Field(
        default=1.5,
        ge=1.0,
        le=100.0,
        description="How much faster than the fastest 10 s before it must fall: weight loads keep "
        "one pace for minutes (FujitsuPolycom/sparkring#173).",
    )
    no_load_gib_per_second: float = Field(
        default=2.5,
        gt=0.0,
        le=1000.0,
        description="Faster than any load that is known to have ended well (2 GiB/s); the worst "
        "second of the published collapse ran at 4.4 (vllm-project/vllm#56824).",
    )
    no_load_seconds: float = Field(
        default=2.0,
        gt=0.0,
        le=600.0,
        description="At such a rate it is critical at any level when the floor is this close; "
        "34 GiB fell to 12.7 in 1.5 s (NVIDIA/dgx-spark-playbooks#116).",
    )
    last_gib: float = Field(
        default=3.0,
        ge=0.0,
        le=60.0,
        description="Below this a fall of `last_lost_gib` is critical however it began; 3.2 GiB "
        "held still is survived (NVIDIA/NemoClaw#7127).",
    )
    last_lost_gib: float = Field(
        default=1.0,
        gt=0.0,
        le=60.0,
        description="The loss in 4 s that is critical below `last_gib`; thin healthy boxes move by "
        "0.1 GiB in 5 s (NousResearch/hermes-agent#90713).",
    )
    nothing_left_gib: float = Field(
        default=0.75,
        ge=0.0,
        le=60.0,
        description="Critical at once below this; 0.3 GiB was the last reading before a gap of "
        "627 s (AEON-7/vllm-ultimate-dgx-spark#9).",
    )
    something_left_gib: float = Field(
        default=1.0,
        ge=0.0,
        le=60.0,
        description="From here on `nothing_left_gib` no longer stands; boxes have served for weeks "
        "at 1.5 GiB (Blackwellboy/model-serving-minefield#134).",
    )
    leave_seconds: float = Field(
        default=10.0,
        ge=0.0,
        le=3600.0,
        description="How long the fall must have rested before the collapse is over; the published "
        "one paused for none of its 2 s samples (vllm-project/vllm#56824).",
    )
    witness_seconds: float = Field(
        default=10.0,
        ge=0.0,
        le=600.0,
        description="How long a driver failure, pressure or swap-in bears witness; a collapse took "
        "11 s with ten driver failures in it (vllm-project/vllm#56824).",
    )
    witness_pressure_ratio: float = Field(
        default=0.1,
        gt=0.0,
        le=1.0,
        description="Full memory pressure that bears witness; it read 0.12 and 0.19 before two "
        "wedges and 0 on healthy boxes (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    witness_swap_in_mib_per_second: float = Field(
        default=1.0,
        gt=0.0,
        le=100_000.0,
        description="Swap-in that bears witness: 256 pages a second counted as moving "
        "(Reederey87/dgx-spark-2x-deepseek-v4-flash).",
    )
