"""Power, heat and clock of the simulated GB10, and what NVML and the thermal zones say of them.

Levels and time constants follow recordings of several owners: 3 to 5 W and 208 MHz with nothing
resident, 10 to 13 W at 2.4 GHz with a server at rest, 30 to 50 W in decode, 78 to 101 W in prefill
and training; the clock gives way by about 2 MHz a degree, and by up to a tenth while a dense
workload draws 90 W.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from math import exp
from typing import Final

from spark_watch.model import Gpu, Zone

MHZ: Final = 1.0e6
CLOCK_STEP_HERTZ: Final = 6.5 * MHZ
"""Every recorded clock is a whole multiple of 6.5 MHz, cut to whole megahertz."""

DEEP_IDLE_HERTZ: Final = 208 * MHZ
CONTEXT_LEAVES_SECONDS: Final = 5.0
"""From the last GPU process's exit to deep idle."""

POWER_SECONDS: Final = 0.5
"""NVML's power is a running mean over about a second."""

POWER_CEILING_WATTS: Final = 101.0
CAPPED_WATTS: Final = 95.0
CAP_SHOWN_RATIO: Final = 0.3
"""Above that power the cap's counter runs and its bit stands in some of the readings."""

MAX_UTILIZATION: Final = 0.96
HEAT_PARTS: Final = ((0.25, 1.0), (0.35, 30.0), (0.40, 300.0))
"""Share of the heat resistance and time constant in seconds: die, sink, chassis."""

BOARD_SECONDS: Final = 15.0
ZONE_OFFSETS: Final = (-3.1, -6.4, -2.2, 0.0, -8.9, -5.2, -7.6)
"""The seven ``acpitz`` zones below the hottest one, in degrees, at full load."""

HERTZ_PER_DEGREE: Final = 2.0 * MHZ


@dataclass(frozen=True, slots=True)
class Work:
    """What running kernels ask of the chip.

    Args:
        watts: power of the GPU rail at full clock.
        utilization: share of time with a kernel resident; 0.96 is as high as a GB10 reads.
        sag: share of the clock that this work gives up for its power.
        spread: relative standard deviation of its power.
    """

    watts: float
    utilization: float = MAX_UTILIZATION
    sag: float = 0.0
    spread: float = 0.012


