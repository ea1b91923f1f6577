"""The addresses at which a server may be asked: loopback, or its container's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError
from spark_watch.sources.files import read_once

LOOPBACK: Final = "127.0.0.1"
LIMIT_BYTES: Final = 262144

_LOCAL: Final = re.compile(rb"\|-- (\d{1,3}(?:\.\d{1,3}){3})\n\s+/32 host LOCAL")


def address(pid: int, *, contained: bool, proc_root: Path) -> str:
    """Return where the process's network is reached from here.

    A container with a network of its own has an address that this machine does not have.

    Source: ``/proc/PID/net/fib_trie`` (proc_pid_net(5)).
    """
    if not contained:
        return LOOPBACK
    theirs = _locals(proc_root / str(pid) / "net" / "fib_trie")
    ours = _locals(proc_root / "self" / "net" / "fib_trie")
    own = sorted(theirs - ours)
    return own[0] if own else LOOPBACK


def _locals(path: Path) -> set[str]:
    """Return the IPv4 addresses of a network namespace, loopback's own left out."""
    try:
        text = read_once(path, limit=LIMIT_BYTES)
    except SourceError:
        return set()
    found = {match.decode() for match in _LOCAL.findall(text)}
    return {one for one in found if not one.startswith("127.")}
