"""The texts of ``/proc/PID/stat`` and ``/proc/PID/status``.

Source: https://docs.kernel.org/filesystems/proc.html
"""

from __future__ import annotations

from typing import NamedTuple

from spark_watch.sources.files import natural

# Fields of /proc/PID/stat, counted from the one after the name (the third, "state").
_STATE, _PARENT, _MAJOR_FAULTS, _START = 0, 1, 9, 19


class Stat(NamedTuple):
    """What ``/proc/PID/stat`` says; ``started`` is in clock ticks since boot."""

    comm: bytes
    state: bytes
    parent: int
    major_faults: int
    started: int


def parse_stat(text: bytes) -> Stat | None:
    """Return the parts of ``/proc/PID/stat``, ``None`` where they are garbled or cut off.

    The name may hold blanks and parentheses, so that fields are counted from the last one.
    """
    opened, closed = text.find(b"("), text.rfind(b")")
    words = text[closed + 1 :].split(None, _START + 1)
    if not 0 <= opened < closed or len(words) <= _START + 1:
        return None
    parent, faults = natural(words[_PARENT]), natural(words[_MAJOR_FAULTS])
    started = natural(words[_START])
    if parent is None or faults is None or started is None:
        return None
    return Stat(text[opened + 1 : closed], words[_STATE], parent, faults, started)


def kibibytes(text: bytes, key: bytes) -> int | None:
    """Return the bytes of a line such as ``VmRSS:  1024 kB`` of ``/proc/PID/status``."""
    start = text.find(b"\n" + key + b":")
    end = text.find(b"\n", start + 1)
    if start < 0 or end < 0:
        return None
    words = text[start + len(key) + 2 : end].split()
    number = natural(words[0]) if words[1:] == [b"kB"] else None
    return None if number is None else number * 1024
