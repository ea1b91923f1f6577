"""Recordings of real machines: none of them was held back, so nothing may be raised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_watch.blackbox.trace import read_trace
from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import State
from spark_watch.settings.conditions import ConditionSettings
from tests.conftest import TRACES

NAMES = ("low_power_state", "thermal_slowdown", "power_plateau", "board_hot", "gpu_hot")
"""The conditions about power, clock and heat."""

RECORDED = sorted(Path(TRACES).glob("*.jsonl")) if TRACES else []


def replay(path: Path) -> list[tuple[float, dict[str, State]]]:
    """Return seconds from the start and the states of the G4 conditions after each sample."""
    settings = ConditionSettings()
    reader = read_trace(path)
    judge = Judge(
        [kind(getattr(settings, kind.name)) for kind in CATALOGUE if kind.name in NAMES],
        Timeline(interval_seconds=reader.header.interval_seconds, machine=reader.header.machine),
    )
    said = []
    for sample in reader:
        judge.update(sample)
        assert not judge.errors, judge.errors
        standings = judge.standing(sample.t)
        said.append(
            (judge.tick.now, {one.finding.condition: one.finding.state for one in standings})
        )
    return said


@pytest.mark.skipif(not RECORDED, reason="SPARK_WATCH_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded(path: Path) -> None:
    """In a span that a fair reader would call quiet for G4 nothing above info stands."""
    said = replay(path)
    labels = json.loads(path.with_suffix(".labels.json").read_text())
    for span in labels["spans"]:
        if span["confidence"] == "low" or "G4" in span["label"]:
            continue
        allowed = State[span.get("at_most", "info").upper()]
        loud = [
            (now, states)
            for now, states in said
            if span["from"] <= now <= span["to"] and max(states.values()) > allowed
        ]
        assert loud == [], span
