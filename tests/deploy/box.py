"""A small system with a real systemd as its first process, in which a unit can be tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

BOOT_SECONDS = 60.0
"""A boot takes one second here; a machine under load is given a minute."""


class Box:
    """One boot of the system under ``root``; every boot starts from the same clean tree.

    It has a network of its own with nothing but loopback, and the two capabilities that let it
    enforce a unit's device list and read the kernel log. What it cannot show is in the machine it
    runs on: memory limits and OOM priorities.

    Args:
        root: a system as ``tests/tools/make_box.sh`` makes it.
        binds: folders or files of this machine and where they appear, read-only.
        log: where the console's output goes.
    """

    def __init__(self, root: Path, *, binds: Mapping[Path, str], log: Path) -> None:
        with log.open("wb") as console:
            self._nspawn = subprocess.Popen(
                [
                    "systemd-nspawn",
                    "--quiet",
                    "--register=no",
                    "--keep-unit",
                    f"--directory={root}",
                    f"--machine=spark-watch-{os.getpid()}",
                    "--volatile=overlay",
                    "--private-network",
                    "--system-call-filter=bpf",
                    "--capability=CAP_BPF,CAP_SYSLOG",
                    *(f"--bind-ro={here}:{there}" for here, there in binds.items()),
                    "--boot",
                    "--console=pipe",
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            )
        try:
            wait_for(self._is_up, seconds=BOOT_SECONDS, what=f"the box to boot (see {log})")
        except BaseException:
            self.close()
            raise

    def _is_up(self) -> bool:
        return (
            self._first_process() is not None
            and self.run("systemctl", "is-system-running", "--wait").stdout.strip() == "running"
        )

    def _first_process(self) -> str | None:
        """Return the number of the box's first process as this machine counts."""
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children")
        try:
            return children.read_text().split()[0]
        except (IndexError, OSError):
            return None

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside as root and return what it printed."""
        return subprocess.run(
            ["nsenter", f"--target={self._first_process()}", "--all", *command],
            check=False,
            capture_output=True,
            text=True,
            timeout=BOOT_SECONDS,
        )

    def must(self, *command: str) -> str:
        """Run a command inside that has to succeed, and return its output."""
        done = self.run(*command)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, unit: str) -> None:
        """Start a unit, wait until it is ready, and fail with its log if it is not."""
        done = self.run("systemctl", "start", unit)
        assert done.returncode == 0, self.log(unit)

    def log(self, unit: str) -> str:
        """Return what a unit and its programs have written in this boot."""
        return self.must("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")

    def show(self, unit: str, key: str) -> str:
        """Return one property of a unit."""
        return self.must("systemctl", "show", unit, f"--property={key}", "--value").strip()

    def close(self) -> None:
        """End the box and everything in it."""
        if self._first_process() is not None:
            self.run("systemctl", "poweroff", "--force", "--force")
        try:
            self._nspawn.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()


def missing() -> str | None:
    """Return why no box can be started here, ``None`` where one can."""
    if os.geteuid() != 0:
        return "only root can start a system with its own systemd"
    for program in ("systemd-nspawn", "nsenter"):
        if shutil.which(program) is None:
            return f"no {program} here: apt install systemd-container"
    return None


def wait_for(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Return as soon as the condition holds; fail when it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.05)
