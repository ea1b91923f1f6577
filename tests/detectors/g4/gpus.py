"""Samples with GPUs and thermal zones, written in the units that people use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_watch.model import Failure, Gpu, Sample, Zone

START = 1e9


def gpu(
    percent: float | None,
    mhz: float | None,
    *,
    watts: float | None = 40.0,
    celsius: float | None = 60.0,
    reasons: tuple[str, ...] | None = None,
    seconds: Mapping[str, float] | None = None,
    index: int = 0,
) -> Gpu:
    """Return one GPU at a utilisation in per cent and a clock in megahertz."""
    return Gpu(
        index=index,
        utilization_ratio=None if percent is None else percent / 100,
        sm_hertz=None if mhz is None else mhz * 1e6,
        power_watts=watts,
        temperature_celsius=celsius,
        event_reasons=reasons,
        event_seconds=seconds,
    )


def at(
    second: float,
    *gpus: Gpu,
    boot_id: str | None = None,
    zones: Iterable[tuple[str, float | None]] | None = None,
) -> Sample:
    """Return a sample with these GPUs, and with zones as (type, degrees)."""
    return Sample(
        t=START + second,
        boot_id=boot_id,
        gpus=gpus or None,
        zones=None
        if zones is None
        else tuple(
            Zone(zone=number, type=kind, temperature_celsius=celsius)
            for number, (kind, celsius) in enumerate(zones)
        ),
    )


def lost(second: float, source: str = "nvml") -> Sample:
    """Return a sample at which a source was due and did not answer."""
    return Sample(t=START + second, failed=(Failure(source=source, reason="timeout"),))


def spread(gpus: Iterable[Gpu | None], interval: float = 1.0, start: float = 0.0) -> list[Sample]:
    """Return one sample for each GPU, evenly spaced; ``None`` is a lost reading."""
    return [
        lost(start + n * interval) if one is None else at(start + n * interval, one)
        for n, one in enumerate(gpus)
    ]
