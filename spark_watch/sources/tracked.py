"""One process in ``/proc``: what changes from reading to reading, and what seldom does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from spark_watch.errors import SourceError
from spark_watch.sources.cgroups import container, group
from spark_watch.sources.claims import NO_CLAIM, environment_claim
from spark_watch.sources.commands import Command, understand
from spark_watch.sources.files import KeptFile, read_once
from spark_watch.sources.proc_stat import Stat, kibibytes, parse_stat

_DEEPEST: Final = 16
"""How many ancestors are looked at. Containers and shells make about six."""

_LONGEST_TEXT: Final = 131072
_DEAD: Final = frozenset({b"Z", b"X"})


class Launcher(NamedTuple):
    """A launcher by pid and start, which no later process shares."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What a process is. It holds as long as start, name and parent of the process do."""

    command: Command
    container: str | None = None
    group: str | None = None
    launcher: Launcher | None = None


class Tracked:
    """A process whose files stay open. Nothing is opened before the first :meth:`refresh`.

    Attributes:
        stat: as of the last refresh; ``None`` where the process is gone, hidden or garbled.
        resident_bytes, swapped_bytes: ``None`` where ``status`` does not say.
        identity: what it is, ``None`` until :meth:`identify` and again once its pid was reused.
    """

    __slots__ = (
        *("_folder", "_identified", "_stat", "_status"),
        *("identity", "resident_bytes", "stat", "swapped_bytes"),
    )

    def __init__(self, pid: int, *, proc_root: Path) -> None:
        self._folder = proc_root / str(pid)
        self._stat = KeptFile(self._folder / "stat")
        self._status = KeptFile(self._folder / "status")
        self._identified: tuple[bytes, int] | None = None
        self.stat: Stat | None = None
        self.resident_bytes: int | None = None
        self.swapped_bytes: int | None = None
        self.identity: Identity | None = None

    @property
    def alive(self) -> bool:
        """Whether the process was there at the last refresh, and not as a zombie."""
        return self.stat is not None and self.stat.state not in _DEAD

    @property
    def started(self) -> int | None:
        """Its start in clock ticks since boot, ``None`` where it is gone or hidden."""
        return None if self.stat is None else self.stat.started

    @property
    def settled(self) -> bool:
        """Whether name and parent are still those it was identified with.

        A title set late, another program and a launcher's death all change one of the two.
        """
        stat = self.stat
        return stat is not None and self._identified == (stat.comm, stat.parent)

    def refresh(self) -> None:
        """Read what changes."""
        before = self.started
        self.resident_bytes = self.swapped_bytes = None
        try:
            self.stat = None
            self.stat = parse_stat(self._stat.read())
            if self.stat is None or self.stat.started != before:
                self.identity = self._identified = None
            status = self._status.read()
        except SourceError:
            return
        self.resident_bytes = kibibytes(status, b"VmRSS")
        self.swapped_bytes = kibibytes(status, b"VmSwap")

    def identify(self, *, launched: bool) -> None:
        """Find out what the process is. What was known and cannot be seen any more stays known.

        Args:
            launched: whether to look for a launcher among its ancestors.
        """
        if self.stat is None:
            return
        groups = _text(self._folder / "cgroup")
        command, launcher = _command(self._folder, self.stat), None
        for folder, stat in _ancestors(self._folder.parent, self.stat) if launched else ():
            theirs = _command(folder, stat)
            if theirs.engine == "ollama" or command.engine is None:
                command = replace(command, engine=theirs.engine)
            if theirs.launches and stat.state not in _DEAD:
                launcher = Launcher(int(folder.name), stat.started)
                command = _claiming(command, theirs)
                break
        if self.identity is not None:
            command = _claiming(command, self.identity.command)
        self.identity = Identity(command, container(groups), group(groups), launcher)
        self._identified = (self.stat.comm, self.stat.parent)

    def close(self) -> None:
        """Close both descriptors; the next refresh opens them again."""
        self._stat.close()
        self._status.close()


def _ancestors(root: Path, stat: Stat) -> Iterator[tuple[Path, Stat]]:
    """Yield the ancestors of a process, nearest first, as far as they can be seen."""
    ancestor: Stat | None = stat
    for _ in range(_DEEPEST):
        if ancestor is None or ancestor.parent <= 1:
            return
        folder = root / str(ancestor.parent)
        ancestor = parse_stat(_text(folder / "stat"))
        if ancestor is not None:
            yield folder, ancestor


def _command(folder: Path, stat: Stat) -> Command:
    try:
        working = os.fsencode((folder / "cwd").readlink())
    except OSError:
        working = b""
    command = understand(_text(folder / "cmdline"), stat.comm, folder=working)
    if command.engine == "tgi" and command.launches and command.claim == NO_CLAIM:
        with suppress(SourceError):
            environ = read_once(folder / "environ", limit=_LONGEST_TEXT)
            return replace(command, claim=environment_claim(environ))
    return command


def _claiming(command: Command, other: Command) -> Command:
    """Return ``command`` with the engine and the claim of ``other`` where it has none itself."""
    engine = command.engine or other.engine
    if engine != other.engine or command.claim != NO_CLAIM:
        return replace(command, engine=engine)
    return replace(command, engine=engine, claim=other.claim)


def _text(path: Path) -> bytes:
    """Return the text of ``path``, empty where it is hidden, gone or longer than we care for."""
    try:
        return read_once(path, limit=_LONGEST_TEXT)
    except SourceError:
        return b""
