"""The one segment that is open for writing."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

from spark_watch.blackbox.ring.folder import sync_folder
from spark_watch.blackbox.trace import TraceHeader, TraceWriter
from spark_watch.errors import OutputError
from spark_watch.model import Sample


class OpenSegment:
    """A new file with a header, to which whole lines are appended, one system call a line.

    Args:
        path: must not exist yet.
        header: its first line.
        sync: makes what was written to a descriptor durable.

    Raises:
        OSError, OutputError: it cannot be made; nothing of it is left then.
    """

    def __init__(self, path: Path, header: TraceHeader, sync: Callable[[int], None]) -> None:
        self.path = path
        self.samples = 0
        self._sync = sync
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = io.FileIO(os.open(path, flags, 0o640), "wb")
        try:
            self._writer = TraceWriter(self._file, header)
            self.size_bytes = os.fstat(self._file.fileno()).st_size
            sync_folder(path.parent)
        except BaseException:
            self._file.close()
            path.unlink(missing_ok=True)
            raise

    def write(self, sample: Sample) -> None:
        """Append one sample; after a failure the file ends at the line before.

        Raises:
            OutputError: it could not be written.
        """
        try:
            self.size_bytes += self._writer.write(sample)
            self.samples += 1
        except OutputError:
            with contextlib.suppress(OSError):
                self._file.truncate(self.size_bytes)
            raise

    def sync(self) -> None:
        """Make everything written so far durable.

        Raises:
            OSError: it is not; ``ENOENT`` where the file has lost its name, so that what is
                written to it would be gone with this process.
        """
        self._sync(self._file.fileno())
        if not os.path.samestat(self.path.stat(), os.fstat(self._file.fileno())):
            raise OSError(errno.ENOENT, "the segment was replaced")

    def close(self) -> None:
        """Close the file, and remove it where it holds no sample; may be called again."""
        with contextlib.suppress(OSError):
            self._file.close()
            if self.samples == 0:
                self.path.unlink(missing_ok=True)
