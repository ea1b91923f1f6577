"""Samples with a GPU and the reports of workloads, written in the units that people use."""

from __future__ import annotations

from spark_watch.model import Gpu, Progress, Sample

START = 1e9


def server(
    tokens: float,
    *,
    running: float = 8,
    prompt: float = 0.0,
    phase: str | None = None,
    model_bytes: float | None = None,
) -> Progress:
    """Return what an engine that has made so many tokens says."""
    return Progress(
        workload="vllm",
        generation_tokens_total=tokens,
        prompt_tokens_total=prompt,
        requests_running=running,
        phase=phase,
        model_bytes=model_bytes,
    )


def loop(
    steps: float,
    step_seconds: float | None = None,
    *,
    batch: float | None = None,
    bytes_total: float | None = None,
    model_bytes: float | None = None,
) -> Progress:
    """Return what a training loop that has done so many steps says."""
    return Progress(
        workload="train",
        steps_total=steps,
        step_seconds=step_seconds,
        batch=batch,
        bytes_total=bytes_total,
        model_bytes=model_bytes,
    )


def at(
    second: float,
    *reports: Progress,
    percent: float | None = 96,
    watts: float | None = 19.0,
    celsius: float | None = 50.0,
    mhz: float | None = 2400.0,
    silent: bool = False,
) -> Sample:
    """Return a sample; without reports there is no feed, ``silent`` leaves it out this time."""
    gpu = Gpu(
        index=0,
        utilization_ratio=None if percent is None else percent / 100,
        power_watts=watts,
        temperature_celsius=celsius,
        sm_hertz=None if mhz is None else mhz * 1e6,
    )
    progress = None if silent or not reports else reports
    return Sample(t=START + second, gpus=(gpu,), progress=progress)
