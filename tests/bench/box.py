"""The box that is measured: a scripted GB10 with eight GPU processes, and the daemon on it."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.stand import nvml_stand

PROCESSES: Final = 8
GIB: Final = 1024**3


class Box:
    """A scripted GB10 under load, moved on by :meth:`breathe`."""

    def __init__(self, directory: Path) -> None:
        self.nvml = nvml_stand.build(directory)
        self.stand = nvml_stand.gb10(directory / "gb10.box")
        self._random = random.Random(7)  # noqa: S311 - sensor noise, not a secret
        self._sleepers = [
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
            for _ in range(PROCESSES)
        ]
        gpu = self.stand.gpus[0]
        gpu.set_processes(
            compute=[
                (sleeper.pid, (4 + number) * GIB) for number, sleeper in enumerate(self._sleepers)
            ]
        )
        self.breathe()

    def breathe(self) -> None:
        """Move power, heat and clock a little, as a decoding server's do."""
        gpu = self.stand.gpus[0]
        gpu.power_milliwatts = self._random.randint(38_000, 44_000)
        gpu.temperature_celsius = self._random.randint(60, 62)
        gpu.sm_megahertz = self._random.choice((2489, 2496, 2502))
        gpu.utilization_percent = 96
        gpu.event_reasons = 0

    def environment(self) -> dict[str, str]:
        """The variables of a process that is to see this box."""
        return {**os.environ, **self.stand.environment(self.nvml)}

    def close(self) -> None:
        """End the processes."""
        for sleeper in self._sleepers:
            sleeper.kill()
            sleeper.wait()


@contextmanager
def daemon(box: Box, interpreter: str, *flags: str) -> Iterator[tuple[int, str, float]]:
    """Run the daemon on the box and yield its pid, its address and when it was started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = time.monotonic()
    process = subprocess.Popen(
        [interpreter, "-m", "spark_watch", "run", "--listen", f"127.0.0.1:{port}", *flags],
        env={**box.environment(), "MALLOC_ARENA_MAX": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid, f"http://127.0.0.1:{port}", started
    finally:
        process.terminate()
        process.wait(10)


def page(url: str) -> bytes:
    """Return the metrics page.

    Raises:
        OSError: nobody answers.
    """
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:  # noqa: S310 - our own
        body: bytes = answer.read()
    return body


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process so far, from their scheduler statistics."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def memory_bytes(pid: int) -> tuple[int, int]:
    """Return resident and proportional memory of a process."""
    sizes = {"Rss": 0, "Pss": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in sizes:
            sizes[name] = int(rest.split()[0]) * 1024
    return sizes["Rss"], sizes["Pss"]
