"""A whole GPU box on a machine that has none: the real NVML ABI, values from a script.

:func:`build` compiles ``nvml/*.c`` against NVIDIA's own ``nvml.h`` into ``libnvidia-ml.so.1``. An
unmodified ``pynvml`` opens that soname and nothing else, so there are two ways in:

* another process: start it with :meth:`NvmlStand.environment` (``LD_LIBRARY_PATH`` is read once,
  when a process starts, so setting it later does nothing);
* this process: :func:`load` opens the library by its full path. From then on the loader answers the
  bare soname with the library that already carries it, whether or not a real driver is installed.

The box is a file that both sides map: what is written to :attr:`NvmlStand.gpus` is what the very
next call returns. Single numbers are written whole; a set of them is not one transaction.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import mmap
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final

SOURCES: Final = Path(__file__).parent / "nvml"
LIBRARY: Final = "libnvidia-ml.so.1"
VARIABLE: Final = "NVML_STAND_FILE"
"""The environment variable in which the library finds the box."""

UNSIGNED_LONG_LONG: Final = 3
"""The ``nvmlValueType_t`` of every counter that was met so far."""
NOT_AVAILABLE: Final = 2**64 - 1
"""NVML's own mark for memory of a process that it does not know."""
NO_INSTANCE: Final = 0xFFFFFFFF
"""NVML's own mark for a process outside of MIG."""

CALLS: Final = tuple(re.findall(r"X\((nvml\w+)\)", (SOURCES / "stand.h").read_text()))
"""Every function that can be scripted; versioned names go without their ``_v2``, ``_v3``."""

FIELDS: Final[Mapping[str, int]] = {
    "sw_power_cap": 74,
    "sync_boost": 76,
    "power_average": 185,
    "power_instant": 186,
    "sw_thermal_slowdown": 269,
    "hw_thermal_slowdown": 270,
    "hw_power_brake_slowdown": 271,
}
"""The field values a box may hold, by the name used here; ids of ``NVML_FI_DEV_*``."""

_MAGIC: Final = 0x314C4D564E575053
_GPUS: Final = 8
_FIELDS: Final = 16
_PROCESSES: Final = 950


class _Process(ctypes.Structure):
    used_bytes: int
    pid: int
    gpu_instance: int
    compute_instance: int
    _fields_: ClassVar = [
        ("used_bytes", ctypes.c_uint64),
        ("pid", ctypes.c_uint32),
        ("gpu_instance", ctypes.c_uint32),
        ("compute_instance", ctypes.c_uint32),
        ("padding", ctypes.c_uint32),
    ]


class _Processes(ctypes.Structure):
    count: int
    entries: ctypes.Array[_Process]
    _fields_: ClassVar = [
        ("count", ctypes.c_uint32),
        ("padding", ctypes.c_uint32),
        ("entries", _Process * _PROCESSES),
    ]


class _Field(ctypes.Structure):
    id: int
    scope: int
    error: int
    type: int
    value: int
    _fields_: ClassVar = [
        ("id", ctypes.c_uint32),
        ("scope", ctypes.c_uint32),
        ("error", ctypes.c_int32),
        ("type", ctypes.c_uint32),
        ("value", ctypes.c_uint64),
    ]


class StandGpu(ctypes.Structure):
    """One GPU of the box; every attribute may be read and written at any time."""

    name: bytes
    uuid: bytes
    bus_id: bytes
    errors: ctypes.Array[ctypes.c_int32]
    mig_mode: int
    temperature_celsius: int
    performance_state: int
    capability_major: int
    capability_minor: int
    power_milliwatts: int
    power_limit_milliwatts: int
    sm_megahertz: int
    max_sm_megahertz: int
    memory_megahertz: int
    utilization_percent: int
    memory_utilization_percent: int
    event_reasons: int
    energy_millijoules: int
    memory_total_bytes: int
    memory_reserved_bytes: int
    memory_used_bytes: int
    fields: ctypes.Array[_Field]
    processes: ctypes.Array[_Processes]
    _fields_: ClassVar = [
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_char * 96),
        ("bus_id", ctypes.c_char * 32),
        ("errors", ctypes.c_int32 * len(CALLS)),
        ("mig_mode", ctypes.c_int32),
        ("temperature_celsius", ctypes.c_int32),
        ("performance_state", ctypes.c_int32),
        ("capability_major", ctypes.c_uint32),
        ("capability_minor", ctypes.c_uint32),
        ("power_milliwatts", ctypes.c_uint32),
        ("power_limit_milliwatts", ctypes.c_uint32),
        ("sm_megahertz", ctypes.c_uint32),
        ("max_sm_megahertz", ctypes.c_uint32),
        ("memory_megahertz", ctypes.c_uint32),
        ("utilization_percent", ctypes.c_uint32),
        ("memory_utilization_percent", ctypes.c_uint32),
        ("event_reasons", ctypes.c_uint64),
        ("energy_millijoules", ctypes.c_uint64),
        ("memory_total_bytes", ctypes.c_uint64),
        ("memory_reserved_bytes", ctypes.c_uint64),
        ("memory_used_bytes", ctypes.c_uint64),
        ("fields", _Field * _FIELDS),
        ("processes", _Processes * 3),
    ]

    def set_field(
        self, name: str, value: int = 0, *, error: int = 0, value_type: int = UNSIGNED_LONG_LONG
    ) -> None:
        """Give a field a raw value, or the error with which this entry alone fails.

        Args:
            name: a key of :data:`FIELDS`. A field never set is "not supported".
            value: unsigned 64 bit, in whatever unit the test means the driver to use.
            error: an NVML return code; 0 to answer.
            value_type: an ``nvmlValueType_t``; how the same eight bytes are to be read.
        """
        wanted = FIELDS[name]
        field = next(slot for slot in self.fields if slot.id in (wanted, 0))
        field.value, field.type, field.error, field.id = value, value_type, error, wanted

    def set_processes(
        self,
        compute: Iterable[tuple[int, int | None]] = (),
        graphics: Iterable[tuple[int, int | None]] = (),
        mps: Iterable[tuple[int, int | None]] = (),
    ) -> None:
        """Replace the process lists by these (pid, bytes) pairs; ``None`` bytes: not available."""
        for listed, pairs in zip(self.processes, (compute, graphics, mps), strict=True):
            listed.count = 0
            entries = [
                _Process(NOT_AVAILABLE if size is None else size, pid, NO_INSTANCE, NO_INSTANCE)
                for pid, size in pairs
            ]
            for slot, entry in enumerate(entries):
                listed.entries[slot] = entry
            listed.count = len(entries)


