"""Small kernel files, read whole through a descriptor that stays open.

A name is looked up once, not on every tick: a look-up takes locks and may wait when memory is
short, and that is when the reading matters. Opening never blocks either, so that a FIFO or a
device put in place of the file is an error and not the end of the loop.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError, Unavailable, Unsupported

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_REASONS: Final[Mapping[int, str]] = {
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_found",
    errno.ENODEV: "not_found",
    errno.ESRCH: "not_found",
    errno.ESTALE: "not_found",
    errno.EISDIR: "not_a_file",
    errno.ESPIPE: "not_a_file",
    errno.ENXIO: "not_a_file",
    errno.EOPNOTSUPP: "not_supported",
    errno.EMFILE: "too_many_open_files",
    errno.ENFILE: "too_many_open_files",
}

_LONGEST_NUMBER: Final = 20
"""Digits of 2**64 - 1. The kernel prints no longer number."""

_INTEGER: Final = re.compile(rb"(-?\d{1,10})\n?")

_UNSAFE: Final = re.compile(rb"[^A-Za-z0-9_.:-]+")
_LONGEST_LABEL: Final = 48


def source_error(
    error: OSError, path: Path, *, absent: type[SourceError] = Unavailable
) -> SourceError:
    """Return the source error that says what ``error`` means for ``path``.

    Args:
        error: what the kernel answered.
        path: what was opened or read; it stands in the detail.
        absent: the class for a path that is not there. ``Unsupported`` where absence means that
            this machine does not have the thing.

    Returns:
        The error, not raised. EOPNOTSUPP is always ``Unsupported``; an error number without a
        name of ours keeps the kernel's in lower case (``eio``).
    """
    number = error.errno or 0
    reason = _REASONS.get(number) or errno.errorcode.get(number, "os_error").lower()
    detail = f"{path}: {error.strerror or error}"
    if reason == "not_supported":
        return Unsupported(reason, detail)
    return (absent if reason == "not_found" else Unavailable)(reason, detail)


def natural(word: bytes) -> int | None:
    """Return the number that ``word`` is, 0 or more, or ``None`` where it is anything else.

    Only ASCII digits count: no sign, no blank, no underscore, at most twenty of them.
    """
    return int(word) if word.isdigit() and len(word) <= _LONGEST_NUMBER else None


def integer(text: bytes) -> int | None:
    """Return the one number a sysfs attribute holds, or ``None`` where it holds anything else.

    Ten digits at most: a channel that is not wired up reads as 2**32 - 1 of some unit.
    """
    match = _INTEGER.fullmatch(text)
    return None if match is None else int(match[1])


def label(text: bytes) -> str | None:
    """Return ``text`` reduced to ``[A-Za-z0-9_.:-]{1,48}``, or ``None`` where nothing is left."""
    return _UNSAFE.sub(b"", text)[:_LONGEST_LABEL].decode("ascii") or None


def children(folder: Path, *, absent: type[SourceError] = Unavailable) -> list[str]:
    """Return the names in ``folder``, sorted.

    Raises:
        Unsupported, Unavailable: see :func:`source_error`.
    """
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted, not paths
    except OSError as error:
        raise source_error(error, folder, absent=absent) from error


def read_once(path: Path, *, limit: int = 32768) -> bytes:
    """Return the whole text of ``path``, with nothing kept open.

    Raises:
        Unsupported, Unavailable: see :func:`source_error`; ``too_large`` above the limit.
    """
    file = KeptFile(path, limit=limit)
    try:
        return file.read()
    finally:
        file.close()


class KeptFile:
    """A file that is opened at its first reading and kept open until :meth:`close`.

    Args:
        path: the file. Nothing is opened here.
        limit: the most bytes a reading may hold. A longer file is an error, never a cut-off text:
            the last number of a cut-off text is a wrong number.
        absent: the error class for a path that is not there.
    """

    __slots__ = ("_absent", "_descriptor", "_limit", "path")

    def __init__(
        self, path: Path, *, limit: int = 32768, absent: type[SourceError] = Unavailable
    ) -> None:
        self.path = path
        self._limit = limit
        self._absent = absent
        self._descriptor = -1

    def read(self) -> bytes:
        """Return the whole text as it is now.

        A descriptor that no longer answers (ESTALE, ENODEV, ESRCH), or whose file was removed or
        replaced, is closed and the path opened anew, once.

        Raises:
            Unsupported, Unavailable: see :func:`source_error`; ``too_large`` above the limit.
        """
        if self._descriptor >= 0:
            try:
                return self._whole()
            except OSError:
                self.close()
        try:
            self._descriptor = os.open(self.path, _FLAGS)
            return self._whole()
        except OSError as error:
            self.close()
            raise source_error(error, self.path, absent=self._absent) from error

    def close(self) -> None:
        """Close the descriptor if one is open; the next reading opens the path again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _whole(self) -> bytes:
        descriptor, limit = self._descriptor, self._limit
        text = os.pread(descriptor, limit, 0)
        # /proc hands out long tables a page at a time: only an empty answer is the end.
        while len(text) < limit and (more := os.pread(descriptor, limit - len(text), len(text))):
            text += more
        if len(text) >= limit:
            raise Unavailable("too_large", f"{self.path}: {limit} bytes or more")
        if os.fstat(descriptor).st_nlink == 0:
            raise OSError(errno.ESTALE, "removed or replaced")
        return text
