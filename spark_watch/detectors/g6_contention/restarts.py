"""Servers that start again and again beside another one, because there is no room for both."""

from __future__ import annotations

from collections.abc import Sequence

from spark_watch.detectors.g6_contention.engines import Engine
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Tally


class Restarts:
    """Counts the short lives of each kind of engine.

    Args:
        window_seconds: over which time they are counted.
        short_seconds: a life shorter than this was no start that succeeded.
    """

    def __init__(self, window_seconds: float, short_seconds: float) -> None:
        self._window = window_seconds
        self._short = short_seconds
        self._born: dict[tuple[str, int], float] = {}
        self._first = True
        self._ends: dict[str, Tally] = {}

    def update(self, tick: Tick, found: Sequence[Engine]) -> tuple[str, int] | None:
        """Take a list; return the engine with the most short lives and their number.

        Only lives that ended while another engine lived on count: alone, there was room.
        """
        now = tick.now
        alive: dict[tuple[str, int], float] = {}
        for one in found:
            name = one.processes[0].engine
            if name is not None:
                key = (name, one.processes[0].pid)
                # of one that was there before this watch nobody knows how long it has lived
                alive[key] = self._born.get(key, float("-inf") if self._first else now)
        ended: dict[str, int] = {}
        beside = any(key in self._born for key in alive)
        for key, born in self._born.items():
            if beside and key not in alive and now - born < self._short:
                ended[key[0]] = ended.get(key[0], 0) + 1
        self._born = alive
        self._first = False
        for name in ended:
            self._ends.setdefault(name, Tally(self._window))
        for name, tally in list(self._ends.items()):
            if not tally.add(now, ended.get(name, 0)):
                del self._ends[name]
        worst = max(self._ends, key=lambda name: self._ends[name].total, default=None)
        return None if worst is None else (worst, self._ends[worst].total)
