"""Levels of the G5 conditions: the bytes a workload moves, and whether it slowed down."""

from typing import Self

from pydantic import Field, model_validator

from spark_watch.settings.frozen import Frozen


class BandwidthCeilingSettings(Frozen):
    """When a workload moves bytes as fast as this memory can."""

    specification_bytes_per_second: float = Field(
        default=273e9,
        gt=0.0,
        le=1e13,
        description="What 256 bits of LPDDR5X-8533 could move at best; no workload gets it "
        "(NVIDIA's data sheet).",
    )
    budget_low_bytes_per_second: float = Field(
        default=180e9,
        gt=0.0,
        le=1e13,
        description="What to plan with, the low end; a workload that moves this much is at the "
        "ceiling. Reads of small shapes reach 170 to 190 GB/s (lablup/mlxcel#684).",
    )
    budget_high_bytes_per_second: float = Field(
        default=192e9,
        gt=0.0,
        le=1e13,
        description="What to plan with, the high end (lablup/mlxcel#684).",
    )
    probe_bytes_per_second: float | None = Field(
        default=None,
        gt=0.0,
        le=1e13,
        description="What a pure read reaches on this machine; 219 to 240 GB/s on healthy ones "
        "(antirez/ds4#773). Unset: the stored result of spark-watch probe bandwidth.",
    )
    probe_ratio: float = Field(
        default=0.8,
        gt=0.0,
        le=1.0,
        description="Share of that read from which a workload is at the ceiling; decode reaches 85 "
        "to 90 % of it (antirez/ds4#773).",
    )
    bytes_per_step: float | None = Field(
        default=None,
        gt=0.0,
        le=1e15,
        description="Bytes that one step of your workload moves (one decode step of an engine "
        "reads its active weights), for workloads that do not report it. Unset: as reported.",
    )
    window_seconds: float = Field(
        default=60.0,
        ge=10.0,
        le=3600.0,
        description="The rate is taken over this time; training steps of 12 to 66 s were recorded "
        "(pendakwah), and three of them are waited for where they are longer.",
    )
    hold_seconds: float = Field(
        default=30.0,
        ge=0.0,
        le=3600.0,
        description="How long it must be so; a burst of decode between prefills is over sooner "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not (
            self.budget_low_bytes_per_second
            <= self.budget_high_bytes_per_second
            <= self.specification_bytes_per_second
        ):
            raise ValueError(
                "budget_low_bytes_per_second <= budget_high_bytes_per_second <= "
                "specification_bytes_per_second"
            )
        return self


class BandwidthDegradedSettings(Frozen):
    """When a workload runs well below its own speed."""

    slow_ratio: float = Field(
        default=0.75,
        gt=0.0,
        lt=1.0,
        description="Share of its own speed below which it is slow: 63 ms a step became 94 "
        "(tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1); the first step of a run is 2 to 12 % "
        "slower.",
    )
    leave_ratio: float = Field(
        default=0.85,
        gt=0.0,
        le=1.0,
        description="From this share on it is itself again "
        "(tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1).",
    )
    clock_ratio: float = Field(
        default=0.9,
        gt=0.0,
        le=1.0,
        description="A clock below this share of that at full speed explains the loss; dense work "
        "lowers it by 10 % (djangodevreng/dgx-spark-benchmarks).",
    )
    power_ratio: float = Field(
        default=0.85,
        gt=0.0,
        le=1.0,
        description="Where the workload does not say that its work is the same, power must have "
        "fallen to this share as well: 31 to 36 W became 15 to 20 (ggml-org/llama.cpp, discussion "
        "18254).",
    )
    learn_seconds: float = Field(
        default=300.0,
        ge=10.0,
        le=86400.0,
        description="How long a speed must have been steady to be its own; slow episodes last 7 "
        "min of 30 (Blackwellboy/model-serving-minefield#55).",
    )
    server_seconds: float = Field(
        default=1800.0,
        ge=10.0,
        le=86400.0,
        description="A server does not say what its tokens cost: before a loss of its speed proves "
        "anything it must have kept that speed for so long. One of two nodes waits for the other, "
        "at 20 to 48 W from minute to minute (heitor-mocelin/dgx-spark-research).",
    )
    learn_readings: int = Field(
        default=10,
        ge=3,
        le=60,
        description="And so many steps or readings at least (steps of 34 to 66 s: pendakwah).",
    )
    steady_ratio: float = Field(
        default=0.2,
        gt=0.0,
        le=1.0,
        description="Steady: nine tenths lie within this share of the median; 500 steps of a "
        "fine-tuning stay within 0.1 % (pendakwah).",
    )
    hold_seconds: float = Field(
        default=120.0,
        ge=0.0,
        le=7200.0,
        description="How long it must be slow; one prefill slows other streams for 34.5 s "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
