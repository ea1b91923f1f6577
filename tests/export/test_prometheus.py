"""The page of a real daemon, taken by Prometheus' own tools."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_watch.detectors.catalogue import CATALOGUE
from tests.daemon.process import Running, running
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration


class Query:
    """Asks Prometheus."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query; none while Prometheus is not up."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query?{query}", timeout=5) as answer:  # noqa: S310 - ours
                result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return result


@pytest.fixture(scope="module")
def daemon() -> Iterator[Running]:
    """A daemon on a simulated box under load, from its first sample on."""
    with running("--source", "simulate:healthy-decode") as daemon:
        until(lambda: daemon.metric("ticks_total"))
        yield daemon


@pytest.fixture(scope="module")
def query(
    daemon: Running, prometheus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Query]:
    """A real Prometheus that scrapes the daemon every second, on loopback."""
    folder = tmp_path_factory.mktemp("prometheus")
    target = daemon.event("listening")["url"].removeprefix("http://").rstrip("/")
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": "spark-watch", "static_configs": [{"targets": [target]}]},
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            prometheus,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Query(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def test_promtool_has_nothing_to_say(daemon: Running, promtool: Path) -> None:
    """The linter finds no fault in names, help texts and types of the real endpoint."""
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=daemon.get("/metrics"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_prometheus_scrapes_it(daemon: Running, query: Query) -> None:
    """The target is up, and what Prometheus stores is what the page says."""
    assert daemon.process.poll() is None
    (up,) = until(lambda: query('up{job="spark-watch"} == 1'))
    assert up["value"][1] == "1"
    one = until(lambda: query("sum by (condition) (sparkwatch_condition_state)"))
    assert {row["metric"]["condition"]: row["value"][1] for row in one} == {
        kind.name: "1" for kind in CATALOGUE
    }
    (size,) = query("sparkwatch_memory_size_bytes")
    assert float(size["value"][1]) == daemon.metric("memory_size_bytes")
    (taken,) = query("scrape_samples_scraped")
    lines = daemon.get("/metrics").splitlines()
    shown = sum(not line.startswith("#") for line in lines)
    assert abs(int(taken["value"][1]) - shown) <= 20


def test_its_counters_count(query: Query) -> None:
    """A rate over the daemon's own ticks comes to about one a second: counters are counters."""
    (rate,) = until(lambda: query("rate(sparkwatch_ticks_total[5s]) > 0.7"))
    assert float(rate["value"][1]) < 1.3
