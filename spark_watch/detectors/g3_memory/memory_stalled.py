"""Tasks stand still because the kernel looks for memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool, available_bytes
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, State
from spark_watch.settings.g3 import MemoryStalledSettings


class MemoryStalled(Condition[MemoryStalledSettings]):
    """Full memory pressure: in most of the last ten seconds no task could run.

    The kernel's number is a mean of ten seconds already, so that it is believed at once.
    """

    name = "memory_stalled"
    gotcha = "G3"
    part = "pressure"
    sources = ("pressure",)
    summary = (
        "full memory pressure >= 50 % of 10 s (warning); for 180 s, with < 4 GiB available or with "
        "our own loop late (critical)"
    )
    remedies: ClassVar = {
        State.WARNING: "Give it two minutes: loads have recovered from this. If it stays, stop the "
        "newest GPU process while a shell still answers. Dropping caches makes it worse (the "
        "kernel must read the pages again).",
        State.CRITICAL: "The host is wedging although memory may look free: stop the newest GPU "
        "process now if a shell still answers; if login hangs while ping answers, only a power "
        "cycle helps. Killing containers often hangs as well. Start nothing new.",
    }

    def __init__(self, settings: MemoryStalledSettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._stalled = Level(0.0)
        self._long = Level(settings.critical_seconds)
        self._severe = Level(0.0)
        self._late = 0.0

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the pressure of each reading; where there is none nothing is known."""
        available = available_bytes(self._pool.update(tick))
        pressure = tick.sample.pressure
        if pressure is None or pressure.full_avg10_ratio is None:
            return None
        settings = self.settings
        ratio = pressure.full_avg10_ratio
        late = tick.sample.late_seconds
        is_late = late is not None and late > settings.late_intervals * tick.interval("sample")
        short = available is not None and available < tick.gib(settings.available_below_gib)
        enter = ratio >= settings.full_ratio
        leave = ratio < settings.leave_ratio
        now = tick.now
        interval = tick.interval("pressure")
        stalled = self._stalled.update(now, enter=enter, leave=leave, interval_seconds=interval)
        long = self._long.update(now, enter=enter, leave=leave, interval_seconds=interval)
        severe = self._severe.update(
            now, enter=enter and (short or is_late), leave=leave, interval_seconds=interval
        )
        values = {
            "ratio": ratio,
            "level": settings.full_ratio,
            "held": self._stalled.held_seconds(now),
            "available": "unknown" if available is None else f"{available / GIB:.1f} GiB",
            "late": "not known" if late is None else f"{late:.1f} s",
        }
        if stalled:
            return {
                "host": Judgement(
                    State.CRITICAL if long or severe else State.WARNING,
                    "On the host every task waited for memory {ratio:.0%} of the last 10 s, at or "
                    "near {level:.0%} for {held:.0f} s (available: {available}; our own loop's "
                    "lateness: {late}).",
                    values,
                )
            }
        return {
            "host": Judgement(
                State.OK,
                "On the host every task waited for memory {ratio:.0%} of the last 10 s, below "
                "{level:.0%}.",
                values,
            )
        }
