"""Levels of the G6 conditions: several processes on one pool."""

from pydantic import Field

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
    hold_seconds: float = Field(
        default=5.0,
        ge=0.0,
        le=600.0,
        description="How long they must have been there together: a tool that opens the GPU for a "
        "moment is no neighbour; a start takes 40 s and more to load "
        "(luisefigueroa/pulsar-gb10-vllm-stack).",
    )
