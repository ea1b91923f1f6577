"""The control group of a process: its container, and how often its pages had to come back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError
from spark_watch.sources.files import KeptFile
from spark_watch.sources.vmstat import refaults

_CONTAINER: Final = re.compile(
    rb"(?:docker|libpod|containerd|crio|kubepods)[^\n]*?(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])"
)
_UNIFIED: Final = re.compile(rb"^0::/+([^/\n\0][^\n\0]*)$", re.MULTILINE)
_SHORT: Final = 12


def container(text: bytes) -> str | None:
    """Return the short id of the container that ``/proc/PID/cgroup`` names, ``None`` outside one.

    Docker, Podman and Kubernetes put the full id of 64 hexadecimal digits into the group's name;
    their commands show its first twelve.
    """
    match = _CONTAINER.search(text)
    return None if match is None else match[1][:_SHORT].decode("ascii")


def group(text: bytes) -> str | None:
    """Return the process's group in the unified hierarchy, relative to its root.

    ``None`` for the root itself, which is the whole machine, for a group outside of our view
    (``/../``) and where there is only the older hierarchy.
    """
    match = _UNIFIED.search(text)
    if match is None or b".." in match[1].split(b"/"):
        return None
    return os.fsdecode(match[1])


class Refaults:
    """Refaults of control groups. One group is read at each call, because the kernel adds up all
    processors for it; a group is read about as often as there are groups.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (``memory.stat``)
    """

    def __init__(self, *, sys_root: Path) -> None:
        self._root = sys_root / "fs" / "cgroup"
        self._files: dict[str, KeptFile] = {}
        self._counts: dict[str, int | None] = {}

    def read(self, groups: Iterable[str]) -> None:
        """Read the group whose turn it is, and forget every group that is not in ``groups``."""
        wanted = dict.fromkeys(groups)
        for gone in self._files.keys() - wanted.keys():
            self._files.pop(gone).close()
            self._counts.pop(gone, None)
        # New groups come first, then the one that has waited longest.
        turn = next((each for each in wanted if each not in self._files), None)
        if turn is None:
            turn = next(iter(self._files), None)
        if turn is None:
            return
        file = self._files.pop(turn, None) or KeptFile(self._root / turn / "memory.stat")
        self._files[turn] = file
        try:
            self._counts[turn] = refaults(b"\n" + file.read())
        except SourceError:
            self._counts[turn] = None

    def of(self, name: str | None) -> int | None:
        """Return the cumulative refaults of a group as last read, ``None`` where not known."""
        return None if name is None else self._counts.get(name)

    def close(self) -> None:
        """Close every descriptor."""
        for file in self._files.values():
            file.close()
        self._files = {}
        self._counts = {}
