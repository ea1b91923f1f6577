"""Levels of the G4 conditions: throttling, stuck low power, heat, spontaneous reboot."""

from typing import Self

from pydantic import Field, model_validator

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
        default=85.0,
        ge=40.0,
        le=120.0,
        description="Below this it has cooled down (luisefigueroa/pulsar-gb10-vllm-stack).",
    )
    hold_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=3600.0,
        description="How long it must have been that hot (NVIDIA/open-gpu-kernel-modules#1358).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.warning_celsius < self.leave_celsius:
            raise ValueError("leave_celsius must be at most warning_celsius")
        return self


class LowPowerStateSettings(Frozen):
    """When a loaded GPU at a very low clock counts as stuck in the platform's low-power state."""

    low_hertz: float = Field(
        default=1.0e9,
        ge=1.0e8,
        le=3.0e9,
        description="SM clock below which a loaded GPU is stuck; stuck units read 630 to 890 MHz "
        "(Blackwellboy/model-serving-minefield#55, hasso5703/dgx-spark-qwen38#8).",
    )
    clear_hertz: float = Field(
        default=1.5e9,
        ge=1.0e8,
        le=3.0e9,
        description="SM clock under load from which it has recovered; below 2000 MHz because "
        "owners lock clocks there (maci0/gb10-thermal-toolkit).",
    )
    loaded_ratio: float = Field(
        default=0.8,
        ge=0.1,
        le=1.0,
        description="Utilisation from which the clock proves something; less is inconclusive "
        "(hoesing/spark-gpu-throttle-check).",
    )
    warning_seconds: float = Field(
        default=2.0,
        ge=0.0,
        le=600.0,
        description="How long it must be stuck for a warning; ramps at the start of a load take "
        "less than 1 s (hasso5703/dgx-spark-qwen38#8).",
    )
    critical_seconds: float = Field(
        default=20.0,
        ge=0.0,
        le=3600.0,
        description="How much load it must have spent stuck to be critical "
        "(Blackwellboy/model-serving-minefield#55).",
    )
    clear_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=3600.0,
        description="How much load it must have spent recovered to be cleared; stalls come back "
        "every half hour on some units (Blackwellboy/model-serving-minefield#55).",
    )
    gpu_clock_limit_hertz: float | None = Field(
        default=None,
        ge=1.0e8,
        le=5.0e9,
        description="The clock the owner has locked the GPU to, if any: the levels stay below it. "
        "A lock that is accepted is not always held (Blackwellboy/model-serving-minefield#55).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low_hertz >= self.clear_hertz:
            raise ValueError("clear_hertz must be above low_hertz")
        if self.warning_seconds > self.critical_seconds:
            raise ValueError("critical_seconds must be at least warning_seconds")
        return self


class ThermalSlowdownSettings(Frozen):
    """When time lost to thermal slowdown counts, out of the last ten minutes."""

    window_seconds: float = Field(
        default=600.0,
        ge=60.0,
        le=7200.0,
        description="Over how long the shares are taken; the counters never reset, so only their "
        "growth says anything (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    software_warning_ratio: float = Field(
        default=0.02,
        gt=0.0,
        le=1.0,
        description="Share of time in software slowdown; a unit with a blocked air path spent "
        "5 %, its healthy twin 0.05 % (Avarok-Cybersecurity/atlas#569).",
    )
    software_critical_ratio: float = Field(
        default=0.10,
        gt=0.0,
        le=1.0,
        description="The same from which the work is clearly slower "
        "(Avarok-Cybersecurity/atlas#569).",
    )
    hardware_warning_seconds: float = Field(
        default=0.1,
        gt=0.0,
        le=7200.0,
        description="Seconds of hardware slowdown: healthy units have none for days "
        "(ollama/ollama#13552).",
    )
    hardware_critical_seconds: float = Field(
        default=10.0,
        gt=0.0,
        le=7200.0,
        description="The same from which the next step is a forced power-off; 228 s in 16 h were "
        "seen on a failing unit (Avarok-Cybersecurity/atlas#569).",
    )
    leave_share: float = Field(
        default=0.8,
        gt=0.0,
        le=1.0,
        description="A level is left below this share of itself, so that it does not flap.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.software_warning_ratio > self.software_critical_ratio:
            raise ValueError("software_critical_ratio must be at least software_warning_ratio")
        if self.hardware_warning_seconds > self.hardware_critical_seconds:
            raise ValueError("hardware_critical_seconds must be at least hardware_warning_seconds")
        return self


class PowerPlateauSettings(Frozen):
    """When power that no longer follows the work counts as held down."""

    window_seconds: float = Field(
        default=300.0,
        ge=60.0,
        le=3600.0,
        description="The stretch of steady load that is judged; phases of a request sweep last "
        "seconds (djangodevreng/dgx-spark-benchmarks).",
    )
    loaded_ratio: float = Field(
        default=0.9,
        ge=0.1,
        le=1.0,
        description="Utilisation of a saturated GPU; 0.94 to 0.96 is as high as it reads "
        "(NVIDIA/open-gpu-kernel-modules#1358).",
    )
    power_ratio: float = Field(
        default=0.85,
        gt=0.0,
        lt=1.0,
        description="Power that counts as held down, as a share of what this run reached for a "
        "tenth of its time (Avarok-Cybersecurity/atlas#569).",
    )
    clock_ratio: float = Field(
        default=0.93,
        gt=0.0,
        lt=1.0,
        description="The same for the SM clock; dense prefill alone costs 10 % of the clock, but "
        "at full power (djangodevreng/dgx-spark-benchmarks).",
    )
    deviation_ratio: float = Field(
        default=0.05,
        gt=0.0,
        le=1.0,
        description="Standard deviation of the power over its mean up to which it is flat; decode "
        "between prefills moves it by half (djangodevreng/dgx-spark-benchmarks).",
    )
    hot_celsius: float = Field(
        default=75.0,
        ge=40.0,
        le=120.0,
        description="Die temperature from which heat may hold power down; software slowdown was "
        "seen at 76 to 85 C (NVIDIA/open-gpu-kernel-modules#1358).",
    )
    cooled_celsius: float = Field(
        default=5.0,
        ge=0.0,
        le=40.0,
        description="A die that is so much cooler than in the hot tenth of its run is not held "
        "down by heat: a clock lock cools it by 10 C (maci0/gb10-thermal-toolkit).",
    )
    climb_celsius: float = Field(
        default=3.0,
        gt=0.0,
        le=40.0,
        description="Rise over the stretch that counts as climbing (colonel-otto/"
        "3x-dgx-spark-mesh-deepseek-v4-0731-flash: 51 to 85 C at a steady load).",
    )
    warm_celsius: float = Field(
        default=65.0,
        ge=20.0,
        le=120.0,
        description="Below this a rise is the warm-up of any load "
        "(jschmied/qwen38-flash-next-gb10).",
    )
    ceiling_watts: float = Field(
        default=95.0,
        gt=0.0,
        le=2000.0,
        description="Power that is as much as a GB10's GPU takes; 97 to 101 W are seen "
        "(djangodevreng/dgx-spark-benchmarks).",
    )
    clear_seconds: float = Field(
        default=60.0,
        ge=0.0,
        le=3600.0,
        description="How long the signature must be gone (djangodevreng/dgx-spark-benchmarks).",
    )
    gpu_clock_limit_hertz: float | None = Field(
        default=None,
        ge=1.0e8,
        le=5.0e9,
        description="The clock the owner has locked the GPU to, if any: a clock at the lock is not "
        "held down (maci0/gb10-thermal-toolkit).",
    )


class BoardHotSettings(Frozen):
    """When the hottest point of the board counts as close to the cut-off."""

    warning_celsius: float = Field(
        default=94.0,
        ge=40.0,
        le=120.0,
        description="Hottest acpitz zone; a reversed fan held it at 94 to 96 C "
        "(maci0/gb10-thermal-toolkit), the cut-off is at 104.8 C.",
    )
    leave_celsius: float = Field(
        default=91.0,
        ge=40.0,
        le=120.0,
        description="Below this the board has cooled down (maci0/gb10-thermal-toolkit).",
    )
    warning_seconds: float = Field(
        default=30.0,
        ge=0.0,
        le=3600.0,
        description="How long it must be that hot; single samples of 95.8 C stood in 17 healthy "
        "hours (maci0/gb10-thermal-toolkit).",
    )
    critical_celsius: float = Field(
        default=100.0,
        ge=40.0,
        le=120.0,
        description="Hottest zone from which the cut-off is seconds to minutes away "
        "(geerlingguy/top500-benchmark#79 completed at 98 C).",
    )
    critical_seconds: float = Field(
        default=10.0,
        ge=0.0,
        le=3600.0,
        description="How long it must be that hot, or hot and slowed down "
        "(maci0/gb10-thermal-toolkit).",
    )
    slowed_ratio: float = Field(
        default=0.85,
        gt=0.0,
        lt=1.0,
        description="SM clock under load, as a share of the median of its own run, below which it "
        "is slowed down (maci0/gb10-thermal-toolkit).",
    )
    slowdown_memory_seconds: float = Field(
        default=60.0,
        ge=1.0,
        le=3600.0,
        description="For how long growth of the hardware thermal counter counts as slowdown now "
        "(Avarok-Cybersecurity/atlas#569).",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.warning_celsius < self.leave_celsius:
            raise ValueError("leave_celsius must be at most warning_celsius")
        if self.warning_celsius > self.critical_celsius:
            raise ValueError("critical_celsius must be at least warning_celsius")
        return self
