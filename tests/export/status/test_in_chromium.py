"""The status page in a real browser, at the worst moment of each simulated story."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_watch.export import http1
from spark_watch.export.page import Page
from spark_watch.export.server import Server
from spark_watch.export.status.words import verdict
from spark_watch.export.views import Answer
from spark_watch.model import State
from spark_watch.sources.simulated import SCENARIOS
from tests.export.snapshots import SNAPSHOT
from tests.export.status.stories import told

pytestmark = pytest.mark.integration

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)

WORST = {
    "healthy-decode": State.OK,
    "healthy-training": State.INFO,
    "model-load": State.INFO,
    "idle": State.OK,
    "collapse": State.CRITICAL,
    "slow-leak": State.WARNING,
    "thermal-throttle": State.CRITICAL,
    "stuck-low-power": State.CRITICAL,
    "co-tenant-squeeze": State.CRITICAL,
    "nvml-stall": State.CRITICAL,
    "power-loss": State.WARNING,
}
"""How bad each story gets in its first half hour."""


class Browser:
    """Chromium, one visit at a time."""

    def __init__(self, program: str, profile: Path) -> None:
        self._command = [program, *FLAGS, f"--user-data-dir={profile}"]

    def visit(self, url: str, *, seconds: float = 0.5) -> str:
        """Return the page's tree after so much of its own time; nothing may be complained about."""
        done = subprocess.run(
            [*self._command, f"--virtual-time-budget={seconds * 1000:.0f}", "--dump-dom", url],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert complaints == []
        return done.stdout


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """A browser with a profile of its own."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium here: apt install chromium")
    return Browser(program, tmp_path_factory.mktemp("chromium"))


class Shown:
    """A page that is served, with what is done at each visit."""

    def __init__(self) -> None:
        self.page = Page()
        self.server = Server(self.page, host="127.0.0.1", port=0)
        self.server.start()


@pytest.fixture
def shown() -> Iterator[Shown]:
    """An empty page on a free port."""
    shown = Shown()
    yield shown
    shown.server.close()


def test_every_story_is_here() -> None:
    """A scenario that is added is looked at too."""
    assert set(WORST) == set(SCENARIOS)


@pytest.mark.parametrize("name", WORST)
def test_a_browser_shows_the_verdict(browser: Browser, name: str) -> None:
    """The headline is the story's, nothing on the page breaks its policy, four charts are drawn."""
    page, snapshot = told(name)
    said = verdict(snapshot, alive=True)
    assert said.state is WORST[name]
    server = Server(page, host="127.0.0.1", port=0)
    server.start()
    try:
        tree = browser.visit(server.url)
    finally:
        server.close()
    assert f"</span> {said.headline}</h1>" in tree
    assert tree.count("<svg") == 4
    for standing in snapshot.standings:
        assert f'href="/runbook#{standing.finding.condition}"' in tree


def test_it_is_live_with_javascript(
    browser: Browser, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a reload the page shows a later sample than the one that it came with."""
    respond = shown.server.respond
    visits = iter(range(1000))

    def later(request: http1.Request) -> Answer:
        moment = SNAPSHOT.at_seconds + 3600.0 * next(visits)
        shown.page.publish(dataclasses.replace(SNAPSHOT, at_seconds=moment))
        return respond(request)

    monkeypatch.setattr(shown.server, "respond", later)
    tree = browser.visit(shown.server.url, seconds=7.0)
    assert "as of 2026-09-21 14:13:20 UTC" not in tree
    assert "as of 2026-09-21 1" in tree
    assert next(visits) >= 3


def test_a_daemon_that_went_away_is_said(
    browser: Browser, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once answers fail, the page says for how long: what it shows is not taken for the present."""
    shown.page.publish(SNAPSHOT)
    respond = shown.server.respond
    visits = iter(range(1000))

    def once(request: http1.Request) -> Answer:
        if next(visits) == 0:
            return respond(request)
        return Answer(204, "text/plain", b"")

    monkeypatch.setattr(shown.server, "respond", once)
    tree = browser.visit(shown.server.url, seconds=20.0)
    assert "s: what stands below is old.</p>" in tree
    assert 'role="alert" hidden' not in tree
