"""The Makefile: its targets are listed, and what a machine lacks is said in one line."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT


def _make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in the project's root, as from a shell and not from within another make."""
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_help_lists_every_target() -> None:
    """Plain `make` names each target that is meant for people, with what it does."""
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    steps = {"python", "servers"}
    listed = re.findall(r"^  make (\w+) +\S", _make().stdout, re.MULTILINE)
    assert set(listed) == set(phony[1].split()) - steps


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("case $1 in -V) echo Python 3.10.12;; *) exit 1;; esac", "Python 3.11 or newer is needed"),
        ("case $2 in *ensurepip*) exit 1;; esac", "apt install python3-venv"),
    ],
    ids=["too old", "no venv"],
)
def test_an_unfit_python_is_named(tmp_path: Path, answers: str, said: str) -> None:
    """An interpreter that will not do stops the set-up with one line that says what to do."""
    interpreter = tmp_path / "python3"
    interpreter.write_text(f"#!/bin/sh\n{answers}\n")
    interpreter.chmod(0o755)
    done = _make("python", f"PYTHON={interpreter}")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ")]
    assert done.returncode == 2
    assert len(lines) == 1
    assert said in lines[0]


def test_no_python_is_named() -> None:
    """A machine without any Python is told which packages to install."""
    done = _make("python", "PYTHON=no-such-python")
    assert done.returncode == 2
    assert "there is no no-such-python here: apt install python3" in done.stderr
