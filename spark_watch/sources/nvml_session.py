"""NVML from its start to its loss and back again, read by one caller.

It is begun anew when the driver goes away, is replaced, or loses a GPU: after 1, 2, 4 and so on up
to 60 seconds. What the old driver did not support is then asked of the new one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pynvml

from spark_watch.errors import SourceError
from spark_watch.model import Failure, Gpu, GpuIdentity, Process
from spark_watch.sources.nvml_calls import Device, DeviceLost, SessionLost, merged
from spark_watch.sources.nvml_gate import Gate
from spark_watch.sources.nvml_units import CounterUnit

FIRST_RETRY_SECONDS: Final = 1.0
LAST_RETRY_SECONDS: Final = 60.0
"""Also the pace at which a library that is not there is looked for: a driver may be installed."""

COUNTERS_SECONDS: Final = 5.0
"""Event counters are judged by their share of ten minutes, and each reading costs about 1 ms."""
ENERGY_SECONDS: Final = 10.0
PROCESSES_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlReading:
    """Everything NVML said in one turn.

    Args:
        at_monotonic: when the turn began, so that no value is older than it says.
        gpus: those that answered; ``None`` where none did. ``event_seconds`` and ``energy_joules``
            come every 5 and 10 seconds and are ``None`` in between.
        processes: one record each; ``None`` where the list was not due or is not known.
        identities: the GPUs as they were last seen, lost ones included.
        gpu_name: of the first GPU, as last seen, like the rest of what describes the machine.
        partitioned: whether any GPU is split into MIG instances.
        device_node_present: whether the driver has made its first device file: NVML that cannot
            start beside it is a fault, without it there may be no GPU.
        failures: one for each reason; "not supported" is no failure.
    """

    at_monotonic: float
    gpus: tuple[Gpu, ...] | None = None
    processes: tuple[Process, ...] | None = None
    identities: tuple[GpuIdentity, ...] = ()
    gpu_name: str | None = None
    driver_version: str | None = None
    gpu_count: int | None = None
    partitioned: bool | None = None
    device_node_present: bool = False
    failures: tuple[Failure, ...] = ()


class Pace:
    """Says when something is due that is not read every turn.

    Args:
        seconds: at most this often.
        slack_seconds: a turn this much too early will do, so that jitter does not skip one.
    """

    def __init__(self, seconds: float, *, slack_seconds: float) -> None:
        self._seconds = seconds
        self._slack_seconds = slack_seconds
        self._next = 0.0

    def due(self, now: float) -> bool:
        """Return whether it is time, and if so start waiting for the next time."""
        if now < self._next - self._slack_seconds:
            return False
        self._next = now + self._seconds
        return True


class NvmlSession:
    """Reads every GPU, turn by turn, and begins anew when NVML or a GPU is lost.

    Args:
        gate: the way to NVML.
        period_seconds: how often :meth:`read` will be called.
        memory_total_bytes: ``MemTotal``, to tell device memory from the shared pool.
        device_node: the driver's first device file.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        period_seconds: float = 1.0,
        memory_total_bytes: int | None = None,
        device_node: Path = Path("/dev/nvidia0"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gate = gate
        self._memory_total_bytes = memory_total_bytes
        self._device_node = device_node
        self._clock = clock
        slack = period_seconds / 2
        self._counters = Pace(COUNTERS_SECONDS, slack_seconds=slack)
        self._energy = Pace(ENERGY_SECONDS, slack_seconds=slack)
        self._processes = Pace(PROCESSES_SECONDS, slack_seconds=slack)

        self._open = False
        self._devices: list[Device] = []
        self._session_lost: str | None = None
        self._devices_lost: dict[int, str] = {}
        self._begin_at: float | None = -math.inf
        self._retry_seconds = FIRST_RETRY_SECONDS

        self._units: dict[int, CounterUnit] = {}
        self._identities: dict[int, GpuIdentity] = {}
        self._driver_version: str | None = None
        self._gpu_count: int | None = None
        self._partitioned: bool | None = None

    def read(self) -> NvmlReading:
        """Return one reading of everything that is due; begin a session first where one is due.

        Returns however NVML behaves, unless a call does not come back.
        """
        at = self._clock()
        if self._begin_at is not None and at >= self._begin_at:
            self._begin()
        gpus: list[Gpu] = []
        processes: tuple[Process, ...] | None = None
        failures: dict[str, None] = {}
        try:
            gpus, processes = self._read_devices(at, failures)
        except SessionLost as error:
            self._lose(error.reason)
        if self._begin_at is None:
            self._retry_seconds = FIRST_RETRY_SECONDS
        return self._reading(at, gpus, processes, failures)

    def lose(self, at: float, reason: str) -> NvmlReading:
        """Take the session for lost and return the reading that says so.

        For whoever calls :meth:`read` and sees it raise; the session is begun anew as after any
        other loss.
        """
        self._lose(reason)
        return self._reading(at)

    def _reading(
        self,
        at: float,
        gpus: Iterable[Gpu] = (),
        processes: tuple[Process, ...] | None = None,
        failures: Iterable[str] = (),
    ) -> NvmlReading:
        if self._session_lost is None:
            told = dict.fromkeys((*failures, *self._devices_lost.values()))
        else:
            told = {self._session_lost: None}
        return NvmlReading(
            at_monotonic=at,
            gpus=tuple(gpus) or None,
            processes=processes,
            identities=tuple(self._identities.values()),
            gpu_name=next((known.name for known in self._identities.values()), None),
            driver_version=self._driver_version,
            gpu_count=self._gpu_count,
            partitioned=self._partitioned,
            device_node_present=is_there(self._device_node),
            failures=tuple(Failure(source="nvml", reason=reason) for reason in told),
        )

    def close(self) -> None:
        """Give NVML back, if it was begun and lets us."""
        self._devices = []
        if self._open:
            self._open = False
            with suppress(SourceError):
                self._gate.call(pynvml.nvmlShutdown)

    def _begin(self) -> None:
        """Start NVML and take hold of every GPU; what fails is kept as the loss it is."""
        self.close()
        self._session_lost, self._devices_lost, self._begin_at = None, {}, None
        try:
            self._gate.call(pynvml.nvmlInit)
            self._open = True
            version = self._gate.call(pynvml.nvmlSystemGetDriverVersion)
            if version != self._driver_version:
                self._gate.forget()
                self._units.clear()
                self._driver_version = version
            self._gpu_count = count = self._gate.call(pynvml.nvmlDeviceGetCount)
            if count == 0:
                raise SessionLost("gpu_not_found")
            for index in range(count):
                self._take(index, version)
        except SourceError as error:
            self._lose(error.reason)
            return
        known = {device.index: device.identity for device in self._devices}
        self._identities = {
            index: identity
            for index, identity in sorted((self._identities | known).items())
            if index < count
        }
        answers = {device.partitioned for device in self._devices}
        if answers:
            self._partitioned = True if True in answers else None if None in answers else False

    def _take(self, index: int, version: str) -> None:
        try:
            handle = self._gate.call(pynvml.nvmlDeviceGetHandleByIndex, index)
            unit = self._units.setdefault(index, CounterUnit())
            device = Device(self._gate, handle, index=index, driver_version=version, unit=unit)
        except SessionLost:
            raise
        except SourceError as error:
            self._devices_lost[index] = error.reason
            self._retry(self._retry_seconds)
        else:
            self._devices.append(device)

    def _read_devices(
        self, at: float, failures: dict[str, None]
    ) -> tuple[list[Gpu], tuple[Process, ...] | None]:
        """Read what is due of every GPU that is there and collect why calls failed.

        Processes are ``None`` unless every GPU gave its list: one that ended and one that could not
        be seen would look alike.
        """
        if not self._devices:
            return [], None
        counters, energy = self._counters.due(at), self._energy.due(at)
        wanted = self._processes.due(at)
        gpus, lists = [], []
        for device in tuple(self._devices):
            device.begin_turn()
            try:
                gpu = device.read(
                    at,
                    counters=counters,
                    energy=energy,
                    memory_total_bytes=self._memory_total_bytes,
                )
                listed = device.processes() if wanted else None
                device.end_turn()
            except DeviceLost as error:
                self._devices.remove(device)
                self._devices_lost[device.index] = error.reason
                self._retry(self._retry_seconds)
                continue
            gpus.append(gpu)
            failures |= dict.fromkeys(device.failures)
            if listed is not None:
                lists.append(listed)
        complete = len(lists) == len(gpus) > 0 and not self._devices_lost
        return gpus, merged(lists) if complete else None

    def _lose(self, reason: str) -> None:
        """Take the session for lost: every reading says so until one is begun anew."""
        self._devices = []
        self._session_lost = reason
        self._retry(LAST_RETRY_SECONDS if reason == "library_not_found" else self._retry_seconds)

    def _retry(self, seconds: float) -> None:
        """Begin anew after this time, and after twice as long the next time; one wait at a time."""
        if self._begin_at is None:
            self._begin_at = self._clock() + seconds
            self._retry_seconds = min(2 * seconds, LAST_RETRY_SECONDS)


def is_there(path: Path) -> bool:
    """Return whether a file is there and may be seen."""
    try:
        path.stat()
    except OSError:
        return False
    return True
