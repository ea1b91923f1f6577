"""Locking memory: done where it is safe, refused with a reason elsewhere."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from spark_watch.daemon.memory_lock import MemoryLock, keep_one_heap, lock_memory

ALL = "CapEff:\t000001ffffffffff\n"
NONE = "CapEff:\t0000000000000000\n"


class Library:
    """A C library whose ``mlockall`` answers as it is told."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.flags: list[int] = []

    def mlockall(self, flags: int) -> int:
        """Note the flags and answer."""
        self.flags.append(flags)
        ctypes.set_errno(self.number)
        return -1 if self.number else 0


def proc(folder: Path, capabilities: str) -> Path:
    """Return a proc tree in which this process has these capabilities."""
    own = folder / str(os.getpid())
    own.mkdir()
    (own / "status").write_text(f"Name:\tpython3\n{capabilities}Seccomp:\t0\n")
    return folder


def test_pages_are_locked_as_they_are_touched(tmp_path: Path) -> None:
    """With the capability everything, now and later, is locked on fault (flags 1, 2 and 4)."""
    library = Library()
    done = lock_memory(proc_root=proc(tmp_path, ALL), library=lambda: library)
    assert done == MemoryLock(locked=True)
    assert library.flags == [7]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EPERM, "permission_denied"),
        (errno.ENOMEM, "limit"),
        (errno.EINVAL, "not_supported"),
        (errno.EIO, "eio"),
    ],
)
def test_a_refusal_is_named(tmp_path: Path, number: int, reason: str) -> None:
    """What the kernel says becomes a reason; nothing is raised."""
    done = lock_memory(proc_root=proc(tmp_path, ALL), library=lambda: Library(number))
    assert done == MemoryLock(locked=False, reason=reason)


@pytest.mark.parametrize("capabilities", [NONE, ""], ids=["without", "unreadable"])
def test_under_a_limit_nothing_is_asked_for(
    tmp_path: Path, capabilities: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary user's 8 MiB are no place for a lock that would fail later allocations."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, 8 << 20))
    library = Library()
    done = lock_memory(proc_root=proc(tmp_path, capabilities), library=lambda: library)
    assert done == MemoryLock(locked=False, reason="limit")
    assert library.flags == []


def test_a_limit_that_may_be_raised_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bounded soft limit under an unbounded hard one is no limit."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    done = lock_memory(proc_root=proc(tmp_path, NONE), library=Library)
    assert done.locked
    assert limits == [(resource.RLIM_INFINITY, resource.RLIM_INFINITY)]


def test_a_sandbox_that_forbids_raising_it_is_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the limit may not be touched the lock is refused, and the daemon goes on."""

    def refuse(_: int, __: tuple[int, int]) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert lock_memory(proc_root=proc(tmp_path, NONE), library=Library).reason == "limit"


def test_the_real_thing_locks_or_says_why() -> None:
    """In a process of its own the kernel's figure of locked memory agrees with the answer."""
    code = (
        "from spark_watch.daemon.memory_lock import keep_one_heap, lock_memory;"
        "keep_one_heap(); done = lock_memory();"
        "text = open('/proc/self/status').read();"
        "locked = int(text.split('VmLck:')[1].split()[0]);"
        "assert (locked > 0) == done.locked, (locked, done)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_one_heap_can_be_asked_for_anywhere() -> None:
    """Asking is harmless, here too."""
    keep_one_heap()
