"""A page that has seen a simulated box up to the worst of its story."""

from __future__ import annotations

import dataclasses

from spark_watch.detectors.catalogue import conditions
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.export.page import Page
from spark_watch.export.snapshot import Latest, Snapshot
from spark_watch.model import State
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.reading import SourceHealth
from spark_watch.sources.simulated import SimulatedSource
from tests.export.snapshots import SNAPSHOT

INTERVAL_SECONDS = 2.0
LONGEST = 900


def told(name: str) -> tuple[Page, Snapshot]:
    """Return a page that was shown the story until its worst state first stood, and that moment."""
    worst, until = State.OK, 0
    source = SimulatedSource(name, interval_seconds=INTERVAL_SECONDS)
    judge = Judge(conditions(ConditionSettings()), Timeline(interval_seconds=INTERVAL_SECONDS))
    for number, sample in zip(range(LONGEST), source.samples(), strict=False):
        judge.update(sample)
        state = max(one.finding.state for one in judge.standing(sample.t))
        if state > worst or worst <= State.UNKNOWN:
            worst, until = state, number
    page, latest = Page(), Latest()
    snapshot = SNAPSHOT
    judge = Judge(conditions(ConditionSettings()), Timeline(interval_seconds=INTERVAL_SECONDS))
    for _, sample in zip(
        range(until + 1),
        SimulatedSource(name, interval_seconds=INTERVAL_SECONDS).samples(),
        strict=False,
    ):
        judge.update(sample)
        now = sample.monotonic_seconds or sample.t
        latest.update(sample, now)
        snapshot = Snapshot(
            at_seconds=sample.t,
            latest=latest.merged(sample, now),
            standings=judge.standing(sample.t),
            measures=judge.measures,
            marks={},
            identities=(),
            machine=sample.machine,
            sources=tuple(
                SourceHealth(source=one.source, success=False, reason=one.reason)
                for one in sample.failed
            ),
            loop=dataclasses.replace(SNAPSHOT.loop, interval_seconds=INTERVAL_SECONDS),
            origin=f"simulate:{name}",
            ready=True,
        )
        page.publish(snapshot)
    return page, snapshot
