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
    critical_gib_per_second: float = Field(
        default=1.0,
        ge=0.0,
        le=1000.0,
        description="The least pace of that: starts have dipped to 5 GiB at half of it and come "
        "back (RyderFreeman4Logos/gb10-services).",
    )
    lost_gib: float = Field(
        default=1.5,
        gt=0.0,
        le=60.0,
        description="The least loss in 4 s that counts; serving boxes swing by more than 1 GiB at "
        "times (NousResearch/hermes-agent#90713).",
    )
    dip_gib: float = Field(
        default=2.5,
        gt=0.0,
        le=60.0,
        description="A loss as large as this in 4 s counts after two falling seconds, a smaller "
        "one after three: serving boxes swing by 2 GiB (luisefigueroa/pulsar-gb10-vllm-stack).",
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
    last_drained_gib: float = Field(
        default=1.0,
        gt=0.0,
        le=60.0,
        description="The loss in 20 s, still going on, that is a warning below `last_gib` however "
        "steady it is: loads of 0.15 GiB/s are known (FujitsuPolycom/sparkring#173), and one that "
        "has not ended by then is 20 s from the end.",
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


class MemoryLowSettings(Frozen):
    """When little memory is left and it goes on leaking, or nearly none is left and it moves."""

    low_gib: float = Field(
        default=8.0,
        gt=0.0,
        le=121.0,
        description="From here on memory is not low: boxes serve at 4.9 to 7.9 GiB for days "
        "(NousResearch/hermes-agent#90713), loads end at 8 GiB and more.",
    )
    leave_gib: float = Field(
        default=8.5,
        gt=0.0,
        le=121.0,
        description="A leak is over from here on; a healthy box swings by 2 GiB "
        "(luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    floor_gib: float = Field(
        default=2.0,
        ge=0.0,
        le=60.0,
        description="Where the slope is followed to; healthy starts came lower and a guard that "
        "acted at 2 GiB came too late (RyderFreeman4Logos/gb10-services).",
    )
    within_minutes: float = Field(
        default=30.0,
        gt=0.0,
        le=1440.0,
        description="Warn when the floor is this close: time to finish a checkpoint; driver memory "
        "crept over hours in MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark#54.",
    )
    leave_minutes: float = Field(
        default=60.0,
        gt=0.0,
        le=1440.0,
        description="The warning stands until the floor is further away than this; a soak that "
        "plateaued had lost 0.5 GiB in 150 min (luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    step_gib: float = Field(
        default=2.0,
        gt=0.0,
        le=121.0,
        description="A change by more than this within two minutes is a step, not a slope; the "
        "healthy swing is 2 GiB (luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    swing_gib: float = Field(
        default=4.5,
        ge=0.0,
        le=121.0,
        description="A fall larger than this is no swing: healthy page cache moves by 2 GiB to "
        "either side (luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    thin_gib: float = Field(
        default=4.0,
        ge=0.0,
        le=121.0,
        description="Level below this is worth knowing: 3.2 GiB survived 144,000-token prompts "
        "(NVIDIA/NemoClaw#7127).",
    )
    thin_leave_gib: float = Field(
        default=4.5,
        ge=0.0,
        le=121.0,
        description="From here on it is not thin; noise is 0.1 GiB in 5 s "
        "(NousResearch/hermes-agent#90713).",
    )
    thin_hold_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=86_400.0,
        description="How long it must have been that thin; start-up dips last seconds "
        "(RyderFreeman4Logos/gb10-services).",
    )
    gone_gib: float = Field(
        default=1.5,
        ge=0.0,
        le=60.0,
        description="Below this movement is critical: a bench on the edge was stopped below 1 GiB "
        "(Reederey87/dgx-spark-2x-deepseek-v4-flash), 1.5 to 1.9 GiB held still for weeks "
        "(Blackwellboy/model-serving-minefield#134).",
    )
    gone_leave_gib: float = Field(
        default=2.0,
        ge=0.0,
        le=60.0,
        description="From here on it is no longer nearly gone "
        "(Blackwellboy/model-serving-minefield#134).",
    )
    gone_hold_seconds: float = Field(
        default=5.0,
        ge=0.0,
        le=3600.0,
        description="How long it must have been that low and moving: the abort rule of "
        "Reederey87/dgx-spark-2x-deepseek-v4-flash took five readings.",
    )
    gone_leave_seconds: float = Field(
        default=30.0,
        ge=0.0,
        le=3600.0,
        description="How long it must have rested; thrash is bimodal, 36.8 tokens a second and "
        "none in turn (tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark#19).",
    )
    falling_seconds: float = Field(
        default=30.0,
        gt=0.0,
        le=3600.0,
        description="The stretch in which nearly gone memory must have fallen by `falling_gib` "
        "(NousResearch/hermes-agent#90713).",
    )
    falling_gib: float = Field(
        default=0.5,
        gt=0.0,
        le=60.0,
        description="What counts as falling; thin healthy boxes move within 0.4 GiB "
        "(Blackwellboy/model-serving-minefield#134).",
    )
    swap_in_mib_per_second: float = Field(
        default=1.0,
        gt=0.0,
        le=100_000.0,
        description="Swap-in that counts as moving: 256 pages a second "
        "(Reederey87/dgx-spark-2x-deepseek-v4-flash).",
    )
    faults_per_second: float = Field(
        default=50.0,
        gt=0.0,
        le=10_000_000.0,
        description="Major faults that count as moving; a first touch of cold pages made 237 in "
        "all (Blackwellboy/model-serving-minefield#134).",
    )


class MemoryStalledSettings(Frozen):
    """When tasks stand still for lack of memory."""

    full_ratio: float = Field(
        default=0.5,
        gt=0.0,
        le=1.0,
        description="Share of ten seconds in which every task waited: 0.92 in two wedges, 0 on "
        "healthy boxes (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    leave_ratio: float = Field(
        default=0.3,
        gt=0.0,
        le=1.0,
        description="Below this tasks run again (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    critical_seconds: float = Field(
        default=180.0,
        ge=0.0,
        le=86_400.0,
        description="Critical after so long: 90 to 98 % for two minutes has been harmless, five "
        "minutes ended in a reboot (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    available_below_gib: float = Field(
        default=4.0,
        ge=0.0,
        le=121.0,
        description="Critical at once with less than this available: 3.8 GiB was read a minute "
        "before a wedge (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    late_intervals: float = Field(
        default=2.0,
        gt=0.0,
        le=1000.0,
        description="Critical at once when our own loop is later than so many intervals: then user "
        "space itself no longer runs (NVIDIA/open-gpu-kernel-modules#1358).",
    )


class PageCacheSqueezeSettings(Frozen):
    """When the page cache makes CUDA see little memory."""

    cache_gib: float = Field(
        default=16.0,
        gt=0.0,
        le=121.0,
        description="So much reclaimable cache: a 60 GiB file moved CUDA's free memory from 103 to "
        "41 GiB and available memory not at all (unslothai/unsloth#10704).",
    )
    leave_cache_gib: float = Field(
        default=14.0,
        ge=0.0,
        le=121.0,
        description="Below this the cache is no matter (unslothai/unsloth#10704).",
    )
    free_gib: float = Field(
        default=8.0,
        gt=0.0,
        le=121.0,
        description="So little free memory: engines saw 2.8 GiB with 52 GiB available "
        "(llamastash/llamastash#80).",
    )
    leave_free_gib: float = Field(
        default=10.0,
        gt=0.0,
        le=121.0,
        description="From here on enough is free (llamastash/llamastash#80).",
    )
    driver_failures: int = Field(
        default=5,
        ge=1,
        le=100_000,
        description="Driver allocation failures in a minute that are strain; one to three are "
        "normal at a start (vllm-project/vllm#56824).",
    )
    compaction_failures_per_second: float = Field(
        default=100.0,
        gt=0.0,
        le=1_000_000.0,
        description="Failed compactions that are strain: 1.35 million in a week, nearly all of "
        "them in loads of minutes (FujitsuPolycom/sparkring#173).",
    )
    compaction_failed_ratio: float = Field(
        default=0.6,
        ge=0.0,
        le=1.0,
        description="The share of the compactions that must have failed as well: on a starved unit "
        "half of them failed over a week of work (FujitsuPolycom/sparkring#173).",
    )
    strain_hold_seconds: float = Field(
        default=5.0,
        ge=0.0,
        le=3600.0,
        description="How long load and strain must have lasted; one driver line at a start is "
        "normal (vllm-project/vllm#56824).",
    )
    strain_leave_seconds: float = Field(
        default=30.0,
        ge=0.0,
        le=3600.0,
        description="How long the strain must have been over (FujitsuPolycom/sparkring#173).",
    )


class SwapThrashSettings(Frozen):
    """When swap traffic is thrash."""

    mib_per_second: float = Field(
        default=16.0,
        gt=0.0,
        le=100_000.0,
        description="Swap traffic that counts: 4,096 pages a second stopped a bench "
        "(Reederey87/dgx-spark-2x-deepseek-v4-flash).",
    )
    leave_mib_per_second: float = Field(
        default=8.0,
        gt=0.0,
        le=100_000.0,
        description="Below this it no longer counts (Reederey87/dgx-spark-2x-deepseek-v4-flash).",
    )
    hold_seconds: float = Field(
        default=10.0,
        ge=0.0,
        le=3600.0,
        description="How long it must have lasted; decode stalled for 10 s at a time with 3 GiB "
        "swapped out (tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark#19).",
    )
    leave_seconds: float = Field(
        default=30.0,
        ge=0.0,
        le=3600.0,
        description="How long it must have rested: thrash comes in bursts "
        "(tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark#19).",
    )
    available_below_gib: float = Field(
        default=8.0,
        ge=0.0,
        le=121.0,
        description="In and out together are critical below this "
        "(AEON-7/vllm-ultimate-dgx-spark#9).",
    )


class MemoryFragmentedSettings(Frozen):
    """When free memory is broken into small pieces."""

    free_gib: float = Field(
        default=32.0,
        gt=0.0,
        le=121.0,
        description="With less free memory the blocks say nothing: a cache-full box has none "
        "either (MiaAI-Lab/DeepSeek-v4.1-Flash-DGX-Sparks#23).",
    )
    block_mib: float = Field(
        default=16.0,
        gt=0.0,
        le=1024.0,
        description="A large block, or the kernel's largest where that is smaller: 27 and 5 blocks "
        "of 16 MiB after a week, 1,417 and 782 after a reboot (FujitsuPolycom/sparkring#173).",
    )
    share_ratio: float = Field(
        default=0.25,
        gt=0.0,
        le=1.0,
        description="So little of it in large blocks is broken up; a launch gate asks for 200 "
        "blocks of 32 MiB in 96 GiB (FujitsuPolycom/sparkring#222).",
    )
    leave_ratio: float = Field(
        default=0.3,
        gt=0.0,
        le=1.0,
        description="From here on it is whole again (FujitsuPolycom/sparkring#222).",
    )
    hold_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=86_400.0,
        description="How long it must have been so: an engine that ended returns its memory over "
        "minutes (Blackwellboy/model-serving-minefield#81).",
    )
    idle_available_gib: float = Field(
        default=90.0,
        gt=0.0,
        le=121.0,
        description="Where the process list is unknown, so much available memory means that no "
        "engine runs (FujitsuPolycom/sparkring#173).",
    )
