"""The processes of the simulated Spark and what their workloads say of their own progress."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from spark_watch.model import GIB, Process, Progress

STEP_SPREAD: Final = 0.004
"""Relative standard deviation of a training step, as in four recordings of 500 steps each."""


@dataclass(slots=True, kw_only=True, eq=False)
class SimulatedProcess:
    """One process: what it holds, what it wants to hold, and how fast it takes it.

    ``gpu_*`` is memory of the driver, ``anonymous_*`` ordinary memory of the process. A goal below
    what is held is given back at once; one above is reached at ``*_rate`` bytes a second, as far as
    the pool can grant it. ``cold_ratio`` is the share of its anonymous memory that it never
    touches: what of that is swapped out stays out.
    """

    pid: int
    name: str
    kind: str = "compute"
    engine: str | None = None
    container: str | None = None
    launcher: SimulatedProcess | None = None
    claim_ratio: float | None = None
    claim_bytes: int | None = None
    started_seconds: float = 0.0
    gpu_bytes: float = 0.0
    gpu_goal: float = 0.0
    gpu_rate: float = 1.0 * GIB
    anonymous_bytes: float = 0.0
    anonymous_goal: float = 0.0
    anonymous_rate: float = 1.0 * GIB
    swapped_bytes: float = 0.0
    cold_ratio: float = 0.25
    major_faults: float = 40.0
    refaults: float = 0.0
    alive: bool = True

    @property
    def cold_resident_bytes(self) -> float:
        """Cold pages that still lie in memory."""
        held = self.anonymous_bytes + self.swapped_bytes
        return max(0.0, min(self.anonymous_bytes, self.cold_ratio * held - self.swapped_bytes))

    @property
    def hot_spare_bytes(self) -> float:
        """What the kernel can take in one go once the cold pages are gone: not the last fifth."""
        held = self.anonymous_bytes + self.swapped_bytes
        return max(0.0, 0.3 * (self.anonymous_bytes - 0.2 * held))

    def hold(self, *, gpu_gib: float | None = None, anonymous_gib: float | None = None) -> None:
        """Hold that much from now on, without the time it takes to get there."""
        if gpu_gib is not None:
            self.gpu_bytes = self.gpu_goal = gpu_gib * GIB
        if anonymous_gib is not None:
            self.anonymous_bytes = self.anonymous_goal = anonymous_gib * GIB

    def grow(
        self,
        *,
        gpu_gib: float | None = None,
        anonymous_gib: float | None = None,
        gib_per_second: float = 1.0,
    ) -> None:
        """Move towards that much at ``gib_per_second`` for each kind of memory named."""
        if gpu_gib is not None:
            self.gpu_goal, self.gpu_rate = gpu_gib * GIB, gib_per_second * GIB
        if anonymous_gib is not None:
            self.anonymous_goal = anonymous_gib * GIB
            self.anonymous_rate = gib_per_second * GIB

    def reading(self) -> Process:
        """What NVML and ``/proc`` say of it; a launcher holds no GPU memory."""
        launcher = self.launcher
        return Process(
            pid=self.pid,
            name=self.name,
            kind=self.kind,
            engine=self.engine,
            container=self.container,
            gpu_bytes=None if self.kind == "launcher" else _mib(self.gpu_bytes),
            resident_bytes=int((self.anonymous_bytes + 0.3 * GIB) / 4096) * 4096,
            swapped_bytes=int(self.swapped_bytes / 4096) * 4096,
            major_faults=int(self.major_faults),
            cgroup_refaults=int(self.refaults),
            started_seconds=round(self.started_seconds, 2),
            launcher_pid=launcher.pid if launcher is not None and launcher.alive else None,
            claim_ratio=self.claim_ratio,
            claim_bytes=self.claim_bytes,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class Workload:
    """A progress feed: rates in units a second, and the totals that they fill.

    A training loop counts whole steps of ``step_seconds``; a server counts tokens.
    """

    name: str
    phase: str | None = None
    batch: float | None = None
    generation_rate: float = 0.0
    prompt_rate: float = 0.0
    step_seconds: float | None = None
    steps_running: bool = True
    bytes_rate: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    kv_cache_usage_ratio: float | None = None
    generation_tokens: float = 0.0
    prompt_tokens: float = 0.0
    steps: float = 0.0
    last_step_seconds: float | None = None
    bytes_moved: float = 0.0

    def advance(self, seconds: float, speed: float, rng: random.Random) -> None:
        """Work for that long at ``speed`` times the usual pace (0 while stalled)."""
        self.generation_tokens += self.generation_rate * speed * seconds
        self.prompt_tokens += self.prompt_rate * speed * seconds
        if self.step_seconds is not None and self.steps_running and speed > 0:
            done = int(self.steps)
            self.steps += seconds * speed / self.step_seconds
            if int(self.steps) > done:
                self.last_step_seconds = self.step_seconds / speed * rng.gauss(1.0, STEP_SPREAD)
        if self.bytes_rate is not None:
            self.bytes_moved += self.bytes_rate * speed * seconds

    def freeze(self) -> None:
        """Make no more progress; requests stay where they are."""
        self.generation_rate = self.prompt_rate = 0.0
        self.steps_running = False
        self.bytes_rate = None if self.bytes_rate is None else 0.0

    def reading(self) -> Progress:
        """What the workload would answer now."""
        training = self.step_seconds is not None
        return Progress(
            workload=self.name,
            phase=self.phase,
            batch=self.batch,
            generation_tokens_total=None if training else float(int(self.generation_tokens)),
            prompt_tokens_total=None if training else float(int(self.prompt_tokens)),
            steps_total=float(int(self.steps)) if training else None,
            step_seconds=(
                None if self.last_step_seconds is None else round(self.last_step_seconds, 4)
            ),
            bytes_total=None if self.bytes_rate is None else float(int(self.bytes_moved)),
            requests_running=self.requests_running,
            requests_waiting=self.requests_waiting,
            preemptions_total=None if training else 0.0,
            kv_cache_usage_ratio=self.kv_cache_usage_ratio,
        )


def _mib(value: float) -> int:
    """NVML counts a process in whole mebibytes on this chip's driver."""
    return int(value / 1024**2) * 1024**2
