"""Compressing a closed segment a piece at a time, so that it is never felt."""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from pathlib import Path
from typing import Final

from spark_watch.blackbox.ring.folder import PART, sync_folder

PIECE_BYTES: Final = 64 * 1024
"""What one step takes: about 2 ms of CPU and, with zlib's window, a third of a megabyte."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 6


class Packing:
    """Turns ``NAME.jsonl`` into ``NAME.jsonl.gz``; the old file goes when the new one is on disk.

    Bytes are copied as they are, so a damaged tail stays what it was.

    Args:
        path: the closed segment.

    Raises:
        OSError: a file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packed_path = path.with_name(path.name + ".gz")
        self.packed_bytes = 0
        self._part = path.with_name(path.name + ".gz" + PART)
        self._zlib = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        with contextlib.ExitStack() as stack:
            self._from = stack.enter_context(path.open("rb", buffering=0))
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            part = os.open(self._part, flags, 0o640)
            self._to = stack.enter_context(io.FileIO(part, "wb"))
            self._open = stack.pop_all()

    def step(self) -> bool:
        """Pack the next piece; return whether the segment is packed now.

        Raises:
            OSError: reading or writing failed; :meth:`abandon` is due.
        """
        data = self._from.read(PIECE_BYTES)
        if data:
            self._put(self._zlib.compress(data))
            return False
        self._put(self._zlib.flush())
        os.fsync(self._to.fileno())
        self._open.close()
        self._part.rename(self.packed_path)
        sync_folder(self.path.parent)
        self.path.unlink(missing_ok=True)
        return True

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._to.write(view) or 0 :]
        self.packed_bytes += len(data)

    def abandon(self) -> None:
        """Leave the segment as it is."""
        with contextlib.suppress(OSError):
            self._open.close()
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)
