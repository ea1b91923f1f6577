"""The ring's folder: how its segments are named, which there are, and whose it is now.

``0000000012-0000000007.jsonl`` is segment 12, written by the run that began with segment 7; packed
it ends in ``.gz``. Numbers only ever grow, so the order of names is the order of writing whatever
the wall clock did.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import struct
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = "blackbox"
"""The ring's name inside the state directory."""

LOCK: Final = "lock"
PART: Final = ".part"
"""What ends the name of a packed segment that is still being written."""

_NAME: Final = re.compile(r"(\d{10})-(\d{10})\.jsonl(\.gz)?")
_FLOCK: Final = "hhqqi4x"
"""``struct flock`` of fcntl(2) on 64-bit Linux: type, whence, start, length, pid."""

_WHOLE: Final = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class SegmentFile(NamedTuple):
    """One segment: its number, the number of the run it belongs to, where it is, its size."""

    number: int
    run: int
    path: Path
    size_bytes: int

    @property
    def packed(self) -> bool:
        """Whether it is compressed."""
        return self.path.suffix == ".gz"


class RingFolder:
    """The folder of one ring.

    Args:
        path: the folder; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def segment_path(self, number: int, run: int) -> Path:
        """Return where a segment is written."""
        return self.path / f"{number:010d}-{run:010d}.jsonl"

    def segments(self) -> list[SegmentFile]:
        """Return the segments, oldest first, each once.

        Where a kill left both forms of one segment, the packed one counts: it gets its name only
        when it is complete and on disk.

        Raises:
            OSError: the folder cannot be read.
        """
        found: dict[int, SegmentFile] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match is None:
                    continue
                try:
                    size = entry.stat().st_size
                except FileNotFoundError:  # packed or dropped by its daemon meanwhile
                    continue
                one = SegmentFile(int(match[1]), int(match[2]), Path(entry.path), size)
                if one.packed or one.number not in found:
                    found[one.number] = one
        return [found[number] for number in sorted(found)]

    def tidy(self) -> None:
        """Remove what a kill in the middle of packing left: half-written packs, second forms.

        Raises:
            OSError: the folder cannot be read or written.
        """
        for part in self.path.glob(f"*{PART}"):
            part.unlink(missing_ok=True)
        for one in self.segments():
            if one.packed:
                one.path.with_suffix("").unlink(missing_ok=True)

    def take(self) -> int:
        """Make the folder where there is none, and take it for this process.

        Returns:
            The descriptor that holds it; closing it, or ending the process, gives it back.

        Raises:
            OSError: ``EAGAIN`` where another process records there; else what the system says.
        """
        self.path.mkdir(mode=0o750, parents=True, exist_ok=True)
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _WHOLE)
        except OSError as error:
            os.close(descriptor)
            if error.errno == errno.EACCES:  # POSIX allows either for a lock that is held
                raise OSError(errno.EAGAIN, "another process records here") from error
            raise
        return descriptor

    def taken(self) -> bool:
        """Whether some process records into this folder right now; False where that is unknown."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path / LOCK, os.O_RDONLY | os.O_CLOEXEC)
            try:
                answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _WHOLE)
            finally:
                os.close(descriptor)
            kind: int = struct.unpack(_FLOCK, answer)[0]
            return kind != fcntl.F_UNLCK
        return False


def sync_folder(path: Path) -> None:
    """Make names in a folder as durable as the files behind them.

    Raises:
        OSError: what the system says.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
