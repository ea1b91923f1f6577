"""The last ten minutes in a ring of fixed size, for the charts of the status page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spark_watch.model import Sample

SPAN_SECONDS: Final = 600.0
"""How far back the charts look."""

STEP_SECONDS: Final = 2.0
"""A chart is no wider than 300 points; what comes faster replaces what stood for its step."""

SLOTS: Final = int(SPAN_SECONDS / STEP_SECONDS)


@dataclass(frozen=True, slots=True)
class Point:
    """What the charts show of one moment; ``at_seconds`` is unix time, the rest in base units.

    Power, die temperature and clock are those of the first GPU.
    """

    at_seconds: float
    available_bytes: int | None
    free_bytes: int | None
    power_watts: float | None
    die_celsius: float | None
    board_celsius: float | None
    sm_hertz: float | None


class History:
    """Points of the last ten minutes, one for each two seconds at most.

    The loop writes and whoever answers requests reads, without a lock: a slot is one reference to
    an immutable point.
    """

    def __init__(self) -> None:
        self._slots: list[Point | None] = [None] * SLOTS

    def add(self, at_seconds: float, latest: Sample) -> None:
        """Take the newest value of everything.

        Args:
            at_seconds: unix time of the newest sample.
            latest: what is known and not stale at that moment.
        """
        memory = latest.memory
        gpu = latest.gpus[0] if latest.gpus else None
        board = [
            zone.temperature_celsius
            for zone in latest.zones or ()
            if zone.temperature_celsius is not None
        ]
        self._slots[int(at_seconds // STEP_SECONDS) % SLOTS] = Point(
            at_seconds,
            memory.available_bytes if memory else None,
            memory.free_bytes if memory else None,
            gpu.power_watts if gpu else None,
            gpu.temperature_celsius if gpu else None,
            max(board, default=None),
            gpu.sm_hertz if gpu else None,
        )

    def points(self, now: float) -> tuple[Point, ...]:
        """Return the points of the ten minutes before ``now`` (unix seconds), oldest first.

        What a clock that was set back has left in the future is not among them.
        """
        known = [
            point
            for point in tuple(self._slots)
            if point is not None and 0.0 <= now - point.at_seconds < SPAN_SECONDS
        ]
        return tuple(sorted(known, key=lambda point: point.at_seconds))
