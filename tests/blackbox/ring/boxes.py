"""A ring whose time is the test's, and samples to put into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_watch.blackbox.ring import RingFolder, RingWriter
from spark_watch.blackbox.trace import TraceHeader, read_trace
from spark_watch.model import GIB, Machine, Memory, Sample

BOOT = "11111111-1111-4111-8111-111111111111"
OTHER_BOOT = "22222222-2222-4222-8222-222222222222"
START = 1_800_000_000.0
"""Unix seconds of the moment from which tests count."""

UPTIME = {BOOT: 1_000_000.0, OTHER_BOOT: 500_000.0}
"""What the monotonic clock of a boot shows at that moment; a later boot's shows less."""

MIB = 1024 * 1024

MACHINE = Machine(gpu_name="NVIDIA GB10", memory_total_bytes=128 * GIB)


def sample(second: float, *, boot: str = BOOT, **parts: Any) -> Sample:
    """Return a sample so many seconds after the start, 40 GiB available unless said otherwise."""
    parts.setdefault("memory", Memory(total_bytes=128 * GIB, available_bytes=40 * GIB))
    up = UPTIME.get(boot, 750_000.0) + second
    return Sample(
        t=START + second,
        monotonic_seconds=up,
        boottime_seconds=up,
        boot_id=boot,
        machine=MACHINE,
        **parts,
    )


class Clock:
    """Monotonic seconds that move when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Disk:
    """Counts syncs, and refuses them when told."""

    def __init__(self) -> None:
        self.syncs = 0
        self.error: OSError | None = None

    def __call__(self, descriptor: int) -> None:
        """Sync, or refuse."""
        del descriptor
        if self.error is not None:
            raise self.error
        self.syncs += 1


class Box:
    """A writer that is stepped by the test, without a thread."""

    def __init__(self, folder: Path, *, max_bytes: int = 64 * MIB, **more: Any) -> None:
        self.clock = Clock()
        self.disk = Disk()
        self.folder = folder
        self.writer = RingWriter(
            folder,
            TraceHeader(interval_seconds=1.0, machine=MACHINE, recorder="spark-watch"),
            max_bytes=max_bytes,
            sync=self.disk,
            clock=self.clock,
            wall=lambda: START + self.clock.now,
            **more,
        )

    def put(self, one: Sample, *, urgent: bool = False) -> None:
        """Put one sample and let the writer work, a second later."""
        self.clock.now += 1.0
        self.writer.put(one, urgent=urgent)
        self.writer.step()

    def fill(self, count: int, *, first: int = 0, boot: str = BOOT) -> None:
        """Put so many samples, a second apart."""
        for second in range(first, first + count):
            self.put(sample(second, boot=boot))

    def kill(self) -> None:
        """Let go of the files, as the end of the process does; what is written stays."""
        self.writer._give_back()

    def close(self, last: Sample | None = None) -> None:
        """End like a clean stop where there is a last sample, else without its mark."""
        if last is not None:
            self.writer.put(last, urgent=True)
        self.writer.close()
        self.writer.step()


def times(folder: Path) -> list[float]:
    """Return the seconds of every sample that a ring holds, in its order."""
    found = []
    for segment in RingFolder(folder).segments():
        with read_trace(segment.path) as reader:
            found += [round(one.t - START, 3) for one in reader]
    return found
