"""Calling a source: timed, counted and caught here, once for all sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spark_watch.errors import SourceError, Unavailable, Unsupported
from spark_watch.model import EMPTY, Failure

RETRY_UNSUPPORTED_SECONDS: Final = 60.0
"""A source this machine does not have is asked again this often: drivers and modules get loaded."""


class Source(Protocol):
    """One thing that is read."""

    @property
    def name(self) -> str:
        """The source's name in labels and in ``failed``."""

    def read(self) -> Any:
        """Return one record in base units, or raise a :class:`SourceError`."""

    def close(self) -> None:
        """Give back what is held open."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one reading: a value or an error, how long it took and when it ended.

    ``ended_seconds`` is monotonic.
    """

    source: str
    value: Any
    error: SourceError | None
    duration_seconds: float
    ended_seconds: float

    @property
    def failure(self) -> Failure | None:
        """The failure as a sample carries it, ``None`` after a success."""
        if self.error is None:
            return None
        return Failure(source=self.source, reason=self.error.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """How one source has fared. Moments are unix seconds.

    ``success`` is ``None`` while the source was never asked; ``reason`` is the last failure's, and
    ``None`` after a success. ``errors`` counts failures by reason since the start.
    """

    source: str
    success: bool | None = None
    reason: str | None = None
    duration_seconds: float | None = None
    last_success_seconds: float | None = None
    pending_seconds: float | None = None
    errors: Mapping[str, int] = field(default_factory=lambda: EMPTY)


class Meter:
    """One source with its pace and its record: how often, how long, how many errors of which kind.

    Args:
        source: what is read.
        period_seconds: how often; the loop's own interval where that is longer.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        source: Source,
        *,
        period_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.name = source.name
        self.period_seconds = period_seconds
        self._clock = clock
        self._due = float("-inf")
        self.last: Outcome | None = None
        self.last_success: Outcome | None = None
        self.errors: dict[str, int] = {}

    def due(self, now: float) -> bool:
        """Whether it is time to read again; a tenth of the period is left to a tick's jitter."""
        return now >= self._due

    def read(self) -> Outcome:
        """Read once. Nothing but an :class:`Outcome` ever comes back, whatever the source does.

        A source that returns ``None`` had nothing to ask yet: that is neither a success nor an
        error, its record stays as it was, and it is due again at once.
        """
        value: Any = None
        error: SourceError | None = None
        started = self._clock()
        try:
            value = self.source.read()
        except SourceError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - the one place: no source may end the loop
            error = Unavailable("internal_error", f"{self.name}: {raised!r}")
        ended = self._clock()
        outcome = Outcome(self.name, value, error, ended - started, ended)
        if error is None and value is None:
            return outcome
        period = self.period_seconds
        if isinstance(error, Unsupported):
            period = max(period, RETRY_UNSUPPORTED_SECONDS)
        self._due = started + 0.9 * period
        if error is None:
            self.last_success = outcome
        else:
            self.errors[error.reason] = self.errors.get(error.reason, 0) + 1
        self.last = outcome
        return outcome

    def health(self, wall_offset_seconds: float, pending_seconds: float | None) -> SourceHealth:
        """Return the source's record.

        Args:
            wall_offset_seconds: unix time minus monotonic time now.
            pending_seconds: how long a call of this source is out, ``None`` where none is.
        """
        last, good = self.last, self.last_success
        return SourceHealth(
            source=self.name,
            success=None if last is None else last.error is None,
            reason=last.error.reason if last is not None and last.error is not None else None,
            duration_seconds=None if last is None else last.duration_seconds,
            last_success_seconds=None if good is None else good.ended_seconds + wall_offset_seconds,
            pending_seconds=pending_seconds,
            errors=dict(self.errors),
        )
