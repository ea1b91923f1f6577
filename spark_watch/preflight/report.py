"""Lines, and the report they add up to. Other tools read both forms, so both are fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from spark_watch.model import EMPTY, GIB

GOTCHAS: Final = tuple(f"G{number}" for number in range(1, 11))
"""Every gotcha, in the order in which it is reported."""

LONGEST_SENTENCE: Final = 400
"""Characters of a sentence that are kept: part of it may be an error text of foreign code."""


class Result(IntEnum):
    """What a check says, ordered so that the largest is the one to show.

    ``SKIP`` says that there was something to look at and it could not be judged; where there was
    nothing to look at, the result is ``INFO``.
    """

    PASS = 0
    INFO = 1
    SKIP = 2
    WARN = 3
    FAIL = 4

    @property
    def label(self) -> str:
        """The word used in JSON and labels (``warn``)."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Line:
    """What one check of one gotcha says.

    Args:
        gotcha: ``G1`` to ``G10``.
        check: what was looked at, in snake case; unique within its gotcha.
        result: see :class:`Result`.
        sentence: one sentence with the reading, without a full stop.
        fix: what to do; shown where the result is not ``PASS``.
        values: the reading for tools, plain JSON values in base units.
    """

    gotcha: str
    check: str
    result: Result
    sentence: str
    fix: str = ""
    values: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    def text(self) -> list[str]:
        """Return ``G1 PASS: sentence`` and, where it is not PASS, ``  fix: ...``."""
        lines = [f"{self.gotcha} {self.result.name}: {one_line(self.sentence)}"]
        if self.result is not Result.PASS and self.fix:
            lines.append(f"  fix: {one_line(self.fix)}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Every line, in the order of the gotchas, and what they add up to.

    Args:
        lines: at least one for each gotcha.
        is_gb10: whether the GPU is a GB10, ``None`` where that is not known.
        headroom_bytes: what can still be allocated, ``None`` where that could not be read.
        at_seconds: unix time of the look.
        short: whether the run that was asked for needs more than that.
        more: further fields of the JSON form, by name.
    """

    lines: tuple[Line, ...]
    is_gb10: bool | None = None
    headroom_bytes: int | None = None
    at_seconds: float = 0.0
    short: bool = False
    more: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    @property
    def verdict(self) -> str:
        """``blocked``, ``ready-with-warnings`` or ``ready``."""
        worst = max(line.result for line in self.lines)
        if worst is Result.FAIL or self.short:
            return "blocked"
        return "ready-with-warnings" if worst >= Result.SKIP else "ready"

    @property
    def exit_code(self) -> int:
        """2 for blocked, 1 with warnings, 0 for ready."""
        return {"blocked": 2, "ready-with-warnings": 1, "ready": 0}[self.verdict]

    def text(self) -> list[str]:
        """Return the lines as they are printed."""
        return [row for line in self.lines for row in line.text()]

    def checks(self) -> dict[str, str]:
        """Return gotcha to ``pass`` or ``result: details``: the worst lines of it, joined."""
        return {gotcha: folded(self._of(gotcha)) for gotcha in GOTCHAS}

    def results(self) -> dict[str, Result]:
        """Return gotcha to its worst result."""
        return {gotcha: max(line.result for line in self._of(gotcha)) for gotcha in GOTCHAS}

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object; the first four fields are what tools key on."""
        return {
            "platform": "dgx-spark" if self.is_gb10 else "other",
            "checks": self.checks(),
            "headroom_gb": None if self.headroom_bytes is None else self.headroom_bytes // GIB,
            "verdict": self.verdict,
            "lines": [
                {
                    "gotcha": line.gotcha,
                    "check": line.check,
                    "result": line.result.label,
                    "sentence": one_line(line.sentence),
                    "fix": one_line(line.fix) if line.result is not Result.PASS else "",
                    "values": dict(line.values),
                }
                for line in self.lines
            ],
            **self.more,
        }

    def _of(self, gotcha: str) -> list[Line]:
        return [line for line in self.lines if line.gotcha == gotcha]


def folded(lines: Sequence[Line]) -> str:
    """Return several lines of one gotcha as one value: the worst result with its details.

    Lines with a better result than the worst are left out; the report carries them elsewhere.
    """
    worst = max(line.result for line in lines)
    if worst is Result.PASS:
        return "pass"
    details = "; ".join(one_line(line.sentence) for line in lines if line.result is worst)
    return f"{worst.label}: {details}"


def one_line(text: str) -> str:
    """Return text as one line of printable characters, cut where it is too long."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= LONGEST_SENTENCE else shown[: LONGEST_SENTENCE - 3] + "..."
