"""Reads the facts, all at once, within a time that nothing can stretch."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spark_watch.errors import SourceError
from spark_watch.model import EMPTY, GIB, GpuIdentity, Machine, Memory, Sample
from spark_watch.preflight import questions
from spark_watch.preflight.boots import Boots, boots
from spark_watch.preflight.cage import Answers, ask
from spark_watch.preflight.clone import clone
from spark_watch.preflight.estimate import Workload
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.g6_contention import hidden
from spark_watch.preflight.host import container_signs, guards, sysctls
from spark_watch.preflight.launches import launches
from spark_watch.preflight.loader_cache import libraries
from spark_watch.preflight.packages import installed
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.boot import BootSource, kernel_release
from spark_watch.sources.buddyinfo import BuddyinfoSource
from spark_watch.sources.meminfo import MeminfoSource
from spark_watch.sources.nvml import NvmlReading, NvmlSource
from spark_watch.sources.processes import ProcessesSource
from spark_watch.sources.thermal import ThermalSource

WHOLE_SECONDS: Final = 9.4
"""After this long the checks judge what there is; with them, all stays below 10 s."""

FOREIGN_SECONDS: Final = 7.0
"""What foreign code has; clearing it away may take 2 s more."""

NVML_SECONDS: Final = 3.0
"""Until then it must be known whether the GPU is idle, or foreign code is kept off it."""

IDLE_RATIO: Final = 0.05
"""A GPU busier than this is not idle."""

IMPORT_GIB: Final = 4.0
"""With less than this available nothing is imported: torch alone takes 1 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be looked at, and where.

    Args:
        python: the interpreter of the environment to check.
        launch: launch files and folders of them.
        playbooks: a clone of the playbooks.
        playbook: the one that will be followed, by its path in the clone.
        pins: name to version that the environment should have.
        workload: what the run will need.
        variables: the caller's environment.
        conditions: the levels.
        recordings: state directories in which the daemon may have kept a recording.
        foreign: whether anything may be started: an interpreter, git. The daemon never does.
        proc_root: where proc is mounted.
        sys_root: where sysfs is mounted.
        root: where the file system's root is.
        seconds: how long reading may take.
        foreign_seconds: how long foreign code may run.
    """

    python: Path | None = None
    launch: tuple[Path, ...] = ()
    playbooks: Path | None = None
    playbook: str | None = None
    pins: Mapping[str, str] | None = None
    workload: Workload | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    conditions: ConditionSettings = field(default_factory=ConditionSettings)
    recordings: tuple[Path, ...] = ()
    foreign: bool = True
    proc_root: Path = Path("/proc")
    sys_root: Path = Path("/sys")
    root: Path = Path("/")
    seconds: float = WHOLE_SECONDS
    foreign_seconds: float = FOREIGN_SECONDS


class _Errands:
    """Runs readers beside one another and waits for all of them, but not for long.

    A reader that does not come back is left behind: its thread keeps nobody from ending.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.unread: dict[str, str] = {}
        self._threads: dict[str, threading.Thread] = {}

    def start(self, name: str, read: Callable[[], Any]) -> None:
        thread = threading.Thread(target=self._run, args=(name, read), name=name, daemon=True)
        self._threads[name] = thread
        thread.start()

    def wait(self, until: float) -> None:
        """Wait until all are back or it is that late (monotonic seconds)."""
        for name, thread in self._threads.items():
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                self.unread[name] = "timeout"

    def _run(self, name: str, read: Callable[[], Any]) -> None:
        try:
            self.found[name] = read()
        except SourceError as error:
            self.unread[name] = error.reason
        except OSError as error:
            self.unread[name] = (error.strerror or "os_error").lower().replace(" ", "_")
        except Exception as error:  # noqa: BLE001 - one reader's bug is no other's
            self.unread[name] = f"unexpected_{type(error).__name__.lower()}"


def gather(request: Request) -> Facts:
    """Return everything that could be read in time; what could not has its reason."""
    until = time.monotonic() + request.seconds
    errands = _Errands()
    memory = _memory(request, errands)
    gpu = _Gpu(request, memory)
    errands.start("nvml", gpu.read)
    errands.start("free_blocks", BuddyinfoSource(proc_root=request.proc_root).read)
    errands.start("zones", ThermalSource(sys_root=request.sys_root).read)
    _start_files(request, errands)
    if request.python is not None:
        python = request.python
        errands.start("installed", lambda: installed(python))
    if request.foreign:
        _start_foreign(request, errands, memory, gpu)
    errands.wait(until)
    # what comes after this moment is too late: the facts do not change under the checks
    found, unread = dict(errands.found), dict(errands.unread)
    reading: NvmlReading | None = found.pop("nvml", None)
    reason = unread.pop("nvml", "timeout")
    if reading is not None and reading.failures:
        reason = reading.failures[0].reason
    gpus = reading.gpus if reading is not None else None
    processes = gpu.processes
    for name, value in (("gpus", gpus), ("processes", processes)):
        if value is None:
            unread[name] = reason
    return Facts(
        machine=_machine(request, reading, memory),
        gpus=gpus,
        identities=reading.identities if reading is not None else (),
        processes=processes,
        memory=memory,
        python=request.python,
        gpu_used=gpu.granted,
        variables=request.variables,
        launch_named=bool(request.launch),
        clone_named=request.playbooks is not None,
        pins=request.pins,
        workload=request.workload,
        conditions=request.conditions,
        now_seconds=time.time(),
        unread=unread,
        **found,
    )


