"""Which GPU architectures the kernels in a shared library were built for, from their headers.

The section ``.nv_fatbin`` is a row of containers, each a row of entries: machine code or PTX, with
the architecture and its variant in the entry's header, whether or not the code is compressed. The
layout is no public one; it was read off the output of ``fatbinary`` of CUDA 13.5 for ``sm_90a``,
``sm_120``, ``sm_120f``, ``sm_121`` and ``sm_121a``. What does not look like it ends the reading.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from spark_watch.preflight.elf import NotReadableError, section

SECTIONS: Final = (b".nv_fatbin", b"__nv_relfatbin")

_MAGIC: Final = 0xBA55ED50
_CONTAINER: Final = struct.Struct("<IHHQ")
_ENTRY: Final = struct.Struct("<HHIQQIIIIQ")
"""Kind, version, header bytes, payload bytes, (unused), (unused), architecture, (name), flags."""

_PTX, _MACHINE_CODE = 1, 2
_EXACT: Final = 0x0010_0000
_FAMILY: Final = 0x0020_0000
"""Flags of the variants ``a`` (this chip alone) and ``f`` (its family)."""

MAXIMUM_ENTRIES: Final = 50_000
ALIGNMENT: Final = 8


def targets(path: Path) -> frozenset[str]:
    """Return what a library was built for: ``sm_121a`` for machine code, ``compute_120`` for PTX.

    Raises:
        NotReadableError: it is no ELF file of 64 bits, or the section holds something else.
        OSError: the kernel's answer.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found: set[str] = set()
        for name in SECTIONS:
            place = section(file, name)
            if place is not None:
                _walk(file, *place, found)
        return frozenset(found)
    except (struct.error, OverflowError) as error:
        raise NotReadableError(f"{path}: {error}") from error
    finally:
        os.close(file)


def _walk(file: int, start: int, length: int, found: set[str]) -> None:
    """Add the targets of every container in a section."""
    at, end, left = start, start + length, MAXIMUM_ENTRIES
    while at + _CONTAINER.size <= end:
        magic, _, header, size = _CONTAINER.unpack(os.pread(file, _CONTAINER.size, at))
        if magic == 0:  # padding between two containers
            at += ALIGNMENT
            continue
        if magic != _MAGIC or header < _CONTAINER.size or at + header + size > end:
            raise NotReadableError("no row of containers")
        entry, stop = at + header, at + header + size
        while entry + _ENTRY.size <= stop:
            left -= 1
            if left < 0:
                raise NotReadableError("too many entries")
            entry += _entry(os.pread(file, _ENTRY.size, entry), found)
        at = stop + -stop % ALIGNMENT


def _entry(data: bytes, found: set[str]) -> int:
    """Add the target of one entry and return how many bytes it takes."""
    kind, _, header, size, _, _, arch, _, _, flags = _ENTRY.unpack(data)
    if header < _ENTRY.size or kind not in {_PTX, _MACHINE_CODE}:
        raise NotReadableError("no entry of a known kind")
    variant = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
    found.add(f"{'sm' if kind == _MACHINE_CODE else 'compute'}_{arch}{variant}")
    return int(header + size)
