"""The daily look: beside the loop, never in its way, and kept until the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_watch.daemon.daily import DailyPreflight
from spark_watch.export.families.preflight import FAMILIES
from spark_watch.export.snapshot import Snapshot
from spark_watch.preflight.checks import report
from spark_watch.preflight.gather import Request, gather_beside
from spark_watch.preflight.report import Report, Result
from tests.export.snapshots import SNAPSHOT
from tests.preflight import boxes

PATIENT = 30.0


@dataclass
class Log:
    """Keeps what is logged."""

    lines: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    told: threading.Event = field(default_factory=threading.Event)

    def info(self, event: str, **values: Any) -> None:
        """Keep a line."""
        self.lines.append(("info", event, values))
        self.told.set()

    def error(self, event: str, **values: Any) -> None:
        """Keep a line."""
        self.lines.append(("error", event, values))
        self.told.set()


def looked(look: Callable[[Snapshot], Report]) -> tuple[DailyPreflight, Log]:
    """Return a daily look that has looked once, and what it logged."""
    log = Log()
    daily = DailyPreflight(look, log=log, first_seconds=0.01, again_seconds=3600.0)
    assert daily.add_to(SNAPSHOT) is SNAPSHOT
    daily.start()
    assert log.told.wait(PATIENT)
    daily.close(PATIENT)
    return daily, log


def test_the_report_is_added_to_every_snapshot_from_then_on() -> None:
    """Before the first look a snapshot stays as it is; afterwards each has the report."""
    found = report(boxes.facts())
    daily, log = looked(lambda _: found)
    assert daily.add_to(SNAPSHOT).preflight is found
    assert log.lines == [("info", "preflight", {"verdict": "ready"})]


def test_it_looks_at_the_newest_snapshot() -> None:
    """What the loop published last is what is judged."""
    seen: list[Snapshot] = []

    def look(snapshot: Snapshot) -> Report:
        seen.append(snapshot)
        return report(boxes.facts())

    log = Log()
    daily = DailyPreflight(look, log=log, first_seconds=0.01, again_seconds=3600.0)
    daily.add_to(SNAPSHOT)
    newest = replace(SNAPSHOT, at_seconds=SNAPSHOT.at_seconds + 1.0)
    daily.add_to(newest)
    daily.start()
    assert log.told.wait(PATIENT)
    daily.close(PATIENT)
    assert seen == [newest]


def test_a_look_that_fails_is_logged_and_nothing_else() -> None:
    """The daemon goes on, and the page shows no result that nobody found."""

    def look(_: Snapshot) -> Report:
        raise ZeroDivisionError("by nothing")

    daily, log = looked(look)
    assert daily.add_to(SNAPSHOT).preflight is None
    assert log.lines == [
        ("error", "preflight_failed", {"error": "ZeroDivisionError('by nothing')"})
    ]


def test_nothing_is_looked_at_before_there_is_a_sample() -> None:
    """Without a snapshot it waits on, and ends when it is told to."""
    daily = DailyPreflight(lambda _: report(boxes.facts()), log=Log(), first_seconds=0.001)
    daily.start()
    daily.close(PATIENT)
    assert daily.add_to(SNAPSHOT) is SNAPSHOT


def test_what_the_page_says_of_it() -> None:
    """Of five results exactly one is true for each gotcha; before the first look none is there."""
    results, moment = FAMILIES
    assert list(results.read(SNAPSHOT)) == []
    assert list(moment.read(SNAPSHOT)) == [((), None)]
    shown = replace(SNAPSHOT, preflight=report(boxes.facts(container=())))
    values = dict(results.read(shown))
    assert len(values) == 50
    assert values[("G1", "pass")] == 1.0
    assert values[("G9", "info")] == 1.0
    for number in range(1, 11):
        assert sum(values[f"G{number}", result.label] or 0.0 for result in Result) == 1.0
    assert list(moment.read(shown)) == [((), 1.8e9)]


def test_beside_the_daemon_only_files_are_read(tmp_path: Path) -> None:
    """What was sampled is taken as it is; an environment is not looked at."""
    assert SNAPSHOT.machine is not None
    facts = gather_beside(
        Request(foreign=False, proc_root=tmp_path, root=tmp_path),
        SNAPSHOT.latest,
        SNAPSHOT.identities,
        SNAPSHOT.machine,
    )
    assert facts.memory is SNAPSHOT.latest.memory
    assert facts.processes is SNAPSHOT.latest.processes
    assert facts.python is None
    assert facts.unread["loader"] == "not_found"
    assert facts.unread["boots"] == "not_found"
    assert facts.container == ()
