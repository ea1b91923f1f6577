"""Drives conditions over samples and writes what they said, a character a sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_watch.detectors.condition import Condition
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Event, Machine, Sample, State

GB10 = Machine(gpu_name="NVIDIA GB10", memory_total_bytes=round(121.7 * 1024**3))
"""The machine most timelines play on: with its pool every level in GiB is the level itself."""

CHARACTERS = {
    State.UNKNOWN: "?",
    State.OK: ".",
    State.INFO: "i",
    State.WARNING: "w",
    State.CRITICAL: "c",
}


def play(
    condition: Condition[Any],
    samples: Iterable[Sample],
    *,
    interval_seconds: float = 1.0,
    machine: Machine | None = GB10,
    own_recording: bool = False,
) -> tuple[str, list[Event]]:
    """Run one condition over samples through the real judge.

    Returns:
        The state after each sample, a character each (``?.iwc``), and all events.
    """
    judge = Judge(
        [condition],
        Timeline(interval_seconds=interval_seconds, machine=machine, own_recording=own_recording),
    )
    states = []
    events: list[Event] = []
    for sample in samples:
        events += judge.update(sample)
        assert not judge.errors, judge.errors
        (standing,) = judge.standing(sample.t)
        finding = standing.finding
        assert finding.sentence
        assert finding.remedy or finding.state < State.INFO, "a raised state says what to do"
        states.append(CHARACTERS[finding.state])
    return "".join(states), events


def squeeze(states: str) -> str:
    """Write runs of one state as ``w12`` so that long timelines stay readable."""
    out: list[str] = []
    for state in states:
        if out and out[-1][0] == state:
            out[-1] = f"{state}{int(out[-1][1:]) + 1}"
        else:
            out.append(f"{state}1")
    return " ".join(out)
