"""The GPU die is close to where the machine has been seen to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.holds import Level
from spark_watch.detectors.timeline import Tick
from spark_watch.model import State
from spark_watch.settings.g4 import GpuHotSettings


class GpuHot(Condition[GpuHotSettings]):
    """Die temperature at or above a level for a while."""

    name = "gpu_hot"
    gotcha = "G4"
    part = "gpus"
    sources = ("nvml",)
    gb10_only = True
    summary = "GPU die >= 88 C for 60 s"
    remedies: ClassVar = {
        State.WARNING: "Check the air path (intake, dust, a reversed fan) and the room; capping "
        "the clock (nvidia-smi -lgc 0,2100) lowers the heat at little cost. Restarting the job "
        "alone does not help.",
    }

    def __init__(self, settings: GpuHotSettings) -> None:
        super().__init__(settings)
        self._levels: dict[int, Level] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each GPU by its own temperature; below the level it is ok at once."""
        gpus = tick.sample.gpus
        if gpus is None:
            return None
        return {
            f"gpu{gpu.index}": self._one(tick, gpu.index, gpu.temperature_celsius) for gpu in gpus
        }

    def _one(self, tick: Tick, index: int, celsius: float | None) -> Judgement | None:
        if celsius is None:
            return None
        settings = self.settings
        level = self._levels.get(index)
        if level is None:
            level = self._levels[index] = Level(settings.hold_seconds)
        hot = level.update(
            tick.now,
            enter=celsius >= settings.warning_celsius,
            leave=celsius < settings.leave_celsius,
            interval_seconds=tick.interval("gpus"),
        )
        values = {
            "gpu": index,
            "celsius": celsius,
            "level": settings.warning_celsius,
            "held": level.held_seconds(tick.now),
        }
        if hot:
            return Judgement(
                State.WARNING,
                "GPU {gpu} die at {celsius:.0f} C, at or near {level:.0f} C for {held:.0f} s.",
                values,
            )
        if celsius >= settings.warning_celsius:
            return Judgement(
                State.OK if level.known else State.UNKNOWN,
                "GPU {gpu} die at {celsius:.0f} C for {held:.0f} s; it counts as hot after "
                "{hold:.0f} s from {level:.0f} C.",
                {**values, "hold": settings.hold_seconds},
            )
        return Judgement(State.OK, "GPU {gpu} die at {celsius:.0f} C, below {level:.0f} C.", values)
