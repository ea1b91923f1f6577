"""``/proc/buddyinfo``: how much of the free memory lies in large blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_watch.errors import Unavailable
from spark_watch.sources.files import KeptFile, natural

_LINE: Final = re.compile(rb"Node +\d{1,9}, zone +\S{1,32}((?: +\d{1,20}){1,32}) *")


class BuddyinfoSource:
    """Reads ``buddyinfo`` below ``proc_root``.

    Args:
        proc_root: where ``/proc`` is.
        page_bytes: bytes of a page, which is the smallest block; the running kernel's.

    Source: https://docs.kernel.org/filesystems/proc.html (``buddyinfo``)
    """

    name = "buddyinfo"

    def __init__(
        self, *, proc_root: Path = Path("/proc"), page_bytes: int = os.sysconf("SC_PAGE_SIZE")
    ) -> None:
        self._file = KeptFile(proc_root / "buddyinfo")
        self._page_bytes = page_bytes

    def read(self) -> Mapping[int, int]:
        """Return bytes of a block to the number of free blocks of that size, smallest first.

        Raises:
            Unavailable: ``malformed``, see :func:`parse`; otherwise the kernel's answer.
        """
        return parse(self._file.read(), page_bytes=self._page_bytes)

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()


def parse(text: bytes, *, page_bytes: int) -> Mapping[int, int]:
    """Return the free blocks by size, summed over all zones and nodes.

    A column's size is the page doubled once for each column before it. The number of columns is
    the kernel's: eleven on most, more where huge pages are larger.

    Raises:
        Unavailable: ``malformed`` where any line is garbled or cut off. A sum that lacks a zone
            would look like fragmentation.
    """
    *lines, rest = text.split(b"\n")
    blocks: dict[int, int] = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise Unavailable("malformed", "a line of /proc/buddyinfo could not be read")
        for order, word in enumerate(match[1].split()):
            size = page_bytes << order
            blocks[size] = blocks.get(size, 0) + (natural(word) or 0)
    if rest or not blocks:
        raise Unavailable("malformed", "/proc/buddyinfo is empty or cut off")
    return blocks
