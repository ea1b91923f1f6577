"""Families of generated traces: one kind of day on a Spark, with other numbers for each seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from spark_watch.model import Machine, Sample, State
from spark_watch.sources.simulated import Scenario, Span
from spark_watch.sources.simulated.machine import Script

Timed = tuple[float, Sample]
"""Seconds since the story began, and the sample taken then."""

Edit = Callable[[Iterable[Timed]], Iterable[Timed]]

HEALTHY_INTERVALS: Final = (60.0, 30.0, 10.0, 60.0, 5.0, 30.0, 2.0, 10.0, 1.0, 60.0, 0.25, 30.0)
"""Mostly long intervals, because a healthy day is long; every interval comes up in 20 seeds."""

SLOW_INTERVALS: Final = (1.0, 5.0, 10.0, 30.0, 2.0, 60.0, 5.0, 10.0, 2.0, 0.5)
LONG_INTERVALS: Final = (5.0, 10.0, 30.0, 2.0, 60.0, 10.0, 5.0, 30.0)
FAST_INTERVALS: Final = (1.0, 0.25, 2.0, 0.5)
SAMPLES: Final = 300
MAX_SAMPLES: Final = 700
"""About how many samples a healthy trace has, and how many at most where it must be long."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a family is told to tell: the interval, the length it may take, and its dice."""

    interval: float
    seconds: float
    rng: random.Random

    def late(self, seconds: float, intervals: float = 4.0) -> float:
        """A deadline with room for that many samples as well: three, and one that is lost."""
        return seconds + intervals * self.interval + 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A story with its answer; ``edit`` and ``machine`` are what the simulated box cannot be."""

    script: Script
    spans: tuple[Span, ...]
    seconds: float
    edit: Edit | None = None
    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family of the corpus.

    Args:
        name: of the family; a trace is called ``name/seed``.
        why: what a real box did, and what a careless rule would say of it.
        tell: makes the story of one plan.
        needs: the parts of a sample (or ``part.field``) that are never taken away.
        intervals: the sampling intervals, one for each seed in turn.
        shortest: least seconds of a healthy story.
        longest: most seconds of a healthy story.
        own: whether the recording is our own, so that a hole in it is a hole in our watch.
        fast: whether single lost samples would change the answer.
        judged: conditions that must not stay unknown where nothing was taken away.
    """

    name: str
    why: str
    tell: Callable[[Plan], Told]
    needs: frozenset[str] = frozenset()
    intervals: tuple[float, ...] = HEALTHY_INTERVALS
    shortest: float = 1_500.0
    longest: float = 14 * 3_600.0
    own: bool = True
    fast: bool = False
    judged: tuple[str, ...] = ()

    def interval(self, seed: int) -> float:
        """The sampling interval of one seed."""
        return self.intervals[seed % len(self.intervals)]

    def tell_seed(self, seed: int) -> Told:
        """The story of one seed."""
        interval = self.interval(seed)
        shortest = min(self.shortest, MAX_SAMPLES * interval)
        seconds = min(self.longest, max(shortest, SAMPLES * interval))
        rng = random.Random(f"{self.name} {seed}")  # noqa: S311 - a corpus, not a secret
        return self.tell(Plan(interval, seconds, rng))

    def scenario(self, seed: int, told: Told | None = None) -> Scenario:
        """The story of one seed as the simulated source plays it."""
        told = told or self.tell_seed(seed)
        return Scenario(
            name=f"{self.name}/{seed}",
            description=self.why,
            seconds=told.seconds,
            script=told.script,
            spans=told.spans,
        )


FAMILIES: Final[dict[str, Family]] = {}
"""Every family by name; filled by the decorators below when :mod:`tests.score.families` loads."""


def healthy(
    *,
    at_most: State = State.INFO,
    needs: Iterable[str] = (),
    intervals: tuple[float, ...] = HEALTHY_INTERVALS,
    shortest: float = 1_500.0,
    longest: float = 14 * 3_600.0,
    judged: tuple[str, ...] = (),
) -> Callable[[Callable[[Plan], Script]], Callable[[Plan], Script]]:
    """Register a story in which nothing above ``at_most`` may stand from beginning to end."""

    def register(write: Callable[[Plan], Script]) -> Callable[[Plan], Script]:
        why = _first_line(write)

        def tell(plan: Plan) -> Told:
            span = Span(start=0.0, end=plan.seconds, why=why, at_most=at_most)
            return Told(script=write(plan), spans=(span,), seconds=plan.seconds)

        _add(
            Family(
                name=_name(write),
                why=why,
                tell=tell,
                needs=frozenset(needs),
                intervals=intervals,
                shortest=shortest,
                longest=longest,
                judged=judged,
            )
        )
        return write

    return register


def story(
    *,
    needs: Iterable[str] = (),
    intervals: tuple[float, ...] = SLOW_INTERVALS,
    shortest: float = 1_500.0,
    longest: float = 14 * 3_600.0,
    fast: bool = False,
) -> Callable[[Callable[[Plan], Told]], Callable[[Plan], Told]]:
    """Register a story that brings its own answer."""

    def register(tell: Callable[[Plan], Told]) -> Callable[[Plan], Told]:
        _add(
            Family(
                name=_name(tell),
                why=_first_line(tell),
                tell=tell,
                needs=frozenset(needs),
                intervals=intervals,
                shortest=shortest,
                longest=longest,
                fast=fast,
            )
        )
        return tell

    return register


def _add(family: Family) -> None:
    if family.name in FAMILIES:
        raise ValueError(f"two families are named {family.name}")
    FAMILIES[family.name] = family


def _name(function: Callable[..., object]) -> str:
    return function.__name__.replace("_", "-")


def _first_line(function: Callable[..., object]) -> str:
    return (function.__doc__ or "").strip().split("\n")[0]


def families() -> Mapping[str, Family]:
    """Every family of the corpus, loaded."""
    from tests.score import families as _  # noqa: F401, PLC0415 - loading them registers them

    return FAMILIES
