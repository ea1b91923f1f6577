"""Levels of the G6 conditions: several processes on one pool."""

from typing import Self

from pydantic import Field, model_validator

from spark_watch.settings.frozen import Frozen


class PoolOvercommittedSettings(Frozen):
    """When what the processes may take together is more than the pool."""

    warning_claims_ratio: float = Field(
        default=1.0,
        gt=0.0,
        le=10.0,
        description="Two or more claims that add up to more than this share of the pool; each "
        "fraction is taken of the whole pool (vllm-project/vllm#46307).",
    )
    info_claims_ratio: float = Field(
        default=0.9,
        gt=0.0,
        le=10.0,
        description="The same, to be known: the rest of the host needs 22 to 26 GiB "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    heavy_claim_ratio: float = Field(
        default=0.5,
        gt=0.0,
        le=1.0,
        description="A claim above this share of the pool is heavy; static fractions above it "
        "have frozen machines (hasso5703/dgx-spark-qwen38).",
    )
    near_capacity_ratio: float = Field(
        default=0.85,
        gt=0.0,
        le=1.0,
        description="A claim from here on leaves nothing for another; 0.88 ran and 0.90 froze "
        "(Avarok-Cybersecurity/atlas-recipes#72).",
    )
    heavy_gib: float = Field(
        default=4.0,
        gt=0.0,
        le=128.0,
        description="A process without a claim is heavy from this much GPU memory on, for a pool "
        "of 121.7 GiB; a second model of that size loaded in good order with 30 GiB free "
        "(flowy0/gb10-experiments).",
    )
    heavy_leave_gib: float = Field(
        default=3.0,
        gt=0.0,
        le=128.0,
        description="Below this it is heavy no more; caches of a job come and go by a few hundred "
        "MiB (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    low_memory_gib: float = Field(
        default=16.0,
        ge=0.0,
        le=128.0,
        description="Available memory below which a heavy neighbour is a warning, for a pool of "
        "121.7 GiB; co-tenants ended two servers within a reserve of 30 GiB "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark#54).",
    )
    leave_memory_gib: float = Field(
        default=18.0,
        ge=0.0,
        le=128.0,
        description="From this much available memory on it is no warning any more; the page cache "
        "alone moves it by 2 GiB (luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    restarts: int = Field(
        default=3,
        ge=2,
        le=100,
        description="So many short lives of an engine beside another one are a loop: the next "
        "start finds as little memory as the last one did (Blackwellboy/model-serving-minefield).",
    )
    restart_window_seconds: float = Field(
        default=900.0,
        ge=60.0,
        le=86400.0,
        description="The time in which they are counted; weights take 40 s and more to load "
        "(luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    short_life_seconds: float = Field(
        default=300.0,
        ge=10.0,
        le=3600.0,
        description="A server that ended sooner than this never served; loads take up to 224 s "
        "(ggml-org/llama.cpp#27742).",
    )
    hold_seconds: float = Field(
        default=5.0,
        ge=0.0,
        le=600.0,
        description="How long they must have been there together: a tool that opens the GPU for a "
        "moment is no neighbour; a start takes 40 s and more to load "
        "(luisefigueroa/pulsar-gb10-vllm-stack).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.info_claims_ratio > self.warning_claims_ratio:
            raise ValueError("info_claims_ratio must be at most warning_claims_ratio")
        if self.heavy_leave_gib > self.heavy_gib:
            raise ValueError("heavy_leave_gib must be at most heavy_gib")
        if self.leave_memory_gib < self.low_memory_gib:
            raise ValueError("leave_memory_gib must be at least low_memory_gib")
        return self


class SqueezedSettings(Frozen):
    """When one GPU process loses memory to another."""

    window_seconds: float = Field(
        default=60.0,
        ge=10.0,
        le=3600.0,
        description="Losses and growth are measured over this time; a co-tenant's load takes 40 s "
        "and more (luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    hold_seconds: float = Field(
        default=10.0,
        ge=0.0,
        le=600.0,
        description="How long it must show; a single collection of garbage is over sooner.",
    )
    leave_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=3600.0,
        description="How long nothing must show before it is over; stalls by swap come every 10 s "
        "(tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark).",
    )
    lost_gib: float = Field(
        default=1.0,
        gt=0.0,
        le=128.0,
        description="What the process must have lost, a part of it to swap or read back since, for "
        "a pool of 121.7 GiB; caches move by a few hundred MiB "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    swapped_gib: float = Field(
        default=0.25,
        gt=0.0,
        le=128.0,
        description="What of it must have gone to swap, for a pool of 121.7 GiB; 3 GiB made decode "
        "stall for 10 s (tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark).",
    )
    grown_gib: float = Field(
        default=1.0,
        gt=0.0,
        le=128.0,
        description="What another engine must have taken meanwhile, for a pool of 121.7 GiB "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark#54).",
    )
    faults_per_minute: float = Field(
        default=50.0,
        gt=0.0,
        le=1e6,
        description="Major faults of the process from which it is read back from disk; 237 at a "
        "first touch, with no refault, were healthy (docs.kernel.org, admin-guide/mm/concepts).",
    )
    refaults_per_minute: float = Field(
        default=50.0,
        gt=0.0,
        le=1e9,
        description="Refaults on the machine that make those faults a loss: pages that were there "
        "before (docs.kernel.org, workingset_refault in admin-guide/cgroup-v2).",
    )
    swap_in_mib_per_minute: float = Field(
        default=1.0,
        gt=0.0,
        le=1e6,
        description="Or so much read back from swap: 256 pages "
        "(Reederey87/dgx-spark-2x-deepseek-v4-flash).",
    )
    settle_seconds: float = Field(
        default=300.0,
        ge=0.0,
        le=86400.0,
        description="A process younger than this loads: what it frees and faults is its own "
        "start (RyderFreeman4Logos/gb10-services).",
    )
    frozen_seconds: float = Field(
        default=60.0,
        ge=5.0,
        le=3600.0,
        description="How long requests must run without a token; a long prefill kept other streams "
        "waiting for 34.5 s (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.hold_seconds > self.window_seconds:
            raise ValueError("hold_seconds must be at most window_seconds")
        return self


class OrphanedMemorySettings(Frozen):
    """When an engine process outlived its launcher."""

    hold_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=3600.0,
        description="How long the launcher must be gone: an orderly stop takes seconds, an engine "
        "process kept 104 GiB for good (Blackwellboy/model-serving-minefield).",
    )
    minimum_gib: float = Field(
        default=0.5,
        ge=0.0,
        le=128.0,
        description="What it must hold of the GPU's memory at least, for a pool of 121.7 GiB "
        "(Blackwellboy/model-serving-minefield).",
    )


class UnattributedMemorySettings(Frozen):
    """When the driver holds more than the listed processes explain."""

    info_gib: float = Field(
        default=16.0,
        gt=0.0,
        le=128.0,
        description="How much more, for a pool of 121.7 GiB; 1 to 9 GiB between the two counts "
        "are normal (Syllo/nvtop#449).",
    )
    leave_gib: float = Field(
        default=12.0,
        ge=0.0,
        le=128.0,
        description="Below this it is explained again (Syllo/nvtop#449).",
    )
    hold_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=3600.0,
        description="How long: a load grows by 2 GiB/s between two looks at the list "
        "(vllm-project/vllm#56824).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.leave_gib > self.info_gib:
            raise ValueError("leave_gib must be at most info_gib")
        return self
