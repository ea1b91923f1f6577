"""What the workloads' reports say of their movement, kept once for all rules that ask."""

from __future__ import annotations

from typing import Final

from spark_watch.detectors.timeline import HOLE_INTERVALS, Tick
from spark_watch.model import Progress

QUIET_PHASES: Final = frozenset(
    {"prefill", "load", "compile", "warmup", "checkpoint", "evaluate", "validate", "idle"}
)
"""Phases in which a healthy workload makes no token and no step for minutes."""

MOST_WORKLOADS: Final = 8
"""The most workloads that are told apart on the page."""

STEPS_LONG: Final = 3.0
"""A loop is late when a step has taken so many times the longest of its last steps."""

STILL_READINGS: Final = 3
"""So many readings must show the same counts: two are no duration at long intervals."""

PACE: Final = 0.9
"""The longest step is forgotten by a tenth with each shorter one."""


class Moves:
    """Whether one workload moves, by its own counts.

    Attributes:
        report: the newest report.
        at: when it came, on the timeline.
        moved: whether it was ever seen to move.
        reset: whether the newest report's counts start anew.
    """

    __slots__ = (
        "_changed_at",
        "_longest_step",
        "_readings",
        "_still_since",
        "at",
        "moved",
        "report",
        "reset",
    )

    def __init__(self, at: float, report: Progress) -> None:
        self.at = at
        self.report = report
        self.moved = False
        self.reset = False
        self._still_since: float | None = None
        self._readings = 0
        self._changed_at: float | None = None
        self._longest_step = report.step_seconds or 0.0

    def update(self, now: float, report: Progress, interval_seconds: float) -> None:
        """Take the next report."""
        before, since = self.report, self.at
        self.report, self.at = report, now
        self.reset = _went_back(before, report)
        changed = counts(before) != counts(report)
        if changed:
            self.moved = True
            self._note_step(now, report)
        still = not changed and self.running and now - since <= HOLE_INTERVALS * interval_seconds
        if not still:
            self._still_since = None
            self._readings = 1
            return
        if self._still_since is None:
            self._still_since = since
        self._readings += 1

    def _note_step(self, now: float, report: Progress) -> None:
        if report.steps_total is None:
            return
        took = report.step_seconds
        if took is None:
            took = 0.0 if self._changed_at is None else now - self._changed_at
        self._changed_at = now
        self._longest_step = max(took, self._longest_step * PACE)

    @property
    def running(self) -> bool:
        """Whether the workload says that there is something for it to do."""
        report = self.report
        if report.phase in QUIET_PHASES or not any(count is not None for count in counts(report)):
            return False
        if report.requests_running is not None:
            return report.requests_running > 0
        return report.steps_total is not None

    def still_seconds(self, now: float) -> float:
        """For how long its counts have stood although it runs; 0.0 where that is not known."""
        if self._still_since is None or self._readings < STILL_READINGS:
            return 0.0
        return now - self._still_since

    def allowed_seconds(self, hold_seconds: float) -> float:
        """How long its counts may stand: a loop of long steps is given three of them."""
        return max(hold_seconds, STEPS_LONG * self._longest_step)

    def moves(self, now: float, hold_seconds: float) -> bool:
        """Whether it runs and its counts have moved within the time it is allowed."""
        return (
            self.moved
            and self.running
            and self.still_seconds(now) < self.allowed_seconds(hold_seconds)
        )


def counts(report: Progress) -> tuple[float | None, ...]:
    """Return everything the workload counts."""
    return (
        report.generation_tokens_total,
        report.prompt_tokens_total,
        report.steps_total,
        report.bytes_total,
    )


def _went_back(before: Progress, after: Progress) -> bool:
    return any(
        old is not None and new is not None and new < old
        for old, new in zip(counts(before), counts(after), strict=True)
    )


def workloads(tick: Tick) -> dict[str, Moves]:
    """Return every workload of the newest reports by its name; the first to ask works it out.

    A workload that a newer report leaves out has gone. What is in it may be old: see ``at``.
    """
    kept: dict[str, Moves] = tick.shared.setdefault("workloads", {})
    if "workloads" in tick.notes:
        return kept
    tick.notes["workloads"] = True
    progress = tick.sample.progress
    if progress is not None:
        interval = tick.interval("progress")
        found: dict[str, Moves] = {}
        for report in progress:
            moves = kept.get(report.workload)
            if moves is None:
                moves = Moves(tick.now, report)
            else:
                moves.update(tick.now, report, interval)
            found[report.workload] = moves
        kept.clear()
        kept.update(found)
    return kept
