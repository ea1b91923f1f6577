"""Critical verdicts reach Alertmanager at once, are renewed, and are never called off."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from spark_watch.errors import ConfigurationError
from spark_watch.export.alert_push import AlertPush
from spark_watch.model import Event, Sample, State
from spark_watch.settings.tree import load
from tests.house.rules import alerts
from tests.waiting import until

SAMPLE = Sample(t=0.0)
LABELS = {"instance": "spark-a:9810", "job": "spark-watch", "rack": "1"}


class Log:
    """Keeps what was logged."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def warning(self, event: str, **values: object) -> None:
        """Note a warning."""
        del values
        self.events.append(event)

    info = warning


class Receiver:
    """Stands in for Alertmanager: keeps what was posted, and answers as it is told."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, list[dict[str, Any]], float]] = []
        self.status = 200
        self.hold = threading.Event()
        self.hold.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Take alerts."""
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.hold.wait(10)
                receiver.posts.append((self.path, body, time.time()))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *words: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def conditions(self) -> list[list[str]]:
        """Return the conditions of each post."""
        return [[one["labels"]["condition"] for one in alerts] for _, alerts, _ in self.posts]

    def close(self) -> None:
        """Give the port back."""
        self.hold.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One that takes everything."""
    server = Receiver()
    yield server
    server.close()


@contextmanager
def pushing(url: str, log: Any = None, **timing: float) -> Iterator[AlertPush]:
    """Post to an address until the block ends."""
    push = AlertPush(url, labels=LABELS, log=log or Log(), **timing)
    try:
        yield push
    finally:
        push.close()


def event(to: State, condition: str = "memory_collapse", subject: str = "host") -> Event:
    """Return a change of a condition."""
    return Event(
        at_seconds=0.0,
        elapsed_seconds=0.0,
        gotcha="G3",
        condition=condition,
        subject=subject,
        from_state=State.OK,
        to_state=to,
        sentence="The host has 2.0 GiB available.",
        remedy="Stop it.",
    )


def test_a_critical_verdict_is_the_alert_of_the_rules(receiver: Receiver) -> None:
    """Name and labels are those of the rule, so that both are one alert; it lives three minutes."""
    with pushing(receiver.url) as push:
        began = time.time()
        push.write(SAMPLE, [event(State.CRITICAL)])
        until(lambda: receiver.posts)
    path, (alert,), at = receiver.posts[0]
    rule = next(
        rule
        for group in alerts()["groups"]
        for rule in group["rules"]
        if rule["alert"] == "SparkWatchMemoryCollapseCritical"
    )
    assert path == "/api/v2/alerts"
    assert alert["labels"] == {
        **LABELS,
        "alertname": rule["alert"],
        "severity": rule["labels"]["severity"],
        "gotcha": "G3",
        "condition": "memory_collapse",
    }
    assert set(alert["annotations"]) == set(rule["annotations"])
    assert alert["annotations"]["description"] == "The host has 2.0 GiB available."
    assert alert["annotations"]["runbook_url"] == "http://spark-a:9810/runbook#memory_collapse"
    ends = datetime.fromisoformat(alert["endsAt"]).astimezone(UTC).timestamp()
    assert 0 <= ends - began - 180 <= 5
    assert at - began < 1


def test_only_critical_verdicts_are_posted(receiver: Receiver) -> None:
    """Warnings wait for Prometheus: the first post holds nothing of them."""
    with pushing(receiver.url) as push:
        push.write(SAMPLE, [event(State.WARNING, "board_hot"), event(State.INFO, "memory_low")])
        push.write(SAMPLE, [event(State.CRITICAL)])
        until(lambda: receiver.posts)
    assert receiver.conditions() == [["memory_collapse"]]


def test_what_stands_is_renewed_and_then_left_alone(receiver: Receiver) -> None:
    """As long as it stands it is posted again; after that nothing is, and nothing is resolved."""
    with pushing(receiver.url, renew_seconds=0.02) as push:
        push.write(SAMPLE, [event(State.CRITICAL)])
        until(lambda: len(receiver.posts) >= 3)
        push.write(SAMPLE, [event(State.OK)])
        push.write(SAMPLE, [event(State.CRITICAL, "board_hot")])
        until(lambda: receiver.conditions()[-1] == ["board_hot"])
    seen = [one for one in receiver.conditions() if one != ["memory_collapse"]]
    assert set(map(tuple, seen)) == {("board_hot",)}
    ends = [datetime.fromisoformat(body[0]["endsAt"]).timestamp() for _, body, _ in receiver.posts]
    assert all(end > at for end, (_, _, at) in zip(ends, receiver.posts, strict=True))


@pytest.mark.parametrize("status", [500, 429])
def test_a_failure_is_tried_again(receiver: Receiver, status: int) -> None:
    """What was refused is posted again after a while; the log says when it began and ended."""
    receiver.status = status
    log = Log()
    with pushing(receiver.url, log) as push:
        push.write(SAMPLE, [event(State.CRITICAL)])
        until(lambda: receiver.posts)
        receiver.status = 200
        until(lambda: len(receiver.posts) >= 2 and len(log.events) >= 2)
    assert log.events == ["alert_push_failing", "alert_push_recovered"]


def test_what_is_over_before_it_could_be_posted_is_posted_once(receiver: Receiver) -> None:
    """A collapse of a second while Alertmanager is away is not lost, and not renewed for ever."""
    receiver.status = 503
    with pushing(receiver.url, renew_seconds=0.02) as push:
        push.write(SAMPLE, [event(State.CRITICAL)])
        until(lambda: receiver.posts)
        push.write(SAMPLE, [event(State.OK)])
        receiver.status = 200
        until(lambda: len(receiver.posts) >= 2)
        push.write(SAMPLE, [event(State.CRITICAL, "board_hot")])
        until(lambda: ["board_hot"] in receiver.conditions())
    assert [one for one in receiver.conditions() if "memory_collapse" in one] == [
        ["memory_collapse"]
    ] * 2


def test_the_loop_never_waits(receiver: Receiver) -> None:
    """While a post hangs, ten thousand ticks are taken at once and keep one entry a condition."""
    receiver.hold.clear()
    with pushing(receiver.url) as push:
        push.write(SAMPLE, [event(State.CRITICAL)])
        began = time.monotonic()
        for number in range(10_000):
            push.write(SAMPLE, [event(State.CRITICAL, subject=str(number))])
        assert time.monotonic() - began < 2
        assert len(push._standing) == 1
        receiver.hold.set()


def test_nobody_listening_is_no_error_of_the_loop() -> None:
    """An address where nothing answers is logged once and costs nothing else."""
    log = Log()
    with pushing("http://127.0.0.1:9", log) as push:
        push.write(SAMPLE, [event(State.CRITICAL)])
        until(lambda: log.events)
    assert log.events == ["alert_push_failing"]


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("URL", "127.0.0.1:9093", "is not http://HOST:PORT"),
        ("URL", "ftp://a/", "is not http://HOST:PORT"),
        ("URL", "http://a:99999", "Port out of range"),
        ("LABELS", '{"severity": "page"}', "'severity' is not a label that can be set"),
        ("LABELS", '{"a b": "c"}', "'a b' is not a label that can be set"),
    ],
)
def test_what_cannot_work_stops_the_start(variable: str, value: str, said: str) -> None:
    """A wrong address or a label that would change the alert's identity is named at once."""
    name = f"SPARK_WATCH_ALERTMANAGER__{variable}"
    with pytest.raises(ConfigurationError) as caught:
        load(None, {name: value}, {})
    assert name in str(caught.value)
    assert said in str(caught.value)
