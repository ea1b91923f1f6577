"""What the daemon's own daily look before a run has found."""

from __future__ import annotations

from typing import Final

from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import Snapshot
from spark_watch.preflight.report import Result


def _results(snapshot: Snapshot) -> Samples:
    if snapshot.preflight is None:
        return
    for gotcha, result in snapshot.preflight.results().items():
        for each in Result:
            yield (gotcha, each.label), float(each is result)


FAMILIES: Final = (
    Family(
        "preflight_result",
        "gauge",
        "1 for the result of a gotcha's checks, of those that run nobody's code, and 0 for the "
        "four others, absent before the first look: spark-watch.",
        _results,
        ("gotcha", "result"),
    ),
    Family(
        "preflight_last_run_timestamp_seconds",
        "gauge",
        "When those checks last ran, absent before the first look: spark-watch.",
        lambda snapshot: one(None if snapshot.preflight is None else snapshot.preflight.at_seconds),
    ),
)
