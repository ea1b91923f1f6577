"""This machine as a feed: every source at its own pace, none able to delay the host's readings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from spark_watch.errors import SourceError, Unavailable
from spark_watch.model import Failure, GpuIdentity, Machine, Memory, Process, Sample
from spark_watch.sources.background import Background
from spark_watch.sources.boot import BootSource, kernel_release
from spark_watch.sources.buddyinfo import BuddyinfoSource
from spark_watch.sources.cpu import CpuSource
from spark_watch.sources.engines.reader import EngineReader
from spark_watch.sources.feed import Moment
from spark_watch.sources.kernel_log import KernelLogSource
from spark_watch.sources.mailbox import Mailbox
from spark_watch.sources.meminfo import MeminfoSource
from spark_watch.sources.nvml import NvmlReading, NvmlSource
from spark_watch.sources.pressure import PressureSource
from spark_watch.sources.processes import ProcessesSource, Server
from spark_watch.sources.progress import ProgressSource
from spark_watch.sources.rails import RailsSource
from spark_watch.sources.reading import Meter, Outcome, SourceHealth
from spark_watch.sources.thermal import ThermalSource
from spark_watch.sources.vmstat import VmstatSource

STACK_BYTES: Final = 256 * 1024
"""Stack of our threads: the default of 8 MiB would be locked into memory for nothing."""

PENDING_SECONDS: Final = 1.0
"""A call that is out for less than this is no news."""

LIST_SECONDS: Final = 30.0
"""A list older than this says nothing of who holds the GPU now: a call may be out for minutes."""

CANNOT_START: Final = frozenset(
    {"driver_not_loaded", "unknown", "gpu_not_found", "irq_issue", "operating_system"}
)
"""NVML's reasons (``nvml.h``) that blame the driver or the GPU where the device file is there.

A library that is missing or a file that may not be opened says nothing of either.
"""

WITH_DEVICE_NODE: Final = "_with_device_node"
"""How such a reason ends in a sample, so that a box without a GPU is not taken for a broken one."""

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
    "progress": "progress",
}
"""Which part of a sample each source fills here."""


@dataclass(frozen=True, slots=True)
class Listed:
    """NVML's last word on who holds the GPU: the list, ``None`` where it has none, and its age."""

    processes: tuple[Process, ...] | None
    age_seconds: float


class _Processes:
    """The process source with NVML's latest list as its question."""

    name = "processes"

    def __init__(self, source: ProcessesSource, listed: Callable[[], Listed | None]) -> None:
        self._source = source
        self._listed = listed
        self.servers: tuple[Server, ...] = ()
        """The servers among them, as of the last reading; another thread may look at it."""

    def read(self) -> tuple[Process, ...] | None:
        listed = self._listed()
        if listed is None:
            return None
        if listed.processes is None or listed.age_seconds > LIST_SECONDS:
            raise Unavailable("no_list_from_nvml")
        found = self._source.read(listed.processes)
        self.servers = self._source.servers()
        return found

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
        mailbox: the socket that workloads report to, not yet open; ``None`` for none.
        engines: whether the servers among the GPU's processes are asked.
        engine_urls: ``ENGINE=URL`` of servers to ask as well.
        engine_seconds: from one question to the next.
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
        mailbox: Mailbox | None = None,
        engines: bool = True,
        engine_urls: Sequence[str] = (),
        engine_seconds: float = 5.0,
    ) -> None:
        self.interval_seconds = interval_seconds
        self._nvml = nvml
        self._reading: NvmlReading | None = None
        self._list: tuple[Process, ...] | None = None
        self._list_at = float("-inf")
        self._nvml_success: float | None = None
        self._boot_id: str | None = None
        self.machine: Machine | None = None

        def paced(source: Any, seconds: float) -> Meter:
            return Meter(source, period_seconds=max(seconds, interval_seconds))

        def at_each_tick(source: Any) -> Meter:
            return Meter(source, period_seconds=0.0)

        self._memory = at_each_tick(MeminfoSource(proc_root=proc_root))
        self._quick = (
            self._memory,
            at_each_tick(VmstatSource(proc_root=proc_root)),
            at_each_tick(PressureSource(proc_root=proc_root)),
            at_each_tick(KernelLogSource(path=kmsg_path)),
            paced(BuddyinfoSource(proc_root=proc_root), 10.0),
            paced(BootSource(proc_root=proc_root), 60.0),
        )
        processes = _Processes(
            ProcessesSource(proc_root=proc_root, sys_root=sys_root), self._listed
        )
        self._progress = ProgressSource(
            mailbox=mailbox,
            engines=EngineReader(
                servers=(lambda: processes.servers) if engines else tuple,
                urls=engine_urls,
                period_seconds=max(engine_seconds, interval_seconds),
                proc_root=proc_root,
            ),
        )
        self._reports = Background((paced(self._progress, 1.0),), name="progress")
        self._background = Background(
            (
                paced(CpuSource(proc_root=proc_root, sys_root=sys_root), 2.0),
                paced(ThermalSource(sys_root=sys_root), 2.0),
                paced(RailsSource(sys_root=sys_root), 5.0),
                paced(processes, 2.0),
            )
        )
        self._kernel = _release(proc_root)

    def start(self) -> None:
        """Start the threads beside the loop."""
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._background.start()
            self._reports.start()
            self._progress.start()
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
        for outcome in (*self._background.take(), *self._reports.take()):
            self._put(outcome, parts, failed)
        reading = self._nvml.latest()
        if reading is not None and reading is not self._reading:
            self._reading = reading
            failed.extend(_failures(reading))
            if reading.gpus is not None:
                parts["gpus"] = reading.gpus
                self._nvml_success = reading.at_monotonic
            if reading.processes is not None:
                self._list, self._list_at = reading.processes, reading.at_monotonic
        self._note_machine(parts.get("memory"))
        return Sample(
            t=moment.t,
            monotonic_seconds=moment.monotonic,
            boottime_seconds=moment.boottime,
            boot_id=self._boot_id,
            failed=tuple(failed),
            late_seconds=moment.late_seconds,
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
            *(self._reported(meter, offset, pending) for meter in self._reports.meters),
        )

    def _reported(self, meter: Meter, offset: float, pending: Mapping[str, float]) -> SourceHealth:
        """Return the record of the workloads' reports, with what was refused among them."""
        health = meter.health(offset, pending.get(meter.name))
        return replace(health, errors={**health.errors, **self._progress.dropped()})

    def close(self) -> None:
        """Stop the threads, waiting for neither longer than half a second."""
        self._nvml.close()
        self._background.close()
        self._reports.close()
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
        for thread in (self._background, self._reports):
            slow = thread.pending()
            if slow is not None and slow[1] >= PENDING_SECONDS:
                pending[slow[0]] = round(slow[1], 1)
        return pending

    def _listed(self) -> Listed | None:
        """Return NVML's list; ``None`` while its first answer may still come at any moment."""
        now = time.monotonic()
        if self._reading is None and self._nvml.pending_seconds(now) is None:
            return None
        return Listed(self._list, now - self._list_at)

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


def _failures(reading: NvmlReading) -> Iterable[Failure]:
    """Return NVML's failures; one that NVML cannot start is told apart from a box without a GPU."""
    if reading.gpus is not None or not reading.device_node_present:
        return reading.failures
    return [
        replace(failure, reason=failure.reason + WITH_DEVICE_NODE)
        if failure.reason in CANNOT_START
        else failure
        for failure in reading.failures
    ]


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
