"""From a simulated fault to a webhook: real daemon, real Prometheus, real Alertmanager.

Prometheus runs on a copy of the shipped configuration that scrapes and judges every second and lets
a critical alert go 2 s after its state instead of 15 min, so that the test ends.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_watch.export.alert_push import AlertPush
from spark_watch.model import Event, Sample, State
from tests.conftest import ROOT
from tests.daemon.process import Running, running
from tests.deploy import manager
from tests.house.rules import FILES
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration

ALERT = "SparkWatchMemoryCollapseCritical"
SPEED = 5
PATIENCE = 3 * PATIENCE_SECONDS
"""The collapse comes after a minute of calm, and a group is looked at every 10 s."""


class Webhook:
    """Takes notifications and stamps them."""

    def __init__(self) -> None:
        self.got: list[tuple[float, dict[str, Any]]] = []
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Take one."""
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.got.append((time.time(), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *words: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def times(self, instance: str, status: str) -> list[float]:
        """Return when that box's collapse was reported with that status."""
        return [
            at
            for at, body in self.got
            for alert in body["alerts"]
            if alert["status"] == status
            and (alert["labels"]["instance"], alert["labels"]["alertname"]) == (instance, ALERT)
        ]

    def close(self) -> None:
        """Give the port back."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    """Where notifications end."""
    hook = Webhook()
    yield hook
    hook.close()


@pytest.fixture
def alerting(
    webhook: Webhook, alertmanager: Path, tmp_path: Path
) -> Iterator[manager.Alertmanager]:
    """A real Alertmanager with the shipped configuration, but for the receiver's address."""
    text = (ROOT / "deploy" / "alertmanager" / "alertmanager.yml").read_text()
    shipped = "http://127.0.0.1:9099/alerts"
    assert shipped in text
    path = tmp_path / "alertmanager.yml"
    path.write_text(text.replace(shipped, f"http://127.0.0.1:{webhook.server.server_address[1]}/"))
    with manager.running(alertmanager, path, tmp_path / "alerts") as running_manager:
        yield running_manager


def _prometheus(
    program: Path, folder: Path, manager_url: str, boxes: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a Prometheus that scrapes boxes, by the name each is to have."""
    for path in FILES:
        text = path.read_text().replace("keep_firing_for: 15m", "keep_firing_for: 2s")
        (folder / path.name).write_text(text)
    configuration = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    configuration["global"] = {
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "evaluation_interval": "1s",
    }
    configuration["rule_files"] = [str(folder / path.name) for path in FILES]
    target = manager_url.removeprefix("http://")
    configuration["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [target]}]
    scrape = configuration["scrape_configs"][0]
    del scrape["file_sd_configs"]
    scrape["static_configs"] = [
        {"targets": [address], "labels": {"instance": name}} for name, address in boxes.items()
    ]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(configuration))
    return subprocess.Popen(
        [
            program,
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _address(daemon: Running) -> str:
    url: str = daemon.event("listening")["url"]
    return url.removeprefix("http://").rstrip("/")


def _critical_at(daemon: Running) -> float:
    """Return when the daemon said that the collapse is critical."""
    line = next(
        line
        for line in daemon.lines
        if (line.get("condition"), line.get("after")) == ("memory_collapse", "critical")
    )
    return datetime.fromisoformat(line["timestamp"]).timestamp()


def test_one_incident_is_one_notification_on_both_ways(
    webhook: Webhook,
    alerting: manager.Alertmanager,
    prometheus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The box that pushes pages sooner, both page once; what Prometheus says too adds nothing."""
    fast = {
        "SPARK_WATCH_ALERTMANAGER__URL": alerting.url,
        "SPARK_WATCH_INSTANCE": "fast:9810",
    }
    source = ("--source", "simulate:collapse", "--speed", str(SPEED))
    with running(*source, variables=fast) as pushing, running(*source) as scraped:
        boxes = {"fast:9810": _address(pushing), "slow:9810": _address(scraped)}
        server = _prometheus(prometheus, tmp_path, alerting.url, boxes)
        try:
            until(lambda: all(webhook.times(name, "firing") for name in boxes), PATIENCE)
            until(lambda: webhook.times("slow:9810", "resolved"), PATIENCE)
            began = {"fast:9810": _critical_at(pushing), "slow:9810": _critical_at(scraped)}
        finally:
            server.terminate()
            server.wait(PATIENCE_SECONDS)
    firing = {name: webhook.times(name, "firing") for name in boxes}
    took = {name: firing[name][0] - began[name] for name in boxes}
    with capsys.disabled():
        print(  # noqa: T201 - the times are for whoever runs this
            f"\n  from the daemon's verdict to the webhook: pushed {took['fast:9810']:.2f} s, "
            f"scraped every second {took['slow:9810']:.2f} s"
        )
    assert len(firing["fast:9810"]) == 1
    assert len(firing["slow:9810"]) == 1
    assert took["fast:9810"] <= 2
    assert took["slow:9810"] <= 1 + 1 + 0 + 1  # scrape, evaluation, group_wait, the way itself


def test_an_incident_that_ends_is_resolved_once(
    webhook: Webhook, alerting: manager.Alertmanager
) -> None:
    """Firing once however often it is renewed, resolved once by lapsing, without a word of ours."""
    labels = {"instance": "fast:9810", "job": "spark-watch"}
    sample = Sample(t=0.0)
    push = AlertPush(alerting.url, labels=labels, log=None, renew_seconds=0.5, lives_seconds=2.0)

    def event(state: State) -> Event:
        return Event(
            at_seconds=0.0,
            elapsed_seconds=0.0,
            gotcha="G3",
            condition="memory_collapse",
            subject="host",
            from_state=State.OK,
            to_state=state,
            sentence="",
            remedy="",
        )

    try:
        push.write(sample, [event(State.CRITICAL)])
        until(lambda: webhook.times("fast:9810", "firing"))
        renewed = alerting.alerts()[0]["endsAt"]
        until(lambda: alerting.alerts()[0]["endsAt"] > renewed)
        push.write(sample, [event(State.OK)])
        until(lambda: webhook.times("fast:9810", "resolved"), PATIENCE)
    finally:
        push.close()
    assert len(webhook.times("fast:9810", "firing")) == 1
    assert len(webhook.times("fast:9810", "resolved")) == 1
