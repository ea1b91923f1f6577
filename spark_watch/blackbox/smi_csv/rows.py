"""The rows of a log, each with its time, its GPU and its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from spark_watch.blackbox.lines import Line, Lines, SkippedLines
from spark_watch.blackbox.smi_csv import units
from spark_watch.blackbox.smi_csv.columns import column_of
from spark_watch.blackbox.smi_csv.layout import (
    LOOKED_AT,
    Layout,
    headed,
    headless,
    is_header,
    separator_of,
    split_row,
)
from spark_watch.blackbox.smi_csv.times import Clock
from spark_watch.blackbox.smi_csv.units import error_in, is_absent
from spark_watch.blackbox.trace.schema import VALUES, Refused, shown

_PREAMBLE: Final = 20
"""Lines in which the table must begin; a monitor's own words may stand before it."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One row.

    Args:
        line: its number in the file.
        t: seconds, as its clock reads them.
        gpu: the index of the GPU it is about.
        values: by the key of the column's role; what was not available is left out.
        error: the failed reading that a cell reports, if one does.
    """

    line: int
    t: float
    gpu: int
    values: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


class Rows:
    """Reads the rows from the first to the last line, once.

    Args:
        lines: of the file, at its start.
        layout: of its first table; a later header row begins another.
        skipped: gets every line that is not read.
    """

    def __init__(self, lines: Lines, layout: Layout, skipped: SkippedLines) -> None:
        self._lines = lines
        self._skipped = skipped
        self._indices: dict[str, int] = {}
        self._begin(layout)

    def _begin(self, layout: Layout) -> None:
        self.layout = layout
        time = next(c for c in layout.columns if c is not None and c.role.key == "time")
        scale = None if time.unit is None else 1 / units.DURATION.units[time.unit]
        self.clock = Clock(scale)

    def __iter__(self) -> Iterator[Row]:
        """Yield what can be read, in the order of the file.

        Raises:
            OutputError: the file cannot be read any more.
        """
        for line in self._lines:
            if line.flaw is not None:
                self._skipped.add(line.number, line.flaw)
                continue
            try:
                cells = split_row(line.data.decode(), self.layout.separator)
                if not self._header(cells):
                    yield self._row(line, cells)
            except UnicodeDecodeError:
                self._skipped.add(line.number, "not UTF-8 text")
            except Refused as refused:
                self._skipped.add(line.number, str(refused))

    def _header(self, cells: list[str]) -> bool:
        """Whether the row is a header row; a new one begins a new table."""
        if tuple(cells) == self.layout.titles:
            return True
        if not is_header(cells) or not any(column_of(cell) for cell in cells):
            return False
        self._begin(headed(cells, self.layout.separator, []))
        return True

    def _row(self, line: Line, cells: list[str]) -> Row:
        columns = self.layout.columns
        if is_header(cells):
            raise Refused(f"not a row of the table: {shown(line.data.decode())}")
        if len(cells) < len(columns):
            raise Refused(f"cut off: {len(cells)} of {len(columns)} values")
        if any(cells[len(columns) :]):
            raise Refused(f"{len(cells)} values in {len(columns)} columns")
        row = Row(line=line.number, t=0.0, gpu=0)
        for column, cell in zip(columns, cells, strict=False):
            if column is None:
                continue
            if is_absent(cell):
                row.error = error_in(cell) or row.error
            else:
                row.values[column.role.key] = column.read(cell)
        if not line.ended:
            self._distrust_end(line, row)
        if "time" not in row.values:
            raise Refused("the time is missing")
        row.t = VALUES["t"](self.clock.read(row.values.pop("time")))
        row.gpu = self._index(row)
        return row

    def _distrust_end(self, line: Line, row: Row) -> None:
        """Leave the last value out: ``9`` may be all that is left of ``96``."""
        last = self.layout.columns[-1]
        if last is not None:
            row.values.pop(last.role.key, None)
            self._skipped.add(line.number, "no line end: its last value is not read")

    def _index(self, row: Row) -> int:
        values = row.values
        index: int | None = values.pop("index", None)
        identity: str | None = values.pop("uuid", None) or values.pop("bus", None)
        values.pop("bus", None)
        if index is not None:
            return index
        if self.layout.has("index"):
            raise Refused("the GPU's index is missing")
        if identity is not None:
            return self._indices.setdefault(identity, len(self._indices))
        if self.layout.has("uuid") or self.layout.has("bus"):
            raise Refused("which GPU this is about is missing")
        return 0


def find_layout(lines: Lines) -> Layout:
    """The layout of the first table in a file, of which some lines are taken.

    Raises:
        Refused: there is no table, or its columns are not known.
    """
    separator: str | None = None
    titles: list[str] = []
    rows: list[list[str]] = []
    for line in lines:
        if line.number > _PREAMBLE and not rows and not titles:
            break
        if line.flaw is not None:
            continue
        text = line.data.decode(errors="replace")
        mark = separator or separator_of(text)
        if mark is None:
            continue
        cells = split_row(text, mark)
        if not rows and is_header(cells):
            separator, titles = mark, cells
        elif _belongs(cells, titles, rows, ended=line.ended):
            separator = mark
            rows.append(cells)
        if len(rows) >= LOOKED_AT:
            break
    if separator is None:
        raise Refused("no table of values separated by commas")
    if titles:
        return headed(titles, separator, rows)
    return headless(rows, separator)


def _belongs(cells: list[str], titles: list[str], rows: list[list[str]], *, ended: bool) -> bool:
    """Whether a row has the width of the table, so that its values say what the columns are."""
    if titles or rows:
        return len(cells) == len(titles or rows[0])
    return ended and len(cells) > 1
