"""The time column of a log: calendar time, unix time, elapsed time, or the time of day."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from spark_watch.blackbox.trace.schema import Refused, shown

_CALENDAR: Final = re.compile(
    r"(\d{4})([-/]?)(\d\d)\2(\d\d)[T _]"
    r"(\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|UTC|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_TIME_OF_DAY: Final = re.compile(r"(\d\d?):(\d\d):(\d\d(?:\.\d+)?)", re.ASCII)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:[eE]\+?\d+)?", re.ASCII)

_DAY: Final = 86_400

_UNIX_SCALES: Final = ((1e9, 1e10, 1.0), (1e12, 1e13, 1e3), (1e15, 1e16, 1e6), (1e18, 1e19, 1e9))
"""From, to, and parts of a second: the years 2001 to 2286 in s, ms, us and ns do not overlap."""

NO_ZONE: Final = "the times carry no zone and are read as UTC"
NO_DATE: Final = "the log has no date: t counts from its own zero"


def is_calendar(cell: str) -> bool:
    """Whether a cell is a date with a time, in a form that is read."""
    return _CALENDAR.fullmatch(cell) is not None


def is_time(cell: str) -> bool:
    """Whether a cell is a moment that needs no column name to be known as one."""
    if is_calendar(cell) or _TIME_OF_DAY.fullmatch(cell):
        return True
    return bool(_NUMBER.fullmatch(cell)) and _unix_scale(float(cell)) is not None


def _unix_scale(number: float) -> float | None:
    return next((scale for low, high, scale in _UNIX_SCALES if low <= number < high), None)


class Clock:
    """Reads the cells of one time column; the first cell says which kind of time it is.

    Args:
        elapsed_scale: parts of a second that a plain number counts, where the column's name says
            that it counts from the start; ``None`` where it says no such thing.
    """

    def __init__(self, elapsed_scale: float | None) -> None:
        self._elapsed_scale = elapsed_scale
        self._read: Callable[[str], float] | None = None
        self._scale = 1.0
        self._days = 0
        self._last = 0.0
        self.note: str | None = None

    def read(self, cell: str) -> float:
        """The moment in seconds: since 1970 where the log has dates, since its own zero otherwise.

        Raises:
            Refused: it is no time, or another kind of time than the cells before.
        """
        if self._read is None:
            self._read = self._choose(cell)
        return self._read(cell)

    def _choose(self, cell: str) -> Callable[[str], float]:
        calendar = _CALENDAR.fullmatch(cell)
        if calendar:
            self.note = None if calendar[9] else NO_ZONE
            return self._calendar
        if _TIME_OF_DAY.fullmatch(cell):
            self.note = NO_DATE
            return self._time_of_day
        if not _NUMBER.fullmatch(cell):
            raise Refused(f"{shown(cell)} is no time")
        scale = _unix_scale(float(cell))
        if scale is None:
            if self._elapsed_scale is None:
                raise Refused(f"{shown(cell)} may be seconds, milliseconds or a count")
            scale = self._elapsed_scale
            self.note = NO_DATE
        self._scale = scale
        return self._number

    def _calendar(self, cell: str) -> float:
        match = _CALENDAR.fullmatch(cell)
        if match is None:
            raise Refused(f"{shown(cell)} is no date with a time")
        year, _, month, day, hour, minute, second, fraction, zone = match.groups()
        try:
            moment = datetime(
                int(year), int(month), int(day), int(hour), int(minute), int(second or 0), 0, UTC
            )
        except ValueError as error:
            raise Refused(f"{shown(cell)}: {error}") from None
        seconds = moment.timestamp() - _offset(zone)
        return round(seconds + float(f"0.{fraction}"), 6) if fraction else seconds

    def _time_of_day(self, cell: str) -> float:
        match = _TIME_OF_DAY.fullmatch(cell)
        if match is None:
            raise Refused(f"{shown(cell)} is no time of day")
        moment = int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])
        if moment < self._last - _DAY / 2:
            self._days += 1
        self._last = moment
        return self._days * _DAY + moment

    def _number(self, cell: str) -> float:
        if not _NUMBER.fullmatch(cell):
            raise Refused(f"{shown(cell)} is no number of seconds")
        return round(float(cell) / self._scale, 6)


def _offset(zone: str | None) -> float:
    """Seconds by which a zone is ahead of UTC."""
    if zone is None or zone in {"Z", "UTC"}:
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return sign * ahead.total_seconds()
