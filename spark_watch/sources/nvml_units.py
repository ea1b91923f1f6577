"""In which unit a driver counts its clock event time, found out by watching it.

NVIDIA's header documents nanoseconds and ``nvidia-smi`` prints microseconds. Nanoseconds were
measured (our measurement, H200, 2026-11-30), but no such measurement of a GB10 is known. Taken for
nanoseconds, microseconds would read as a thousandth: as silence. So no total is given in seconds
before the counters themselves have proved their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MICROSECONDS: Final = 1e6
"""Counts a second of a counter in microseconds that grows all the time."""
NANOSECONDS: Final = 1e9
"""Counts a second of a counter in nanoseconds that grows all the time."""

_RATE_MARGIN: Final = 1.5
_UPDATE_SECONDS: Final = 10.0
"""A counter may show up to this much of an earlier time at once, and run fast by the margin."""

_STAND_SECONDS: Final = 10.0
_STAND_TOLERANCE: Final = 0.2
_LOOK_SECONDS: Final = 5.0
"""A bit not looked at for longer than this is not known to have stood."""


class CounterUnit:
    """The unit of one GPU's clock event counters: all of them share one, which starts unknown.

    Two things prove it. A counter cannot outrun the clock: growth that microseconds do not allow is
    nanoseconds. And a reason that stood at every look for ten seconds makes its counter grow by
    ten seconds, which says which unit that is. A proof of the other unit later on means that the
    counters are not what they are taken for: the unit is then unknown for good.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        """Counts a second: :data:`MICROSECONDS`, :data:`NANOSECONDS`, or ``None`` while unknown."""
        self._contradicted = False
        self._seen_at: float | None = None
        self._last: dict[str, tuple[float, int]] = {}
        self._standing: dict[str, tuple[float, int]] = {}

    def feed(
        self,
        at: float,
        reasons: tuple[str, ...] | None,
        counters: Mapping[str, int] | None = None,
    ) -> None:
        """Take in one look at the GPU, in the order of time.

        Args:
            at: monotonic seconds.
            reasons: the reasons that stand now; ``None`` where they could not be read.
            counters: raw totals by reason; ``None`` in a look that did not read them.
        """
        if self._seen_at is None or at - self._seen_at > _LOOK_SECONDS:
            self._standing.clear()
        self._seen_at = at
        standing = reasons or ()
        for name in [name for name in self._standing if name not in standing]:
            del self._standing[name]
        for name, raw in (counters or {}).items():
            self._watch_growth(name, at, raw)
            if name in standing:
                self._watch_stand(name, at, raw)

    def seconds(self, counters: Mapping[str, int]) -> dict[str, float] | None:
        """Return the totals in seconds, ``None`` while the unit is unknown."""
        if self.per_second is None:
            return None
        return {name: raw / self.per_second for name, raw in counters.items()}

    def _watch_growth(self, name: str, at: float, raw: int) -> None:
        before, total = self._last.get(name, (at, raw))
        self._last[name] = (at, raw)
        at_most = (at - before) * _RATE_MARGIN + _UPDATE_SECONDS
        if at_most * MICROSECONDS < raw - total <= at_most * NANOSECONDS:
            self._prove(NANOSECONDS)

    def _watch_stand(self, name: str, at: float, raw: int) -> None:
        begun, total = self._standing.setdefault(name, (at, raw))
        elapsed = at - begun
        if elapsed >= _STAND_SECONDS:
            self._standing[name] = (at, raw)
            for unit in (MICROSECONDS, NANOSECONDS):
                if abs((raw - total) / (elapsed * unit) - 1) <= _STAND_TOLERANCE:
                    self._prove(unit)

    def _prove(self, unit: float) -> None:
        self._contradicted = self._contradicted or self.per_second not in (None, unit)
        self.per_second = None if self._contradicted else unit
