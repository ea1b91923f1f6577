"""From a stream of samples to moments on one timeline that never goes back.

A rule counts seconds, never samples. Which seconds, how often each part of a sample really comes,
where a hole is and where the machine restarted is worked out here, once for all rules.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from spark_watch.model import GIB, Machine, Memory, Sample

REFERENCE_POOL_BYTES: Final = 121.7 * GIB
"""The pool of a DGX Spark as Linux sees it, for which every level in GiB is written.

Source: MemTotal of GB10 machines, XuehaiPan/nvitop#208.
"""

HOLE_INTERVALS: Final = 3.5
"""Readings further apart than three intervals and a half (jitter) leave a hole between them."""

WALL_STEP_SECONDS: Final = 1.0
"""A wall clock that runs away by less than this was slewed or read late; it did not step."""

STALE_SECONDS: Final = 30.0
"""A reading lost for longer than this (or three intervals) no longer speaks for its condition."""

PARTS: Final = (
    "gpus",
    "memory",
    "pressure",
    "vm",
    "rails",
    "free_blocks",
    "zones",
    "cpu",
    "processes",
    "kernel",
    "progress",
    "boot_id",
)
"""The parts of a sample that come each at their own pace."""


class Cadence:
    """How often one part of a sample really comes, measured.

    Args:
        assumed_seconds: the interval to go by until three have been measured.
    """

    __slots__ = ("_assumed", "_gap", "_gaps", "_interval", "last")

    def __init__(self, assumed_seconds: float) -> None:
        self._assumed = assumed_seconds
        self._gap = 0.0
        self._gaps: deque[float] = deque(maxlen=9)
        self._interval: float | None = None
        self.last: float | None = None

    def see(self, now: float) -> None:
        """Take note that the part came at ``now`` (seconds on the timeline)."""
        if self.last is not None and now > self.last:
            self._gap = now - self.last
            self._gaps.append(self._gap)
            self._interval = None
        self.last = now

    @property
    def hole(self) -> bool:
        """Whether nobody saw what happened between the newest reading and the one before it."""
        return self._gap > HOLE_INTERVALS * self.interval_seconds

    @property
    def interval_seconds(self) -> float:
        """The median of the last nine gaps; the assumed interval until there are three."""
        if self._interval is None:
            gaps = sorted(self._gaps)
            self._interval = gaps[len(gaps) // 2] if len(gaps) >= 3 else self._assumed  # noqa: PLR2004 - three, as said
        return self._interval


@dataclass(slots=True, kw_only=True)
class Tick:
    """One sample with its place on the timeline; everything a rule may look at.

    Attributes:
        now: seconds on the timeline. Only differences mean anything.
        sample: what was read.
        since_last_seconds: seconds since the sample before, 0.0 at the first one.
        rebooted: True at the first sample of another boot.
        wall_step_seconds: how far the wall clock stepped (negative: back), 0.0 for less than
            :data:`WALL_STEP_SECONDS`. Without a monotonic clock only a step back can be seen.
        suspended_seconds: how long the machine slept since the sample before.
        machine: what is known of the machine, ``None`` before anything is.
        own_recording: whether our own recorder (or the live loop) made the stream, so that a hole
            in it is a hole in our watch.
        scale: the pool's size over the reference pool's; levels in GiB are multiplied by it.
    """

    now: float
    sample: Sample
    since_last_seconds: float
    rebooted: bool
    wall_step_seconds: float
    suspended_seconds: float
    machine: Machine | None
    own_recording: bool
    pool_bytes: int | None
    scale: float
    cadences: dict[str, Cadence]
    shared: dict[str, Any] = field(default_factory=dict)
    """Room for what several rules derive from the stream; the same one until a restart."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Scratch room for what several rules derive from the same sample; emptied at each sample."""

    @property
    def memory(self) -> Memory | None:
        """The pool at this sample, ``None`` where it was not read."""
        return self.sample.memory

    @property
    def is_gb10(self) -> bool | None:
        """Whether the machine is a GB10; ``None`` while that is not known."""
        return self.machine.is_gb10 if self.machine else None

    def gib(self, level: float) -> float:
        """Bytes of a level written in GiB for the reference pool, scaled to this pool."""
        return level * GIB * self.scale

    def in_gib(self, value_bytes: float) -> float:
        """Plain GiB of a number of bytes, for sentences."""
        return value_bytes / GIB

    def interval(self, part: str) -> float:
        """Seconds between two readings of ``part``, measured (see :class:`Cadence`)."""
        return self.cadences[part].interval_seconds

    def hole(self, part: str) -> bool:
        """Whether the newest reading of ``part`` came after a hole (see :class:`Cadence`)."""
        return self.cadences[part].hole

    def stale_after(self, part: str) -> float:
        """Seconds after which a lost reading of ``part`` speaks no more: max(30 s, 3 intervals)."""
        return max(STALE_SECONDS, 3 * self.interval(part))

    def failed(self, source: str) -> str | None:
        """The reason ``source`` gave at this sample, ``None`` where it did not fail."""
        for failure in self.sample.failed:
            if failure.source == source:
                return failure.reason
        return None


