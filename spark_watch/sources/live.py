"""This machine as a feed: every source at its own pace, none able to delay the host's readings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from spark_watch.errors import SourceError
from spark_watch.model import Failure, GpuIdentity, Machine, Memory, Process, Sample
from spark_watch.sources.background import Background
from spark_watch.sources.boot import BootSource, kernel_release
from spark_watch.sources.buddyinfo import BuddyinfoSource
from spark_watch.sources.cpu import CpuSource
from spark_watch.sources.feed import Moment
from spark_watch.sources.kernel_log import KernelLogSource
from spark_watch.sources.meminfo import MeminfoSource
from spark_watch.sources.nvml import NvmlReading, NvmlSource
from spark_watch.sources.pressure import PressureSource
from spark_watch.sources.processes import ProcessesSource
from spark_watch.sources.rails import RailsSource
from spark_watch.sources.reading import Meter, Outcome, SourceHealth
from spark_watch.sources.thermal import ThermalSource
from spark_watch.sources.vmstat import VmstatSource

STACK_BYTES: Final = 256 * 1024
"""Stack of our threads: the default of 8 MiB would be locked into memory for nothing."""

PENDING_SECONDS: Final = 1.0
"""A call that is out for less than this is no news."""

PARTS: Final = {
    "meminfo": "memory",
    "vmstat": "vm",
    "pressure": "pressure",
    "kernel_log": "kernel",
    "cpu": "cpu",
    "buddyinfo": "free_blocks",
    "thermal": "zones",
    "rails": "rails",
    "processes": "processes",
}
"""Which part of a sample each source fills here."""


class _Processes:
    """The process source with NVML's latest list as its question."""

    name = "processes"

    def __init__(
        self, source: ProcessesSource, listed: Callable[[], tuple[Process, ...] | None]
    ) -> None:
        self._source = source
        self._listed = listed

    def read(self) -> tuple[Process, ...] | None:
        listed = self._listed()
        return None if listed is None else self._source.read(listed)

    def close(self) -> None:
        self._source.close()


