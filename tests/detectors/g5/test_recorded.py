"""Engine logs and training runs of real machines: all healthy, so nothing may be raised."""

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

NAMES = ("bandwidth_ceiling", "bandwidth_degraded", "busy_without_progress")
"""The conditions that a workload's own reports feed."""

RECORDED = sorted(Path(TRACES).glob("*.jsonl")) if TRACES else []


@pytest.mark.skipif(not RECORDED, reason="SPARK_WATCH_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded(path: Path) -> None:
    """In a span that a fair reader would call quiet nothing above info stands."""
    settings = ConditionSettings()
    reader = read_trace(path)
    judge = Judge(
        [kind(getattr(settings, kind.name)) for kind in CATALOGUE if kind.name in NAMES],
        Timeline(interval_seconds=reader.header.interval_seconds, machine=reader.header.machine),
    )
    spans = [
        span
        for span in json.loads(path.with_suffix(".labels.json").read_text())["spans"]
        if span["confidence"] != "low" and not {"G5", "G10"} & set(span["label"])
    ]
    loud = []
    for sample in reader:
        judge.update(sample)
        assert not judge.errors, judge.errors
        if any(span["from"] <= judge.tick.now <= span["to"] for span in spans):
            loud += [
                (judge.tick.now, standing.finding.sentence)
                for standing in judge.standing(sample.t)
                if standing.finding.state > State.INFO
            ]
    assert loud == []