class _Box(ctypes.Structure):
    magic: int
    driver_generation: int
    driver_version: bytes
    gpu_count: int
    errors: ctypes.Array[ctypes.c_int32]
    stall_milliseconds: ctypes.Array[ctypes.c_uint32]
    stalled: int
    calls: ctypes.Array[ctypes.c_uint64]
    gpus: ctypes.Array[StandGpu]
    _fields_: ClassVar = [
        ("magic", ctypes.c_uint64),
        ("driver_generation", ctypes.c_uint64),
        ("driver_version", ctypes.c_char * 80),
        ("gpu_count", ctypes.c_uint32),
        ("errors", ctypes.c_int32 * len(CALLS)),
        ("stall_milliseconds", ctypes.c_uint32 * len(CALLS)),
        ("stalled", ctypes.c_uint32),
        ("calls", ctypes.c_uint64 * len(CALLS)),
        ("gpus", StandGpu * _GPUS),
    ]


class NvmlStand:
    """A scripted box: values in :attr:`gpus`, errors, stalls and restarts by method.

    Use :func:`gb10` or :func:`h200` for one that is already healthy.

    Args:
        path: the file of the box; made anew, and the test's to remove.
        driver_version: as ``nvmlSystemGetDriverVersion`` is to give it.
        gpu_count: 0 to 8.
    """

    def __init__(self, path: Path, *, driver_version: str, gpu_count: int = 1) -> None:
        self.path = path
        path.write_bytes(bytes(ctypes.sizeof(_Box)))
        with path.open("r+b") as file:
            self._box = _Box.from_buffer(mmap.mmap(file.fileno(), 0))
        self._box.driver_generation = 1
        self._box.driver_version = driver_version.encode()
        self._box.gpu_count = gpu_count
        self._box.magic = _MAGIC

    @property
    def gpus(self) -> list[StandGpu]:
        """The GPUs of the box, by index."""
        return [self._box.gpus[index] for index in range(self._box.gpu_count)]

    def fail(self, call: str, error: int, *, gpu: int | None = None) -> None:
        """Let one function of :data:`CALLS` return an NVML error from now on; 0 ends it.

        13 (function not found) is what ``pynvml`` raises for a symbol that an older driver lacks.

        Args:
            call: the function's name.
            error: an NVML return code.
            gpu: for this GPU alone, otherwise for all of them.
        """
        errors = self._box.errors if gpu is None else self._box.gpus[gpu].errors
        errors[CALLS.index(call)] = error

    def fail_all(self, error: int, *, gpu: int | None = None) -> None:
        """Let every function that asks a GPU return this error; 0 ends it."""
        for call in CALLS:
            if call.startswith("nvmlDevice") and call != "nvmlDeviceGetCount":
                self.fail(call, error, gpu=gpu)

    def stall(self, call: str, seconds: float) -> None:
        """Let one function wait this long before it answers, including a call that already waits.

        Writing 0 lets a waiting call go within 2 ms.
        """
        self._box.stall_milliseconds[CALLS.index(call)] = round(seconds * 1000)

    def release(self) -> None:
        """End every stall, so that no thread is left waiting in the library."""
        for call in CALLS:
            self.stall(call, 0)

    @property
    def stalled(self) -> int:
        """How many calls are waiting in the library right now."""
        return self._box.stalled

    def calls(self, call: str) -> int:
        """How often a function was called since the box was made, failures included."""
        return self._box.calls[CALLS.index(call)]

    def restart_driver(self, version: str) -> None:
        """Replace the driver: sessions that are open become uninitialised."""
        self._box.driver_version = version.encode()
        self._box.driver_generation += 1

    def environment(self, library: Path) -> dict[str, str]:
        """The variables that make a new process see this box: add them to its environment."""
        return {"LD_LIBRARY_PATH": str(library.parent), VARIABLE: str(self.path)}


