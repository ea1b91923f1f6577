"""Where available memory is heading over twenty minutes, told apart from a swing."""

from __future__ import annotations

from statistics import median
from typing import Final

from spark_watch.detectors.windows import Buckets

MINUTE: Final = 60.0
"""Readings are kept as means of a minute: 20 points are enough for a slope and cheap to compare."""

WINDOW_SECONDS: Final = 1200.0
"""The slope is that of twenty minutes."""

COVERED_SHARE: Final = 0.75
"""So many of the minutes must hold a reading."""

FALLING_SHARE: Final = 0.85
"""So many of all pairs of minutes must fall: a trend, not the falling side of a swing."""

HISTORY_SECONDS: Final = 6 * 3600.0
"""How far back highs and lows are remembered."""

OLD_STRETCHES: Final = 2
"""So many stretches of twenty minutes before the window tell how deep a swing goes."""

UNDERCUT_GIB: Final = 0.25
"""How far below the older lows is lower than they were."""


class Trend:
    """Robust slope of twenty minutes, worked out once a minute.

    Attributes:
        slope: GiB a second (the median of all pairs of minutes), ``None`` before the window is
            full.
        level: where that line is now, GiB.
        steady: whether nearly all pairs of minutes fall.
        stepped: whether the last minute closed a step, so that the window starts anew.
    """

    __slots__ = ("_history", "_minutes", "level", "slope", "steady", "stepped")

    def __init__(self) -> None:
        self._minutes = Buckets(WINDOW_SECONDS, MINUTE)
        self._history = Buckets(HISTORY_SECONDS, WINDOW_SECONDS)
        self.slope: float | None = None
        self.level = 0.0
        self.steady = False
        self.stepped = False

    def restart(self) -> None:
        """Forget everything: the window starts anew."""
        self._minutes.clear()
        self._history.clear()
        self.slope = None
        self.steady = False

    def add(self, now: float, gib: float, step_gib: float) -> bool:
        """Take a reading; return True where it closed a minute, so that the slope is a new one.

        Args:
            now: seconds on the timeline.
            gib: available memory.
            step_gib: a change by more than this within two minutes starts the window anew.
        """
        minutes = self._minutes
        self.stepped = False
        if not minutes.add(now, gib) or len(minutes) < 2:  # noqa: PLR2004 - one closed, one open
            return False
        if self._has_stepped(step_gib):
            self.restart()
            minutes.add(now, gib)
            self.stepped = True
            return True
        closed = minutes[-2]
        self._history.add(closed.start, closed.mean)
        self._fit(now)
        return True

    def is_off(self, gib: float, step_gib: float) -> bool:
        """Whether a reading is a step away from the last whole minute: the line may be over."""
        minutes = self._minutes
        return len(minutes) > 1 and abs(minutes[-2].mean - gib) > step_gib

    def _has_stepped(self, step_gib: float) -> bool:
        """Whether the closed minute is a step away from one of the two before it."""
        _, closed, *before = reversed(self._minutes)
        return any(
            closed.start - one.start <= 2 * MINUTE and abs(closed.mean - one.mean) > step_gib
            for one in before[:2]
        )

    def _fit(self, now: float) -> None:
        minutes = self._minutes
        points = [(one.start, one.mean) for one in minutes][:-1]
        needed = COVERED_SHARE * WINDOW_SECONDS / MINUTE
        if not minutes.full or len(points) < needed:
            self.slope = None
            self.steady = False
            return
        slopes = sorted(
            (late[1] - early[1]) / (late[0] - early[0])
            for n, early in enumerate(points)
            for late in points[n + 1 :]
        )
        slope = self.slope = slopes[len(slopes) // 2]
        middle = now - MINUTE / 2
        self.level = median(gib + slope * (middle - at) for at, gib in points)
        self.steady = slopes[int(FALLING_SHARE * (len(slopes) - 1))] < 0.0

    def deeper_than_swing(self, swing_gib: float) -> bool:
        """Whether the fall is larger than a swing, or deeper than any of the last hours.

        Deeper only counts where there are 40 minutes before the window to compare with.
        """
        history = self._history
        if not len(history):
            return False
        gib = history[-1].last
        if max(one.high for one in history) - gib >= swing_gib:
            return True
        edge = history[-1].start - WINDOW_SECONDS
        old = [one.low for one in history if one.start < edge]
        return len(old) >= OLD_STRETCHES and gib < min(old) - UNDERCUT_GIB
