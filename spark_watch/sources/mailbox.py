"""The Unix datagram socket to which training loops report.

A message is one JSON object of at most 1 KiB: ``{"v": 1, "workload": "train", "steps": 12,
"step_seconds": 0.8, "tokens": 4096, "bytes": 5.1e10, "batch": 8, "phase": "decode"}``. Counts are
those since the last message. Who may write is a matter of the socket's group.
"""

from __future__ import annotations

import grp
import json
import math
import os
import re
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spark_watch.errors import SourceError, Unavailable
from spark_watch.model import Progress
from spark_watch.sources.files import read_once
from spark_watch.sources.proc_stat import parse_stat

LIMIT_BYTES: Final = 1024
VERSION: Final = 1

MOST_WORKLOADS: Final = 8
MOST_MESSAGES: Final = 128
"""So many are taken at a reading; what comes faster is thrown away and counted."""

MOST_DRAINED: Final = 2048
SILENT_SECONDS: Final = 60.0
MOST_SILENT_SECONDS: Final = 900.0
"""A sender that nobody has seen alive (a shell script's command has ended by then) is gone after
three of its own pauses, within these bounds."""

PAUSES: Final = 3.0

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,48}")
_PHASE: Final = re.compile(r"[a-z0-9_-]{1,24}")
_CREDENTIALS: Final = struct.Struct("3i")
_LIMITS: Final[Mapping[str, float]] = {
    "steps": 1e9,
    "step_seconds": 86400.0,
    "tokens": 1e12,
    "bytes": 1e18,
    "batch": 1e9,
    "model_bytes": 1e15,
}
"""The numbers of a message and the most each may be; none is below 0."""


class Refused(ValueError):
    """A message is not what it must be."""


@dataclass(slots=True)
class _Sender:
    """One workload and what has added up of it."""

    pid: int
    started: int | None
    at: float
    phase: str | None = None
    batch: float | None = None
    step_seconds: float | None = None
    model_bytes: float | None = None
    steps: float | None = None
    tokens: float | None = None
    moved: float | None = None
    pause: float = 0.0
    lived: bool = False
    """Whether its process was seen alive after a message: then its end is the workload's."""

    def report(self, name: str) -> Progress:
        return Progress(
            workload=name,
            phase=self.phase,
            batch=self.batch,
            generation_tokens_total=self.tokens,
            steps_total=self.steps,
            step_seconds=self.step_seconds,
            bytes_total=self.moved,
            model_bytes=self.model_bytes,
        )


