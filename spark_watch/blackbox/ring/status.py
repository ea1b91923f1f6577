"""How the recorder fares, and the words for what a disk refuses."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_watch.model import EMPTY

REASONS: Final[Mapping[int, str]] = {
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "file_too_large",
    errno.EROFS: "read_only",
    errno.EIO: "io_error",
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_a_directory",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EMFILE: "too_many_open_files",
    errno.ENFILE: "too_many_open_files",
    errno.EAGAIN: "in_use",
}
"""What a system error means for a recording, short enough for a label."""


def reason_of(error: BaseException) -> str:
    """Return the reason of an error, or of the system error behind it, in snake case."""
    system = error if isinstance(error, OSError) else error.__cause__
    if isinstance(system, OSError) and system.errno is not None:
        return REASONS.get(system.errno, errno.errorcode.get(system.errno, "unknown").lower())
    return "short_write"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStatus:
    """How the recorder stands.

    Args:
        active: whether samples reach the disk.
        reason: why they do not, ``None`` while they do or before the first sample.
        size_bytes: of all segments.
        segments: how many there are.
        written_samples: written by this process.
        dropped_samples: that found no room in the queue, so that they were never written.
        last_sync_seconds: unix time at which everything written so far was known to be on disk.
        errors: failures by reason.
    """

    active: bool = False
    reason: str | None = None
    size_bytes: int = 0
    segments: int = 0
    written_samples: int = 0
    dropped_samples: int = 0
    last_sync_seconds: float | None = None
    errors: Mapping[str, int] = field(default_factory=lambda: EMPTY)
