"""Where the loop's samples come from: the machine, a simulation or a recording, all alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from spark_watch.model import SOURCE_PARTS, GpuIdentity, Machine, Sample
from spark_watch.sources.reading import SourceHealth


@dataclass(frozen=True, slots=True)
class Moment:
    """The three clocks at one moment: unix, CLOCK_MONOTONIC and CLOCK_BOOTTIME seconds.

    ``late_seconds`` is how long after its planned time a tick began, ``None`` between two ticks.
    """

    t: float
    monotonic: float
    boottime: float
    late_seconds: float | None = None

    @staticmethod
    def now() -> Moment:
        """Return the clocks of this machine now."""
        return Moment(time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))


class Feed(Protocol):
    """What the loop takes its samples from.

    Attributes:
        origin: ``live``, ``simulate:NAME`` or ``replay:FILE``.
        interval_seconds: real seconds from one sample to the next.
        own_recording: whether a hole in the samples is a hole in our own watch.
        machine: what is known of the machine before the first sample.
    """

    origin: str
    interval_seconds: float
    own_recording: bool
    machine: Machine | None

    def start(self) -> None:
        """Start whatever runs beside the loop."""

    def read(self, moment: Moment) -> Sample | None:
        """Return the sample of this moment without ever waiting; ``None`` ends the run."""

    def read_memory(self, moment: Moment) -> Sample | None:
        """Return a sample of the pool alone, between two ticks; ``None`` where there is none."""

    def identities(self) -> tuple[GpuIdentity, ...]:
        """Return what names the GPUs, empty while that is not known."""

    def health(self) -> tuple[SourceHealth, ...]:
        """Return how every source has fared."""

    def close(self) -> None:
        """Give back everything, without waiting for a blocked call."""


class Played:
    """Samples that were made before: a simulation or a recording, at real or at fast time.

    A part that is in a sample counts as a success of its source, one in ``failed`` as a failure.

    Args:
        samples: the samples in order.
        origin: see :class:`Feed`.
        interval_seconds: the samples' own interval.
        speed: how many seconds of samples pass in a real second.
        own_recording: see :class:`Feed`.
        machine: see :class:`Feed`.
    """

    def __init__(
        self,
        samples: Iterator[Sample],
        *,
        origin: str,
        interval_seconds: float,
        speed: float = 1.0,
        own_recording: bool = False,
        machine: Machine | None = None,
    ) -> None:
        self.origin = origin
        self.interval_seconds = interval_seconds / speed
        self.own_recording = own_recording
        self.machine = machine
        self._samples = samples
        self._seen: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._errors: dict[str, dict[str, int]] = {}
        self._pending: dict[str, float] = {}

    def start(self) -> None:
        """Nothing runs beside a recording."""

    def read(self, moment: Moment) -> Sample | None:
        """Return the next sample, ``None`` after the last."""
        del moment
        sample = next(self._samples, None)
        if sample is not None:
            self._note(sample)
        return sample

    def read_memory(self, moment: Moment) -> Sample | None:
        """Return ``None``: a recording holds what it holds."""
        del moment
        return None

    def _note(self, sample: Sample) -> None:
        if sample.machine is not None:
            self.machine = sample.machine
        self._pending = dict(sample.pending)
        for source, part in SOURCE_PARTS.items():
            if getattr(sample, part) is not None:
                self._seen[source] = sample.t
                self._reasons.pop(source, None)
        for failure in sample.failed:
            self._reasons[failure.source] = failure.reason
            counts = self._errors.setdefault(failure.source, {})
            counts[failure.reason] = counts.get(failure.reason, 0) + 1

    def identities(self) -> tuple[GpuIdentity, ...]:
        """Return the name in the header; a recording holds no UUID."""
        machine = self.machine
        if machine is None or machine.gpu_name is None:
            return ()
        return (GpuIdentity(index=0, name=machine.gpu_name, driver_version=machine.driver_version),)

    def health(self) -> tuple[SourceHealth, ...]:
        """Return what the samples so far say of every source."""
        return tuple(
            SourceHealth(
                source=source,
                success=None
                if source not in self._seen and source not in self._reasons
                else source not in self._reasons,
                reason=self._reasons.get(source),
                last_success_seconds=self._seen.get(source),
                pending_seconds=self._pending.get(source),
                errors=dict(self._errors.get(source, {})),
            )
            for source in SOURCE_PARTS
        )

    def close(self) -> None:
        """Nothing is held open."""
