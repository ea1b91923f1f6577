"""Questions to foreign code, each in a bounded process of its own, as the caller.

Importing somebody's torch runs somebody's code: it may crash, hang, print, fork or eat memory. It
does so in a process that :mod:`spark_watch.preflight.warden` starts, bounds and clears away; what
it has answered until then still counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spark_watch.model import EMPTY
from spark_watch.preflight.packages import places_of, sites_of

WARDEN: Final = Path(__file__).with_name("warden.py")

MEMORY_BYTES: Final = 3 << 30
"""Memory of its own that it may touch before it is ended: importing torch takes below 1 GiB."""

GRACE_SECONDS: Final = 2.5
"""What the warden may take beyond its time, to kill what is left."""

QUIET: Final[Mapping[str, str]] = {
    "CUDA_CACHE_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Nothing is written by the way, and few threads are started beside a running job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What came of one question.

    Args:
        steps: each step that was finished, with its answer.
        unfinished: the step in which it ended, ``None`` where it was between two.
        end: ``exit``, ``signal``, ``timeout``, ``memory``, ``not_started`` or ``refused``.
        value: exit code, signal number or reason.
    """

    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: EMPTY)
    unfinished: str | None = None
    end: str = "exit"
    value: int | str = 0

    def answer(self, step: str, name: str) -> Any:
        """Return one value of one step, ``None`` where the step was not finished."""
        return self.steps.get(step, EMPTY).get(name)

    @property
    def how(self) -> str:
        """How it ended, in words that follow "python"."""
        if self.end == "signal":
            number = int(self.value)
            with contextlib.suppress(ValueError):
                return f"died of {signal.Signals(number).name}"
            return f"died of signal {number}"
        if self.end == "timeout":
            return "did not come back in time"
        if self.end == "memory":
            return "took more memory than it may have here"
        if self.end == "exit":
            return f"ended with exit code {self.value}"
        return f"was not run ({self.value})"


def ask(
    python: Path,
    script: str,
    *,
    seconds: float,
    arguments: Sequence[str] = (),
    go: Callable[[], bool] = lambda: False,
    memory_bytes: int = MEMORY_BYTES,
) -> Answers:
    """Run a script in an interpreter and return what it answered.

    The script finds the descriptor for its answers as its last argument and writes JSON lines to
    it: ``{"begin": "step"}``, then ``{"end": "step", ...}``. From standard input it reads ``go`` or
    ``no``, which says whether it may use the GPU.

    Args:
        python: the interpreter; nothing is run where :func:`distrusted` objects.
        script: its text.
        seconds: after this long everything that came of it is killed.
        arguments: what the script finds in ``sys.argv`` before the descriptor.
        go: asked once, while the script already runs.
        memory_bytes: with more memory of its own than this it is ended.
    """
    reason = distrusted(python)
    if reason is not None:
        return Answers(end="refused", value=reason)
    environment = {**os.environ, **QUIET}
    environment.pop("NOTIFY_SOCKET", None)
    command = [sys.executable, "-I", "-S", str(WARDEN), f"{seconds:.3f}", str(memory_bytes)]
    command += [os.path.abspath(python), "-c", script, *arguments]  # noqa: PTH100 - keep a link
    try:
        warden = subprocess.Popen(  # noqa: S603 - our own interpreter and script
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return Answers(end="not_started", value=error.strerror or str(error))
    with warden:
        try:
            said, _ = warden.communicate(b"go\n" if go() else b"no\n", seconds + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            warden.terminate()
            return Answers(end="timeout")
        finally:
            warden.kill()
    return understood(said)


def understood(said: bytes) -> Answers:
    """Return what the warden's report says; lines that are no answer are passed over."""
    try:
        report = json.loads(said)
        text, end, value = str(report["answers"]), str(report["end"]), report["value"]
    except (ValueError, KeyError, TypeError):
        return Answers(end="not_started", value="no report")
    steps: dict[str, Mapping[str, Any]] = {}
    begun = None
    for line in text.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if not isinstance(answer, dict):
            continue
        if isinstance(answer.get("begin"), str):
            begun = answer["begin"]
        elif isinstance(answer.get("end"), str):
            steps[answer["end"]] = answer
            begun = None
    return Answers(steps=steps, unfinished=begun, end=end, value=value)


def distrusted(python: Path, *, user: int | None = None) -> str | None:
    """Return why this user must not run an interpreter, ``None`` where nothing speaks against it.

    Root runs only what root alone can change: the interpreter, what it links to, the folders of
    the environment, and every package in it.

    Args:
        python: the interpreter.
        user: the effective user id; that of this process.
    """
    try:
        real = python.resolve(strict=True)
        if not stat.S_ISREG(real.stat().st_mode) or not os.access(real, os.X_OK):
            return f"{python} is not a program that can be run"
        if (os.geteuid() if user is None else user) != 0:
            return None
        for place in _trusted_places(python, real):
            reason = _open_to_others(place)
            if reason is not None:
                return reason
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return f"{python}: {(reason or str(error)).lower()}"
    return None


def _trusted_places(python: Path, real: Path) -> Iterator[Path]:
    folder, prefix = places_of(python)
    yield from (python, real, real.parent, folder, prefix)
    for site in sites_of(python):
        yield site
        with os.scandir(site) as entries:
            yield from (Path(entry.path) for entry in entries)


def _open_to_others(place: Path) -> str | None:
    found = place.lstat()
    if found.st_uid != 0:
        return f"{place} is not root's, so root does not run it"
    if not stat.S_ISLNK(found.st_mode) and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{place} can be changed by others than root, so root does not run it"
    return None
