"""Every error spark-watch raises on purpose, and the exit code each one ends a command with.

::

    SparkWatchError
    ├── SourceError            one reading of one source went wrong; the loop catches it
    │   ├── Unsupported        this machine will never answer: said once, the series is left out
    │   └── Unavailable        not this time: counted, logged when it starts and when it ends
    ├── UsageError        64   the command line makes no sense
    ├── InputError        65   a file or a stream holds something we cannot read
    ├── OutputError       74   a file, a socket or a port cannot be read, written or bound
    └── ConfigurationError 78  a settings file, a variable or a combination of them is wrong

The codes are those of ``sysexits.h``.
"""

from __future__ import annotations

from typing import ClassVar


class SparkWatchError(Exception):
    """The root: its text is one line that names the thing and the place."""

    exit_code: ClassVar[int] = 70


class SourceError(SparkWatchError):
    """A source could not give a reading.

    Args:
        reason: what happened, in snake case, short enough for a label
            (``not_supported``, ``gpu_is_lost``, ``permission_denied``).
        detail: the sentence for the log; the reason when left out.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class Unsupported(SourceError):
    """The machine will not answer this for as long as the process lives."""


class Unavailable(SourceError):
    """The reading failed this time; the next one may succeed."""


class UsageError(SparkWatchError):
    """The command line cannot be carried out as it is written."""

    exit_code: ClassVar[int] = 64


class InputError(SparkWatchError):
    """Something that was to be read holds what we cannot read."""

    exit_code: ClassVar[int] = 65


class OutputError(SparkWatchError):
    """A file, a socket or a port refused us."""

    exit_code: ClassVar[int] = 74


class ConfigurationError(SparkWatchError):
    """A setting is unknown, of the wrong unit, or contradicts another one."""

    exit_code: ClassVar[int] = 78
