"""Reading a trace, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from spark_watch.blackbox.lines import Line, Lines, SkippedLines
from spark_watch.blackbox.trace.decode import header_from, parse_object, sample_from
from spark_watch.blackbox.trace.header import TraceHeader
from spark_watch.blackbox.trace.schema import Refused
from spark_watch.errors import InputError
from spark_watch.model import Sample


class TraceReader:
    """A trace: its header at once, its samples by iterating, once.

    A line that cannot be read is left out and reported in ``skipped``; nothing but the header is
    worth giving up a recording for. Every sample carries the machine as it was known by then.

    Args:
        lines: where the lines come from; closed together with the reader.

    Raises:
        InputError: there is no header of a known version in the first line.
        OutputError: the file cannot be read.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._iterator = iter(lines)
        self.skipped = SkippedLines()
        self.notes: list[str] = []
        try:
            lines.start()
            self.header = self._read_header(next(self._iterator, Line(1, b"", "empty")))
        except BaseException:
            self.close()
            raise

    def _read_header(self, line: Line) -> TraceHeader:
        why = line.flaw
        if why is None:
            try:
                return header_from(parse_object(line.data))
            except Refused as refused:
                why = str(refused)
        raise InputError(f"{self._lines.name}: line {line.number}: {why}")

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples in the order of the file, then close it.

        Raises:
            OutputError: the file cannot be read any more.
        """
        machine = self.header.machine
        try:
            for line in self._iterator:
                if line.flaw is not None:
                    self.skipped.add(line.number, line.flaw)
                    continue
                try:
                    sample = sample_from(parse_object(line.data), machine)
                except Refused as refused:
                    why = str(refused) if line.ended else f"cut off: {refused}"
                    self.skipped.add(line.number, why)
                    continue
                if sample.machine is not None:
                    machine = sample.machine
                yield sample
        finally:
            self.close()

    def close(self) -> None:
        """Close the file; calling it again changes nothing."""
        self._lines.close()

    def __enter__(self) -> Self:
        """Return the reader itself; it is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def read_trace(source: Path | str | BinaryIO, name: str | None = None) -> TraceReader:
    """Open a trace, gzip or not.

    Args:
        source: a path, or a binary stream, which is closed with the reader.
        name: what errors call it; the path or the stream's own name when left out.

    Raises:
        InputError: empty, or no header of a known version in the first line.
        OutputError: missing, a directory, not permitted, or the device fails.
    """
    return TraceReader(Lines(source, name))
