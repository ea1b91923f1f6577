"""What a clone of the playbooks says of its age."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.preflight.clone import clone

FIRST = 1_780_000_000
SECOND = FIRST + 86_400
THIRD = SECOND + 86_400


def git(folder: Path, *words: str, at: int = FIRST) -> None:
    """Run git as somebody who has no settings, at that time."""
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        check=True,
        capture_output=True,
        env={
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": f"@{at} +0000",
            "GIT_COMMITTER_DATE": f"@{at} +0000",
        },
    )


def commit(folder: Path, name: str, text: str, at: int) -> None:
    """Write a file and commit it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", name, at=at)


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository with two playbooks, the second a day younger."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "nvidia/vllm/README.md", "one", FIRST)
    commit(folder, "nvidia/ollama/README.md", "two", SECOND)
    return folder


@pytest.fixture
def local(upstream: Path, tmp_path: Path) -> Path:
    """A clone of it."""
    git(tmp_path, "clone", "-q", str(upstream), "local")
    return tmp_path / "local"


def test_ages(local: Path) -> None:
    """The last commit, and the last that touches the playbook, are told apart."""
    found = clone(local, "nvidia/vllm")
    assert (found.committed_seconds, found.playbook_seconds) == (SECOND, FIRST)
    assert found.waiting == 0


def test_what_was_fetched_and_not_taken(upstream: Path, local: Path) -> None:
    """Only fetched commits that touch the playbook count as waiting for it."""
    commit(upstream, "nvidia/vllm/README.md", "three", THIRD)
    commit(upstream, "nvidia/ollama/README.md", "four", THIRD)
    assert clone(local, "nvidia/vllm").waiting == 0
    git(local, "fetch", "-q")
    assert clone(local, "nvidia/vllm").waiting == 1
    assert clone(local, None).waiting == 2


def test_a_playbook_that_is_not_there(local: Path) -> None:
    """No commit touches it."""
    assert clone(local, "nvidia/none").playbook_seconds is None


def test_without_an_upstream_nothing_can_be_waiting(upstream: Path) -> None:
    """Not known is not nought."""
    assert clone(upstream, "nvidia/vllm").waiting is None


def test_what_is_no_clone(tmp_path: Path) -> None:
    """A plain folder is refused."""
    (tmp_path / "plain").mkdir()
    with pytest.raises(Unavailable):
        clone(tmp_path / "plain", None)


def test_a_clone_runs_nothing(local: Path, tmp_path: Path) -> None:
    """Programs that a repository's own settings name are not started."""
    marker = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program"):
        git(local, "config", key, str(script))
    git(local, "config", "log.showSignature", "true")
    clone(local, "nvidia/vllm")
    assert not marker.exists()


def test_a_name_is_no_flag(local: Path) -> None:
    """A playbook that is called like an option is a path all the same."""
    assert clone(local, "--output=x").playbook_seconds is None
