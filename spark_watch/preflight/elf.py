"""Which libraries an ELF file asks for, from its headers alone: nothing is loaded or run.

Source: the ELF specification (elf(5)).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

_LOAD, _DYNAMIC = 1, 2
_END, _NEEDED, _STRING_TABLE = 0, 1, 5

MAXIMUM_HEADERS: Final = 512
MAXIMUM_DYNAMIC: Final = 1 << 16
LONGEST_NAME: Final = 256
"""Bounds on what is read; a file that exceeds one is refused, not read in part."""


class NotReadableError(ValueError):
    """The file is no ELF file, or its headers do not hang together."""


class _Layout(NamedTuple):
    """How a class of ELF files is laid out: struct formats, and where in them things stand."""

    table: str
    table_at: int
    count_at: int
    header: str
    offset: int
    address: int
    length: int
    entry: str


_LAYOUTS: Final = {
    b"\1": _Layout("I", 28, 42, "IIIIIIII", 1, 2, 4, "iI"),
    b"\2": _Layout("Q", 32, 54, "IIQQQQQQ", 2, 3, 5, "qQ"),
}
"""32 and 64 bits."""

_ORDERS: Final = {b"\1": "<", b"\2": ">"}


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    length: int


def needed(path: Path) -> tuple[str, ...]:
    """Return the names a file wants from the loader (``DT_NEEDED``), in its order.

    Raises:
        NotReadableError: see there.
        OSError: the kernel's answer.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return _needed(file)
    except (struct.error, OverflowError) as error:
        raise NotReadableError(f"{path}: {error}") from error
    finally:
        os.close(file)


def section(file: int, name: bytes) -> tuple[int, int] | None:
    """Return offset and length of a section of a 64-bit file, ``None`` where it has none so named.

    Args:
        file: an open descriptor.
        name: of the section, without its end.

    Raises:
        NotReadableError, struct.error: the headers do not hang together.
    """
    head = os.pread(file, 64, 0)
    order = _ORDERS.get(head[5:6])
    if not head.startswith(b"\x7fELF\2") or order is None:
        raise NotReadableError("not an ELF file of 64 bits")
    (table,) = struct.unpack_from(order + "Q", head, 40)
    size, count, names_at = struct.unpack_from(order + "HHH", head, 58)
    form = order + "IIQQQQ"
    if count > MAXIMUM_HEADERS or size < struct.calcsize(form) or (count and names_at >= count):
        raise NotReadableError("no plausible section headers")
    headers = os.pread(file, size * count, table)
    places = [struct.unpack_from(form, headers, number * size) for number in range(count)]
    for title, _, _, _, offset, length in places:
        text = os.pread(file, len(name) + 1, places[names_at][4] + title)
        if text == name + b"\0":
            return offset, length
    return None


def _needed(file: int) -> tuple[str, ...]:
    head = os.pread(file, 64, 0)
    layout, order = _LAYOUTS.get(head[4:5]), _ORDERS.get(head[5:6])
    if not head.startswith(b"\x7fELF") or layout is None or order is None:
        raise NotReadableError("not an ELF file")
    segments = _segments(file, head, layout, order)
    entries = _dynamic(file, segments, order + layout.entry)
    names = [value for tag, value in entries if tag == _NEEDED]
    if not names:
        return ()
    strings = [value for tag, value in entries if tag == _STRING_TABLE]
    if not strings:
        raise NotReadableError("names without a string table")
    base = _offset(segments, strings[-1])
    return tuple(_name(file, base + value) for value in names)


def _dynamic(file: int, segments: list[_Segment], form: str) -> list[tuple[int, int]]:
    """Return (tag, value) of every entry of the dynamic section, none where there is no section."""
    place = next((each for each in segments if each.kind == _DYNAMIC), None)
    if place is None:
        return []
    if place.length > MAXIMUM_DYNAMIC:
        raise NotReadableError("no plausible dynamic section")
    data = os.pread(file, place.length, place.offset)
    if len(data) < place.length:
        raise NotReadableError("the dynamic section is cut off")
    size = struct.calcsize(form)
    entries: list[tuple[int, int]] = []
    for at in range(0, len(data) - size + 1, size):
        tag, value = struct.unpack_from(form, data, at)
        if tag == _END:
            break
        entries.append((tag, value))
    return entries


def _segments(file: int, head: bytes, layout: _Layout, order: str) -> list[_Segment]:
    (table,) = struct.unpack_from(order + layout.table, head, layout.table_at)
    size, count = struct.unpack_from(order + "HH", head, layout.count_at)
    form = order + layout.header
    if count > MAXIMUM_HEADERS or size < struct.calcsize(form):
        raise NotReadableError("no plausible program headers")
    headers = os.pread(file, size * count, table)
    found = []
    for number in range(count):
        fields = struct.unpack_from(form, headers, number * size)
        found.append(
            _Segment(
                fields[0], fields[layout.offset], fields[layout.address], fields[layout.length]
            )
        )
    return found


def _offset(segments: list[_Segment], address: int) -> int:
    """Return where in the file an address of the loaded image comes from."""
    for each in segments:
        if each.kind == _LOAD and each.address <= address < each.address + each.length:
            return each.offset + address - each.address
    raise NotReadableError("the string table lies outside the file")


def _name(file: int, offset: int) -> str:
    text, end, _ = os.pread(file, LONGEST_NAME, offset).partition(b"\0")
    if not end or not text:
        raise NotReadableError("a name without an end")
    return text.decode("utf-8", "replace")
