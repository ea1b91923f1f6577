"""The kernel log as it grows: the driver's failures, kills, hung tasks and fatal PCIe errors."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError, Unsupported
from spark_watch.model import KernelEvent
from spark_watch.sources.files import source_error
from spark_watch.sources.kernel_lines import Recogniser, take_apart

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_BYTES: Final = 16384
"""More than the longest record, which is 8 KiB (``CONSOLE_EXT_LOG_MAX``)."""


class KernelLogSource:
    """Reads ``/dev/kmsg``, from its end at construction on: old lines are no news.

    A plain file that grows, and a FIFO, are read as well.

    Args:
        path: the log.
        lines_per_reading: the most lines one reading takes, so that a flood costs a tick no more
            than about 5 ms. What is left is taken by the next readings, unless the kernel
            overwrites it first.

    Attributes:
        lost: lines that were never seen since construction, because the kernel had overwritten
            them or because they were longer than a record may be. At least 1 per loss.

    Source: https://docs.kernel.org/admin-guide/abi-testing.html (``dev-kmsg``)
    """

    name = "kernel_log"

    def __init__(self, *, path: Path = Path("/dev/kmsg"), lines_per_reading: int = 2000) -> None:
        self.lost = 0
        self._path = path
        self._lines_per_reading = lines_per_reading
        self._recogniser = Recogniser()
        self._descriptor = -1
        self._in_records = False
        self._rest = b""
        self._sequence: int | None = None
        self._overrun = False
        with suppress(SourceError):
            self._open()

    def read(self) -> tuple[KernelEvent, ...]:
        """Return what was logged since the reading before, lines of one kind and code together.

        Empty where nothing that matters was logged. In order of first appearance.

        Raises:
            Unsupported: ``not_found`` where there is no such path.
            Unavailable: ``permission_denied`` where only root may read it (``dmesg_restrict``);
                otherwise the kernel's answer. What was recognised before an error is returned
                first, and the error raised by the next reading.
        """
        if self._descriptor < 0:
            self._open()
        counts: dict[tuple[str, str | int | None], int] = {}
        try:
            for line in self._lines():
                facility, sequence, message = take_apart(line)
                self._count_lost(sequence)
                meaning = self._recogniser.meaning(message) if facility == 0 else None
                if meaning is not None:
                    counts[meaning] = counts.get(meaning, 0) + 1
        except OSError as error:
            self.close()
            if not counts:
                raise source_error(error, self._path, absent=Unsupported) from error
        return tuple(
            KernelEvent(kind=kind, code=code, count=count) for (kind, code), count in counts.items()
        )

    def close(self) -> None:
        """Close the descriptor; the next reading starts at the log's end."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._rest = b""
        self._sequence = None
        self._overrun = False

    def _open(self) -> None:
        try:
            self._descriptor = os.open(self._path, _FLAGS)
            mode = os.fstat(self._descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "is a directory")
        except OSError as error:
            self.close()
            raise source_error(error, self._path, absent=Unsupported) from error
        self._in_records = stat.S_ISCHR(mode)
        with suppress(OSError):  # a FIFO has no end to go to
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def _lines(self) -> Iterator[bytes]:
        left = self._lines_per_reading
        while left > 0:
            left -= 1
            try:
                text = os.read(self._descriptor, _BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:
                    self._overrun = True
                elif error.errno == errno.EINVAL:
                    self.lost += 1
                else:
                    raise
                continue
            if not text:
                return
            if self._in_records:
                yield text
            else:
                *lines, rest = (self._rest + text).split(b"\n")
                # Of a line without an end its start is kept: that is where it is recognised.
                self._rest = rest[:_BYTES]
                left -= len(lines)
                yield from lines

    def _count_lost(self, sequence: int | None) -> None:
        """Count what the kernel had overwritten before this line, by the numbers of the lines."""
        if self._overrun:
            self._overrun = False
            before = self._sequence
            gap = 0 if sequence is None or before is None else sequence - before - 1
            self.lost += max(1, gap)
        self._sequence = sequence