class Mailbox:
    """An open socket and the workloads that report to it.

    Args:
        path: where the socket is; its folder is made where it does not exist.
        group: the group that may write, by name; ``None`` for the process's own.
        proc_root: where proc is mounted, to see whether a sender lives.
    """

    def __init__(
        self, *, path: Path, group: str | None = None, proc_root: Path = Path("/proc")
    ) -> None:
        self.path = path
        self._group = group
        self._proc_root = proc_root
        self._socket: socket.socket | None = None
        self._inode: int | None = None
        self._senders: dict[str, _Sender] = {}
        self.dropped: dict[str, int] = {}
        """Messages that were thrown away, by reason."""

    def open(self) -> None:
        """Listen. A socket that a dead daemon left behind is replaced.

        Raises:
            Unavailable: ``socket_in_use``, ``permission_denied``, ``no_such_group`` or
                ``socket_failed``.
        """
        if _is_heard(self.path):
            raise Unavailable("socket_in_use", f"{self.path}: somebody listens there")
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self._bind(opened, fresh)
        except (KeyError, OSError) as error:
            opened.close()
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise _refusal(error, f"{self.path}") from error
        self._socket = opened

    def _bind(self, opened: socket.socket, fresh: Path) -> None:
        """Make the socket under another name and move it into place, open to its group alone."""
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        opened.bind(str(fresh))
        if self._group is not None:
            os.chown(fresh, -1, grp.getgrnam(self._group).gr_gid)
        fresh.chmod(0o660)
        fresh.replace(self.path)
        self._inode = self.path.stat().st_ino

    def read(self, now: float) -> list[Progress]:
        """Take what has come and return every workload that is still there.

        Args:
            now: monotonic seconds.
        """
        if self._socket is None:
            self.open()
        taken = 0
        while taken < MOST_DRAINED:
            message = self._receive()
            if message is None:
                break
            taken += 1
            if taken > MOST_MESSAGES:
                self._drop("flood")
                continue
            text, pid = message
            try:
                self._take(parse(text), pid, now)
            except Refused:
                self._drop("refused")
        self._bury(now)
        return [sender.report(name) for name, sender in self._senders.items()]

    def _receive(self) -> tuple[bytes, int] | None:
        """Return the next message and who sent it, ``None`` where none waits.

        There is room for the sender's credentials alone, so that the kernel takes back any
        descriptor that is passed along. A longer message comes cut, one byte over the limit.
        """
        assert self._socket is not None  # noqa: S101 - read() has opened it
        try:
            text, extra, _, _ = self._socket.recvmsg(
                LIMIT_BYTES + 1, socket.CMSG_SPACE(_CREDENTIALS.size)
            )
        except OSError:
            return None
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                return text, _CREDENTIALS.unpack_from(data)[0]
        return text, 0

    def _take(self, message: dict[str, Any], pid: int, now: float) -> None:
        name = message["workload"]
        sender = self._senders.get(name)
        if sender is not None and sender.lived and sender.pid != pid and not self._lives(sender):
            # another run under the same name: its counts start anew
            sender = None
        if sender is None:
            if name not in self._senders and len(self._senders) >= MOST_WORKLOADS:
                self._drop("too_many_workloads")
                return
            sender = self._senders[name] = _Sender(pid, self._started(pid), now)
        elif sender.pid != pid:
            sender.pid, sender.started, sender.lived = pid, self._started(pid), False
        sender.pause = max(now - sender.at, sender.pause * 0.9)
        sender.at = now
        sender.phase = message.get("phase")
        for key in ("batch", "step_seconds", "model_bytes"):
            if key in message:
                setattr(sender, key, message[key])
        for key, field in (("steps", "steps"), ("tokens", "tokens"), ("bytes", "moved")):
            if key in message:
                setattr(sender, field, (getattr(sender, field) or 0.0) + message[key])

    def _bury(self, now: float) -> None:
        """Forget the workloads whose process has ended, or that have been silent for too long."""
        for name, sender in list(self._senders.items()):
            if self._lives(sender):
                sender.lived = True
                continue
            silent = min(MOST_SILENT_SECONDS, max(SILENT_SECONDS, PAUSES * sender.pause))
            if sender.lived or now - sender.at > silent:
                del self._senders[name]

    def _lives(self, sender: _Sender) -> bool:
        return sender.started is not None and self._started(sender.pid) == sender.started

    def _started(self, pid: int) -> int | None:
        """Return when a process started, ``None`` where it is gone, dead or cannot be seen."""
        if pid <= 0:
            return None
        try:
            stat = parse_stat(read_once(self._proc_root / str(pid) / "stat", limit=4096))
        except SourceError:
            return None
        return None if stat is None or stat.state in {b"Z", b"X"} else stat.started

    def _drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def close(self) -> None:
        """Stop listening; the socket's file goes where it is still ours."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        with suppress(OSError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()


def parse(text: bytes) -> dict[str, Any]:
    """Return a message whose every known key holds what it must; unknown keys are left out.

    Raises:
        Refused: it is too long, no JSON object, of another version, or a value is out of bounds.
    """
    if not text or len(text) > LIMIT_BYTES:
        raise Refused("length")
    try:
        message = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refused("json") from error
    if type(message) is not dict or message.get("v") != VERSION or message.get("v") is True:
        raise Refused("version")
    name, phase = message.get("workload"), message.get("phase")
    if type(name) is not str or _NAME.fullmatch(name) is None:
        raise Refused("workload")
    if phase is not None and (type(phase) is not str or _PHASE.fullmatch(phase) is None):
        raise Refused("phase")
    found: dict[str, Any] = {"workload": name}
    if phase is not None:
        found["phase"] = phase
    for key, most in _LIMITS.items():
        value = message.get(key)
        if value is None:
            continue
        if type(value) not in {int, float} or not 0 <= value <= most or not math.isfinite(value):
            raise Refused(key)
        found[key] = float(value)
    return found


def _no_number(word: str) -> float:
    raise Refused(word)


def _is_heard(path: Path) -> bool:
    """Whether somebody listens on a socket already."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except OSError:
            return False
    return True


def _refusal(error: KeyError | OSError, place: str) -> Unavailable:
    """Return why a socket could not be opened."""
    if isinstance(error, KeyError):
        return Unavailable("no_such_group", f"{place}: {error.args[0]}")
    reason = "permission_denied" if isinstance(error, PermissionError) else "socket_failed"
    return Unavailable(reason, f"{place}: {error.strerror or error}")
