"""A local clone of the playbooks: how old it is, and what has changed in one of them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Final

from spark_watch.errors import Unavailable

SECONDS: Final = 3.0

_SAFE: Final = (
    *("--no-pager", "--no-optional-locks", "--literal-pathspecs"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    *("-c", "log.showSignature=false", "-c", "diff.external=", "-c", "protocol.allow=never"),
)
"""A repository's own settings can name programs to run: none of them is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """What a clone's history says; times are unix seconds.

    Args:
        path: where it is.
        committed_seconds: the last commit that is checked out.
        playbook: the playbook that was named.
        playbook_seconds: the last commit that touched it; ``None`` where none did.
        waiting: commits that were fetched, touch it and are not checked out; ``None`` where the
            clone has no upstream branch.
    """

    path: Path
    committed_seconds: int
    playbook: str | None = None
    playbook_seconds: int | None = None
    waiting: int | None = None


def clone(path: Path, playbook: str | None) -> Clone:
    """Return what git says of a clone. Nothing is fetched and nothing is written.

    Raises:
        Unavailable: there is no git, or no clone that it will read.
    """
    git = which("git")
    if git is None:
        raise Unavailable("not_found", "git is not installed")
    committed = _last(_git(git, path, "log", "-1", "--format=%ct"))
    if committed is None:
        raise Unavailable("malformed", f"{path}: no commit in it")
    changed = waiting = None
    inside = [] if playbook is None else ["--", playbook]
    if playbook is not None:
        changed = _last(_git(git, path, "log", "-1", "--format=%ct", *inside))
    try:
        behind = _git(git, path, "rev-list", "--count", "HEAD..@{upstream}", *inside)
    except Unavailable:
        behind = ""
    if behind.strip().isdigit():
        waiting = int(behind)
    return Clone(
        path=path,
        committed_seconds=committed,
        playbook=playbook,
        playbook_seconds=changed,
        waiting=waiting,
    )


def _last(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _git(git: str, path: Path, *words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - git itself, with settings that run nothing else
            [git, "-C", str(path), *_SAFE, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable("timeout", f"{path}: git did not answer") from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable("not_a_clone", f"{path}: git reads no clone there") from error
    return done.stdout
