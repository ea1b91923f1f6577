"""The few series we want out of a Prometheus page that may hold thousands."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

Labels = frozenset[tuple[bytes, bytes]]

RANKS: Final = frozenset(
    {*(b"tp_rank", b"pp_rank", b"moe_ep_rank", b"ep_rank", b"rank", b"pid"), b"priority"}
)
"""Labels under which one number is told several times: one of them counts, not the sum."""

MOST_SERIES: Final = 256
"""Of one page so many are read; engines have a handful."""

_LABELS: Final = rb'(?:\{((?:[^"\n}]|"(?:[^"\\\n]|\\[^\n])*")*)\})?'
_VALUE: Final = rb"[ \t]+([^ \t\n\r#]+)"
_LABEL: Final = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Page:
    """What a page says of some names.

    Args:
        text: the page, in Prometheus' text form or OpenMetrics.
        names: the names wanted, exactly as they stand on it.
    """

    def __init__(self, text: bytes, names: Iterable[str]) -> None:
        wanted = b"|".join(re.escape(name.encode()) for name in sorted(names))
        pattern = re.compile(rb"^(" + wanted + rb")" + _LABELS + _VALUE, re.MULTILINE)
        self._series: dict[str, dict[Labels, float]] = {}
        for count, match in enumerate(pattern.finditer(text)):
            if count >= MOST_SERIES:
                break
            value = _number(match[3])
            if value is None:
                continue
            labels = frozenset(
                pair for pair in _LABEL.findall(match[2] or b"") if pair[0] not in RANKS
            )
            series = self._series.setdefault(match[1].decode(), {})
            series[labels] = max(value, series.get(labels, value))

    def total(
        self, *names: str, where: Mapping[str, tuple[str, ...]] | None = None
    ) -> float | None:
        """Return the sum over the first of the names that is there, ``None`` where none is."""
        values = self._values(names, where)
        return sum(values) if values else None

    def highest(self, *names: str) -> float | None:
        """Return the highest value of the first of the names that is there."""
        values = self._values(names, None)
        return max(values) if values else None

    def _values(
        self, names: Iterable[str], where: Mapping[str, tuple[str, ...]] | None
    ) -> list[float]:
        for name in names:
            series = self._series.get(name)
            if series:
                return [
                    value
                    for labels, value in series.items()
                    if all(
                        any((label.encode(), one.encode()) in labels for one in wanted)
                        for label, wanted in (where or {}).items()
                    )
                ]
        return []


def _number(word: bytes) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
