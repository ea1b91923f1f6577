"""The lines of a recording, whatever happened to the file: gzip or not, cut off, filled with NULs.

After a power loss the tail of a file is often missing, or has its length but holds NUL bytes
(ext4 and XFS extend a file before its blocks are written). Every whole line before that is good.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypedDict, cast

from spark_watch.errors import InputError, OutputError

LINE_LIMIT: Final = 1024 * 1024
"""Bytes of the longest line that is read; what is longer is skipped without being held.

A sample with 40 processes is 8 KiB. The limit is also what bounds a gzip bomb.
"""

SKIPPED_LIMIT: Final = 1000
"""Skipped lines that are reported one by one; the rest is counted in the last entry."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"


class Skipped(TypedDict):
    """A line that was not read, and why, in the form in which JSON carries it."""

    line: int
    why: str


class SkippedLines(list[Skipped]):
    """Lines that were not read, at most ``SKIPPED_LIMIT`` of them and then a count of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self._more = 0

    def add(self, line: int, why: str) -> None:
        """Report one line; beyond the limit the last entry says how many more there are."""
        if len(self) < SKIPPED_LIMIT:
            self.append({"line": line, "why": why})
            return
        self._more += 1
        self[-1:] = [{"line": line, "why": f"and {self._more} more before it, not listed"}]


class Line(NamedTuple):
    """One line without its end; ``number`` counts from 1.

    ``flaw`` says what is wrong with a line that cannot be read at all. ``ended`` is false where the
    line has no line end, so that its last characters may be missing.
    """

    number: int
    data: bytes
    flaw: str | None = None
    ended: bool = True


class Lines:
    """The lines of one file or stream; gzip is recognised by its first bytes, not by the name.

    Args:
        source: a path, or a binary stream, which is closed together with this object.
        name: what errors call it; the path, or the stream's own name, when left out.

    Raises:
        OutputError: the file cannot be opened or read.
    """

    def __init__(self, source: Path | str | BinaryIO, name: str | None = None) -> None:
        self.name = name or _name_of(source)
        self._raw = self._open(source)
        self._stream: io.BufferedReader | gzip.GzipFile = self._raw
        try:
            if self._raw.peek(2).startswith(_GZIP_MAGIC):
                self.rewindable()
                self._stream = gzip.GzipFile(fileobj=self._raw, mode="rb")
        except OSError as error:
            self.close()
            raise self._refusal(error) from error

    def _open(self, source: Path | str | BinaryIO) -> io.BufferedReader:
        if isinstance(source, io.BufferedReader):
            return source
        if not isinstance(source, Path | str):
            return io.BufferedReader(cast("io.RawIOBase", source))
        try:
            return Path(source).open("rb")
        except (OSError, ValueError) as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> OutputError:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return OutputError(f"cannot read {self.name}: {reason}")

    def start(self) -> bytes:
        """The first bytes, up to a buffer full, without taking them; no BOM, blanks or NULs.

        Raises:
            InputError: there is nothing in it.
            OutputError: it cannot be read.
        """
        try:
            head = self._stream.peek(io.DEFAULT_BUFFER_SIZE)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name}: the gzip data is damaged from its start") from error
        except OSError as error:
            raise self._refusal(error) from error
        content = head.removeprefix(_BOM).lstrip(b"\0 \t\r\n")
        if not content:
            raise InputError(f"{self.name}: {'nothing but NULs or blanks' if head else 'empty'}")
        return content

    def rewindable(self) -> None:
        """Make :meth:`rewind` possible: what comes through a pipe is copied to a temporary file.

        Raises:
            OutputError: it cannot be read, or there is no room for the copy.
        """
        if self._raw.seekable():
            return
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        try:
            shutil.copyfileobj(self._raw, copy)
            copy.seek(0)
        except OSError as error:
            copy.close()
            raise self._refusal(error) from error
        self.close()
        self._raw = cast("io.BufferedReader", copy)
        self._stream = self._raw

    def rewind(self) -> None:
        """Go back to the first line.

        Raises:
            OutputError: the file cannot be read any more.
        """
        try:
            self._stream.seek(0)
        except OSError as error:
            raise self._refusal(error) from error

    def __iter__(self) -> Iterator[Line]:
        """Yield every line that is not blank, and for each that is damaged what is wrong with it.

        A line with NULs in it is yielded as the pieces around them, none of them ``ended`` but the
        last: a record that was complete before the NULs, or was appended after them, is not lost.

        Raises:
            OutputError: the file cannot be read any more.
        """
        number = 0
        while True:
            try:
                data = self._stream.readline(LINE_LIMIT)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                yield Line(number + 1, b"", f"the gzip data ends here: {error}")
                return
            except (OSError, ValueError) as error:
                raise self._refusal(error) from error
            if not data:
                return
            number += 1
            too_long = len(data) == LINE_LIMIT and not data.endswith(b"\n")
            if number == 1:
                data = data.removeprefix(_BOM)
            if too_long:
                yield Line(number, b"", f"longer than {LINE_LIMIT} bytes")
                self._skip_to_line_end()
            elif b"\0" in data:
                yield from _pieces(number, data)
            elif not data.isspace():
                yield Line(number, data.rstrip(b"\r\n"), None, data.endswith(b"\n"))

    def _skip_to_line_end(self) -> None:
        with suppress(EOFError, zlib.error, OSError):  # the next readline meets it again
            while (data := self._stream.readline(LINE_LIMIT)) and not data.endswith(b"\n"):
                pass

    def close(self) -> None:
        """Close the stream; calling it again changes nothing."""
        self._stream.close()
        self._raw.close()


def _name_of(source: Path | str | BinaryIO) -> str:
    named = source if isinstance(source, Path | str) else getattr(source, "name", None)
    return str(named) if isinstance(named, Path | str) else "the input"


def _pieces(number: int, data: bytes) -> Iterator[Line]:
    *torn, last = data.split(b"\0")
    for piece in torn:
        if piece and not piece.isspace():
            yield Line(number, piece, None, ended=False)
    if last and not last.isspace():
        yield Line(number, last.rstrip(b"\r\n"), None, last.endswith(b"\n"))
    yield Line(number, b"", f"{len(torn)} NUL bytes")