class LiveFeed:
    """Samples of this machine.

    The host's small files are read by the caller's thread, since they never block; NVML has its own
    thread, and everything that may wait on another process or on firmware shares a third one.

    Args:
        interval_seconds: seconds between two samples.
        proc_root: where proc is mounted.
        sys_root: where sysfs is mounted.
        kmsg_path: the kernel log.
        nvml: the NVML source, not yet started.
    """

    origin = "live"
    own_recording = True

    def __init__(
        self,
        *,
        interval_seconds: float,
        proc_root: Path,
        sys_root: Path,
        kmsg_path: Path,
        nvml: NvmlSource,
    ) -> None:
        self.interval_seconds = interval_seconds
        self._nvml = nvml
        self._reading: NvmlReading | None = None
        self._processes: tuple[Process, ...] | None = None
        self._nvml_success: float | None = None
        self._boot_id: str | None = None
        self.machine: Machine | None = None

        def paced(source: Any, seconds: float) -> Meter:
            return Meter(source, period_seconds=max(seconds, interval_seconds))

        self._memory = paced(MeminfoSource(proc_root=proc_root), 0.0)
        self._boot = paced(BootSource(proc_root=proc_root), 60.0)
        self._quick = (
            self._memory,
            paced(VmstatSource(proc_root=proc_root), 0.0),
            paced(PressureSource(proc_root=proc_root), 0.0),
            paced(KernelLogSource(path=kmsg_path), 0.0),
            paced(BuddyinfoSource(proc_root=proc_root), 10.0),
            self._boot,
        )
        self._background = Background(
            (
                paced(CpuSource(proc_root=proc_root, sys_root=sys_root), 2.0),
                paced(ThermalSource(sys_root=sys_root), 2.0),
                paced(RailsSource(sys_root=sys_root), 5.0),
                paced(
                    _Processes(
                        ProcessesSource(proc_root=proc_root, sys_root=sys_root), self._listed
                    ),
                    2.0,
                ),
            )
        )
        self._kernel = _release(proc_root)

    def start(self) -> None:
        """Start the two threads beside the loop."""
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._background.start()
        finally:
            threading.stack_size(usual)
        self._nvml.start()

    def read(self, moment: Moment) -> Sample:
        """Return what is due and what the threads have brought since the last sample."""
        parts: dict[str, Any] = {}
        failed: list[Failure] = []
        for meter in self._quick:
            if meter.due(moment.monotonic):
                self._put(meter.read(), parts, failed)
        for outcome in self._background.take():
            self._put(outcome, parts, failed)
        reading = self._nvml.latest()
        if reading is not None and reading is not self._reading:
            self._reading = reading
            failed.extend(reading.failures)
            if reading.gpus is not None:
                parts["gpus"] = reading.gpus
            if reading.processes is not None or reading.failures:
                self._processes = reading.processes
        self._note_machine(parts.get("memory"))
        return Sample(
            t=moment.t,
            monotonic_seconds=moment.monotonic,
            boottime_seconds=moment.boottime,
            boot_id=self._boot_id,
            failed=tuple(failed),
            pending=self._pending(),
            machine=self.machine,
            **parts,
        )

    def read_memory(self, moment: Moment) -> Sample | None:
        """Return a sample of the pool alone, read now."""
        parts: dict[str, Any] = {}
        failed: list[Failure] = []
        self._put(self._memory.read(), parts, failed)
        return Sample(
            t=moment.t,
            monotonic_seconds=moment.monotonic,
            boottime_seconds=moment.boottime,
            boot_id=self._boot_id,
            failed=tuple(failed),
            machine=self.machine,
            **parts,
        )

    def identities(self) -> tuple[GpuIdentity, ...]:
        """Return the GPUs as they were last seen."""
        return self._reading.identities if self._reading is not None else ()

    def health(self) -> tuple[SourceHealth, ...]:
        """Return how every source has fared, NVML first."""
        offset = time.time() - time.monotonic()
        pending = self._pending()
        return (
            self._nvml_health(offset, pending.get("nvml")),
            *(
                meter.health(offset, pending.get(meter.name))
                for meter in (*self._quick, *self._background.meters)
            ),
        )

    def close(self) -> None:
        """Stop the threads, waiting for neither longer than half a second."""
        self._nvml.close()
        self._background.close()
        for meter in self._quick:
            meter.source.close()

    def _put(self, outcome: Outcome, parts: dict[str, Any], failed: list[Failure]) -> None:
        """Place what a source answered: a value in its part, a failure among the failures."""
        if outcome.failure is not None:
            failed.append(outcome.failure)
        elif outcome.source == "boot":
            self._boot_id = outcome.value
        elif outcome.value is not None:
            parts[PARTS[outcome.source]] = outcome.value

    def _pending(self) -> dict[str, float]:
        """Return the calls that are out for long enough to be news."""
        pending = {}
        now = time.monotonic()
        nvml = self._nvml.pending_seconds(now)
        if nvml is not None:
            pending["nvml"] = round(nvml, 1)
        slow = self._background.pending()
        if slow is not None and slow[1] >= PENDING_SECONDS:
            pending[slow[0]] = round(slow[1], 1)
        return pending

    def _listed(self) -> tuple[Process, ...] | None:
        """Return NVML's processes, ``None`` where nothing is known of them."""
        return self._processes

    def _note_machine(self, memory: Memory | None) -> None:
        """Describe the machine anew where more is known of it than before."""
        reading = self._reading
        total = memory.total_bytes if memory is not None else None
        if total is None and self.machine is not None:
            total = self.machine.memory_total_bytes
        machine = Machine(
            gpu_name=reading.gpu_name if reading else None,
            driver_version=reading.driver_version if reading else None,
            gpu_count=reading.gpu_count if reading else None,
            partitioned=reading.partitioned if reading else None,
            kernel=self._kernel,
            memory_total_bytes=total,
        )
        if machine != self.machine:
            self.machine = machine

    def _nvml_health(self, offset: float, pending: float | None) -> SourceHealth:
        reading = self._reading
        failures = reading.failures if reading is not None else ()
        good = reading is not None and reading.gpus is not None
        if good and reading is not None:
            self._nvml_success = reading.at_monotonic
        return SourceHealth(
            source="nvml",
            success=None if reading is None else good and pending is None,
            reason=failures[0].reason if failures else "late" if pending is not None else None,
            duration_seconds=self._nvml.last_duration_seconds,
            last_success_seconds=None
            if self._nvml_success is None
            else self._nvml_success + offset,
            pending_seconds=pending,
            errors=dict(self._nvml.errors),
        )


def _release(proc_root: Path) -> str | None:
    try:
        return kernel_release(proc_root=proc_root)
    except SourceError:
        return None


def memory_total(proc_root: Path) -> int | None:
    """Return ``MemTotal`` in bytes, ``None`` where it cannot be read."""
    source = MeminfoSource(proc_root=proc_root)
    try:
        return source.read().total_bytes
    except SourceError:
        return None
    finally:
        source.close()
