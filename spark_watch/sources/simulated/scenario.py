"""What a scenario is: a story that the simulated Spark lives through, and the right answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_watch.model import State
from spark_watch.sources.simulated.machine import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a fair reader says of one stretch of a story, in seconds from its start.

    With ``gotchas`` it is a fault span: a condition of one of them stands at ``at_least`` or worse
    within ``deadline`` seconds after ``start`` (by default five seconds after ``end``);
    ``condition`` names the one that fits best. Without ``gotchas`` it is a quiet span: nothing
    stands above ``at_most`` in it.
    """

    start: float
    end: float
    why: str
    gotchas: tuple[str, ...] = ()
    condition: str | None = None
    at_least: State = State.WARNING
    at_most: State = State.INFO
    deadline: float | None = None

    @property
    def quiet(self) -> bool:
        """Whether nothing may be said in this span."""
        return not self.gotchas

    def label(self) -> dict[str, Any]:
        """The span as it stands in a ``labels.json`` beside a trace."""
        label: dict[str, Any] = {
            "from": self.start,
            "to": self.end,
            "label": "quiet" if self.quiet else list(self.gotchas),
            "confidence": "high",
            "why": self.why,
        }
        if self.quiet:
            label["at_most"] = self.at_most.label
            return label
        label["at_least"] = self.at_least.label
        if self.condition is not None:
            label["condition_hint"] = self.condition
        if self.deadline is not None:
            label["deadline"] = self.deadline
        return label


def quiet(start: float, end: float, why: str, *, at_most: State = State.INFO) -> Span:
    """A stretch in which nothing above ``at_most`` may stand."""
    return Span(start=start, end=end, why=why, at_most=at_most)


def fault(
    gotcha: str,
    condition: str,
    start: float,
    end: float,
    why: str,
    *,
    deadline: float | None = None,
    at_least: State = State.WARNING,
) -> Span:
    """A stretch in which ``condition`` of ``gotcha`` must come to stand at ``at_least``."""
    return Span(
        start=start,
        end=end,
        why=why,
        gotchas=(gotcha,),
        condition=condition,
        at_least=at_least,
        deadline=deadline,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One story: what happens, how long it is told, and what should be said of it.

    ``script`` starts on an idle box. ``closeups`` are the stretches worth watching at their own
    pace: a demonstration that runs on fast time slows down for them.
    """

    name: str
    description: str
    seconds: float
    script: Script
    spans: tuple[Span, ...]
    closeups: tuple[tuple[float, float], ...] = ()

    def labels(self) -> dict[str, Any]:
        """The whole answer in the shape of a ``labels.json``."""
        return {"trace": f"{self.name}.jsonl", "spans": [span.label() for span in self.spans]}
