"""The simulated Spark as a whole: one pool, one chip, its processes, and the scripts that drive it.

A script is a generator: it changes the box and yields the seconds to wait before it goes on. The
physics moves in steps of at most :data:`STEP_SECONDS` and stops exactly where a script wakes up, so
a story unfolds alike at every sampling interval.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import count
from typing import Final

from spark_watch.model import (
    EMPTY,
    GIB,
    Cpu,
    Failure,
    Machine,
    Process,
    Progress,
    Sample,
)
from spark_watch.sources.simulated.chip import Chip
from spark_watch.sources.simulated.kernel_log import KernelLog
from spark_watch.sources.simulated.pool import HOT_CACHE_BYTES, Pool
from spark_watch.sources.simulated.processes import SimulatedProcess, Workload

STEP_SECONDS: Final = 10.0
UPTIME_SECONDS: Final = 5_000.0
"""How long the box has been up when a story begins."""

BOOT_SECONDS: Final = 25.0
"""From power-on to the daemon's first reading."""

FAST_CORE_HERTZ: Final = 3.9e9
CORES: Final = 20

Steps = Generator[float, None, None]
Script = Callable[["Spark"], Steps]


@dataclass(slots=True, kw_only=True, eq=False)
class Server:
    """A workload under one name: its launcher, the process that holds the memory, its progress."""

    launcher: SimulatedProcess
    engine: SimulatedProcess
    feed: Workload


