"""What one GPU is asked through NVML, and what its answers mean in base units.

Everything here is asked through the :class:`~spark_watch.sources.nvml_gate.Gate`. Where a call has
a deprecated and a current form, the current one is used (``nvml.h`` 13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pynvml

from spark_watch.errors import SourceError, Unavailable, Unsupported
from spark_watch.model import Gpu, GpuIdentity, Process
from spark_watch.sources.nvml_gate import Gate
from spark_watch.sources.nvml_units import CounterUnit

REASON_BITS: Final = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)
"""``nvmlClocksEventReason*`` from bit 0 upwards."""

_COUNTERS: Final = {74: "sw_power_cap", 76: "sync_boost"}
_NEWER_COUNTERS: Final = {
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake_slowdown",
}
_NEWER_SINCE: Final = (580, 82)
"""nvidia-ml-py 13.580.65 gives 269 to 271 to power smoothing, 13.580.82 and later to these three.
The numbers are written out so that neither an old binding nor an old driver can mix them up."""

_UNSIGNED_MEMBERS: Final = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
}
"""Member of ``nvmlValue_t`` by ``nvmlValueType_t``; no counter is of another type."""

_DEEPEST_PERFORMANCE_STATE: Final = 15
_SHARED_MEMORY_NAMES: Final = ("gb10", "n1x")
_SAME_SIZE: Final = 0.01

_DEVICE_LOST: Final = frozenset({"gpu_is_lost", "reset_required"})
_SESSION_LOST: Final = frozenset(
    {"uninitialized", "driver_not_loaded", "library_not_found", "lib_rm_version_mismatch"}
)

# Deprecated and to leave with CUDA 14; drivers older than its replacement need it until then.
_OLD_TEMPERATURE: Final = getattr(pynvml, "nvmlDeviceGetTemperature", None)


class DeviceLost(Unavailable):
    """This GPU answers nothing more until NVML is initialised anew."""


class SessionLost(Unavailable):
    """NVML as a whole answers nothing more until it is initialised anew."""


class Device:
    """One GPU, asked call by call; a call that fails costs its own value and nothing else.

    Args:
        gate: the way to NVML.
        handle: NVML's handle of the GPU.
        index: NVML's index.
        driver_version: decides which counters may be asked for.
        unit: the unit of this GPU's counters, kept while the driver is the same.

    Raises:
        DeviceLost: the GPU is gone, or does not even give its name: without it nothing can be
            judged, so it is tried again like a lost one.
        SessionLost: NVML is gone.
    """

    def __init__(
        self, gate: Gate, handle: Any, *, index: int, driver_version: str, unit: CounterUnit
    ) -> None:
        self.index = index
        self.failures: list[str] = []
        """Reasons of the calls that failed in this turn, in their order."""
        self.answers = 0
        """Calls that gave a value in this turn."""
        self._gate = gate
        self._handle = handle
        self._unit = unit
        self._counters = counters_of(driver_version)
        name = self._ask(pynvml.nvmlDeviceGetName)
        if name is None and self.failures:
            raise DeviceLost(self.failures[0])
        self.partitioned = self._split()
        """Whether the GPU is split into MIG instances; ``None`` where it could not be asked."""
        max_megahertz = self._ask(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)
        capability = self._ask(pynvml.nvmlDeviceGetCudaComputeCapability)
        self.identity = GpuIdentity(
            index=index,
            name=name,
            uuid=self._ask(pynvml.nvmlDeviceGetUUID),
            driver_version=driver_version,
            max_sm_hertz=None if max_megahertz is None else max_megahertz * 1e6,
            compute_capability=None if capability is None else tuple(capability),
        )

    def begin_turn(self) -> None:
        """Start counting answers and failures of one turn."""
        self.failures.clear()
        self.answers = 0

    def end_turn(self) -> None:
        """Return if the turn brought anything.

        Raises:
            DeviceLost: every call failed, which is how a GPU behaves whose driver was replaced.
        """
        if self.failures and self.answers == 0:
            raise DeviceLost(self.failures[0])

    def read(
        self, at: float, *, counters: bool, energy: bool, memory_total_bytes: int | None
    ) -> Gpu:
        """Return the GPU as it is now; a value that could not be read is ``None``.

        Args:
            at: monotonic seconds.
            counters: also read the event counters (0.5 to 1.3 ms on an H200, 2026-11-30).
            energy: also read the energy counter (2 to 18 ms there, the dearest call of all).
            memory_total_bytes: the host's memory, against which device memory is held.

        Raises:
            DeviceLost: this GPU is gone.
            SessionLost: NVML is gone.
        """
        milliwatts = self._ask(pynvml.nvmlDeviceGetPowerUsage)
        celsius = self._ask(pynvml.nvmlDeviceGetTemperatureV, pynvml.NVML_TEMPERATURE_GPU)
        if celsius is None and _OLD_TEMPERATURE is not None:
            celsius = self._ask(_OLD_TEMPERATURE, pynvml.NVML_TEMPERATURE_GPU)
        megahertz = self._ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)
        utilization = self._ask(pynvml.nvmlDeviceGetUtilizationRates)
        state = self._ask(pynvml.nvmlDeviceGetPerformanceState)
        mask = self._ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        reasons = None if mask is None else names_of(mask)
        raw = self._event_counters() if counters else None
        self._unit.feed(at, reasons, raw)
        total, used = self._memory(memory_total_bytes)
        millijoules = self._ask(pynvml.nvmlDeviceGetTotalEnergyConsumption) if energy else None
        return Gpu(
            index=self.index,
            power_watts=None if milliwatts is None else milliwatts / 1000,
            temperature_celsius=float(celsius) if celsius else None,  # 0 is NVML's "no sensor"
            sm_hertz=None if megahertz is None else megahertz * 1e6,
            utilization_ratio=None if utilization is None else utilization.gpu / 100,
            event_reasons=reasons,
            event_seconds=self._unit.seconds(raw) if raw else None,
            energy_joules=None if millijoules is None else millijoules / 1000,
            performance_state=(
                state if state is not None and state <= _DEEPEST_PERFORMANCE_STATE else None
            ),
            memory_total_bytes=total,
            memory_used_bytes=used,
        )

    def processes(self) -> list[tuple[int, str, int | None]] | None:
        """Return (pid, kind, bytes) once for each process, ``None`` where the list is not known.

        The compute list decides: without it no list is given, because one of graphics processes
        alone would read as if every server had ended. A process in two lists of one GPU is one
        process whose memory NVML gives twice; in two MIG instances it has memory in both.

        Raises:
            DeviceLost: this GPU is gone.
            SessionLost: NVML is gone.
        """
        compute = self._ask(pynvml.nvmlDeviceGetComputeRunningProcesses_v3)
        if compute is None:
            return None
        graphics = self._ask(pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3) or []
        try:
            mps = self._gate.call(
                pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, self._handle, gpu=self.index
            )
        except SourceError:
            mps = []  # few machines have any, and a driver that fails here fails above as well
        parts: dict[tuple[int, int, int], tuple[str, int | None]] = {}
        for kind, listed in (("graphics", graphics), ("compute", mps), ("compute", compute)):
            for entry in listed:
                part = (entry.pid, entry.gpuInstanceId, entry.computeInstanceId)
                known = parts.get(part, (kind, None))[1]
                parts[part] = (kind, larger(known, entry.usedGpuMemory))
        return [(part[0], kind, size) for part, (kind, size) in parts.items()]

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            value = self._gate.call(function, self._handle, *arguments, gpu=self.index)
        except Unsupported:
            return None
        except Unavailable as error:
            self._note(error)
            return None
        self.answers += 1
        return value

    def _note(self, error: Unavailable) -> None:
        """Keep why a call failed, unless it says that there is nothing left to ask."""
        if error.reason in _SESSION_LOST:
            raise SessionLost(error.reason, str(error)) from error
        if error.reason in _DEVICE_LOST:
            raise DeviceLost(error.reason, str(error)) from error
        self.failures.append(error.reason)

    def _split(self) -> bool | None:
        mode = self._ask(pynvml.nvmlDeviceGetMigMode)
        if mode is None:
            return None if self.failures else False
        return bool(mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE)

    def _event_counters(self) -> dict[str, int] | None:
        """Return raw totals by reason; each entry of the query can fail by itself."""
        wanted = [
            field
            for field in self._counters
            if self._gate.supports(f"field_{field}", gpu=self.index)
        ]
        values = self._ask(pynvml.nvmlDeviceGetFieldValues, wanted) if wanted else None
        totals = {}
        for entry in values or ():
            member = _UNSIGNED_MEMBERS.get(entry.valueType)
            if entry.nvmlReturn != pynvml.NVML_SUCCESS:
                what = f"field_{entry.fieldId}"
                error = self._gate.refusal(what, entry.nvmlReturn, gpu=self.index)
                if isinstance(error, Unavailable):
                    self._note(error)
            elif member is not None:
                totals[self._counters[entry.fieldId]] = int(getattr(entry.value, member))
        return totals or None

    def _memory(self, host_bytes: int | None) -> tuple[int, int] | tuple[None, None]:
        if self.partitioned is not False or shares_memory(self.identity.name):
            return None, None
        memory = self._ask(memory_info)
        if memory is None or not believable(memory.total, memory.used, host_bytes):
            return None, None
        return memory.total, memory.used


def memory_info(handle: Any) -> Any:
    """Ask for device memory in the form that does not count the driver's reserve as used."""
    return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)


