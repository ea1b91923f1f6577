"""Runs every condition over every sample and keeps what each says of each subject.

Here stands, once, what is the same for all rules: a lost reading holds and then turns unknown, an
idle box keeps its last verdict under load, a restart starts anew, a foreign machine is not judged,
the worst subject gives the state, and a change is an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_watch.detectors.condition import Condition, Judgement, Measures, UnknownReason
from spark_watch.detectors.timeline import Tick, Timeline
from spark_watch.model import SOURCE_PARTS, Event, Finding, Sample, State

IDLE_HOLD_SECONDS: Final = 600.0
"""A raised verdict of a rule that needs load turns unknown after ten idle minutes."""


class _Subject:
    """What is remembered of one subject of one condition; moments are on the timeline."""

    __slots__ = (
        "idle_since",
        "judged_at",
        "judgement",
        "last_loaded",
        "learnt_at",
        "published",
        "state",
    )

    def __init__(self) -> None:
        self.state = State.UNKNOWN
        self.published = State.UNKNOWN
        self.judgement: Judgement | None = None
        self.learnt_at: float | None = None
        self.last_loaded: Judgement | None = None
        self.judged_at = 0.0
        self.idle_since: float | None = None


class _Track:
    """One condition with its subjects, its state and its history of changes."""

    __slots__ = (
        "blank",
        "changed_at",
        "changes",
        "condition",
        "since",
        "state",
        "subjects",
        "worst",
    )

    def __init__(self, condition: Condition[Any]) -> None:
        self.condition = condition
        self.subjects: dict[str, _Subject] = {}
        self.state = State.UNKNOWN
        self.worst = frozenset[str]()
        self.since = 0.0
        self.blank = Judgement(
            State.UNKNOWN, UnknownReason.NEVER, {"part": condition.part, "why": ""}
        )
        self.changed_at: float | None = None
        self.changes: dict[State, int] = dict.fromkeys(State, 0)


@dataclass(frozen=True, slots=True)
class Standing:
    """How one condition stands: its worst subject's finding, all findings, and its changes."""

    finding: Finding
    subjects: tuple[Finding, ...]
    changed_at_seconds: float | None
    changes: Mapping[State, int] = field(default_factory=dict)


