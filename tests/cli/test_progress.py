"""``spark-watch progress``: a shell script's way to report."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from spark_watch.cli import main


def test_message(tmp_path: Path) -> None:
    """What is said on the command line is what the daemon gets; the exit code says it got it."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(path))
        given = ["progress", "nightly", "--steps", "2", "--step-seconds", "1.5", "--phase", "train"]
        assert main([*given, "--socket", str(path)]) == 0
        assert json.loads(daemon.recv(2048)) == {
            "v": 1,
            "workload": "nightly",
            "steps": 2.0,
            "step_seconds": 1.5,
            "phase": "train",
        }


def test_no_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nobody listens the command says where it looked, in one line."""
    path = tmp_path / "none"
    assert main(["progress", "nightly", "--steps", "1", "--socket", str(path)]) == 74
    assert capsys.readouterr().err == f"spark-watch: {path}: no such file or directory\n"


@pytest.mark.parametrize(
    "given",
    [
        ["two words"],
        ["w", "--steps", "-1"],
        ["w", "--steps", "nan"],
        ["w", "--steps", "1e300"],
        ["w", "--phase", "TRAIN"],
    ],
)
def test_what_the_daemon_would_refuse(given: list[str], tmp_path: Path) -> None:
    """A message that would be thrown away without a word is a mistake in the usage."""
    assert main(["progress", *given, "--socket", str(tmp_path / "s")]) == 64
