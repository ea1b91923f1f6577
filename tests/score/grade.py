"""Grading: what stood when, against what a fair reader says of the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spark_watch.model import State
from spark_watch.sources.simulated import Span

GRACE_SECONDS: Final = 5.0
"""A fault span without a deadline may be found until this long after its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How one fault span fared. Times are seconds after the span's start.

    ``after`` is when a condition of the gotcha stood high enough, ``None`` if it never did before
    the span's end; ``by`` names the condition; ``named_after`` is the same for the condition that
    the answer names.
    """

    trace: str
    recorded: bool
    span: Span
    deadline: float
    after: float | None
    by: str | None
    named_after: float | None

    @property
    def in_time(self) -> bool:
        """Whether it was found by its deadline."""
        return self.after is not None and self.after <= self.deadline

    @property
    def named_in_time(self) -> bool:
        """Whether the condition that fits best was among those that stood in time."""
        return self.named_after is not None and self.named_after <= self.deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that stood in a quiet span and should not have: once for each time it came up."""

    trace: str
    recorded: bool
    at: float
    condition: str
    state: State
    sentence: str
    why: str


@dataclass(slots=True, kw_only=True)
class Score:
    """Everything one trace says about the conditions."""

    trace: str
    recorded: bool
    samples: int = 0
    quiet_seconds: float = 0.0
    found: list[Found] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class _Watch:
    """One fault span while the trace goes by."""

    def __init__(self, span: Span) -> None:
        self.span = span
        given = span.deadline
        self.deadline = span.end - span.start + GRACE_SECONDS if given is None else given
        self.last = max(span.end + GRACE_SECONDS, span.start + self.deadline)
        self.seen = False
        self.after: float | None = None
        self.by: str | None = None
        self.named_after: float | None = None

    def see(self, elapsed: float, high: Sequence[tuple[str, str, State]]) -> None:
        """Note the conditions that stand now: (condition, gotcha, state)."""
        span = self.span
        if not span.start <= elapsed <= self.last:
            return
        if not self.seen:
            # A slow recording may have no sample before the deadline: its first one is in time.
            self.deadline = max(self.deadline, elapsed - span.start)
            self.seen = True
        for condition, gotcha, state in high:
            if gotcha not in span.gotchas or state < span.at_least:
                continue
            if self.after is None:
                self.after, self.by = elapsed - span.start, condition
            if self.named_after is None and condition == span.condition:
                self.named_after = elapsed - span.start


class Grader:
    """Follows one trace sample by sample.

    Args:
        trace: its name.
        spans: the answer.
        gotchas: the gotcha of every condition that there is.
        recorded: whether a real machine gave it.
    """

    def __init__(
        self, trace: str, spans: Sequence[Span], gotchas: Mapping[str, str], *, recorded: bool
    ) -> None:
        self.score = Score(trace=trace, recorded=recorded)
        self._gotchas = gotchas
        self._quiet = [span for span in spans if span.quiet]
        self._watches = [_Watch(span) for span in spans if not span.quiet]
        self._standing: set[tuple[int, str]] = set()
        self.score.quiet_seconds = sum(span.end - span.start for span in self._quiet)

    def see(
        self, elapsed: float, states: Mapping[str, State], sentences: Mapping[str, str]
    ) -> None:
        """Take what stands after the sample at ``elapsed`` seconds, with its sentences."""
        self.score.samples += 1
        high = [
            (condition, self._gotchas[condition], state)
            for condition, state in states.items()
            if state >= State.INFO
        ]
        for watch in self._watches:
            watch.see(elapsed, high)
        for number, span in enumerate(self._quiet):
            if not span.start <= elapsed <= span.end:
                continue
            loud = {condition: state for condition, _, state in high if state > span.at_most}
            for condition, state in loud.items():
                if (number, condition) not in self._standing:
                    self._standing.add((number, condition))
                    self.score.alarms.append(
                        Alarm(
                            trace=self.score.trace,
                            recorded=self.score.recorded,
                            at=elapsed,
                            condition=condition,
                            state=state,
                            sentence=sentences.get(condition, ""),
                            why=span.why,
                        )
                    )
            self._standing -= {
                (number, condition)
                for known, condition in self._standing
                if known == number and condition not in loud
            }

    def finish(self) -> Score:
        """The whole score of the trace."""
        self.score.found = [
            Found(
                trace=self.score.trace,
                recorded=self.score.recorded,
                span=watch.span,
                deadline=watch.deadline,
                after=watch.after,
                by=watch.by,
                named_after=watch.named_after,
            )
            for watch in self._watches
        ]
        return self.score