def shares_memory(name: str | None) -> bool:
    """Return whether a GPU of this name has no memory of its own; a nameless one might not.

    A GB10 answers "not supported" (XuehaiPan/nvitop#208), an N1X small wrong numbers
    (unslothai/unsloth#10283). Neither is asked.
    """
    return name is None or any(word in name.lower() for word in _SHARED_MEMORY_NAMES)


def believable(total_bytes: int, used_bytes: int, host_bytes: int | None) -> bool:
    """Return whether these can be a GPU's own memory.

    They cannot where the total is nothing, less than what is used, or the host's memory within one
    per cent: then NVML speaks of the shared pool, which ``/proc/meminfo`` knows better.
    """
    if not 0 <= used_bytes <= total_bytes or total_bytes == 0:
        return False
    return host_bytes is None or abs(total_bytes / host_bytes - 1) > _SAME_SIZE


def larger(one: int | None, other: int | None) -> int | None:
    """Return the larger of two sizes, either of which may be unknown."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def names_of(mask: int) -> tuple[str, ...]:
    """Return the clock event reasons that stand in a mask; a bit without a name is ``bit_N``."""
    return tuple(
        REASON_BITS[bit] if bit < len(REASON_BITS) else f"bit_{bit}"
        for bit in range(mask.bit_length())
        if mask >> bit & 1
    )


def counters_of(driver_version: str) -> dict[int, str]:
    """Return the event counters that may be asked of this driver: field number to reason."""
    parts = driver_version.split(".")
    known = all(part.isdecimal() for part in parts)
    if known and tuple(map(int, parts)) >= _NEWER_SINCE:
        return _COUNTERS | _NEWER_COUNTERS
    return dict(_COUNTERS)


def merged(lists: Iterable[list[tuple[int, str, int | None]]]) -> tuple[Process, ...]:
    """Return one record for each process of all GPUs, by pid.

    Its memory is the sum over the GPUs and instances it is on, and unknown where one part is:
    a sum of the others would read as if it had shrunk. "compute" goes before "graphics".
    """
    kinds: dict[int, str] = {}
    sizes: dict[int, int | None] = {}
    for pid, kind, size in (entry for listed in lists for entry in listed):
        kinds[pid] = "compute" if "compute" in (kind, kinds.get(pid)) else kind
        before = sizes.get(pid, 0)
        sizes[pid] = None if before is None or size is None else before + size
    return tuple(Process(pid=pid, kind=kinds[pid], gpu_bytes=sizes[pid]) for pid in sorted(kinds))
