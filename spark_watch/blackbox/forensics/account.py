"""How each run ended, and what stood before it ended: told from the recording, nothing added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spark_watch.blackbox.forensics.passages import Passage, Progress, restarted
from spark_watch.blackbox.ring.recovery import seconds_between
from spark_watch.blackbox.trace import TraceHeader
from spark_watch.blackbox.trace.encode import sample_object
from spark_watch.model import Event, KernelEvent, Sample, State

SHOWN_SECONDS: Final = 120.0
"""The end of a run that is shown sample by sample."""

PRECURSOR_SECONDS: Final = 600.0
"""What stood this long before the last sample counts as having stood before it."""

LOOKED_AT_SECONDS: Final = 1800.0
"""How much is read to find since when something stood, or to judge what carries no verdicts.

A leak takes 20 minutes to be told from a swing.
"""

OVER_SECONDS: Final = 10.0
"""What ended this long before the last sample was over then, and that is said."""

HOLE_INTERVALS: Final = 3.5
HOLE_SECONDS: Final = 5.0
"""Samples further apart than both leave a gap that is worth a line."""

CONSEQUENCES: Final = frozenset({"unclean_reboot", "telemetry_gap"})
"""Conditions that tell of an earlier end, so that they cannot have led to this one."""


class Judging(Protocol):
    """What judges a trace that carries no verdicts."""

    def update(self, sample: Sample) -> Sequence[Event]:
        """Judge one sample and return what changed."""

    def states(self) -> Mapping[str, State]:
        """Return the state of every condition."""


@dataclass(slots=True)
class Appearance:
    """A condition that stood: since when, until when (unix seconds), how bad, in what words."""

    condition: str
    since: float
    until: float
    worst: State
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is known of one run. Moments are unix seconds.

    Args:
        ended: its last sample, ``None`` while it runs.
        machine_restarted: whether the machine came up anew after it, as far as is recorded.
        last_sample_age_seconds: from its last sample to the next run's first, or to now.
        appearances: what stood at warning or above before an unclean end, in order of appearance.
        gaps: moments after which no sample came, and for how many seconds.
        kernel: what the kernel logged, with the moment.
        samples: its last two minutes, where it did not end cleanly.
    """

    started: float
    ended: float | None
    clean: bool
    machine_restarted: bool
    running: bool
    last_sample_age_seconds: float | None
    sentence: str
    origin: str | None = None
    appearances: tuple[Appearance, ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()
    kernel: tuple[tuple[float, KernelEvent], ...] = ()
    samples: tuple[Sample, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Return the account in its published form."""
        return {
            "started": round(self.started, 3),
            "ended": None if self.ended is None else round(self.ended, 3),
            "clean": self.clean,
            "machine_restarted": self.machine_restarted,
            "running": self.running,
            "last_sample_age_seconds": None
            if self.last_sample_age_seconds is None
            else round(self.last_sample_age_seconds, 3),
            "precursors": [one.condition for one in self.appearances],
            "sentence": self.sentence,
            "samples": [sample_object(one, one.machine) for one in self.samples],
        }


def accounts_of(
    passages: Sequence[Passage],
    *,
    now: float,
    boot_id: str | None,
    judging: Callable[[TraceHeader], Judging],
    progress: Progress,
) -> list[Account]:
    """Return an account of each run, oldest first.

    Args:
        passages: the runs, oldest first.
        now: unix seconds.
        boot_id: of this machine now, where the recording is its own; ``None`` elsewhere.
        judging: makes a judge for a trace with that header.
        progress: told after each run.
    """
    accounts = []
    for number, passage in enumerate(passages, start=1):
        after = passages[number] if number < len(passages) else None
        accounts.append(_account(passage, after, now=now, boot_id=boot_id, judging=judging))
        progress(number, len(passages))
    return accounts


def _account(
    passage: Passage,
    after: Passage | None,
    *,
    now: float,
    boot_id: str | None,
    judging: Callable[[TraceHeader], Judging],
) -> Account:
    last = passage.last
    running = passage.running
    clean = last.stopped
    if after is not None:
        again = restarted(last, after.first)
    else:
        again = boot_id is not None and last.boot_id is not None and boot_id != last.boot_id
    known = after is not None or boot_id is not None
    age = (after.first.t if after is not None else now) - last.t
    told: dict[str, Any] = {}
    words = ""
    if not clean and not running:
        told = _end(passage, judging)
        killer = after.header.extra.get("before_killed_by") if after is not None else None
        words = _unclean(told["appearances"], last, restart=again, known=known, killer=killer)
    elif running:
        words = f"The daemon is running; its last sample is {max(0.0, age):.0f} s old."
    else:
        words = "The daemon was stopped cleanly" + (
            ", and the machine was restarted after it." if again else "."
        )
    return Account(
        started=_started(passage),
        ended=None if running else last.t,
        clean=clean,
        machine_restarted=again,
        running=running,
        last_sample_age_seconds=age if age >= 0.0 else None,
        sentence=words,
        origin=passage.header.origin,
        **told,
    )


def _started(passage: Passage) -> float:
    """When the run began, although its first segments may be gone."""
    started = passage.header.extra.get("run_started")
    return float(started) if isinstance(started, int | float) else passage.first.t


def _unclean(
    appearances: Sequence[Appearance],
    last: Sample,
    *,
    restart: bool,
    known: bool,
    killer: object,
) -> str:
    """Say how a run ended that left no mark, and what stood before."""
    if restart:
        how = "The machine restarted without a clean stop"
    elif not known:
        how = "The recording ends without a clean stop, and what came after it is not recorded"
    elif killer == "oom_killer":
        how = "The kernel's OOM killer ended the daemon while the machine stayed up"
    else:
        how = "The daemon was killed, by whom is not recorded, while the machine stayed up"
    stood = ", ".join(_named(one, last.t) for one in appearances)
    before = f"before it stood {stood}" if stood else "no precursor recorded"
    pending = "".join(
        f"; a call to {source} was out for {seconds:.0f} s"
        for source, seconds in last.pending.items()
    )
    return f"{how}; {before}{pending}."


def _named(one: Appearance, end: float) -> str:
    over = end - one.until
    ended = f", over for {over:.0f} s" if over > OVER_SECONDS else ""
    return f"{one.condition} ({one.worst.label}{ended})"


def _end(passage: Passage, judging: Callable[[TraceHeader], Judging]) -> dict[str, Any]:
    """What the end of a run holds: precursors, gaps, kernel lines and its last samples."""
    judge = None if passage.judged else judging(passage.header)
    stood: dict[str, Appearance] = {}
    gaps: list[tuple[float, float]] = []
    kernel: list[tuple[float, KernelEvent]] = []
    shown: list[Sample] = []
    hole = max(HOLE_SECONDS, HOLE_INTERVALS * passage.header.interval_seconds)
    before: Sample | None = None
    for sample in passage.tail(LOOKED_AT_SECONDS):
        left = seconds_between(sample, passage.last)
        at = passage.last.t - left  # as if the wall clock had not stepped
        if judge is None:
            _note_recorded(stood, sample, at)
        else:
            _note_judged(stood, sample, at, judge)
        if before is not None and (gap := seconds_between(before, sample)) > hole:
            gaps.append((at - gap, gap))
        if left <= PRECURSOR_SECONDS:
            kernel += [(at, event) for event in sample.kernel or ()]
        if left <= SHOWN_SECONDS:
            shown.append(sample)
        before = sample
    edge = passage.last.t - PRECURSOR_SECONDS
    lasting = [one for one in stood.values() if one.until >= edge]
    return {
        "appearances": tuple(sorted(lasting, key=lambda one: one.since)),
        "gaps": tuple(gaps),
        "kernel": tuple(kernel),
        "samples": tuple(shown),
    }


def _note_recorded(stood: dict[str, Appearance], sample: Sample, at: float) -> None:
    """Take what the recorder itself said at this sample."""
    standing = sample.extra.get("standing")
    if isinstance(standing, Mapping):
        states = {
            name: State[label.upper()]
            for name, label in standing.items()
            if isinstance(label, str) and label.upper() in State.__members__
        }
        _note(stood, at, states)
    events = sample.extra.get("events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, Mapping):
            _word(stood, event.get("condition"), event.get("to"), event.get("sentence"))


def _note_judged(stood: dict[str, Appearance], sample: Sample, at: float, judge: Judging) -> None:
    events = judge.update(sample)
    _note(stood, at, judge.states())
    for event in events:
        _word(stood, event.condition, event.to_state.label, event.sentence)


def _note(stood: dict[str, Appearance], at: float, states: Mapping[str, State]) -> None:
    for name, state in states.items():
        if state < State.WARNING or name in CONSEQUENCES:
            continue
        one = stood.get(name)
        if one is None:
            stood[name] = Appearance(name, at, at, state)
        else:
            one.until = at
            one.worst = max(one.worst, state)


def _word(stood: dict[str, Appearance], condition: object, to: object, sentence: object) -> None:
    """Keep the words in which a condition's worst state was entered."""
    one = stood.get(condition) if isinstance(condition, str) else None
    if one is not None and to == one.worst.label and isinstance(sentence, str):
        one.sentence = sentence
