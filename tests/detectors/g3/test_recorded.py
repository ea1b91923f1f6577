"""Recordings of real machines: every fault span is found, nothing stands in a quiet one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_watch.blackbox.trace import read_trace
from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import State
from spark_watch.settings.conditions import ConditionSettings
from tests.conftest import TRACES

NAMES = (
    "memory_collapse",
    "memory_low",
    "memory_stalled",
    "page_cache_squeeze",
    "swap_thrash",
    "memory_fragmented",
)
"""The conditions that read the host's memory."""

RECORDED = sorted(Path(TRACES).glob("*.jsonl")) if TRACES else []


def replay(path: Path) -> list[tuple[float, dict[str, State]]]:
    """Return seconds from the start and the states of the memory conditions after each sample."""
    settings = ConditionSettings()
    reader = read_trace(path)
    judge = Judge(
        [kind(getattr(settings, kind.name)) for kind in CATALOGUE if kind.name in NAMES],
        Timeline(
            interval_seconds=reader.header.interval_seconds or 1.0, machine=reader.header.machine
        ),
    )
    out = []
    for sample in reader:
        judge.update(sample)
        assert not judge.errors, judge.errors
        out.append((judge.tick.now, judge.states()))
    return out


def fault_found(span: dict[str, Any], said: list[tuple[float, dict[str, State]]]) -> bool:
    """Whether any memory condition stood at the asked level by the span's deadline."""
    wanted = State[span.get("at_least", "warning").upper()]
    begin = span["from"]
    until = begin + span["deadline"] if "deadline" in span else span["to"] + 5.0
    standing = [states for now, states in said if now <= begin][-1:]
    standing += [states for now, states in said if begin < now <= until]
    return any(max(states.values()) >= wanted for states in standing)


@pytest.mark.skipif(not RECORDED, reason="SPARK_WATCH_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded(path: Path) -> None:
    """Spans of this gotcha are found in time; in quiet spans nothing above info stands."""
    said = replay(path)
    labels = json.loads(path.with_suffix("").with_suffix(".labels.json").read_text())
    for span in labels["spans"]:
        if span["confidence"] == "low":
            continue
        if span["label"] == "quiet":
            allowed = State[span.get("at_most", "info").upper()]
            loud = [
                (now, states)
                for now, states in said
                if span["from"] <= now <= span["to"] and max(states.values()) > allowed
            ]
            assert loud == [], span
        elif "G3" in span["label"]:
            assert fault_found(span, said), span