def gather_beside(
    request: Request, sample: Sample, identities: tuple[GpuIdentity, ...], machine: Machine
) -> Facts:
    """Return the facts where a daemon has read the machine already: only the rest is read.

    Nothing is started and NVML is not called. An environment is not looked at.

    Args:
        request: where to look.
        sample: the newest value of every part.
        identities: the GPUs' names.
        machine: what is known of the machine.
    """
    until = time.monotonic() + request.seconds
    errands = _Errands()
    _start_files(request, errands)
    errands.wait(until)
    return Facts(
        machine=machine,
        gpus=sample.gpus,
        identities=identities,
        processes=sample.processes,
        memory=sample.memory,
        free_blocks=sample.free_blocks,
        zones=sample.zones,
        variables=request.variables,
        conditions=request.conditions,
        now_seconds=time.time(),
        unread=dict(errands.unread),
        **dict(errands.found),
    )


def _memory(request: Request, errands: _Errands) -> Memory | None:
    """Read the pool at once: it never blocks, and what may be started depends on it."""
    source = MeminfoSource(proc_root=request.proc_root)
    try:
        return source.read()
    except SourceError as error:
        errands.unread["memory"] = error.reason
        return None
    finally:
        source.close()


class _Gpu:
    """One reading of NVML, and whether foreign code may use the GPU."""

    def __init__(self, request: Request, memory: Memory | None) -> None:
        self._request = request
        self._memory = memory
        self._known = threading.Event()
        self._idle = False
        self.processes: Any = None
        self.granted = False

    def read(self) -> NvmlReading:
        source = NvmlSource(
            memory_total_bytes=None if self._memory is None else self._memory.total_bytes
        )
        source.start()
        try:
            reading = source.wait(self._request.seconds)
        finally:
            source.close(0.0)
        if reading is None:
            raise TimeoutError
        self._idle = self._is_idle(reading)
        self._known.set()
        if reading.processes is not None:
            named = ProcessesSource(
                proc_root=self._request.proc_root, sys_root=self._request.sys_root
            )
            self.processes = reading.processes
            self.processes = named.read(reading.processes)
            named.close()
        return reading

    def may_be_used(self) -> bool:
        """Whether nothing is on the GPU, as far as is known within three seconds."""
        self._known.wait(NVML_SECONDS)
        self.granted = self.granted or self._idle
        return self._idle

    def _is_idle(self, reading: NvmlReading) -> bool:
        if not reading.gpus or reading.processes is None or reading.failures:
            return False
        facts = Facts(
            machine=_machine(self._request, reading, self._memory),
            memory=self._memory,
            processes=reading.processes,
        )
        return not (
            hidden(facts)
            or any(process.kind != "graphics" for process in reading.processes)
            or any(
                gpu.utilization_ratio is None or gpu.utilization_ratio > IDLE_RATIO
                for gpu in reading.gpus
            )
        )


def _machine(request: Request, reading: NvmlReading | None, memory: Memory | None) -> Machine:
    try:
        kernel = kernel_release(proc_root=request.proc_root)
    except SourceError:
        kernel = None
    return Machine(
        gpu_name=reading.gpu_name if reading is not None else None,
        driver_version=reading.driver_version if reading is not None else None,
        kernel=kernel,
        memory_total_bytes=memory.total_bytes if memory is not None else None,
        gpu_count=reading.gpu_count if reading is not None else None,
        partitioned=reading.partitioned if reading is not None else None,
    )


def _start_files(request: Request, errands: _Errands) -> None:
    """Start what reads files that nobody samples."""
    proc, root = request.proc_root, request.root
    errands.start("boots", lambda: _boots(request))
    errands.start("sysctls", lambda: sysctls(proc_root=proc))
    errands.start("guards", lambda: guards(proc_root=proc))
    errands.start("loader", lambda: libraries(root / "etc" / "ld.so.cache"))
    errands.start(
        "container", lambda: container_signs(request.variables, root=root, proc_root=proc)
    )
    errands.start("launches", lambda: launches(request.launch, request.variables))


def _boots(request: Request) -> Boots:
    source = BootSource(proc_root=request.proc_root)
    try:
        boot_id = source.read()
    except SourceError:
        boot_id = None
    finally:
        source.close()
    return boots(request.recordings, boot_id=boot_id, now=time.time())


def _start_foreign(request: Request, errands: _Errands, memory: Memory | None, gpu: _Gpu) -> None:
    """Start what runs other people's programs, where there is memory for it."""
    playbooks = request.playbooks
    if playbooks is not None:
        errands.start("clone", lambda: clone(playbooks, request.playbook))
    available = memory.available_bytes if memory is not None else None
    tight = available is None or available < IMPORT_GIB * GIB

    def question(python: Path, script: str) -> Answers:
        if tight:
            shown = "an unknown amount" if available is None else f"{available / GIB:.1f} GiB"
            return Answers(end="refused", value=f"{shown} of memory available is too little")
        return ask(python, script, seconds=request.foreign_seconds, go=gpu.may_be_used)

    if request.python is None:
        errands.start(
            "cudart", lambda: question(Path(os.path.realpath(sys.executable)), questions.CUDART)
        )
        return
    python = request.python
    errands.start("torch", lambda: question(python, questions.TORCH))
    errands.start("flash", lambda: question(python, questions.FLASH_ATTENTION))
