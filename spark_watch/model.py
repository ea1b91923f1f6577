"""The records that flow through the product, in base units.

``None`` means "not available". It is never replaced by 0 on the way. A part of a :class:`Sample`
that is ``None`` was not due or could not be read; which of the two stands in ``Sample.failed``.

Field names are those of Trace v1, so that a record and its line on disk read alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final

GIB: Final = 1024**3
"""One gibibyte in bytes."""

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})

SOURCE_PARTS: Final[Mapping[str, str]] = {
    "nvml": "gpus",
    "meminfo": "memory",
    "pressure": "pressure",
    "vmstat": "vm",
    "buddyinfo": "free_blocks",
    "thermal": "zones",
    "rails": "rails",
    "cpu": "cpu",
    "processes": "processes",
    "kernel_log": "kernel",
    "boot": "boot_id",
    "progress": "progress",
}
"""Which part of a sample each source fills."""


class State(IntEnum):
    """The five states of a condition, ordered so that the largest is the one to show.

    ``UNKNOWN`` outranks ``OK``: where one subject is fine and another cannot be judged, the
    condition as a whole cannot be called fine.
    """

    OK = 0
    UNKNOWN = 1
    INFO = 2
    WARNING = 3
    CRITICAL = 4

    @property
    def label(self) -> str:
        """The word used in labels, JSON and lines (``warning``)."""
        return self.name.lower()


STATE_LABELS: Final = ("unknown", "ok", "info", "warning", "critical")
"""Every state as it is written, in the order in which documents list them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What does not change while a machine is up (the trace header's ``machine``)."""

    gpu_name: str | None = None
    driver_version: str | None = None
    kernel: str | None = None
    memory_total_bytes: int | None = None
    gpu_count: int | None = None
    partitioned: bool | None = None
    """True where a GPU is split into MIG instances, so that its totals are not one device's."""

    @property
    def is_gb10(self) -> bool | None:
        """Whether the GPU is a GB10; ``None`` while its name is not known.

        The name is the only reliable sign: eight vendors build the box, with different DMI text.
        """
        if self.gpu_name is None:
            return None
        return "gb10" in self.gpu_name.lower() and not self.partitioned


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdentity:
    """What names one GPU on the page; never written to a trace (``uuid`` identifies the owner).

    ``max_sm_hertz`` is what NVML calls the maximum; a GB10 never holds its 3003 MHz, so it is no
    denominator. ``compute_capability`` is (major, minor).
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    driver_version: str | None = None
    max_sm_hertz: float | None = None
    compute_capability: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU at one moment.

    ``event_reasons`` holds NVML's clock event reasons in snake case, ``None`` where the mask could
    not be read and empty where no bit stood. ``event_seconds`` is cumulative, under the same names.
    Device memory is present only where NVML's answer is believable (never on a GB10).
    """

    index: int
    power_watts: float | None = None
    temperature_celsius: float | None = None
    sm_hertz: float | None = None
    utilization_ratio: float | None = None
    event_reasons: tuple[str, ...] | None = None
    event_seconds: Mapping[str, float] | None = None
    energy_joules: float | None = None
    performance_state: int | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """``/proc/meminfo`` in bytes; on a GB10 this is the one pool of CPU and GPU."""

    total_bytes: int | None = None
    free_bytes: int | None = None
    available_bytes: int | None = None
    cached_bytes: int | None = None
    buffers_bytes: int | None = None
    reclaimable_slab_bytes: int | None = None
    unreclaimable_slab_bytes: int | None = None
    anonymous_bytes: int | None = None
    shared_bytes: int | None = None
    locked_bytes: int | None = None
    mapped_bytes: int | None = None
    dirty_bytes: int | None = None
    page_tables_bytes: int | None = None
    kernel_stack_bytes: int | None = None
    vmalloc_used_bytes: int | None = None
    per_cpu_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    huge_pages_total: int | None = None
    huge_pages_free: int | None = None
    huge_page_bytes: int | None = None
    cma_total_bytes: int | None = None
    cma_free_bytes: int | None = None

    @property
    def driver_residual_bytes(self) -> int | None:
        """What no line of ``/proc/meminfo`` accounts for: on a GB10 mostly the driver's memory.

        Total minus free, page cache, anonymous, slab, page tables, kernel stacks, per-CPU areas and
        huge pages. ``None`` unless total, free, cached, buffers and anonymous are all known; the
        smaller terms count as nothing where the kernel does not print them. Shared memory is part
        of the page cache and is not subtracted twice. Never below 0.
        """
        if (
            self.total_bytes is None
            or self.free_bytes is None
            or self.cached_bytes is None
            or self.buffers_bytes is None
            or self.anonymous_bytes is None
        ):
            return None
        return max(
            0,
            self.total_bytes
            - self.free_bytes
            - self.cached_bytes
            - self.buffers_bytes
            - self.anonymous_bytes
            - (self.reclaimable_slab_bytes or 0)
            - (self.unreclaimable_slab_bytes or 0)
            - (self.page_tables_bytes or 0)
            - (self.kernel_stack_bytes or 0)
            - (self.per_cpu_bytes or 0)
            - (self.huge_pages_total or 0) * (self.huge_page_bytes or 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """``/proc/pressure/memory``: shares 0 to 1 and cumulative stall time in seconds."""

    some_avg10_ratio: float | None = None
    full_avg10_ratio: float | None = None
    some_seconds: float | None = None
    full_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """Cumulative counters of ``/proc/vmstat`` since boot; pages are already bytes."""

    swapped_in_bytes: int | None = None
    swapped_out_bytes: int | None = None
    major_faults: int | None = None
    oom_kills: int | None = None
    compaction_stalls: int | None = None
    compaction_failures: int | None = None
    direct_reclaims: int | None = None
    refaults: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One thermal zone: its number, its type as the kernel names it, degrees Celsius."""

    zone: int
    type: str
    temperature_celsius: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Load and clock of the CPU: shares 0 to 1, hertz, and the one-minute load average."""

    busy_ratio: float | None = None
    busiest_core_ratio: float | None = None
    max_hertz: float | None = None
    load1: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds GPU memory, or the launcher of one.

    ``kind`` is ``compute``, ``graphics`` or ``launcher``. ``engine`` is a known server's name or
    ``None``. ``gpu_bytes`` is what NVML says and ``None`` where it does not say. A claim is read
    from known flags alone, or is the default an engine documents for them: ``claim_ratio`` as a
    share of the pool, ``claim_bytes`` as a size. A process has the claim of its launcher.
    ``started_seconds`` is the start in seconds since boot. ``launcher_pid`` is the nearest ancestor
    that is a known launcher, ``None`` where there is none. ``cgroup_refaults`` is the cumulative
    number of refaults of its control group.
    """

    pid: int
    name: str | None = None
    kind: str | None = None
    engine: str | None = None
    container: str | None = None
    gpu_bytes: int | None = None
    resident_bytes: int | None = None
    swapped_bytes: int | None = None
    major_faults: int | None = None
    cgroup_refaults: int | None = None
    started_seconds: float | None = None
    launcher_pid: int | None = None
    claim_ratio: float | None = None
    claim_bytes: int | None = None

    @property
    def subject(self) -> str:
        """How a finding names this process (``vllm/1234``)."""
        return f"{self.engine or self.name or 'pid'}/{self.pid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """Lines of one kind in the kernel log since the last sample.

    ``kind`` is one of ``nv_err_no_memory``, ``xid``, ``oom_kill``, ``hung_task``, ``pcie_fatal``;
    ``code`` is the Xid number, or the name of the stuck task.
    """

    kind: str
    code: str | int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What one workload says of itself; totals are cumulative and start anew with the workload.

    ``model_bytes`` is the size of the weights, for workloads that do not say what they move.
    """

    workload: str
    phase: str | None = None
    batch: float | None = None
    generation_tokens_total: float | None = None
    prompt_tokens_total: float | None = None
    steps_total: float | None = None
    step_seconds: float | None = None
    bytes_total: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    preemptions_total: float | None = None
    kv_cache_usage_ratio: float | None = None
    model_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A source that was due and did not answer: its name and the reason in snake case."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Everything read at one moment. The only thing a detector ever sees.

    Args:
        t: unix seconds. The wall clock may step; ``monotonic_seconds`` does not.
        monotonic_seconds: CLOCK_MONOTONIC, which stands still during suspend.
        boottime_seconds: CLOCK_BOOTTIME, which does not.
        kernel: ``()`` when the kernel log was read and was silent, ``None`` when it was not read.
        processes: ``()`` when the list was read and was empty, ``None`` when it was not read.
        free_blocks: bytes of a block to the number of free blocks of that size.
        pending: source to the seconds for which its call has not come back.
        machine: what is known of the machine; the same object from sample to sample.
        extra: keys of a trace line that this version does not know, kept for whoever writes it out.
    """

    t: float
    monotonic_seconds: float | None = None
    boottime_seconds: float | None = None
    boot_id: str | None = None
    failed: tuple[Failure, ...] = ()
    late_seconds: float | None = None
    stopped: bool = False
    gpus: tuple[Gpu, ...] | None = None
    memory: Memory | None = None
    pressure: Pressure | None = None
    vm: Vm | None = None
    rails: Mapping[str, float] | None = None
    free_blocks: Mapping[int, int] | None = None
    zones: tuple[Zone, ...] | None = None
    cpu: Cpu | None = None
    processes: tuple[Process, ...] | None = None
    kernel: tuple[KernelEvent, ...] | None = None
    progress: tuple[Progress, ...] | None = None
    pending: Mapping[str, float] = field(default_factory=lambda: EMPTY)
    machine: Machine | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one condition says of one subject, as it goes to page, log, ring and alert.

    ``since_seconds`` is the moment the state was entered, on the sample's unix clock. The sentence
    is formatted when somebody reads it, because most findings of most ticks are read by nobody.
    """

    at_seconds: float
    since_seconds: float
    gotcha: str
    condition: str
    subject: str
    state: State
    template: str
    values: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """One sentence with value, level, time held, units and subject."""
        return self.template.format_map(self.values) if self.values else self.template


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of a condition's state, or a new subject at the state it already has.

    ``at_seconds`` is the sample's unix time, ``elapsed_seconds`` the time since the stream's first
    sample on a clock that never steps.
    """

    at_seconds: float
    elapsed_seconds: float
    gotcha: str
    condition: str
    subject: str
    from_state: State
    to_state: State
    sentence: str
    remedy: str
