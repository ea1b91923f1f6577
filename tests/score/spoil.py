"""What real recordings lack: keys, samples, sources for a while, and a clock that never steps."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from spark_watch.blackbox.trace import TraceHeader
from spark_watch.model import (
    SOURCE_PARTS,
    Failure,
    Gpu,
    KernelEvent,
    Machine,
    Memory,
    Sample,
    Vm,
)
from tests.score.family import Family, Timed

PARTS: Final = (
    "gpus",
    "memory",
    "pressure",
    "vm",
    "free_blocks",
    "zones",
    "cpu",
    "processes",
    "kernel",
    "progress",
)
CLOCKS: Final = ("monotonic_seconds", "boottime_seconds", "boot_id")
PROCESS_FIELDS: Final = ("claim_ratio", "cgroup_refaults", "resident_bytes", "swapped_bytes")
"""Fields of a process whose absence cannot be taken for another fact about it."""

PART_GOES: Final = 0.22
FIELD_GOES: Final = 0.12
CLOCK_GOES: Final = 0.15
SOURCE_FAILS: Final = 0.5
CLOCK_STEPS: Final = 0.4
LOST: Final = (0.0, 0.0, 0.01, 0.03)
WHOLE_EVERY: Final = 4
"""Every fourth seed of a family is left whole."""


@dataclass(frozen=True, slots=True)
class Spoiling:
    """What is taken away from one trace, decided once for all of it."""

    parts: frozenset[str]
    gpu_fields: tuple[str, ...]
    memory_fields: tuple[str, ...]
    vm_fields: tuple[str, ...]
    process_fields: tuple[str, ...]
    clocks: tuple[str, ...]
    lost_ratio: float
    failing: tuple[tuple[float, float, str], ...]
    step_at: float | None
    step_seconds: float

    @property
    def nothing(self) -> bool:
        """Whether the trace stays whole."""
        return self == WHOLE


WHOLE: Final = Spoiling(frozenset(), (), (), (), (), (), 0.0, (), None, 0.0)


def is_whole(seed: int) -> bool:
    """Whether the trace of that seed is left as the box gave it."""
    return seed % WHOLE_EVERY == 0


def decide(family: Family, seed: int, seconds: float) -> Spoiling:
    """What goes from the trace of one seed; never a part or a field that the family needs."""
    if is_whole(seed):
        return WHOLE
    rng = random.Random(f"spoil {family.name} {seed}")  # noqa: S311 - a corpus, not a secret
    needs = family.needs
    spare = [part for part in PARTS if not _needed(part, needs)]
    parts = frozenset(part for part in spare if rng.random() < PART_GOES)
    clocks = tuple(one for one in CLOCKS if one not in needs and rng.random() < CLOCK_GOES)
    failing = []
    if spare and rng.random() < SOURCE_FAILS:
        for _ in range(3):
            start = rng.uniform(0.0, seconds)
            failing.append((start, start + rng.uniform(1.0, 20.0), rng.choice(spare)))
    steps = "monotonic_seconds" not in clocks and rng.random() < CLOCK_STEPS
    return Spoiling(
        parts=parts,
        gpu_fields=_some(rng, Gpu, "gpus", needs),
        memory_fields=_some(rng, Memory, "memory", needs),
        vm_fields=_some(rng, Vm, "vm", needs),
        process_fields=()
        if "processes" in needs
        else tuple(name for name in PROCESS_FIELDS if rng.random() < FIELD_GOES),
        clocks=clocks,
        lost_ratio=0.0 if family.fast else rng.choice(LOST),
        failing=tuple(failing),
        step_at=rng.uniform(0.0, seconds) if steps else None,
        step_seconds=rng.choice((-1.0, 1.0)) * rng.uniform(2.0, 7_200.0),
    )


def _needed(part: str, needs: frozenset[str]) -> bool:
    return part in needs or any(need.startswith(f"{part}.") for need in needs)


def _some(
    rng: random.Random, record: type[Any], part: str, needs: frozenset[str]
) -> tuple[str, ...]:
    if part in needs:
        return ()
    return tuple(
        field.name
        for field in fields(record)
        if field.name != "index"
        and f"{part}.{field.name}" not in needs
        and rng.random() < FIELD_GOES
    )


def header(family: Family, spoiling: Spoiling, machine: Machine, interval: float) -> TraceHeader:
    """The header of such a trace; one without our clocks was not written by our recorder."""
    ours = family.own and not spoiling.clocks
    return TraceHeader(
        interval_seconds=interval,
        machine=machine if spoiling.nothing else replace(machine, kernel=None, partitioned=None),
        origin=f"generated: {family.name}",
        recorder="spark-watch" if ours else None,
    )


def spoil(
    samples: Iterable[Timed], spoiling: Spoiling, machine: Machine, seed: int
) -> Iterator[Timed]:
    """The samples with everything taken away that was decided.

    Lines of the kernel log are read late when a sample is lost, not lost with it.
    """
    if spoiling.nothing:
        yield from samples
        return
    rng = random.Random(f"loss {seed}")  # noqa: S311 - a corpus, not a secret
    unread: tuple[KernelEvent, ...] = ()
    for number, (elapsed, sample) in enumerate(samples):
        lines = unread + (sample.kernel or ())
        if number and rng.random() < spoiling.lost_ratio and not sample.stopped:
            unread = lines
            continue
        unread = ()
        yield elapsed, _spoil_one(elapsed, replace(sample, kernel=lines), spoiling, machine)


def _spoil_one(elapsed: float, sample: Sample, spoiling: Spoiling, machine: Machine) -> Sample:
    changes: dict[str, Any] = {"machine": machine}
    changes.update(dict.fromkeys(spoiling.parts))
    changes.update(dict.fromkeys(spoiling.clocks))
    if sample.gpus is not None and spoiling.gpu_fields and "gpus" not in spoiling.parts:
        gone: dict[str, Any] = dict.fromkeys(spoiling.gpu_fields)
        changes["gpus"] = tuple(replace(gpu, **gone) for gpu in sample.gpus)
    if sample.memory is not None and spoiling.memory_fields and "memory" not in spoiling.parts:
        changes["memory"] = replace(sample.memory, **dict.fromkeys(spoiling.memory_fields))
    if sample.vm is not None and spoiling.vm_fields and "vm" not in spoiling.parts:
        changes["vm"] = replace(sample.vm, **dict.fromkeys(spoiling.vm_fields))
    if sample.processes and spoiling.process_fields and "processes" not in spoiling.parts:
        gone = dict.fromkeys(spoiling.process_fields)
        changes["processes"] = tuple(replace(one, **gone) for one in sample.processes)
    failed = list(sample.failed)
    for start, end, part in spoiling.failing:
        if start <= elapsed < end and part not in spoiling.parts:
            changes[part] = None
            failed.append(Failure(source=_source(part), reason="timeout"))
    changes["failed"] = tuple(failed)
    if spoiling.step_at is not None and elapsed >= spoiling.step_at:
        changes["t"] = sample.t + spoiling.step_seconds
    return replace(sample, **changes)


def _source(part: str) -> str:
    return next(source for source, filled in SOURCE_PARTS.items() if filled == part)
