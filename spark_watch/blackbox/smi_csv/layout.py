"""How a log is laid out: its separator, and which column is what, with a header row or without."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from spark_watch.blackbox.smi_csv import columns, units
from spark_watch.blackbox.smi_csv.columns import Column, Role, column_of
from spark_watch.blackbox.smi_csv.times import is_calendar, is_time
from spark_watch.blackbox.smi_csv.units import is_absent, split_value
from spark_watch.blackbox.trace.schema import Refused, clean

LOOKED_AT: Final = 200
"""Rows that are looked at to find out what a log without a header row holds."""

_SEPARATORS: Final = ("\t", ";", ",")
_IDS: Final = re.compile(r"(GPU-[0-9a-fA-F-]{8,})|([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F.]+)")
_WORDS: Final = re.compile(r"(0x[0-9a-fA-F]+)|(P\d{1,2})", re.ASCII)
_CELSIUS_SEEN: Final = (5, 120)
"""Whole degrees that a bare number must lie in to pass for a temperature."""

_ABOUT: Final = frozenset({"time", "index", "uuid", "bus", "name", "driver", "mig"})
"""Fields that say when and of what a row is, and nothing of how it does."""

_OF_GPU: Final = frozenset({"gpu", "mask", "reason", "seconds"})
"""What the keys of a GPU's readings begin with."""