class Judge:
    """All conditions over one stream of samples.

    Args:
        conditions: fresh conditions, in the order of the catalogue.
        timeline: places the samples; made from the stream's header, or for the live loop.

    Attributes:
        errors: conditions that raised at the last sample, with the error: a bug of ours, never a
            property of the machine. The condition is ``unknown`` as long as it raises.
        measures: the judged quantities of all conditions, as of the last sample.
        judged: names of the conditions that were anything but unknown at some sample.
    """

    def __init__(self, conditions: Iterable[Condition[Any]], timeline: Timeline) -> None:
        self._tracks = [_Track(condition) for condition in conditions]
        self._timeline = timeline
        self._reasons: dict[str, str] = {}
        self.errors: list[tuple[str, Exception]] = []
        self.measures: Measures = {}
        self.judged: set[str] = set()

    def update(self, sample: Sample) -> list[Event]:
        """Judge one sample and return what changed by it, in the order of the catalogue."""
        tick = self._timeline.place(sample)
        self.errors = []
        self.measures = {}
        self._note_failures(sample)
        events: list[Event] = []
        for track in self._tracks:
            if tick.rebooted and not track.condition.survives_reboot:
                track.condition = track.condition.fresh()
                track.subjects = {}
            self._judge(track, tick)
            self._publish(track, tick, events)
            if track.condition.measures:
                self.measures.update(track.condition.measures)
        return events

    def _judge(self, track: _Track, tick: Tick) -> None:
        condition = track.condition
        try:
            judgements = condition.judge(tick)
        except Exception as error:  # noqa: BLE001 - one rule's bug must not silence the others
            self.errors.append((condition.name, error))
            track.subjects = {}
            track.blank = Judgement(
                State.UNKNOWN, "The rule failed: {error}", {"error": repr(error)}
            )
            return
        if condition.gb10_only and tick.is_gb10 is not True:
            name = tick.machine.gpu_name if tick.machine else None
            track.subjects = {}
            track.blank = (
                Judgement(State.UNKNOWN, UnknownReason.FOREIGN, {"gpu": name})
                if name
                else Judgement(State.UNKNOWN, UnknownReason.NAMELESS)
            )
            return
        subjects = track.subjects
        if judgements is None:
            if not subjects:
                track.blank = Judgement(
                    State.UNKNOWN,
                    UnknownReason.NEVER,
                    {"part": condition.part, "why": self._why(condition)},
                )
            for subject in subjects.values():
                self._miss(subject, condition, tick)
            return
        if subjects.keys() != judgements.keys():
            track.subjects = subjects = {
                name: subjects.get(name) or _Subject() for name in judgements
            }
        for name, judgement in judgements.items():
            if judgement is None:
                self._miss(subjects[name], condition, tick)
            else:
                _learn(subjects[name], judgement, tick.now)

    def _miss(self, subject: _Subject, condition: Condition[Any], tick: Tick) -> None:
        """Take a sample without this subject's input: the state stands until that is stale."""
        if subject.learnt_at is None:
            subject.judgement = Judgement(
                State.UNKNOWN,
                UnknownReason.NEVER,
                {"part": condition.part, "why": self._why(condition)},
            )
            return
        lost = tick.now - subject.learnt_at
        if subject.state is not State.UNKNOWN and lost > tick.stale_after(condition.part):
            subject.judgement = Judgement(
                State.UNKNOWN,
                UnknownReason.LOST,
                {
                    "part": condition.part,
                    "seconds": lost,
                    "state": subject.state.label,
                    "why": self._why(condition),
                },
            )
            subject.state = State.UNKNOWN
            subject.last_loaded = None

    def _note_failures(self, sample: Sample) -> None:
        """Keep the last reason of every source that has not answered since."""
        for failure in sample.failed:
            self._reasons[failure.source] = failure.reason
        if self._reasons:
            for source, part in SOURCE_PARTS.items():
                if source in self._reasons and getattr(sample, part) is not None:
                    del self._reasons[source]

    def _why(self, condition: Condition[Any]) -> str:
        reasons = [
            f"{source}: {self._reasons[source]}"
            for source in condition.sources
            if source in self._reasons
        ]
        return f" ({', '.join(reasons)})" if reasons else ""

    def _publish(self, track: _Track, tick: Tick, events: list[Event]) -> None:
        """Work out the condition's state from its subjects and note what changed."""
        at = tick.sample.t
        state = State.UNKNOWN
        if track.subjects:
            state = max(subject.state for subject in track.subjects.values())
        if state is not State.UNKNOWN:
            self.judged.add(track.condition.name)
        worst = frozenset(
            name for name, subject in track.subjects.items() if subject.state is state
        )
        if state is not track.state:
            name = min(worst, default="host")
            events.append(self._event(track, tick, name, track.state, state))
            track.state = state
            track.since = at
            track.changed_at = at
            track.changes[state] += 1
        elif state >= State.INFO and not worst <= track.worst:
            for name in sorted(worst - track.worst):
                before = track.subjects[name].published
                events.append(self._event(track, tick, name, before, state))
        track.worst = worst
        for subject in track.subjects.values():
            subject.published = subject.state

    def _event(self, track: _Track, tick: Tick, name: str, before: State, after: State) -> Event:
        finding = self._finding(track, name, tick.sample.t)
        return Event(
            at_seconds=tick.sample.t,
            elapsed_seconds=tick.now,
            gotcha=track.condition.gotcha,
            condition=track.condition.name,
            subject=name,
            from_state=before,
            to_state=after,
            sentence=finding.sentence,
            remedy=finding.remedy,
        )

    @staticmethod
    def _finding(track: _Track, name: str, at: float) -> Finding:
        subject = track.subjects.get(name)
        judgement = (subject.judgement if subject else None) or track.blank
        state = subject.state if subject else State.UNKNOWN
        remedy = judgement.remedy
        if remedy is None:
            remedy = track.condition.remedies.get(state, "")
        return Finding(
            at_seconds=at,
            since_seconds=track.since,
            gotcha=track.condition.gotcha,
            condition=track.condition.name,
            subject=name,
            state=state,
            template=judgement.template,
            values=judgement.values,
            remedy=remedy,
        )

    def standing(self, at_seconds: float) -> tuple[Standing, ...]:
        """Return how every condition stands, as records that do not change any more.

        Args:
            at_seconds: the unix time of the last sample.
        """
        standings = []
        for track in self._tracks:
            findings = tuple(
                self._finding(track, name, at_seconds) for name in sorted(track.subjects)
            )
            worst = min(track.worst, default=None)
            finding = next(
                (one for one in findings if one.subject == worst),
                None,
            ) or self._finding(track, "host", at_seconds)
            standings.append(Standing(finding, findings, track.changed_at, dict(track.changes)))
        return tuple(standings)


def _learn(subject: _Subject, judgement: Judgement, now: float) -> None:
    """Take what a rule says of a subject, with the rule for idleness."""
    subject.learnt_at = now
    if not judgement.idle:
        subject.state = judgement.state
        subject.judgement = judgement
        subject.idle_since = None
        if judgement.state is not State.UNKNOWN:
            subject.last_loaded = judgement
            subject.judged_at = now
        return
    last = subject.last_loaded
    if last is None:
        subject.state = State.UNKNOWN
        subject.judgement = Judgement(
            State.UNKNOWN, UnknownReason.NOT_LOADED + " " + judgement.template, judgement.values
        )
        return
    if subject.idle_since is None:
        subject.idle_since = now
    if last.state >= State.INFO and now - subject.idle_since > IDLE_HOLD_SECONDS:
        subject.last_loaded = None
        subject.state = State.UNKNOWN
        subject.judgement = Judgement(
            State.UNKNOWN,
            "Idle for {minutes:.0f} min since it was {state}: not known whether it still is.",
            {"minutes": (now - subject.idle_since) / 60, "state": last.state.label},
        )
        return
    subject.state = last.state
    subject.judgement = Judgement(
        last.state,
        last.template + " Idle since: judged under load {ago:.0f} s ago.",
        {**last.values, "ago": now - subject.judged_at},
        last.remedy,
    )
