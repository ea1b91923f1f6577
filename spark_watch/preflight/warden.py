"""Runs one foreign program, bounded, and leaves nothing of it behind. A script of its own.

Started as ``python -I -S warden.py SECONDS MEMORY_BYTES PROGRAM ARGUMENT...``; it imports the
standard library alone. The program gets this script's standard input, no output, and the number of
a descriptor for its answers as its last argument. When it ends, or its time does, or whoever
started this script is gone, every process that came of it is killed, also those that left its
group: this script is the reaper of all of them (prctl(2), PR_SET_CHILD_SUBREAPER).

What happened is one JSON object on standard output: ``end`` (``exit``, ``signal``, ``timeout``,
``memory``, ``not_started``), ``value`` (exit code, signal, error text) and ``answers`` (the text
it wrote).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

SET_PARENT_DEATH_SIGNAL = 1
SET_CHILD_SUBREAPER = 36
"""Of ``linux/prctl.h``."""

ANSWER_LIMIT_BYTES = 1 << 16
LARGEST_FILE_BYTES = 1 << 20
"""Nobody here has anything to write; a library may want a small temporary file."""

DATA_BYTES = 32 << 30
"""Writable private memory that may be mapped; a CUDA context maps several times what it uses."""

CPU_SECONDS = 120
OPEN_FILES = 1024
MORE_THREADS = 1024
"""So many threads more than the machine has now, at most; the limit does not bind root."""

NO_CORE_BYTES = 1
"""One byte, and not none: that alone keeps the kernel from starting a crash handler for it.

Source: fs/coredump.c, ``cprm.limit == 1``.
"""

NOT_STARTED_EXIT = 127
STEP_SECONDS = 0.02
REAP_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Run, wait, kill, and say what happened."""
    seconds, memory_bytes, command = float(arguments[0]), int(arguments[1]), arguments[2:]
    deadline = time.monotonic() + seconds
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    libc.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    answers, answer_end = os.pipe()
    errors, error_end = os.pipe()
    threads = _threads()
    pid = os.fork()
    if pid == 0:
        _become(command, answer_end, error_end, threads)
    os.close(answer_end)
    os.close(error_end)
    text, status, greedy = b"", None, False
    while status is None and time.monotonic() < deadline and not (stopping or greedy):
        greedy = _touched(pid) > memory_bytes
        text += _read(answers, ANSWER_LIMIT_BYTES - len(text), STEP_SECONDS)
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            status = code
    _kill_all()
    while len(text) < ANSWER_LIMIT_BYTES and (more := _read(answers, 4096, 0.0)):
        text += more
    refused = _read(errors, 512, 0.0)
    end, value = ("memory", memory_bytes) if greedy else _end(status)
    if refused:
        end, value = "not_started", refused.decode("utf-8", "replace")
    said = {"end": end, "value": value, "answers": text.decode("utf-8", "replace")}
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(said))
        sys.stdout.flush()
    return 0


def _end(status: int | None) -> tuple[str, int | str]:
    if status is None:
        return "timeout", 0
    code = os.waitstatus_to_exitcode(status)
    return ("signal", -code) if code < 0 else ("exit", code)


def _touched(pid: int) -> int:
    """Return the memory of its own that a process has touched, 0 where that is not known.

    Source: proc(5), ``statm``: resident pages less those of files and shared memory.
    """
    try:
        words = Path(f"/proc/{pid}/statm").read_bytes().split()
        return (int(words[1]) - int(words[2])) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _become(command: list[str], answer_end: int, error_end: int, threads: int) -> None:
    """Turn this process into the program, or say why that cannot be and end."""
    try:
        os.setsid()
        # should this program kill its warden, it goes with it
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        for kind, limit in (
            (resource.RLIMIT_CORE, NO_CORE_BYTES),
            (resource.RLIMIT_CPU, CPU_SECONDS),
            (resource.RLIMIT_FSIZE, LARGEST_FILE_BYTES),
            (resource.RLIMIT_NOFILE, OPEN_FILES),
            (resource.RLIMIT_NPROC, threads + MORE_THREADS),
            (resource.RLIMIT_DATA, DATA_BYTES),
        ):
            _, hard = resource.getrlimit(kind)
            wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (wanted, wanted))
        os.nice(10)
        with contextlib.suppress(OSError):
            # should memory run out, this goes first and not what was running before
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.set_inheritable(answer_end, True)
        os.chdir("/")
        os.execv(command[0], [*command, str(answer_end)])  # noqa: S606 - that is the purpose
    except (OSError, ValueError) as error:
        os.write(error_end, str(error).encode()[:512])
    finally:
        os._exit(NOT_STARTED_EXIT)


def _read(descriptor: int, most: int, seconds: float) -> bytes:
    """Return what there is to read after a wait of at most that long; nothing when full."""
    if most <= 0:
        time.sleep(seconds)
        return b""
    ready, _, _ = select.select([descriptor], [], [], seconds)
    if not ready:
        return b""
    data = os.read(descriptor, most)
    if not data:
        time.sleep(seconds)
    return data


def _threads() -> int:
    """Return how many threads the machine has (proc(5), ``loadavg``)."""
    try:
        return int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _kill_all() -> None:
    """Kill every process below this one, and wait for them; none can hide by a new parent."""
    deadline = time.monotonic() + REAP_SECONDS
    while time.monotonic() < deadline:
        below = _below(os.getpid())
        # first all are stopped, so that none can start another while the rest is killed
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for pid in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sign)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(STEP_SECONDS / 4)


def _below(top: int) -> list[int]:
    """Return every process that descends from ``top``."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                stat = (place / "stat").read_bytes()
            except OSError:
                continue
            parent = int(stat.rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(place.name))
    found: list[int] = []
    frontier = [top]
    while frontier:
        new = children.get(frontier.pop(), [])
        found += new
        frontier += new
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