class Spark:
    """One simulated box.

    Args:
        seed: decides every random number; the story and the noise draw from separate streams.
        start: unix seconds at which the story begins.
    """

    def __init__(self, seed: int, start: float) -> None:
        self.rng = random.Random(f"story {seed}")  # noqa: S311 - a simulation, not a secret
        self._noise = random.Random(f"noise {seed}")  # noqa: S311 - the same
        self.start = start
        self.elapsed = 0.0
        """Seconds since the story began, through reboots."""
        self.driver_version = "580.173.02"
        self.kernel_version = "6.17.0-1029-nvidia"
        self.log = KernelLog()
        self.base_load = 0.02
        self.workloads: list[Workload] = []
        self.silent_until = 0.0
        self.nvml_blocked_since: float | None = None
        self.nvml_failure: str | None = None
        self._scripts: list[tuple[float, int, Steps, SimulatedProcess | None]] = []
        self._order = count()
        self._pid = 1_840
        self._booted = -UPTIME_SECONDS
        self._load1 = 0.4
        self._machine: Machine | None = None
        self._boot()

    def _boot(self) -> None:
        self.pool = Pool(self._noise)
        self.chip = Chip(self._noise)
        self.boot_id = f"{self._noise.getrandbits(128):032x}"
        self.workloads.clear()

    @property
    def machine(self) -> Machine:
        """What the header of a trace says of this box; the same object until a fact changes."""
        machine = Machine(
            gpu_name="NVIDIA GB10",
            driver_version=self.driver_version,
            kernel=self.kernel_version,
            memory_total_bytes=self.pool.total_bytes,
            gpu_count=1,
            partitioned=False,
        )
        if machine != self._machine:
            self._machine = machine
        return self._machine or machine

    @property
    def uptime(self) -> float:
        """Seconds since boot."""
        return self.elapsed - self._booted

    # Scripts

    def play(self, script: Script, owner: SimulatedProcess | None = None) -> None:
        """Start a script now, beside those that run already; it ends with its owner's life."""
        self._wake(self.elapsed, script(self), owner)

    def _wake(self, at: float, steps: Steps, owner: SimulatedProcess | None) -> None:
        heapq.heappush(self._scripts, (at, next(self._order), steps, owner))

    def _run_due(self) -> None:
        while self._scripts and self._scripts[0][0] <= self.elapsed:
            _, _, steps, owner = heapq.heappop(self._scripts)
            if owner is not None and not owner.alive:
                continue
            wait = next(steps, None)
            if wait is not None:
                self._wake(self.elapsed + wait, steps, owner)

    def advance_to(self, elapsed: float) -> None:
        """Let the story run until that many seconds after its start."""
        self._run_due()
        while self.elapsed < elapsed:
            wake = self._scripts[0][0] if self._scripts else elapsed
            until = min(elapsed, wake, self.elapsed + STEP_SECONDS)
            self._move(until - self.elapsed)
            self.elapsed = until
            self._run_due()

    def _move(self, seconds: float) -> None:
        if seconds <= 0 or self.is_off:
            return
        self.chip.resident = any(
            process.kind == "compute" and process.gpu_bytes for process in self.pool.tenants
        )
        self.pool.advance(seconds)
        self.chip.advance(seconds)
        pace = max(0.0, 1.0 - 1.1 * self.pool.stall_ratio)
        for workload in self.workloads:
            workload.advance(seconds, pace, self._noise)
        lines = int(self.pool.driver_lines)
        if lines:
            self.pool.driver_lines -= lines
            self.log.write("nv_err_no_memory", count=lines)
        stalled = self.pool.stall_ratio * 60
        goal = self.base_load * CORES + (1.3 if self.chip.busy else 0.1) + stalled
        self._load1 += (goal - self._load1) * min(1.0, seconds / 60)

    # What scripts do to the box

    def spawn(
        self,
        name: str,
        *,
        engine: str | None = None,
        kind: str = "compute",
        launcher: SimulatedProcess | None = None,
        claim_ratio: float | None = None,
        claim_bytes: int | None = None,
        anonymous_gib: float = 0.5,
        cold_ratio: float = 0.25,
    ) -> SimulatedProcess:
        """Start a process now; it holds ``anonymous_gib`` and no GPU memory yet."""
        self._pid += self.rng.randint(3, 90)
        process = SimulatedProcess(
            pid=self._pid,
            name=name,
            kind=kind,
            engine=engine,
            launcher=launcher,
            claim_ratio=claim_ratio,
            claim_bytes=claim_bytes,
            started_seconds=self.uptime,
            cold_ratio=cold_ratio,
        )
        process.hold(anonymous_gib=anonymous_gib)
        self.pool.tenants.append(process)
        return process

    def serve(self, *, engine: str = "vllm", claim_ratio: float | None = 0.7) -> Server:
        """Start an inference server: a launcher with the flags, and the process that computes."""
        names = {
            "vllm": ("vllm", "VLLM::EngineCore"),
            "sglang": ("python3", "sglang::scheduler"),
            "llama.cpp": ("llama-server", "llama-server"),
            "ollama": ("ollama", "ollama"),
        }
        front, back = names[engine]
        launcher = self.spawn(
            front, engine=engine, kind="launcher", claim_ratio=claim_ratio, anonymous_gib=0.9
        )
        process = self.spawn(back, engine=engine, launcher=launcher, claim_ratio=claim_ratio)
        feed = Workload(name=engine, requests_running=0.0, requests_waiting=0.0)
        self.workloads.append(feed)
        return Server(launcher=launcher, engine=process, feed=feed)

    def train(self, *, step_seconds: float = 12.0, batch: float = 8.0) -> Server:
        """Start a training loop under a shell; it claims nothing."""
        launcher = self.spawn("torchrun", kind="launcher", anonymous_gib=0.3)
        process = self.spawn("python3", launcher=launcher)
        feed = Workload(name="train", phase="train", batch=batch, step_seconds=step_seconds)
        self.workloads.append(feed)
        return Server(launcher=launcher, engine=process, feed=feed)

    def kill(self, process: SimulatedProcess) -> None:
        """End one process: its memory goes back to the pool, its kernels stop."""
        process.alive = False
        if process in self.pool.tenants:
            self.pool.tenants.remove(process)
        self.chip.rest(process.pid)

    def stop(self, server: Server) -> None:
        """End a server in order: engine, launcher and feed."""
        self.kill(server.engine)
        self.kill(server.launcher)
        if server.feed in self.workloads:
            self.workloads.remove(server.feed)

    def clear(self) -> None:
        """End every script and process and mend every fault; counters and heat stay."""
        self._scripts.clear()
        for process in [one for one in self.pool.tenants if one.kind != "system"]:
            self.kill(process)
        fresh = Chip(self._noise)
        chip = self.chip
        chip.kelvin_per_watt, chip.trip_celsius = fresh.kelvin_per_watt, fresh.trip_celsius
        chip.board_gap_celsius, chip.ambient_celsius = fresh.board_gap_celsius, 40.0
        chip.locked_hertz = chip.stuck_hertz = None
        self.pool.livelock_ratio = 0.0
        self.pool.hot_cache_bytes = HOT_CACHE_BYTES
        self.pool.reading_bytes_per_second = self.pool.writing_bytes_per_second = 0.0
        self.workloads.clear()
        self.nvml_blocked_since = self.nvml_failure = None
        self.base_load = 0.02

    def settle(self) -> None:
        """Take the present work as having run for an hour: heat is where it would be."""
        self.chip.resident = any(process.gpu_bytes for process in self.pool.tenants)
        self.chip.settle()

    def silence(self, seconds: float) -> None:
        """Read nothing for that long although the box runs on."""
        self.silent_until = self.elapsed + seconds

    def lose_power(self, seconds: float) -> None:
        """Go dark at once; up again after ``seconds``, as a new boot with nothing running."""
        self._scripts.clear()
        self.silent_until = self._booted = self.elapsed + seconds
        self.silent_until += BOOT_SECONDS
        self.log.take()
        self._boot()
        self._load1 = 0.9

    @property
    def is_off(self) -> bool:
        """Whether the power is away."""
        return self.elapsed < self._booted

    # What the sources would read

    def sample(self) -> Sample | None:
        """Everything readable at this moment; ``None`` while nobody is there to read."""
        if self.elapsed < self.silent_until or self.is_off:
            return None
        blocked = self.nvml_blocked_since
        failed = (
            () if self.nvml_failure is None else (Failure(source="nvml", reason=self.nvml_failure),)
        )
        gpu_readable = blocked is None and not failed
        late = abs(self._noise.gauss(0.0, 0.001)) + self.pool.stall_ratio**2 * 2.0
        return Sample(
            t=round(self.start + self.elapsed, 3),
            monotonic_seconds=round(self.uptime, 6),
            boottime_seconds=round(self.uptime, 6),
            boot_id=self.boot_id,
            failed=failed,
            late_seconds=round(late, 6),
            gpus=(self.chip.reading(),) if gpu_readable else None,
            memory=self.pool.memory(),
            pressure=self.pool.pressure(),
            vm=self.pool.vm(),
            free_blocks=self.pool.free_blocks(),
            zones=self.chip.zones(),
            cpu=self._cpu(),
            processes=self._processes() if gpu_readable else None,
            kernel=self.log.take(),
            progress=self._progress(),
            pending=EMPTY if blocked is None else {"nvml": round(self.elapsed - blocked, 3)},
            machine=self.machine,
        )

    def _processes(self) -> tuple[Process, ...]:
        return tuple(process.reading() for process in self.pool.tenants if process.kind != "system")

    def _progress(self) -> tuple[Progress, ...]:
        return tuple(workload.reading() for workload in self.workloads)

    def _cpu(self) -> Cpu:
        noise = self._noise
        busy = self.base_load + (0.06 if self.chip.busy else 0.0) + 0.3 * self.pool.stall_ratio
        busiest = 0.98 if self.chip.busy else min(1.0, 0.1 + 4 * self.base_load)
        return Cpu(
            busy_ratio=round(min(1.0, max(0.001, busy + noise.gauss(0.0, 0.006))), 4),
            busiest_core_ratio=round(min(1.0, busiest * (1 - 0.1 * noise.random())), 4),
            max_hertz=FAST_CORE_HERTZ - 1.0e5 * noise.randint(0, 40),
            load1=round(self._load1, 2),
        )


def gib(value: float) -> int:
    """Whole bytes of that many gibibytes."""
    return int(value * GIB)
