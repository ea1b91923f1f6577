"""G4: throttling, stuck low power, spontaneous reboot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from spark_watch.detectors.g4_power.low_power_state import BELOW_LIMIT
from spark_watch.model import Gpu
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Result

ZONES: Final = "acpitz"
"""The type of every zone of a GB10's board."""

FIX_HOT: Final = (
    "let it cool before the run, clear intake and exhaust, see that the fan blows outward; clocks "
    "capped at 2000 MHz (nvidia-smi -lgc) cost little and take 10 C"
)
FIX_STUCK: Final = (
    "take the box off the mains for five minutes; neither a reboot nor a clock lock helps "
    "(Blackwellboy/model-serving-minefield#55)"
)


def check(facts: Facts) -> Iterator[Line]:
    """Judge temperatures, power and clock as they are now, and how the last boots ended."""
    if not facts.gpus:
        yield Line(
            "G4",
            "gpu",
            Result.SKIP,
            f"NVML gave no reading of a GPU: {facts.why('gpus')}",
            "see that nvidia-smi answers; a driver that does not answer is itself a failure",
        )
    for gpu in facts.gpus or ():
        yield _temperature(facts, gpu)
        yield _clock(facts, gpu)
    yield _zones(facts)
    yield _boots(facts)


def _temperature(facts: Facts, gpu: Gpu) -> Line:
    name = f"gpu{gpu.index}_temperature"
    celsius = gpu.temperature_celsius
    if celsius is None:
        return Line("G4", name, Result.SKIP, f"GPU {gpu.index} gives no die temperature")
    values = {"temperature_celsius": celsius}
    sentence = f"GPU {gpu.index} die at {celsius:.0f} C"
    if celsius >= facts.conditions.gpu_hot.warning_celsius:
        return Line("G4", name, Result.WARN, f"{sentence} before the run", FIX_HOT, values)
    if celsius >= facts.conditions.power_plateau.warm_celsius and idle(facts, gpu):
        return Line(
            "G4",
            name,
            Result.INFO,
            f"{sentence} at rest: a run that starts warm is slowed by heat sooner",
            "let it cool below 60 C first; rest is 40 to 58 C",
            values,
        )
    return Line("G4", name, Result.PASS, sentence, "", values)


def idle(facts: Facts, gpu: Gpu) -> bool:
    """Whether a GPU is known to do nothing."""
    loaded = facts.conditions.low_power_state.loaded_ratio
    return gpu.utilization_ratio is not None and gpu.utilization_ratio < loaded / 2


def _clock(facts: Facts, gpu: Gpu) -> Line:
    settings = facts.conditions.low_power_state
    name = f"gpu{gpu.index}_clock"
    parts = []
    if gpu.power_watts is not None:
        parts.append(f"{gpu.power_watts:.1f} W")
    if gpu.sm_hertz is not None:
        parts.append(f"SM {gpu.sm_hertz / 1e6:.0f} MHz")
    if gpu.utilization_ratio is not None:
        parts.append(f"{gpu.utilization_ratio:.0%} busy")
    sentence = f"GPU {gpu.index} at {', '.join(parts) or 'nothing that can be read'}"
    values = {
        "power_watts": gpu.power_watts,
        "sm_hertz": gpu.sm_hertz,
        "utilization_ratio": gpu.utilization_ratio,
    }
    if gpu.sm_hertz is None or gpu.utilization_ratio is None:
        return Line(
            "G4",
            name,
            Result.SKIP,
            f"{sentence}; without clock and load a stuck power state cannot be seen",
            "see that nvidia-smi answers",
            values,
        )
    if gpu.utilization_ratio < settings.loaded_ratio:
        return Line(
            "G4",
            name,
            Result.INFO,
            f"{sentence}: a stuck power state shows under load alone",
            "watch the first minute of the run: spark-watch check",
            values,
        )
    limit = settings.gpu_clock_limit_hertz
    low = settings.low_hertz if limit is None else min(settings.low_hertz, limit * BELOW_LIMIT)
    if facts.machine.is_gb10 and gpu.sm_hertz < low:
        return Line(
            "G4",
            name,
            Result.FAIL,
            f"{sentence}: this clock under load is the stuck low-power state",
            FIX_STUCK,
            values,
        )
    return Line("G4", name, Result.PASS, sentence, "", values)


def _zones(facts: Facts) -> Line:
    zones = facts.zones
    if zones is None:
        none = facts.why("zones") == "not_found"
        return Line(
            "G4",
            "board",
            Result.INFO if none and not facts.machine.is_gb10 else Result.SKIP,
            "this machine has no thermal zone"
            if none
            else f"thermal zones could not be read: {facts.why('zones')}",
            "run on the host, with /sys mounted",
        )
    measured = [
        (zone.temperature_celsius, zone)
        for zone in zones
        if zone.temperature_celsius is not None
        and (zone.type == ZONES or not facts.machine.is_gb10)
    ]
    if not measured:
        return Line(
            "G4", "board", Result.SKIP, "no thermal zone gives a temperature", "see sensors(1)"
        )
    celsius, hottest = max(measured, key=lambda each: each[0])
    sentence = f"hottest of {len(measured)} zones at {celsius:.0f} C (zone {hottest.zone})"
    values = {"temperature_celsius": celsius, "zone": hottest.zone}
    if facts.machine.is_gb10 and celsius >= facts.conditions.board_hot.warning_celsius:
        return Line("G4", "board", Result.WARN, f"{sentence} before the run", FIX_HOT, values)
    return Line("G4", "board", Result.PASS, sentence, "", values)


def _boots(facts: Facts) -> Line:
    found = facts.boots
    if found is None and facts.why("boots") in {"not_found", "not_read"}:
        return Line(
            "G4",
            "boots",
            Result.INFO,
            "there is no record of how earlier boots ended",
            "let the daemon run: it keeps one (spark-watch postmortem)",
        )
    if found is None and facts.why("boots") == "permission_denied":
        return Line(
            "G4",
            "boots",
            Result.INFO,
            "the record of earlier boots may not be read by this user",
            "sudo spark-watch postmortem",
        )
    if found is None:
        return Line(
            "G4",
            "boots",
            Result.SKIP,
            f"the record of earlier boots could not be read: {facts.why('boots')}",
            "spark-watch postmortem",
        )
    values = {"clean": found.clean, "unclean_timestamp_seconds": list(found.unclean)}
    if found.unclean:
        last = time.strftime("%Y-%m-%d %H:%M", time.gmtime(found.unclean[-1]))
        return Line(
            "G4",
            "boots",
            Result.WARN,
            f"{len(found.unclean)} boots of the last 7 days ended without a clean stop, the last "
            f"at {last} UTC",
            "spark-watch postmortem says what stood before; after a second one without a "
            "precursor run the field diagnostics",
            values,
        )
    return Line(
        "G4",
        "boots",
        Result.PASS,
        f"no recorded boot of the last 7 days ended uncleanly ({found.clean} ended cleanly)",
        "",
        values,
    )
