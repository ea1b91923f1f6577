"""The dynamic loader's cache: which libraries it finds without being told a folder.

Source: glibc, sysdeps/generic/dl-cache.h (``struct cache_file_new``).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from spark_watch.errors import Unavailable
from spark_watch.sources.files import read_once

MAGIC: Final = b"glibc-ld.so.cache1.1"
LARGEST: Final = 16 << 20
_HEADER_BYTES: Final = 48
_ENTRY: Final = struct.Struct("=iIIIQ")
_COUNT: Final = struct.Struct("=I")


def libraries(path: Path = Path("/etc/ld.so.cache")) -> tuple[tuple[str, str], ...]:
    """Return (name, path) of every library in the cache, in its order.

    Raises:
        Unavailable: ``malformed``, or the kernel's answer.
    """
    return parse(read_once(path, limit=LARGEST))


def parse(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return what the bytes of a cache say; an older table in front of the current one is skipped.

    Raises:
        Unavailable: ``malformed`` where they are no cache, or one that is cut off.
    """
    start = data.find(MAGIC)
    if start < 0 or len(data) < start + _HEADER_BYTES:
        raise Unavailable("malformed", "no table of the form that glibc has written since 2.2")
    table = data[start:]
    (count,) = _COUNT.unpack_from(table, len(MAGIC))
    if _HEADER_BYTES + count * _ENTRY.size > len(table):
        raise Unavailable("malformed", "the loader cache is cut off")
    found = []
    for number in range(count):
        _, name, path, _, _ = _ENTRY.unpack_from(table, _HEADER_BYTES + number * _ENTRY.size)
        found.append((_text(table, name), _text(table, path)))
    return tuple(found)


def _text(table: bytes, at: int) -> str:
    end = table.find(b"\0", at)
    if at >= len(table) or end < 0:
        raise Unavailable("malformed", "a name outside the loader cache")
    return table[at:end].decode("utf-8", "replace")
