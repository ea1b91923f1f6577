"""Keeping the daemon in memory when the machine pages out everything else."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MCL_CURRENT: Final = 1
MCL_FUTURE: Final = 2
MCL_ONFAULT: Final = 4
"""Lock pages as they are touched. Locking whole mappings would fill them first: 145 MiB with a
dozen threads (our measurement, 2026-11-30).

Source: mlockall(2)
"""

M_ARENA_MAX: Final = -8
"""mallopt(3): how many heaps the C library makes for its threads."""

CAP_IPC_LOCK: Final = 14
"""capabilities(7): locks memory whatever the limit says."""

REFUSALS: Final = {
    errno.EPERM: "permission_denied",
    errno.ENOMEM: "limit",
    errno.EAGAIN: "limit",
    errno.EINVAL: "not_supported",
    errno.ENOSYS: "not_supported",
}


@dataclass(frozen=True, slots=True)
class MemoryLock:
    """Whether the memory is locked, and why not."""

    locked: bool
    reason: str | None = None


def keep_one_heap() -> None:
    """Let all threads of this process share one heap, so that little of it is ever locked.

    Only threads that start afterwards are bound by it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's own; musl has one heap anyway
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


def lock_memory(
    *,
    proc_root: Path = Path("/proc"),
    library: Callable[[], Any] = lambda: ctypes.CDLL(None, use_errno=True),
) -> MemoryLock:
    """Keep every page this process touches, now and later, in memory until it ends.

    Asked for only where no limit can be met later: under a limit the lock itself may succeed, and
    then every allocation beyond the limit fails, which would end the daemon.

    Returns:
        ``limit`` as the reason where ``RLIMIT_MEMLOCK`` is bounded and ``CAP_IPC_LOCK`` missing;
        ``not_supported`` where the kernel does not know lock on fault (before 4.4).
    """
    if not _has_capability(proc_root) and not _raise_limit():
        return MemoryLock(locked=False, reason="limit")
    if library().mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0:
        return MemoryLock(locked=True)
    number = ctypes.get_errno()
    reason = REFUSALS.get(number, errno.errorcode.get(number, "unknown").lower())
    return MemoryLock(locked=False, reason=reason)


def _raise_limit() -> bool:
    """Raise the soft limit as far as the hard one; return whether there is none any more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
        except (OSError, ValueError):  # a sandbox may forbid even that
            return False
    return hard == resource.RLIM_INFINITY


def _has_capability(proc_root: Path) -> bool:
    """Whether this process may lock without limit.

    Source: proc_pid_status(5), ``CapEff``
    """
    try:
        text = (proc_root / str(os.getpid()) / "status").read_text()
    except OSError:
        return False
    for line in text.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> CAP_IPC_LOCK & 1)
    return False
