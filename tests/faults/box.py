"""A whole box for a daemon to fail on: its own proc and sys, a scripted driver, a state directory.

Every case ends with the same question: is each sample that the loop took on disk, and was the loop
ever late by two of its ticks?
"""

from __future__ import annotations

import itertools
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_watch.blackbox.ring import FOLDER, RingFolder
from spark_watch.blackbox.trace import read_trace
from spark_watch.model import Sample
from tests.conftest import ROOT
from tests.daemon.process import Running, running
from tests.stand.nvml_stand import NvmlStand

FIXTURES = ROOT / "tests" / "fixtures"


class FaultBox:
    """A GB10 on disk that a test may damage.

    Args:
        folder: where it is put.
        stand: the driver.
        library: its library.
    """

    def __init__(self, folder: Path, stand: NvmlStand, library: Path) -> None:
        self.stand = stand
        self.nvml = library
        self.proc = folder / "proc"
        self.sys = folder / "sys"
        self.kmsg = folder / "kmsg"
        self.state = folder / "state"
        shutil.copytree(FIXTURES / "proc" / "gb10", self.proc)
        shutil.copytree(FIXTURES / "sys" / "gb10", self.sys)
        self.kmsg.write_bytes(b"")
        self.interval_seconds = 0.5
        self.settings: dict[str, str] = {}

    @contextmanager
    def daemon(self) -> Iterator[Running]:
        """Run a daemon on the box."""
        variables = {
            "SPARK_WATCH_PROC_ROOT": str(self.proc),
            "SPARK_WATCH_SYS_ROOT": str(self.sys),
            "SPARK_WATCH_KMSG_PATH": str(self.kmsg),
            "SPARK_WATCH_STATE_DIR": str(self.state),
            "SPARK_WATCH_INTERVAL_SECONDS": str(self.interval_seconds),
            **self.settings,
            **self.stand.environment(self.nvml),
        }
        with running(variables=variables) as daemon:
            yield daemon

    def samples(self) -> list[Sample]:
        """Return every sample of the ring, in the order of writing.

        Nothing in it may be damaged but the last line of a run that was killed.
        """
        found: list[Sample] = []
        for segment in RingFolder(self.state / FOLDER).segments():
            with read_trace(segment.path) as reader:
                found += reader
                assert len(reader.skipped) <= 1
        return found

    def stop(self, daemon: Running) -> list[Sample]:
        """Stop the daemon cleanly and return its samples: all it took, and none of them late.

        Lateness is allowed below two ticks: that is what two lost ticks in a row would show.
        """
        daemon.signal(signal.SIGTERM)
        assert daemon.end() == 0
        *samples, mark = self.samples()
        assert mark.stopped
        assert len(samples) == daemon.event("stopping")["ticks"]
        assert self.longest_gap(samples) < 3.0 * self.interval_seconds
        return samples

    @staticmethod
    def longest_gap(samples: list[Sample]) -> float:
        """Return the longest time between two samples, on the clock that never steps."""
        times = [one.monotonic_seconds or 0.0 for one in samples]
        return max(later - earlier for earlier, later in itertools.pairwise(times))


def limit(daemon: Running, kind: int, value: int) -> None:
    """Put a limit on a running daemon; what the system allows at most stays as it is."""
    _, hard = resource.prlimit(daemon.process.pid, kind)
    soft = hard if value < 0 else value
    resource.prlimit(daemon.process.pid, kind, (soft, hard))
