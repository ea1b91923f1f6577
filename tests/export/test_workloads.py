"""What the workloads report, as it stands on the page."""

from __future__ import annotations

from dataclasses import replace

from spark_watch.export.families.workloads import FAMILIES, MOST
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import Progress
from tests.export.snapshots import SAMPLE, SNAPSHOT


def told(*reports: Progress) -> Snapshot:
    """Return a picture with these reports in it."""
    return replace(SNAPSHOT, latest=replace(SAMPLE, progress=reports))


def series(snapshot: Snapshot) -> dict[str, dict[tuple[str, ...], float]]:
    """Return every series by the family's name and its labels, absent ones left out."""
    return {
        family.name: {labels: value for labels, value in family.read(snapshot) if value is not None}
        for family in FAMILIES
    }


def test_what_a_workload_says_and_nothing_else() -> None:
    """A loop has steps and no tokens: what it does not say is absent, never 0."""
    page = series(told(Progress(workload="train", steps_total=12, step_seconds=0.8)))
    assert {name: values for name, values in page.items() if values} == {
        "workloads": {(): 1},
        "workload_steps": {("train",): 12},
        "workload_step_seconds": {("train",): 0.8},
    }


def test_no_feed_no_series() -> None:
    """Where no feed was read there is no count of workloads either."""
    assert not any(series(replace(SNAPSHOT, latest=replace(SAMPLE, progress=None))).values())


def test_at_most_eight_and_each_once() -> None:
    """A recording of twenty shows eight and counts all; a name told twice stands once."""
    reports = [Progress(workload=f"w{number}", steps_total=number) for number in range(20)]
    page = series(told(reports[0], *reports))
    assert len(page["workload_steps"]) == MOST
    assert page["workloads"] == {(): 20}