WANTED: Final = (
    "put the names given to --query-gpu on top, as in `timestamp, power.draw, clocks.sm`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the cells of a row are.

    Args:
        separator: between cells; where it is no comma, a comma is a decimal point.
        columns: one for each cell, ``None`` where it is not read.
        titles: the header row; empty where there is none.
        notes: what was decided, in words.
    """

    separator: str
    columns: tuple[Column | None, ...]
    titles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def has(self, key: str) -> bool:
        """Whether a column fills the field."""
        return any(column is not None and column.role.key == key for column in self.columns)

    @property
    def about_gpu(self) -> bool:
        """Whether any column is a reading of the GPU."""
        return any(
            column is not None and column.role.key.partition(".")[0] in _OF_GPU
            for column in self.columns
        )

    def checked(self) -> Self:
        """The layout itself.

        Raises:
            Refused: no column fills a field of a sample.
        """
        keys = {column.role.key for column in self.columns if column is not None}
        if not keys - _ABOUT:
            raise Refused(f"no column but the time is known: {WANTED}")
        return self


def split_row(text: str, separator: str) -> list[str]:
    """The cells of a row without blanks around them, quotes resolved.

    Raises:
        Refused: the quotes of the row do not fit.
    """
    if '"' not in text:
        return [cell.strip() for cell in text.split(separator)]
    try:
        row = next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
    except csv.Error as error:
        raise Refused(f"not a CSV row: {error}") from None
    return [cell.strip() for cell in row]


def separator_of(text: str) -> str | None:
    """The separator of a row, ``None`` where it has no more than one cell."""
    found = [mark for mark in _SEPARATORS if mark in text]
    return found[0] if found else None


def is_header(cells: Iterable[str]) -> bool:
    """Whether a row holds names and no value of any kind."""
    return all(
        cell and not is_absent(cell) and not is_time(cell) and split_value(cell) is None
        and not _WORDS.fullmatch(cell)
        for cell in cells
    )  # fmt: skip


def headed(cells: list[str], separator: str, rows: list[list[str]]) -> Layout:
    """The layout by a header row.

    Args:
        cells: the header row.
        separator: of its cells.
        rows: some of the rows below, to find a time column whose name says nothing.

    Raises:
        Refused: no time, nothing known beside it, or two columns for one thing.
    """
    found: list[Column | None] = [column_of(title) for title in cells]
    if not any(column is not None and column.role.key == "time" for column in found):
        spare = [n for n, column in enumerate(found) if column is None]
        moments = [n for n in spare if rows and all(is_calendar(row[n]) for row in rows)]
        if len(moments) != 1:
            raise Refused(f"no column is known to be the time: {WANTED}")
        found[moments[0]] = Column(title=cells[moments[0]], role=columns.TIME)
    chosen = _chosen(found)
    notes = []
    unread = [title for title, column in zip(cells, chosen, strict=True) if column is None]
    if unread:
        notes.append(f"columns not read: {', '.join(clean(title)[:40] for title in unread[:12])}")
    decimal = [title for title in unread if _decimal_or_binary(title)]
    if decimal:
        notes.append(
            f"{clean(decimal[0])[:40]}: MB and GB may mean 10^6 and 10^9 bytes or 2^20 and 2^30;"
            " a name ending in _mib or _gib says which"
        )
    return Layout(
        separator=separator, columns=chosen, titles=tuple(cells), notes=tuple(notes)
    ).checked()


def _decimal_or_binary(title: str) -> bool:
    name, _, unit = title.lower().rpartition("_")
    return unit in units.DECIMAL_OR_BINARY and column_of(f"{name}_mib") is not None


def _chosen(found: list[Column | None]) -> tuple[Column | None, ...]:
    """The columns that are read: of those for one field the one of the lowest rank."""
    best: dict[str, Column] = {}
    for column in found:
        if column is None:
            continue
        rival = best.get(column.role.key)
        if rival is not None and rival.role.rank == column.role.rank:
            raise Refused(f"{rival.title} and {column.title} are for the same thing")
        if rival is None or column.role.rank < rival.role.rank:
            best[column.role.key] = column
    return tuple(
        column if column is not None and best[column.role.key] is column else None
        for column in found
    )


def headless(rows: list[list[str]], separator: str) -> Layout:
    """The layout by the values alone, where every column can be nothing else.

    A column with a unit is told by it (``2405 MHz``, ``10.92 W``, ``0 %``), as are moments, masks,
    performance states and identifiers. One bare whole number is the temperature; ``[N/A]``
    throughout is nothing.

    Args:
        rows: the first rows, at least one, all of one length.
        separator: of their cells.

    Raises:
        Refused: two columns look alike, one looks like nothing known, or there is no time.
    """
    found: list[Column | None] = []
    for number, cells in enumerate(zip(*rows, strict=True), start=1):
        roles = {_looks_like(cell) for cell in cells if not is_absent(cell)}
        if len(roles) > 1 or None in roles:
            raise Refused(f"no header row, and column {number} is not clear: {WANTED}")
        role = roles.pop() if roles else None
        if role is columns.TEMPERATURE and not _may_be_celsius(cells):
            raise Refused(f"no header row, and column {number} is no temperature: {WANTED}")
        found.append(
            None if role is None else Column(title=f"column {number}", role=role, unit=role.unit)
        )
    if not any(column is not None and column.role.key == "time" for column in found):
        raise Refused(f"no header row and no column that is the time: {WANTED}")
    notes = ("no header row: the columns are told by their units",)
    try:
        chosen = _chosen(found)
    except Refused as refused:
        raise Refused(f"no header row, and {refused}: {WANTED}") from None
    return Layout(separator=separator, columns=chosen, notes=notes).checked()


_BY_UNIT: Final[Mapping[str, Role]] = {
    "w": columns.POWER,
    "mw": columns.POWER,
    "mhz": columns.CLOCK,
    "%": columns.UTILIZATION,
    "c": columns.TEMPERATURE,
}


def _looks_like(cell: str) -> Role | None:
    """What a value can only be; ``None`` where it may be several things."""
    if is_time(cell):
        return columns.TIME
    word = _WORDS.fullmatch(cell)
    if word:
        return columns.MASK if word[1] else columns.PSTATE
    identity = _IDS.fullmatch(cell)
    if identity:
        return columns.UUID if identity[1] else columns.BUS
    if cell.lower().startswith("nvidia "):
        return columns.NAME
    if cell.isascii() and cell.isdigit():
        return columns.TEMPERATURE
    split = split_value(cell)
    return _BY_UNIT.get(split[1]) if split else None


def _may_be_celsius(cells: Iterable[str]) -> bool:
    numbers = [split_value(cell) for cell in cells if not is_absent(cell)]
    low, high = _CELSIUS_SEEN
    return all(number is not None and low <= number[0] <= high for number in numbers)
