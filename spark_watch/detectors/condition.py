"""What a condition is: a named rule that says of each subject which state it is in.

A condition sees ticks and nothing else. What follows from a lost reading, from idleness, from a
restart of the machine or from a foreign machine is the same for all and is done by the judge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeVar

from spark_watch.detectors.timeline import Tick
from spark_watch.model import EMPTY, State

Measures = dict[tuple[str, tuple[str, ...]], float]
"""A judged quantity to the number it has now, by metric name without prefix and label values."""

IDLE_HOLD_SECONDS: Final = 600.0
"""A raised verdict of a rule that needs load turns unknown after ten idle minutes."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a rule says of one subject at one sample.

    Args:
        state: the state the rule gives. ``UNKNOWN`` where an input is there but does not suffice.
        template: one sentence in ``str.format`` form, with units.
        values: what the template names.
        remedy: replaces the condition's own remedy for this state.
        idle: True where the rule needs load and there is none: the last verdict under load stands,
            and ``template`` (if any) says why nothing could be judged.
    """

    state: State
    template: str
    values: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    remedy: str | None = None
    idle: bool = False


def idle(template: str, **values: Any) -> Judgement:
    """Return the judgement of a rule that needs load where there is none."""
    return Judgement(State.UNKNOWN, template, values, idle=True)


class Condition(ABC, Generic[S]):
    """A named rule.

    Class attributes are the condition's row in the catalogue; page, README, runbook, alert rules
    and dashboards are held against them.

    Attributes:
        name: the condition's public name, snake case.
        gotcha: the public number of the failure mode, ``G3``.
        part: the part of a sample that feeds the rule; its pace says when a reading is stale.
        sources: the sources without which the rule is blind.
        gb10_only: whether the numbers hold for a GB10 alone; elsewhere the state is ``unknown``.
        needs: ``load`` where only a loaded GPU can be judged, ``feed`` where a workload must
            report, ``event`` where only something that happened can be judged (a restart, a gap).
        survives_reboot: whether what it remembers outlives a restart of the machine.
        summary: the rule in one line, for tables.
        remedies: what helps and what does not, by state.
    """

    name: ClassVar[str]
    gotcha: ClassVar[str]
    part: ClassVar[str]
    sources: ClassVar[tuple[str, ...]]
    gb10_only: ClassVar[bool] = False
    needs: ClassVar[Literal["load", "feed", "event"] | None] = None
    survives_reboot: ClassVar[bool] = False
    summary: ClassVar[str]
    remedies: ClassVar[Mapping[State, str]]

    measures: Measures
    """Quantities the rule worked out at the last sample; ``judge`` rebuilds them."""

    def __init__(self, settings: S) -> None:
        self.settings = settings
        self.measures = {}

    def fresh(self) -> Self:
        """Return the same rule with nothing remembered."""
        return type(self)(self.settings)

    def acknowledge(self) -> None:
        """Take note that somebody has seen what stands; it ends what stands until then."""

    @abstractmethod
    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge one sample.

        Called at every sample, so that no window loses its place.

        Returns:
            Every subject that exists now with what is said of it; a subject left out has gone.
            ``None`` for a subject whose input this sample does not hold, and ``None`` in place of
            the mapping where it holds no input at all: nothing was learnt, and the states stand
            until the last reading is stale.
        """


class UnknownReason:
    """Sentences for what cannot be judged, worded once."""

    NEVER: ClassVar = "Cannot be judged: no {part} reading{why}."
    LOST: ClassVar = "No {part} reading for {seconds:.0f} s{why}; the last state was {state}."
    FOREIGN: ClassVar = "This rule's numbers hold for a GB10; this machine has {gpu}."
    NAMELESS: ClassVar = "Not known yet whether this machine has a GB10."
    NOTHING: ClassVar = "Nothing to judge: the {part} reading is there and empty."
    BROKEN: ClassVar = "The rule failed: {error}. This is a bug of the watch, not of the machine."
    NOT_LOADED: ClassVar = "Not judged under load since this boot."
    OUTDATED: ClassVar = "{state} when last under load {ago} ago; not known whether it still is."
    IDLE: ClassVar = " Judged under load {ago} ago; no such load since."


def spoken(seconds: float) -> str:
    """Return a duration as people say it: ``45 s``, ``12 min``, ``7 h``, ``3 d``."""
    for unit_seconds, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"
