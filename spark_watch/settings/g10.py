"""Levels of the G10 conditions: a GPU that is busy and gets nowhere."""

from pydantic import Field

from spark_watch.settings.frozen import Frozen


class BusyWithoutProgressSettings(Frozen):
    """When a GPU counts as busy on paper alone."""

    busy_ratio: float = Field(
        default=0.9,
        gt=0.0,
        le=1.0,
        description="Utilisation from which the GPU is busy; 95 to 96 % were read while every rank "
        "was deadlocked (eugr/spark-vllm-docker#260).",
    )
    idle_watts: float = Field(
        default=28.0,
        gt=0.0,
        le=1000.0,
        description="Power below which a busy GPU moves next to nothing: 16 to 27 W in a deadlock, "
        "about 46 W in a prefill that emits no token (eugr/spark-vllm-docker#260).",
    )
    leave_watts: float = Field(
        default=30.0,
        gt=0.0,
        le=1000.0,
        description="From this power on it works again (eugr/spark-vllm-docker#260).",
    )
    rising_celsius: float = Field(
        default=3.0,
        gt=0.0,
        le=50.0,
        description="A die that has warmed by this much within the hold works; it cools in a "
        "deadlock (eugr/spark-vllm-docker#260).",
    )
    clock_hertz: float = Field(
        default=1.5e9,
        ge=0.0,
        le=5e9,
        description="Below this SM clock the low power has another cause, and without a feed "
        "nothing is said (Blackwellboy/model-serving-minefield#55).",
    )
    hold_seconds: float = Field(
        default=60.0,
        ge=5.0,
        le=3600.0,
        description="How long, and for how long no token and no step must have come for a warning; "
        "a long prefill kept streams waiting for 34.5 s "
        "(MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark).",
    )
    critical_seconds: float = Field(
        default=120.0,
        ge=5.0,
        le=7200.0,
        description="From here on it does not end by itself: errors came after 243 s "
        "(MiaAI-Lab/DeepSeek-v4.1-Flash-EXL3-2x-DGX-Sparks#22).",
    )
    leave_seconds: float = Field(
        default=10.0,
        ge=0.0,
        le=600.0,
        description="How long the GPU must be at rest or at work again "
        "(eugr/spark-vllm-docker#260).",
    )
