"""Runs in the daemon's place under its unit and prints what it was allowed to do.

An answer is ``done`` or the name of the error, such as ``EPERM``.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

READ = (
    "/dev/nvidia0",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/kmsg",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/buddyinfo",
    "/proc/1/stat",
    "/proc/1/status",
    "/proc/1/cmdline",
    "/proc/1/environ",
    "/sys/fs/cgroup/cgroup.controllers",
    "/proc/sys/kernel/random/boot_id",
    "/home",
)
WRITE = ("/var/lib/spark-watch/probe", "/run/spark-watch/probe", "/etc/probe", "/opt/probe")
LOAD = ("prometheus_client", "psutil", "pydantic_settings", "pynvml", "structlog")


def said(action: Callable[[str], object], path: str) -> str:
    """Return what came of an action."""
    try:
        action(path)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def read(path: str) -> None:
    """Read the beginning of a file or device, without waiting for more."""
    os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 8192)


def write(path: str) -> None:
    """Write a file."""
    Path(path).write_text("x")


def main() -> None:
    """Try everything once."""
    sys.path.insert(0, "/opt/spark-watch/lib")
    status = dict(
        line.split(":", maxsplit=1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    answers = {
        **{f"read {path}": said(read, path) for path in READ},
        **{f"write {path}": said(write, path) for path in WRITE},
        **{f"load {name}": importlib.import_module(name).__name__ for name in LOAD},
        "capabilities": status["CapEff"].strip(),
        "ordinary user": os.getuid() != 0,
    }
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