class Chip:
    """The GPU rail, the die, the board and the clock of one unit.

    Args:
        rng: sensor noise and the spread of the work.
        best_hertz: the clock a cool unit holds under light load.
        idle_hertz: the clock with a server resident and at rest.
        ambient_celsius: where the die would settle at no power.
        kelvin_per_watt: heat resistance; 0.38 to 0.45 on units in order, 0.72 where air is short.
        board_gap_celsius: the hottest zone above the die, at full load.
        trip_celsius: board temperature at which the firmware begins to slow the GPU.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        best_hertz: float = 2515 * MHZ,
        idle_hertz: float = 2405 * MHZ,
        ambient_celsius: float = 40.0,
        kelvin_per_watt: float = 0.42,
        board_gap_celsius: float = 9.0,
        trip_celsius: float = 96.5,
    ) -> None:
        self._rng = rng
        self.best_hertz = best_hertz
        self.idle_hertz = idle_hertz
        self.ambient_celsius = ambient_celsius
        self.kelvin_per_watt = kelvin_per_watt
        self.board_gap_celsius = board_gap_celsius
        self.trip_celsius = trip_celsius
        self.idle_watts = 11.2
        self.deep_idle_watts = 4.3
        self.work: Work | None = None
        """Everything that runs now as one: powers add above idle, the busiest share counts."""
        self._works: dict[int, Work] = {}
        self.locked_hertz: float | None = None
        self.stuck_hertz: float | None = None
        self.resident = False
        self.board_noise_celsius = 0.25
        self.watts = self.deep_idle_watts
        self.slowdown_ratio = 0.0
        self.hardware_ratio = 0.0
        self._alone_seconds = CONTEXT_LEAVES_SECONDS
        self._heat = [0.0 for _ in HEAT_PARTS]
        self._board = 0.0
        self._energy = 1.2e5
        self._event_seconds = {
            "sw_power_cap": 812.0,
            "sync_boost": 0.0,
            "sw_thermal_slowdown": 1.4,
            "hw_thermal_slowdown": 0.0,
            "hw_power_brake_slowdown": 0.0,
        }
        self._drift = 0.0
        self.settle()

    def run(self, pid: int, work: Work) -> None:
        """Let a process run these kernels from now on, in place of those it ran before."""
        self._works[pid] = work
        self._combine()

    def rest(self, pid: int) -> None:
        """Let a process run nothing from now on."""
        if self._works.pop(pid, None) is not None:
            self._combine()

    def _combine(self) -> None:
        parts = list(self._works.values())
        if not parts:
            self.work = None
            return
        watts = self.idle_watts + sum(max(0.0, part.watts - self.idle_watts) for part in parts)
        heavy = max(parts, key=lambda part: part.watts)
        self.work = Work(
            min(watts, POWER_CEILING_WATTS),
            max(part.utilization for part in parts),
            max(part.sag for part in parts),
            heavy.spread,
        )

    @property
    def busy(self) -> bool:
        """Whether any process runs kernels."""
        return self.work is not None

    @property
    def deep_idle(self) -> bool:
        """Whether the last GPU process has been gone long enough for the lowest state."""
        return not self.busy and self._alone_seconds >= CONTEXT_LEAVES_SECONDS

    @property
    def die_celsius(self) -> float:
        """Temperature of the die, before the sensor rounds it."""
        return self.ambient_celsius + sum(self._heat)

    @property
    def board_celsius(self) -> float:
        """Temperature of the hottest zone, before the sensor's noise."""
        return self._board

    @property
    def clock_hertz(self) -> float:
        """The SM clock that the unit settles on now."""
        work = self.work
        if work is None:
            clock = DEEP_IDLE_HERTZ if self.deep_idle else self.idle_hertz
        elif self.stuck_hertz is not None:
            clock = self.stuck_hertz
        else:
            warm = max(0.0, self.die_celsius - 50.0)
            clock = (self.best_hertz - HERTZ_PER_DEGREE * warm) * (1 - work.sag)
            clock *= 1 - 0.5 * self.slowdown_ratio
        if self.locked_hertz is not None and not self.deep_idle:
            clock = min(clock, self.locked_hertz)
        return clock

    def settle(self) -> None:
        """Put power and heat where they would be had the present work run for an hour."""
        if self.resident or self.busy:
            self._alone_seconds = 0.0
        self.watts = self._goal_watts()
        self._heat = [share * self.kelvin_per_watt * self.watts for share, _ in HEAT_PARTS]
        self._board = self._board_goal()

    def advance(self, seconds: float) -> None:
        """Move power, heat and counters on by that long."""
        self._alone_seconds = 0.0 if self.resident or self.busy else self._alone_seconds + seconds
        keep = exp(-seconds / POWER_SECONDS)
        self.watts = self.watts * keep + self._goal_watts() * (1 - keep)
        for part, (share, constant) in enumerate(HEAT_PARTS):
            goal = share * self.kelvin_per_watt * self.watts
            keep = exp(-seconds / constant)
            self._heat[part] = self._heat[part] * keep + goal * (1 - keep)
        keep = exp(-seconds / BOARD_SECONDS)
        self._board = self._board * keep + self._board_goal() * (1 - keep)
        self._slow_down(seconds)
        self._energy += self.watts * seconds
        keep = exp(-seconds / 6.0)
        self._drift = self._drift * keep + self._rng.gauss(0.0, (1 - keep * keep) ** 0.5)

    def _goal_watts(self) -> float:
        work = self.work
        if work is None:
            return self.deep_idle_watts if self.deep_idle else self.idle_watts
        full = (self.best_hertz - HERTZ_PER_DEGREE * 20) * (1 - work.sag)
        share = min(1.0, self.clock_hertz / full)
        return self.idle_watts + (work.watts - self.idle_watts) * math.pow(share, 1.6)

    def _board_goal(self) -> float:
        loaded = min(1.0, max(0.0, (self.watts - 8.0) / 60.0))
        return self.die_celsius + 1.0 + (self.board_gap_celsius - 1.0) * loaded

    def _slow_down(self, seconds: float) -> None:
        """Above the trip point the firmware takes the clock away, by software and then hardware."""
        over = self._board - self.trip_celsius if self.busy else -1.0
        goal = min(0.7, max(0.0, over / 5.0))
        keep = exp(-seconds / 8.0)
        self.slowdown_ratio = round(self.slowdown_ratio * keep + goal * (1 - keep), 4)
        self.hardware_ratio = min(0.5, max(0.0, (over - 2.5) / 4.0))
        counters = self._event_seconds
        counters["sw_thermal_slowdown"] += self.slowdown_ratio * seconds
        counters["hw_thermal_slowdown"] += self.hardware_ratio * seconds
        capped = 0.8 if self.watts > CAPPED_WATTS else 0.12 if self.busy else 0.33
        counters["sw_power_cap"] += capped * seconds

    def count_slowdown(self, *, software: float = 0.0, hardware: float = 0.0) -> None:
        """Add seconds of thermal slowdown to the counters, as events between two readings do."""
        self._event_seconds["sw_thermal_slowdown"] += software
        self._event_seconds["hw_thermal_slowdown"] += hardware

    def reading(self) -> Gpu:
        """What NVML says now, with the steps and the noise of the real sensors."""
        rng = self._rng
        work = self.work
        spread = 0.003 if work is None else work.spread
        watts = self.watts * (1 + spread * (0.8 * self._drift + 0.6 * rng.gauss(0.0, 1.0)))
        clock = self.clock_hertz
        if self.busy:
            clock += rng.gauss(0.0, 3.0 * MHZ) - 9.0 * MHZ * self._drift * spread * 40
            if self.locked_hertz is not None:
                clock = min(clock, self.locked_hertz)
        utilization = 0.0 if work is None else work.utilization
        if utilization >= MAX_UTILIZATION:
            utilization -= rng.choice((0.0, 0.0, 0.0, 0.0, 0.01, 0.02))
        return Gpu(
            index=0,
            power_watts=round(max(0.5, watts), 2),
            temperature_celsius=float(round(self.die_celsius + rng.gauss(0.0, 0.35))),
            sm_hertz=_clock_step(clock),
            utilization_ratio=round(max(0.0, utilization), 2),
            event_reasons=self._reasons(),
            event_seconds={name: round(value, 6) for name, value in self._event_seconds.items()},
            energy_joules=round(self._energy, 3),
            performance_state=8 if self.deep_idle else 0,
        )

    def _reasons(self) -> tuple[str, ...]:
        """The bits that stand at this moment; slowdowns stand for their share of the time."""
        if self.deep_idle:
            return ("gpu_idle",)
        rng = self._rng
        reasons = []
        if self.watts > CAPPED_WATTS and rng.random() < CAP_SHOWN_RATIO:
            reasons.append("sw_power_cap")
        hardware = rng.random() < self.hardware_ratio
        if hardware:
            reasons.append("hw_slowdown")
        if hardware or rng.random() < self.slowdown_ratio:
            reasons.append("sw_thermal_slowdown")
        if hardware:
            reasons.append("hw_thermal_slowdown")
        return tuple(reasons)

    def zones(self) -> tuple[Zone, ...]:
        """The seven ``acpitz`` zones, in tenths of a degree; at rest they lie close together."""
        noise = self.board_noise_celsius
        loaded = min(1.0, max(0.2, self.watts / 60.0))
        return tuple(
            Zone(
                zone=number,
                type="acpitz",
                temperature_celsius=round(
                    self._board + offset * loaded + self._rng.gauss(0.0, noise), 1
                ),
            )
            for number, offset in enumerate(ZONE_OFFSETS)
        )


def _clock_step(hertz: float) -> float:
    """The nearest step of the clock, in whole megahertz as NVML gives them."""
    return float(int(round(hertz / CLOCK_STEP_HERTZ) * 6.5)) * MHZ
