"""A recording through the very rules the live loop uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from spark_watch.blackbox.trace import TraceHeader
from spark_watch.daemon.verdict import worst
from spark_watch.detectors.catalogue import conditions
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Event, Machine, State
from spark_watch.settings.conditions import ConditionSettings

OWN_RECORDER = "spark-watch"
"""What our own recorder writes into a header: only there is a hole a hole in our own watch."""


class Recording(Protocol):
    """What a recording of any kind offers."""

    @property
    def header(self) -> TraceHeader:
        """What the recording says of itself."""

    @property
    def skipped(self) -> Iterable[Mapping[str, Any]]:
        """Lines that could not be read, with the reason; complete after the last sample."""

    def __iter__(self) -> Any:
        """Yield the samples in the order of the file."""


@dataclass(kw_only=True)
class Report:
    """What a replay found. ``final`` and ``judged`` go by condition, in the catalogue's order.

    ``machine`` is what the recording's last sample knew: our own recorder begins before the driver
    has told it the GPU's name.
    """

    header: TraceHeader
    machine: Machine
    duration_seconds: float = 0.0
    samples: int = 0
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    final: dict[str, State] = field(default_factory=dict)
    judged: dict[str, bool] = field(default_factory=dict)
    worst: State = State.UNKNOWN

    def as_json(self) -> dict[str, Any]:
        """Return the report in its published form."""
        return {
            "trace": {
                "origin": self.header.origin,
                "interval_seconds": self.header.interval_seconds,
                "gpu_name": self.machine.gpu_name,
            },
            "duration_seconds": round(self.duration_seconds, 3),
            "samples": self.samples,
            "skipped": [{"line": one["line"], "why": one["why"]} for one in self.skipped],
            "events": [event_as_json(event, event.elapsed_seconds) for event in self.events],
            "final": {name: state.label for name, state in self.final.items()},
            "judged": self.judged,
        }


def event_as_json(event: Event, t: float) -> dict[str, Any]:
    """Return an event in its published form, with ``t`` in whatever seconds the reader expects."""
    return {
        "t": round(t, 3),
        "gotcha": event.gotcha,
        "condition": event.condition,
        "subject": event.subject,
        "from": event.from_state.label,
        "to": event.to_state.label,
        "sentence": event.sentence,
        "remedy": event.remedy,
    }


def judge_for(header: TraceHeader, settings: ConditionSettings) -> Judge:
    """Return a judge for a stream with that header."""
    return Judge(
        conditions(settings),
        Timeline(
            interval_seconds=header.interval_seconds,
            own_recording=header.recorder == OWN_RECORDER,
            machine=header.machine,
        ),
    )


def replay(recording: Recording, settings: ConditionSettings) -> Report:
    """Judge every sample of a recording and return what was found.

    Raises:
        InputError: the recording cannot be read.
    """
    report = Report(header=recording.header, machine=recording.header.machine)
    judge = judge_for(recording.header, settings)
    for sample in recording:
        report.samples += 1
        report.events += judge.update(sample)
        if judge.errors:
            raise judge.errors[0][1]
        report.duration_seconds = judge.tick.now
        report.machine = judge.tick.machine or report.machine
    report.final = judge.states()
    report.judged = {name: name in judge.judged for name in report.final}
    report.worst = worst((event.condition, event.to_state) for event in report.events)
    report.skipped = list(recording.skipped)
    return report
