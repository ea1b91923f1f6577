"""What each path answers: pure functions of the page, so that a test needs no socket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_watch.export import runbook as runbook_page
from spark_watch.export.http1 import accepts
from spark_watch.export.page import Page
from spark_watch.export.status.document import policy
from spark_watch.export.status.words import lines
from spark_watch.model import EMPTY, Finding

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, content type, body, and what else stands in its head."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY)


def metrics(page: Page, headers: Mapping[str, str]) -> Answer:
    """Return the Prometheus page in the form that was asked for."""
    body, content_type = page.metrics(headers.get("accept", ""))
    return Answer(200, content_type, body)


def conditions(page: Page, headers: Mapping[str, str]) -> Answer:
    """Return how every condition stands, as JSON; 503 before the first sample."""
    del headers
    snapshot = page.snapshot
    if snapshot is None:
        return Answer(503, TEXT, b"no sample yet\n")
    body = {
        "at": round(snapshot.at_seconds, 3),
        "conditions": [
            {
                **finding_as_json(standing.finding),
                "subjects": [
                    {"subject": one.subject, "state": one.state.label, "sentence": one.sentence}
                    for one in standing.subjects
                ],
            }
            for standing in snapshot.standings
        ],
    }
    return Answer(200, JSON, json.dumps(body, ensure_ascii=False).encode() + b"\n")


def finding_as_json(finding: Finding) -> dict[str, object]:
    """Return a finding in its published form."""
    return {
        "gotcha": finding.gotcha,
        "condition": finding.condition,
        "state": finding.state.label,
        "subject": finding.subject,
        "since": round(finding.since_seconds, 3),
        "sentence": finding.sentence,
        "remedy": finding.remedy,
    }


def healthz(page: Page, headers: Mapping[str, str]) -> Answer:
    """Return 200 while the loop ticks, else 503."""
    del headers
    if page.alive(time.monotonic()):
        return Answer(200, TEXT, b"ok\n")
    return Answer(503, TEXT, b"the loop does not tick\n")


def readyz(page: Page, headers: Mapping[str, str]) -> Answer:
    """Return 200 from the first host sample on; NVML is not needed for it."""
    del headers
    snapshot = page.snapshot
    if snapshot is not None and snapshot.ready:
        return Answer(200, TEXT, b"ok\n")
    return Answer(503, TEXT, b"no sample yet\n")


def runbook(page: Page, headers: Mapping[str, str]) -> Answer:
    """Return the runbook, an anchor for each condition."""
    del page, headers
    return Answer(200, HTML, runbook_page.page())


def index(page: Page, headers: Mapping[str, str]) -> Answer:
    """Return the status page: HTML for who asks for it, else lines for a person with curl."""
    paths = [path for path in VIEWS if path != "/"]
    if accepts(headers.get("accept", ""), "text/html"):
        head = {"Vary": "Accept", "Content-Security-Policy": policy()}
        return Answer(200, HTML, page.status(time.monotonic(), paths), head)
    return Answer(200, TEXT, lines(page.snapshot, paths).encode(), {"Vary": "Accept"})


VIEWS: Final[Mapping[str, Callable[[Page, Mapping[str, str]], Answer]]] = {
    "/": index,
    "/metrics": metrics,
    "/api/v1/conditions": conditions,
    "/runbook": runbook,
    "/healthz": healthz,
    "/readyz": readyz,
}
"""Every path there is."""
