"""The kernel log of the simulated Spark."""

from __future__ import annotations

from collections import Counter

from spark_watch.model import KernelEvent


class KernelLog:
    """Lines written since the last reading, counted by kind and code."""

    def __init__(self) -> None:
        self._lines: Counter[tuple[str, str | int | None]] = Counter()

    def write(self, kind: str, code: str | int | None = None, count: int = 1) -> None:
        """Add ``count`` lines of one kind (the kinds are those of :class:`KernelEvent`)."""
        self._lines[kind, code] += count

    def take(self) -> tuple[KernelEvent, ...]:
        """Everything since the last call, in the order of each kind's first line."""
        events = tuple(
            KernelEvent(kind=kind, code=code, count=count)
            for (kind, code), count in self._lines.items()
        )
        self._lines.clear()
        return events
