"""Writing a trace, one write a line."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from spark_watch.blackbox.trace.encode import header_object, sample_object, to_line
from spark_watch.blackbox.trace.header import TraceHeader
from spark_watch.errors import OutputError
from spark_watch.model import EMPTY, Sample


class BinarySink(Protocol):
    """What a trace is written to: an unbuffered file, a buffered one, a gzip stream."""

    def write(self, data: bytes, /) -> int | None:
        """Write the bytes; return how many of them were taken."""


class TraceWriter:
    """Writes the header at once and then one line for each sample, each in a single ``write``.

    So on an unbuffered file a line is one system call, and what another process sees, or what is
    left after a kill, ends at a whole line. Nothing is left out but what is ``None`` or no finite
    number, and the unknown keys of a sample that JSON cannot hold. Text is written with ``?`` for
    what is not printable.

    Args:
        stream: an open binary stream; it stays the caller's to flush, sync and close.
        header: the first line.
        export: leave out ``boot_id``, container names and unknown keys.

    Raises:
        OutputError: the header could not be written.
    """

    def __init__(self, stream: BinarySink, header: TraceHeader, *, export: bool = False) -> None:
        self._stream = stream
        self._export = export
        self._machine = header.machine
        self._torn = False
        self._put(to_line(header_object(header, export=export)))

    def write(self, sample: Sample) -> int:
        """Write one sample and return the number of bytes it took.

        Raises:
            OutputError: it could not be written, or not as a whole (its cause is the OSError where
                there was one). The next line starts anew, so that only this one is lost.
        """
        size = self._put(self._line(sample))
        if sample.machine is not None:
            self._machine = sample.machine
        return size

    def _line(self, sample: Sample) -> bytes:
        try:
            return to_line(sample_object(sample, self._machine, export=self._export))
        except (ValueError, RecursionError):  # only an unknown key can hold 1e999 or 1000 brackets
            known = dataclasses.replace(sample, extra=EMPTY)
            return to_line(sample_object(known, self._machine, export=self._export))

    def _put(self, line: bytes) -> int:
        if self._torn:
            line = b"\n" + line
        self._torn = True
        try:
            taken = self._stream.write(line)
        except OSError as error:
            raise OutputError(f"cannot write the trace: {error.strerror or error}") from error
        if taken is not None and taken < len(line):
            raise OutputError(f"cannot write the trace: {taken} of {len(line)} bytes were taken")
        self._torn = False
        return len(line)
