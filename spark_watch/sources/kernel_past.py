"""What the kernel log still says of the time before this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from spark_watch.sources.kernel_lines import killed_process, take_apart

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_BYTES: Final = 16384
_RECORDS: Final = 100_000
"""More than the kernel's buffer holds (a few MiB at most), so that the reading ends in any case."""


def was_oom_killed(pid: int, *, path: Path = Path("/dev/kmsg")) -> bool | None:
    """Return whether the kernel's OOM killer ended a process of this boot.

    ``None`` where the log cannot be read. ``False`` also where the line has been overwritten.

    Args:
        pid: of the process.
        path: the log, as ``/dev/kmsg`` gives it or as ``dmesg`` prints it.

    Source: https://docs.kernel.org/admin-guide/abi-testing.html (``dev-kmsg``)
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    rest = b""
    try:
        for _ in range(_RECORDS):
            try:
                text = os.read(descriptor, _BYTES)
            except BrokenPipeError:  # overwritten while we read; the next read goes on behind it
                continue
            if not text:
                break
            *lines, rest = (rest + text).split(b"\n")
            if any(_names(line, pid) for line in lines):
                return True
    except BlockingIOError:  # the end of the log
        pass
    except OSError:
        return None
    finally:
        with suppress(OSError):
            os.close(descriptor)
    return _names(rest, pid)


def _names(line: bytes, pid: int) -> bool:
    facility, _, message = take_apart(line)
    return facility == 0 and killed_process(message) == pid
