"""Runs every condition over every sample and keeps what each says of each subject.

Here stands, once, what is the same for all rules: a lost reading holds and then turns unknown, an
idle box keeps its last verdict under load, a restart starts anew, a foreign machine is not judged,
the worst subject gives the state, and a change is an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spark_watch.detectors.condition import (
    IDLE_HOLD_SECONDS,
    Condition,
    Judgement,
    Measures,
    UnknownReason,
    spoken,
)
from spark_watch.detectors.timeline import Tick, Timeline
from spark_watch.model import SOURCE_PARTS, Event, Finding, Sample, State

UNREPORTED_SECONDS: Final = 600.0
"""A part that stays away although no source failed was not due; after this long nobody knows."""


class _Subject:
    """What is remembered of one subject of one condition; moments are on the timeline."""

    __slots__ = (
        "idle_since",
        "judged_at",
        "judgement",
        "last_loaded",
        "learnt_at",
        "published",
        "since",
        "state",
    )

    def __init__(self) -> None:
        self.state = State.UNKNOWN
        self.published = State.UNKNOWN
        self.judgement: Judgement | None = None
        self.learnt_at: float | None = None
        self.since: float | None = None
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
        "settled",
        "since",
        "state",
        "subjects",
        "worst",
    )

    def __init__(self, condition: Condition[Any]) -> None:
        self.condition = condition
        self.subjects: dict[str, _Subject] = {}
        self.settled = False
        self.state = State.UNKNOWN
        self.worst = frozenset[str]()
        self.since: float | None = None
        self.blank = Judgement(
            State.UNKNOWN, UnknownReason.NEVER, {"part": condition.part, "why": ""}
        )
        self.changed_at: float | None = None
        self.changes: dict[State, int] = dict.fromkeys(State, 0)

    def replace(self, subjects: dict[str, _Subject]) -> None:
        """Take other subjects than before."""
        self.settled = self.settled and not subjects and not self.subjects
        self.subjects = subjects

    @property
    def unchanged(self) -> bool:
        """Whether the same subjects are in the states that were published."""
        if not self.settled:
            return False
        for subject in self.subjects.values():  # noqa: SIM110 - at every sample: no generator
            if subject.state is not subject.published:
                return False
        return True


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
        tick: the last sample's place on the timeline; there is none before the first.
    """

    tick: Tick

    def __init__(self, conditions: Iterable[Condition[Any]], timeline: Timeline) -> None:
        self._tracks = [_Track(condition) for condition in conditions]
        self._timeline = timeline
        self._reasons: dict[str, str] = {}
        self.errors: list[tuple[str, Exception]] = []
        self.measures: Measures = {}
        self.judged: set[str] = set()
        self._raised: dict[str, State] = {}

    def update(self, sample: Sample) -> list[Event]:
        """Judge one sample and return what changed by it, in the order of the catalogue.

        A rule finds in ``Tick.notes`` what others say: under ``standing`` the conditions that were
        at warning or above at the sample before, and under its own name the state of each such
        condition that stands before it in the catalogue, at this sample.
        """
        tick = self.tick = self._timeline.place(sample)
        if self._raised:
            tick.notes["standing"] = dict(self._raised)
        self.errors = []
        self.measures = {}
        self._note_failures(sample)
        events: list[Event] = []
        for track in self._tracks:
            if tick.rebooted and not track.condition.survives_reboot:
                track.condition = track.condition.fresh()
                track.replace({})
            self._judge(track, tick)
            self._publish(track, tick, events)
            if track.state >= State.WARNING:
                self._raised[track.condition.name] = track.state
                tick.notes[track.condition.name] = track.state
            elif self._raised:
                self._raised.pop(track.condition.name, None)
            if track.condition.measures:
                self.measures.update(track.condition.measures)
        return events

    def _judge(self, track: _Track, tick: Tick) -> None:
        condition = track.condition
        try:
            judgements = condition.judge(tick)
        except Exception as error:  # noqa: BLE001 - one rule's bug must not silence the others
            self.errors.append((condition.name, error))
            # what it remembers may be half updated: it starts anew rather than judge from that
            track.condition = condition.fresh()
            track.replace({})
            track.blank = Judgement(
                State.UNKNOWN, UnknownReason.BROKEN, {"error": repr(error)}, remedy=""
            )
            return
        if condition.gb10_only and tick.is_gb10 is not True:
            name = tick.machine.gpu_name if tick.machine else None
            track.replace({})
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
            subjects = {name: subjects.get(name) or _Subject() for name in judgements}
            track.replace(subjects)
        if not subjects:
            track.blank = Judgement(State.UNKNOWN, UnknownReason.NOTHING, {"part": condition.part})
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
        if lost <= tick.stale_after(condition.part):
            return
        if not self._is_lost(condition, tick) and lost <= UNREPORTED_SECONDS:
            return
        subject.last_loaded = None
        if subject.state is not State.UNKNOWN:
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
            condition.measures = {}

    def _is_lost(self, condition: Condition[Any], tick: Tick) -> bool:
        """Whether the input was due: its source failed since, or its part came without it."""
        return tick.cadences[condition.part].last == tick.now or any(
            source in self._reasons for source in condition.sources
        )

    def _note_failures(self, sample: Sample) -> None:
        """Keep the last reason of every source that has not answered since."""
        for source in sample.pending:
            if source in SOURCE_PARTS:
                self._reasons.setdefault(source, "no_answer_yet")
        for failure in sample.failed:
            if failure.source in SOURCE_PARTS:
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
        if track.unchanged:
            return
        track.settled = True
        at = tick.sample.t
        subjects = track.subjects
        state = max((subject.state for subject in subjects.values()), default=State.UNKNOWN)
        if state is not State.UNKNOWN:
            self.judged.add(track.condition.name)
        worst = frozenset(name for name, subject in subjects.items() if subject.state is state)
        if track.since is None:
            track.since = at
        told = None
        if state is not track.state:
            # of several, who was among the worst before: that one's change is the news
            told = min(worst & track.worst or worst, default="host")
            before, track.state = track.state, state
            track.since = at
            track.changed_at = at
            track.changes[state] += 1
            events.append(self._event(track, tick, told, before, state))
        if state >= State.INFO:
            for name in sorted(worst):
                before = subjects[name].published
                if before is not state and name != told:
                    events.append(self._event(track, tick, name, before, state))
        track.worst = worst
        for subject in subjects.values():
            if subject.since is None or subject.published is not subject.state:
                subject.since = at
                subject.published = subject.state

    def _event(self, track: _Track, tick: Tick, name: str, before: State, after: State) -> Event:
        finding = self._finding(track, name, tick.sample.t)
        try:
            sentence = finding.sentence
        except Exception as error:  # noqa: BLE001 - a sentence that cannot be formatted hides no event
            self.errors.append((track.condition.name, error))
            sentence = finding.template
        return Event(
            at_seconds=tick.sample.t,
            elapsed_seconds=tick.now,
            gotcha=track.condition.gotcha,
            condition=track.condition.name,
            subject=name,
            from_state=before,
            to_state=after,
            sentence=sentence,
            remedy=finding.remedy,
        )

    @staticmethod
    def _finding(track: _Track, name: str, at: float) -> Finding:
        subject = track.subjects.get(name)
        judgement = (subject.judgement if subject else None) or track.blank
        state = subject.state if subject else State.UNKNOWN
        since = subject.since if subject else track.since
        remedy = judgement.remedy
        if remedy is None:
            remedy = track.condition.remedies.get(state, "")
        return Finding(
            at_seconds=at,
            since_seconds=at if since is None else since,
            gotcha=track.condition.gotcha,
            condition=track.condition.name,
            subject=name,
            state=state,
            template=judgement.template,
            values=judgement.values,
            remedy=remedy,
        )

    def acknowledge(self, name: str) -> None:
        """Tell the condition of that name that somebody has seen what it says."""
        for track in self._tracks:
            if track.condition.name == name:
                track.condition.acknowledge()

    def begin(self) -> None:
        """Take all samples so far for the past: changes are counted from here on."""
        for track in self._tracks:
            track.changes = dict.fromkeys(State, 0)

    def renewed(self, conditions: Iterable[Condition[Any]]) -> Judge:
        """Return a judge with other rules over the same stream.

        What outlasts a restart of the machine outlasts this too, by its new settings: nobody has
        seen the last unclean restart only because a level was changed.
        """
        judge = Judge(conditions, self._timeline)
        kept = {
            track.condition.name: track for track in self._tracks if track.condition.survives_reboot
        }
        for place, track in enumerate(judge._tracks):
            before = kept.get(track.condition.name)
            if before is not None:
                before.condition.settings = track.condition.settings
                judge._tracks[place] = before
        return judge

    def states(self) -> dict[str, State]:
        """Return the state of every condition now, in the catalogue's order."""
        return {track.condition.name: track.state for track in self._tracks}

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
            worst = self._finding(track, min(track.worst, default="host"), at_seconds)
            if track.since is not None:
                worst = replace(worst, since_seconds=track.since)
            standings.append(Standing(worst, findings, track.changed_at, dict(track.changes)))
        return tuple(standings)


