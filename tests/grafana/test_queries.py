"""Every query of every panel, asked of a real Prometheus that scraped simulated boxes."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.process import running
from tests.grafana.test_dashboards import UIDS, read
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration

BOXES = {"collapse": "6", "thermal-throttle": "30", "co-tenant-squeeze": "20", "nvml-stall": "10"}
"""The simulated boxes, and how many of their seconds pass in one of ours."""

WATCHED_SECONDS = 40.0
"""So long Prometheus scrapes them: by then the pool of the first has collapsed."""

Json = dict[str, Any]


class Stand:
    """Prometheus with what it has scraped so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.since = time.time()

    def ask(self, path: str, **words: object) -> Json:
        """Return an answer of the query API, with the error's text where it is one."""
        query = urllib.parse.urlencode(words)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=20) as answer:  # noqa: S310 - ours
                found: Json = json.load(answer)
        except urllib.error.HTTPError as error:
            found = {"status": "error", "error": error.read().decode()}
        except OSError:
            found = {"status": "error", "error": "nobody answers"}
        return found

    def rows(self, expression: str, *, instant: bool) -> list[Json]:
        """Return the series of a query over the whole time, or at its end."""
        now = time.time()
        filled = expression
        for name, value in (
            ("$__rate_interval", "4s"),
            ("$__range", f"{now - self.since:.0f}s"),
            ("$job", ".+"),
            ("$instance", ".+"),
        ):
            filled = filled.replace(name, value)
        assert "$" not in filled
        if instant:
            found = self.ask("query", query=filled, time=now)
        else:
            found = self.ask("query_range", query=filled, start=self.since, end=now, step=0.5)
        assert found["status"] == "success", (filled, found)
        rows: list[Json] = found["data"]["result"]
        return rows


@pytest.fixture(scope="module")
def stand(prometheus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Four boxes in trouble and this machine, scraped twice a second."""
    folder = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        targets = []
        live = stack.enter_context(  # this machine, with a black box
            running(variables={"STATE_DIRECTORY": str(folder / "live")})
        )
        targets.append(live.event("listening")["url"].removeprefix("http://").rstrip("/"))
        for name, speed in BOXES.items():
            daemon = stack.enter_context(
                running(
                    "--source",
                    f"simulate:{name}",
                    "--speed",
                    speed,
                    variables={"STATE_DIRECTORY": str(folder / name)},
                )
            )
            url = daemon.event("listening")["url"]
            targets.append(url.removeprefix("http://").rstrip("/"))
        configuration = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
            "scrape_configs": [
                {"job_name": "spark-watch", "static_configs": [{"targets": targets}]},
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
            stand = Stand(f"http://127.0.0.1:{port}")
            until(
                lambda: (
                    len(stand.ask("query", query="up == 1").get("data", {}).get("result", []))
                    == len(targets)
                )
            )
            threading.Event().wait(WATCHED_SECONDS)
            yield stand
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


QUERIES = [
    pytest.param(target, id=f"{uid}: {panel['title']}: {target['refId']}")
    for uid in UIDS
    for panel in read(uid)["panels"]
    for target in panel["targets"]
]


@pytest.mark.parametrize("target", QUERIES)
def test_every_query_has_an_answer(stand: Stand, target: Json) -> None:
    """No query is refused, and none is empty on a fleet in trouble.

    A number may rightly have no value at the end, so it is asked over the whole time.
    """
    assert stand.rows(target["expr"], instant=target["format"] == "table")


@pytest.mark.parametrize("uid", UIDS)
def test_every_annotation_has_an_answer(stand: Stand, uid: str) -> None:
    """The marks of transitions and starts are there, as moments within the time watched."""
    for one in read(uid)["annotations"]["list"]:
        rows = stand.rows(one["expr"], instant=False)
        if one["name"] != "Over":
            assert rows
        for row in rows:
            assert all(1e12 < float(value) < 1e13 for _, value in row["values"])


@pytest.mark.parametrize("uid", UIDS)
def test_every_variable_has_a_choice(stand: Stand, uid: str) -> None:
    """The queries of job and box find the job and the five boxes."""
    found = {}
    for one in read(uid)["templating"]["list"][1:]:
        call = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]["query"])
        assert call is not None
        match = call[1].replace("$job", ".+")
        found[one["name"]] = stand.ask(f"label/{call[2]}/values", **{"match[]": match})["data"]
    assert found["job"] == ["spark-watch"]
    assert len(found["instance"]) == len(BOXES) + 1


def test_a_box_that_is_gone_is_down(stand: Stand) -> None:
    """The fleet's state of a box that does not answer is the worst there is, never ok."""
    state = read("spark-watch-fleet")["panels"][0]["targets"][0]["expr"]
    gone = state.replace("up{", "gone{").replace("sparkwatch_condition_state", "nothing")
    assert stand.rows(state, instant=True)
    assert stand.rows(gone, instant=True) == []
    alone = state.replace("sparkwatch_condition_state", "nothing").replace("== bool 0", "!= bool 0")
    assert {row["value"][1] for row in stand.rows(alone, instant=True)} == {"5"}
