"""The hottest point of the board is close to where the firmware cuts the power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g4_power.thermal_slowdown import HARDWARE
from spark_watch.detectors.holds import Level
from spark_watch.detectors.run import Run, runs
from spark_watch.detectors.timeline import HOLE_INTERVALS, Tick
from spark_watch.model import Gpu, State, Zone
from spark_watch.settings.g4 import BoardHotSettings

BOARD_TYPE: Final = "acpitz"
"""The type of the zones that the firmware's cut-off follows; others (NVMe, network) are not it."""

BASELINE_SECONDS: Final = 60.0
"""So much load must lie in a run before its median clock says anything."""


class _Slowdown:
    """Whether a GPU shows that heat slows it down, from its own readings."""

    __slots__ = ("_clock", "_counter", "_grown_at", "_reach_seconds", "_read_at", "_run")

    def __init__(self) -> None:
        self._counter: float | None = None
        self._grown_at: float | None = None
        self._clock: float | None = None
        self._run: Run | None = None
        self._read_at = 0.0
        self._reach_seconds = 0.0

    def update(self, tick: Tick, gpu: Gpu) -> None:
        """Take the newest reading."""
        now = tick.now
        counter = (gpu.event_seconds or {}).get(HARDWARE)
        if counter is not None:
            if self._counter is not None and counter > self._counter:
                self._grown_at = now
            self._counter = counter
        if gpu.event_reasons is not None and HARDWARE in gpu.event_reasons:
            self._grown_at = now
        self._run = run = runs(tick)[gpu.index]
        self._clock = gpu.sm_hertz if run.loaded else None
        self._read_at = now
        self._reach_seconds = HOLE_INTERVALS * tick.interval("gpus")

    def words(self, now: float, settings: BoardHotSettings) -> str:
        """Say what shows it, nothing where nothing does."""
        memory_seconds = settings.slowdown_memory_seconds
        if self._grown_at is not None and now - self._grown_at <= memory_seconds:
            return "hardware slowdown counted"
        if self._clock is None or self._run is None or now - self._read_at > self._reach_seconds:
            return ""
        usual = self._run.clock
        median = usual.quantile(0.5) if usual.seconds >= BASELINE_SECONDS else None
        if median is not None and self._clock < settings.slowed_ratio * median:
            return "clock well below this run's median"
        return ""


class BoardHot(Condition[BoardHotSettings]):
    """The hottest ``acpitz`` zone for a while, and whether the GPU is slowed down with it.

    The zones drive the cut-off (104.8 C); they run some 10 C above the die and rise minutes before
    it, also with the GPU at rest and the CPU at work. Source: maci0/gb10-thermal-toolkit.
    """

    name = "board_hot"
    gotcha = "G4"
    part = "zones"
    sources = ("thermal",)
    gb10_only = True
    summary = (
        "Hottest acpitz zone >= 94 C for 30 s; critical >= 100 C for 10 s, or >= 94 C and slowed"
    )
    remedies: ClassVar = {
        State.WARNING: "Look at the air path: intake and outlet free, dust, a fan that turns the "
        "wrong way, boxes stacked. Capping the clock (nvidia-smi "
        "-lgc 0,2000) takes 10 C off; less CPU work helps as well. The GPU's own temperature does "
        "not show this.",
        State.CRITICAL: "Near the cut-off: cap the clock now (nvidia-smi -lgc 0,2000) or pause the "
        "job, CPU work included, then see to the air path. A power-off by heat leaves no line in "
        "the log; a unit that then stays at 14 W needs its AC power removed for some minutes.",
    }

    def __init__(self, settings: BoardHotSettings) -> None:
        super().__init__(settings)
        self._warning = Level(settings.warning_seconds, settings.warning_seconds)
        self._critical = Level(settings.critical_seconds, settings.warning_seconds)
        self._slowdowns: dict[int, _Slowdown] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the whole board by its hottest zone."""
        for gpu in tick.sample.gpus or ():
            slowdown = self._slowdowns.get(gpu.index)
            if slowdown is None:
                slowdown = self._slowdowns[gpu.index] = _Slowdown()
            slowdown.update(tick, gpu)
        zones = tick.sample.zones
        if zones is None:
            return None
        return {"host": self._board(tick, zones)}

    def _board(self, tick: Tick, zones: tuple[Zone, ...]) -> Judgement | None:
        board = [zone for zone in zones if zone.type == BOARD_TYPE]
        if not board:
            return Judgement(
                State.UNKNOWN,
                "None of {count} thermal zones is the board's.",
                {"count": len(zones)},
            )
        read = [
            (zone.temperature_celsius, zone.zone)
            for zone in board
            if zone.temperature_celsius is not None
        ]
        if not read:
            return None
        celsius, number = max(read)
        settings = self.settings
        interval = tick.interval("zones")
        hot = celsius >= settings.warning_celsius
        slowed = ""
        if hot:
            said = (one.words(tick.now, settings) for one in self._slowdowns.values())
            slowed = next((words for words in said if words), "")
        cooled = celsius < settings.leave_celsius
        warning = self._warning.update(tick.now, enter=hot, leave=cooled, interval_seconds=interval)
        critical = self._critical.update(
            tick.now,
            enter=celsius >= settings.critical_celsius or bool(slowed),
            leave=celsius < settings.warning_celsius,
            interval_seconds=interval,
        )
        values: dict[str, Any] = {
            "zone": number,
            "celsius": celsius,
            "level": settings.warning_celsius,
            "held": self._warning.held_seconds(tick.now),
        }
        if critical:
            values["level"] = settings.critical_celsius
            values["why"] = f", {slowed}" if slowed else ""
            return Judgement(
                State.CRITICAL,
                "Board at {celsius:.1f} C (zone {zone}){why}: near the cut-off, hot for "
                "{held:.0f} s (level {level:.0f} C, or less when slowed down).",
                values,
            )
        if warning:
            return Judgement(
                State.WARNING,
                "Board at {celsius:.1f} C (zone {zone}), at or near {level:.0f} C for "
                "{held:.0f} s; {why}.",
                {**values, "why": slowed or "the GPU is not slowed down"},
            )
        if hot:
            return Judgement(
                State.OK if self._warning.known else State.UNKNOWN,
                "Board at {celsius:.1f} C (zone {zone}) for {held:.0f} s; it counts as hot after "
                "{hold:.0f} s from {level:.0f} C.",
                {**values, "hold": settings.warning_seconds},
            )
        return Judgement(
            State.OK, "Board at {celsius:.1f} C (zone {zone}), below {level:.0f} C.", values
        )