def _learn(subject: _Subject, judgement: Judgement, now: float) -> None:
    """Take what a rule says of a subject, with the rule for idleness."""
    subject.learnt_at = now
    last = subject.last_loaded
    if not judgement.idle:
        subject.state = judgement.state
        subject.judgement = judgement
        if judgement.state is not State.UNKNOWN:
            subject.last_loaded = judgement
            subject.judged_at = now
            subject.idle_since = None
        elif last is not None and last.state >= State.INFO:
            # the rule took its word back: being idle does not give it again
            subject.last_loaded = None
        return
    if subject.idle_since is None:
        subject.idle_since = now
    if last is None:
        subject.state = State.UNKNOWN
        subject.judgement = Judgement(
            State.UNKNOWN, UnknownReason.NOT_LOADED + " " + judgement.template, judgement.values
        )
        return
    values = {**last.values, "ago": spoken(now - subject.judged_at)}
    if last.state >= State.INFO and now - subject.idle_since > IDLE_HOLD_SECONDS:
        subject.state = State.UNKNOWN
        values["state"] = last.state.label.capitalize()
        subject.judgement = Judgement(State.UNKNOWN, UnknownReason.OUTDATED, values)
        return
    subject.state = last.state
    subject.judgement = Judgement(
        last.state, last.template + UnknownReason.IDLE, values, last.remedy
    )
