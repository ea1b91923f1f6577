"""The first line of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_watch.blackbox.trace.schema import VERSION
from spark_watch.model import EMPTY, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHeader:
    """What holds for a whole recording.

    Args:
        interval_seconds: seconds from sample to sample, as planned or as measured by a converter.
        machine: what was known of the machine when the recording began.
        origin: where the recording comes from, in words.
        recorder: the program that wrote it; ``spark-watch`` in our own recordings only.
        version: of the format.
        extra: keys that this version does not know, kept for whoever writes the trace out.
    """

    interval_seconds: float
    machine: Machine = field(default_factory=Machine)
    origin: str | None = None
    recorder: str | None = None
    version: int = VERSION
    extra: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