class Timeline:
    """Places samples on one timeline.

    The sample's monotonic clock leads where it is there, its wall clock otherwise. Where the
    leading clock goes back the timeline goes on by one interval: time never runs backwards for a
    rule, and the step stands in the tick.

    The machine restarted where its boot id is another than the last one known. Without an id (an
    exported trace has none) a monotonic clock that goes back says the same: within one boot it
    never does.

    Args:
        interval_seconds: the recorder's interval, believed until it is measured.
        own_recording: see :class:`Tick`.
        machine: what the trace's header knows; a sample's own ``machine`` replaces it.
    """

    def __init__(
        self,
        *,
        interval_seconds: float = 1.0,
        own_recording: bool = False,
        machine: Machine | None = None,
    ) -> None:
        self._interval = interval_seconds
        self._own = own_recording
        self._machine = machine
        self._last: Sample | None = None
        self._boot_id: str | None = None
        self._now = 0.0
        self._cadences: dict[str, Cadence] = {}
        self._shared: dict[str, Any] = {}
        self._pool: int | None = machine.memory_total_bytes if machine else None
        self._scale = self._pool / REFERENCE_POOL_BYTES if self._pool else 1.0
        self._fresh()

    def _fresh(self) -> None:
        self._cadences = {part: Cadence(self._interval) for part in (*PARTS, "sample")}
        self._shared = {}

    def place(self, sample: Sample) -> Tick:
        """Return the tick of ``sample``, which must come after the samples placed before."""
        step, wall_step, slept, rebooted = self._step(sample)
        self._now += step
        if rebooted:
            self._fresh()
        self._note_machine(sample)
        now = self._now
        cadences = self._cadences
        cadences["sample"].see(now)
        for part in PARTS:
            if getattr(sample, part) is not None:
                cadences[part].see(now)
        self._last = sample
        if sample.boot_id is not None or rebooted:
            self._boot_id = sample.boot_id
        return Tick(
            now=now,
            sample=sample,
            since_last_seconds=step,
            rebooted=rebooted,
            wall_step_seconds=wall_step,
            suspended_seconds=slept,
            machine=self._machine,
            own_recording=self._own,
            pool_bytes=self._pool,
            scale=self._scale,
            cadences=cadences,
            shared=self._shared,
        )

    def _step(self, sample: Sample) -> tuple[float, float, float, bool]:
        """Return seconds since the sample before, the wall step, the sleep, and a restart."""
        before = self._last
        if before is None:
            return 0.0, 0.0, 0.0, False
        wall = sample.t - before.t
        step, slept = wall, 0.0
        monotonic = None
        if sample.monotonic_seconds is not None and before.monotonic_seconds is not None:
            monotonic = step = sample.monotonic_seconds - before.monotonic_seconds
            if sample.boottime_seconds is not None and before.boottime_seconds is not None:
                slept = max(0.0, sample.boottime_seconds - before.boottime_seconds - step)
        pace = self._cadences["sample"]
        if sample.boot_id is not None and self._boot_id is not None:
            rebooted = sample.boot_id != self._boot_id
        else:
            rebooted = (
                monotonic is not None and monotonic < 0.0 and monotonic < -pace.interval_seconds
            )
        if rebooted:
            # the monotonic clock started anew; only the wall clock spans the two boots
            return max(wall, pace.interval_seconds), 0.0, 0.0, True
        if step <= 0.0:
            return pace.interval_seconds, min(wall, 0.0), 0.0, False
        wall_step = wall - step - slept
        return step, wall_step if abs(wall_step) >= WALL_STEP_SECONDS else 0.0, slept, False

    def _note_machine(self, sample: Sample) -> None:
        if sample.machine is not None:
            self._machine = sample.machine
        total = sample.memory.total_bytes if sample.memory else None
        if total is None and self._pool is None and self._machine is not None:
            total = self._machine.memory_total_bytes
        if total and total != self._pool:
            self._pool = total
            self._scale = total / REFERENCE_POOL_BYTES