def build(directory: Path) -> Path:
    """Compile the library into a folder and return its path.

    Needs ``cc`` and the PyPI package ``nvidia-nvml-dev``, whose header stays where it is.

    Raises:
        subprocess.CalledProcessError: the compiler refused; its text is on standard error.
    """
    headers = importlib.metadata.files("nvidia-nvml-dev") or []
    header = next(file.locate() for file in headers if file.name == "nvml.h")
    library = directory / LIBRARY
    subprocess.run(
        [
            "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            f"-Wl,-soname,{LIBRARY}", f"-I{Path(header).parent}", "-o", str(library),
            *sorted(map(str, SOURCES.glob("*.c"))),
        ],
        check=True,
    )  # fmt: skip
    return library


def load(library: Path) -> None:
    """Open the library in this process, ahead of any other of the same soname.

    Raises:
        RuntimeError: ``stand.h`` and this module disagree about the layout of the box.
    """
    opened = ctypes.CDLL(str(library))
    if opened.nvml_stand_size() != ctypes.sizeof(_Box):
        raise RuntimeError(
            f"stand.h says {opened.nvml_stand_size()} bytes, nvml_stand.py {ctypes.sizeof(_Box)}"
        )


def show(stand: NvmlStand) -> None:
    """Make this the box that the next ``nvmlInit`` in this process finds."""
    os.environ[VARIABLE] = str(stand.path)


def gb10(path: Path, *, gpu_count: int = 1) -> NvmlStand:
    """A healthy GB10 that holds a resident model and serves nothing at this moment.

    Readings and the set of unsupported calls are as owners report them (Syllo/nvtop#426,
    XuehaiPan/nvitop#208): no device memory, no memory clock, no power limit, no MIG. The clock
    event counters are nanoseconds, as NVIDIA's header documents.
    """
    stand = NvmlStand(path, driver_version="580.173.02", gpu_count=gpu_count)
    for index, gpu in enumerate(stand.gpus):
        gpu.name = b"NVIDIA GB10"
        gpu.uuid = b"GPU-00000000-0000-4000-8000-%012x" % index
        gpu.bus_id = b"0000000F:%02X:00.0" % (index + 1)
        gpu.mig_mode = -1
        gpu.capability_major, gpu.capability_minor = 12, 1
        gpu.temperature_celsius = 48
        gpu.power_milliwatts = 13_500
        gpu.sm_megahertz, gpu.max_sm_megahertz = 2405, 3003
        gpu.utilization_percent = 3
        gpu.energy_millijoules = 10_024_000
        gpu.set_field("sw_power_cap", 10_800 * 10**9)
        gpu.set_field("sync_boost", 0)
        gpu.set_field("sw_thermal_slowdown", 27_600 * 10**6)
        gpu.set_field("hw_thermal_slowdown", 1_195 * 10**6)
        gpu.set_field("hw_power_brake_slowdown", 0)
        gpu.set_field("power_average", 13_400)
        gpu.set_field("power_instant", 13_600)
    return stand


def h200(path: Path, *, gpu_count: int = 1) -> NvmlStand:
    """A healthy, idle, discrete H200 with its own memory (our measurement, H200, 2026-11-30)."""
    stand = NvmlStand(path, driver_version="580.159.04", gpu_count=gpu_count)
    for index, gpu in enumerate(stand.gpus):
        gpu.name = b"NVIDIA H200"
        gpu.uuid = b"GPU-00000000-0000-4000-9000-%012x" % index
        gpu.bus_id = b"00000000:%02X:00.0" % (index + 0x19)
        gpu.capability_major, gpu.capability_minor = 9, 0
        gpu.temperature_celsius = 30
        gpu.power_milliwatts, gpu.power_limit_milliwatts = 78_500, 700_000
        gpu.sm_megahertz, gpu.max_sm_megahertz, gpu.memory_megahertz = 345, 1980, 3201
        gpu.event_reasons = 0x1
        gpu.energy_millijoules = 1_500_000_000
        gpu.memory_total_bytes = 143_771 * 2**20
        gpu.memory_reserved_bytes = 610 * 2**20
        gpu.set_field("sw_power_cap", 28_172_167_936)
        for name in ("sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown"):
            gpu.set_field(name, 0)
        gpu.set_field("hw_power_brake_slowdown", 0)
        gpu.set_field("power_average", 78_500)
        gpu.set_field("power_instant", 78_400)
    return stand
