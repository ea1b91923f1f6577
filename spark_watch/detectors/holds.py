"""How long something must last before it counts: the one place where holds are counted."""

from __future__ import annotations

from typing import Final

from spark_watch.detectors.timeline import HOLE_INTERVALS

MINIMUM_SAMPLES: Final = 3
"""A hold is met by no fewer samples: at long intervals two points are no duration."""

ROUNDING_SECONDS: Final = 1e-6
"""Unix seconds in a double are exact to a quarter of this: 59.9999998 s are a minute."""


class Hold:
    """Whether a breach is at least as old as the hold.

    A hole of more than three intervals between two readings starts a pending hold anew, because
    nobody saw what happened in it.

    Args:
        seconds: how long the breach must have lasted. 0.0 means at once, at the first sample.
        samples: how many samples must have shown it; one for a hold of 0.0.
    """

    __slots__ = ("_count", "_last", "samples", "seconds", "since")

    def __init__(self, seconds: float, samples: int | None = None) -> None:
        self.seconds = seconds
        self.samples = samples if samples is not None else (MINIMUM_SAMPLES if seconds > 0 else 1)
        self.since: float | None = None
        self._count = 0
        self._last = 0.0

    def update(self, now: float, breached: bool, interval_seconds: float) -> bool:
        """Take a reading and return whether the hold is met.

        Args:
            now: seconds on the timeline.
            breached: whether this reading breaches.
            interval_seconds: the measured interval of the readings.
        """
        if not breached:
            self.since = None
            self._count = 0
            return False
        if self.since is None or now - self._last > HOLE_INTERVALS * interval_seconds:
            self.since = now
            self._count = 0
        self._last = now
        self._count += 1
        return self._count >= self.samples and now - self.since >= self.seconds - ROUNDING_SECONDS

    def held_seconds(self, now: float) -> float:
        """How old the breach is, 0.0 where there is none."""
        return 0.0 if self.since is None else now - self.since

    def restart(self) -> None:
        """Forget the breach."""
        self.since = None
        self._count = 0


class Level:
    """One level of a condition, with its own way in and its own way out.

    Entered when ``enter`` has held for ``hold_seconds``; left when ``leave`` has held for
    ``leave_seconds``. Between the two levels it stays as it is.

    Args:
        hold_seconds: see :class:`Hold`; 0.0 enters at once.
        leave_seconds: the same for the way out.
    """

    __slots__ = ("_enter", "_leave", "active", "known", "since")

    def __init__(self, hold_seconds: float, leave_seconds: float = 0.0) -> None:
        self._enter = Hold(hold_seconds)
        self._leave = Hold(leave_seconds)
        self.active = False
        self.known = False
        self.since: float | None = None

    def update(self, now: float, *, enter: bool, leave: bool, interval_seconds: float) -> bool:
        """Take a reading and return whether the level stands.

        ``since`` is the start of the breach that led to it, on the timeline. ``known`` is True from
        the first reading on that did not breach, or once a breach has been held: before that a
        level that does not stand says nothing.
        """
        if not enter and not self.active:
            if self._enter.since is not None:
                self._enter.restart()
            self.known = True
            return False
        if self.active:
            if self._leave.update(now, leave and not enter, interval_seconds):
                self.active = False
                self.since = None
                self._enter.restart()
                self._leave.restart()
        elif self._enter.update(now, enter, interval_seconds):
            self.active = True
            self.since = self._enter.since
            self._leave.restart()
        self.known = self.known or self.active or not enter
        return self.active

    @property
    def resting(self) -> bool:
        """Whether the last reading did not breach and the level does not stand."""
        return self.known and not self.active and self._enter.since is None

    def held_seconds(self, now: float) -> float:
        """Seconds since the breach began, whether or not the level stands already."""
        if self.since is not None:
            return now - self.since
        return self._enter.held_seconds(now)

    def restart(self) -> None:
        """Forget everything: the level does not stand, and no hold is pending."""
        self.active = False
        self.known = False
        self.since = None
        self._enter.restart()
        self._leave.restart()
