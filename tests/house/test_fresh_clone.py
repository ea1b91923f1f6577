"""A fresh copy of the project: one command sets it up and shows it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.conftest import ROOT
from tests.deploy.box import wait_for

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files, and nothing that a tool has made from them, in a folder with a blank."""
    folder = tmp_path_factory.mktemp("fresh") / "spark watch"
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in names:
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def _answer(url: str) -> str | None:
    """Return what the daemon answers, ``None`` while it answers that it cannot yet."""
    try:
        with urlopen(url, timeout=10) as page:  # noqa: S310 - our own daemon, on loopback
            body: bytes = page.read()
    except HTTPError:
        return None
    return body.decode()


def test_one_command_shows_it(clone: Path) -> None:
    """`make demo` makes its environment, serves the page, and ends cleanly at Ctrl-C."""
    with subprocess.Popen(
        ["make", "demo", "LISTEN=127.0.0.1:0"],
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as make:
        assert make.stdout is not None
        said: list[str] = []
        try:
            url = ""
            while not url:
                said.append(make.stdout.readline())
                assert said[-1], "".join(said)
                if said[-1].startswith("{"):
                    url = json.loads(said[-1]).get("url", "")
            wait_for(lambda: _answer(f"{url}readyz") is not None, seconds=30, what="a first sample")
            assert "sparkwatch_condition_state" in (_answer(f"{url}metrics") or "")
        finally:
            os.killpg(make.pid, signal.SIGINT)
            rest = make.stdout.read()
        make.wait(timeout=30)
    assert "Traceback" not in rest


def test_the_command_line_works_from_anywhere(clone: Path, tmp_path: Path) -> None:
    """The command that `make run` makes can be called by its path, whatever folder one is in."""
    subprocess.run(["make", ".venv/.runtime"], cwd=clone, check=True, capture_output=True)
    done = subprocess.run(
        [clone / ".venv" / "bin" / "spark-watch", "--version"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("spark-watch ")
