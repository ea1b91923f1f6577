"""G8: the official playbooks go stale."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from spark_watch.preflight.clone import Clone
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Result

PLACES: Final = (
    "https://github.com/NVIDIA/dgx-spark-playbooks and its open issues "
    "(issues?q=is:open+PLAYBOOK), then https://build.nvidia.com/spark"
)

OLD_DAYS: Final = 30.0
"""The page and the repository named different images within a month
(NVIDIA/dgx-spark-playbooks#109)."""

DAY: Final = 86_400.0


def check(facts: Facts) -> Iterator[Line]:
    """Judge the age of a clone, and whether the named playbook has moved on."""
    if not facts.clone_named:
        yield Line(
            "G8",
            "clone",
            Result.INFO,
            "no clone of the playbooks was named, so none was looked at",
            f"before you follow one, see {PLACES}; name a clone with --playbooks DIR",
        )
        return
    clone = facts.clone
    if clone is None:
        yield Line(
            "G8",
            "clone",
            Result.SKIP,
            f"the clone's history could not be read: {facts.why('clone')}",
            "name a git clone that is yours; git refuses one of another owner",
        )
        return
    days = (facts.now_seconds - clone.committed_seconds) / DAY
    old = days > OLD_DAYS
    yield Line(
        "G8",
        "clone",
        Result.WARN if old else Result.PASS,
        f"the clone's last commit is of {_date(clone.committed_seconds)}, {days:.0f} days ago",
        f"git pull, or compare with {PLACES}",
    )
    if clone.playbook is not None:
        yield _playbook(clone)


def _playbook(clone: Clone) -> Line:
    if clone.playbook_seconds is None:
        return Line(
            "G8",
            "playbook",
            Result.SKIP,
            f"no commit of the clone touches {clone.playbook}",
            "name the playbook by its path in the clone (nvidia/vllm)",
        )
    sentence = f"{clone.playbook} was last changed on {_date(clone.playbook_seconds)}"
    if clone.waiting:
        return Line(
            "G8",
            "playbook",
            Result.WARN,
            f"{sentence}, and {clone.waiting} fetched commits change it further",
            "git pull and read what they change",
        )
    if clone.waiting is None:
        return Line(
            "G8", "playbook", Result.INFO, f"{sentence}; the clone follows no branch to compare"
        )
    return Line("G8", "playbook", Result.PASS, f"{sentence}; nothing fetched changes it since")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
