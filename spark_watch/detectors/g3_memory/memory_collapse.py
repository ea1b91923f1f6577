"""Available memory is running out within seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g3_memory.fall import LOSS_SECONDS, Fall
from spark_watch.detectors.g3_memory.witness import Witness
from spark_watch.detectors.holds import Level
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, State
from spark_watch.settings.g3 import MemoryCollapseSettings

LASTING = 3
"""A dip of a second touches two readings; the third makes it a fall."""

SLOW_SECONDS = 10.0
"""Across a longer interval as much more must be lost: 1.5 GiB in a minute is a swing."""

EXHAUSTION = ("memory_exhaustion_seconds", ())
"""The projection's own series, there only while memory falls."""


class MemoryCollapse(Condition[MemoryCollapseSettings]):
    """Memory began to fall faster than before, and the floor is seconds away.

    A steady load is told from a collapse by its past alone: it has kept its pace for ten seconds.
    A load that started from rest below 40 GiB cannot be told from one for some seconds and is a
    warning.
    """

    name = "memory_collapse"
    gotcha = "G3"
    part = "memory"
    sources = ("meminfo",)
    summary = (
        "available memory < 24 GiB, falling >= 1.5x faster than before, 4 GiB within 15 s "
        "(warning) or 5 s (critical); < 3 GiB and falling, however slowly it began; < 0.75 GiB"
    )
    remedies: ClassVar = {
        State.WARNING: "Stop the newest load or the engine that is starting now, while commands "
        "still work; then start it with a smaller memory fraction, context or batch. Dropping "
        "caches does not help (available memory already counts them), nor does a container's "
        "memory limit: it does not hold CUDA memory.",
        State.CRITICAL: "Stop the process that is growing at once (kill -9); in seconds no command "
        "may start any more. If the box answers ping but no login, only a power cycle helps. "
        "Do not wait for the OOM killer: it often never comes. Swap and container limits do not "
        "help, CUDA memory is held by neither.",
    }

    def __init__(self, settings: MemoryCollapseSettings) -> None:
        super().__init__(settings)
        self._fall = Fall()
        self._witness = Witness(
            seconds=settings.witness_seconds,
            pressure_ratio=settings.witness_pressure_ratio,
            swap_in_mib_per_second=settings.witness_swap_in_mib_per_second,
        )
        self._warning = Level(0.0, settings.leave_seconds)
        self._critical = Level(0.0, settings.leave_seconds)
        self._empty = Level(0.0)
        self._changed = False

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the pool; from 24 GiB on it is ok at once, below only with half a minute seen."""
        witnessed = self._witness.update(tick)
        memory = tick.memory
        if memory is None or memory.available_bytes is None:
            return None
        gib = memory.available_bytes / GIB
        fall = self._fall
        fall.add(tick.now, gib, tick.interval("memory"))
        settings = self.settings
        scale = tick.scale
        seconds = fall.seconds_to(settings.floor_gib * scale)
        self.measures = {EXHAUSTION: seconds} if fall.sustained and fall.rate > 0.0 else {}
        if gib >= settings.leave_above_gib * scale:
            self._warning.restart()
            self._critical.restart()
            self._empty.restart()
        else:
            self._raise(tick, gib, seconds, witnessed)
        return {"host": self._say(tick, gib, seconds)}

    def _raise(self, tick: Tick, gib: float, seconds: float, witnessed: bool) -> None:
        settings = self.settings
        fall = self._fall
        scale = tick.scale
        interval = tick.interval("memory")
        moving = (
            gib < settings.available_below_gib * scale
            and fall.falling
            and seconds <= settings.warning_seconds
            and self._counts(scale)
            and (
                fall.gap_seconds <= settings.warning_seconds
                or gib < settings.critical_below_gib * scale
            )
        )
        if not self._warning.active:
            self._changed = False
        if moving and not self._changed:
            self._changed = fall.rate >= settings.faster_ratio * fall.rate_before()
        begun = moving and (self._changed or gib < settings.critical_below_gib * scale)
        closing = begun and self._changed and self._is_closing(gib, seconds, scale, witnessed)
        last = (
            gib < settings.last_gib * scale
            and fall.falling
            and fall.lost
            >= settings.last_lost_gib * scale * max(1.0, fall.gap_seconds / LOSS_SECONDS)
        )
        draining = (
            gib < settings.last_gib * scale and fall.drained >= settings.last_drained_gib * scale
        )
        resting = fall.rate < settings.lost_gib * scale / LOSS_SECONDS / 2
        now = tick.now
        self._empty.update(
            now,
            enter=gib < settings.nothing_left_gib * scale,
            leave=gib >= settings.something_left_gib * scale,
            interval_seconds=interval,
        )
        self._critical.update(now, enter=closing or last, leave=resting, interval_seconds=interval)
        self._warning.update(
            now, enter=begun or last or draining, leave=resting, interval_seconds=interval
        )

    def _is_closing(self, gib: float, seconds: float, scale: float, witnessed: bool) -> bool:
        """Whether the floor is so close, at such a pace, that it is critical."""
        settings = self.settings
        rate = self._fall.rate
        if seconds <= settings.critical_seconds and (
            witnessed
            or gib < settings.floor_gib * scale
            or (
                gib < settings.critical_below_gib * scale
                and rate >= settings.critical_gib_per_second * scale
            )
        ):
            return True
        return (
            seconds <= settings.no_load_seconds
            and rate >= settings.no_load_gib_per_second * scale
            and self._fall.sustained
        )

    def _counts(self, scale: float) -> bool:
        """Whether the loss is more than a dip: large, or over three seconds, or in one big step."""
        settings = self.settings
        fall = self._fall
        if fall.step >= settings.step_gib * scale:
            return True
        slow = max(1.0, fall.gap_seconds / SLOW_SECONDS)
        return fall.lost >= settings.lost_gib * scale * slow and (
            fall.lasted >= LASTING or (fall.sustained and fall.lost >= settings.dip_gib * scale)
        )

    def _say(self, tick: Tick, gib: float, seconds: float) -> Judgement:
        settings = self.settings
        fall = self._fall
        scale = tick.scale
        values = {
            "gib": gib,
            "floor": settings.floor_gib * scale,
            "below": settings.available_below_gib * scale,
            "lost": fall.lost,
            "over": max(LOSS_SECONDS, fall.gap_seconds),
            "rate": fall.rate,
            "seconds": seconds,
            "left": gib / fall.rate if fall.rate > 0.0 else 0.0,
            "held": self._warning.held_seconds(tick.now),
        }
        if self._empty.active:
            return Judgement(
                State.CRITICAL,
                "The host has {gib:.2f} GiB available: nothing is left (below {level:.2f} GiB for "
                "{held:.0f} s).",
                {
                    **values,
                    "level": settings.nothing_left_gib * scale,
                    "held": self._empty.held_seconds(tick.now),
                },
            )
        if self._warning.active or self._critical.active:
            state = State.CRITICAL if self._critical.active else State.WARNING
            if fall.rate <= 0.0:
                return Judgement(
                    state,
                    "The host has {gib:.1f} GiB available after a fall that began {held:.0f} s ago "
                    "and has come to rest.",
                    values,
                )
            template = (
                "The host has {gib:.1f} GiB available and lost {lost:.1f} GiB in {over:.0f} s: at "
            )
            if gib < settings.floor_gib * scale:
                template += "{rate:.2f} GiB/s nothing is left in {left:.0f} s"
            else:
                template += "{rate:.1f} GiB/s {floor:.1f} GiB is reached in {seconds:.0f} s"
            return Judgement(state, template + " (standing for {held:.0f} s).", values)
        if gib >= settings.available_below_gib * scale:
            return Judgement(
                State.OK, "The host has {gib:.1f} GiB available, at least {below:.0f} GiB.", values
            )
        if not fall.full:
            return Judgement(
                State.UNKNOWN,
                "The host has {gib:.1f} GiB available, below {below:.0f} GiB; not watched for half "
                "a minute yet.",
                values,
            )
        return Judgement(
            State.OK,
            "The host has {gib:.1f} GiB available and lost {lost:.1f} GiB in {over:.0f} s, no "
            "sudden fall.",
            values,
        )
