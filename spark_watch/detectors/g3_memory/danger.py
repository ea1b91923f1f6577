"""When the loop should read available memory several times a second."""

from __future__ import annotations

from typing import Final

from spark_watch.detectors.g3_memory.fall import Fall
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB
from spark_watch.settings.g3 import MemoryCollapseSettings

PROJECTION_SECONDS: Final = 60.0
"""The floor is this close: one more reading a second would come too late to be of use."""

LOW_GIB: Final = 2.5
"""So little is left that any movement counts, for the reference pool."""

MOVING_GIB: Final = 0.25
"""What counts as movement in four seconds; thin healthy boxes move by 0.1 GiB in 5 s."""

SUDDEN_GIB: Final = 1.0
"""A loss in four seconds that counts before it has lasted two readings."""

CALM_SECONDS: Final = 30.0
"""Danger is over when nothing gave cause for so long."""


class DangerMode:
    """Whether memory deserves more than one look a second.

    Args:
        settings: those of ``memory_collapse``; the projection ends at its floor.
    """

    __slots__ = ("_cause_at", "_fall", "_floor_gib")

    def __init__(self, settings: MemoryCollapseSettings) -> None:
        self._fall = Fall()
        self._floor_gib = settings.floor_gib
        self._cause_at: float | None = None

    def update(self, tick: Tick) -> bool:
        """Take a sample and return whether danger stands: until 30 s without cause have passed."""
        memory = tick.memory
        if memory is not None and memory.available_bytes is not None:
            gib = memory.available_bytes / GIB
            fall = self._fall
            fall.add(tick.now, gib, tick.interval("memory"))
            near = (
                fall.falling
                and (fall.sustained or fall.lost >= SUDDEN_GIB * tick.scale)
                and fall.lost >= MOVING_GIB * tick.scale
                and fall.seconds_to(self._floor_gib * tick.scale) < PROJECTION_SECONDS
            )
            low = gib < LOW_GIB * tick.scale and abs(fall.lost) >= MOVING_GIB * tick.scale
            if near or low:
                self._cause_at = tick.now
        return self._cause_at is not None and tick.now - self._cause_at <= CALM_SECONDS
