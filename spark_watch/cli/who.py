"""``spark-watch who``: who holds the pool, with a total that adds up."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from spark_watch.cli.common import say, settings_arguments, settings_of
from spark_watch.cli.wiring import look
from spark_watch.detectors.condition import spoken
from spark_watch.detectors.g6_contention.engines import Engine, engines
from spark_watch.errors import OutputError
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import GIB, Memory, Process

HELP = "print who holds the pool, engine by engine, with a total that adds up"
EXAMPLE = "spark-watch who"

LOOK_SECONDS: Final = 3.0
"""NVML's list and what proc says of it are there within two readings."""

COLUMNS: Final = ("who", "container", "GPU GiB", "host GiB", "claim", "capped", "age")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One engine, or one process that is no engine. Sizes are ``None`` where nobody says."""

    who: str
    processes: int
    container: str | None
    gpu_bytes: int | None
    host_bytes: int | None
    claim_ratio: float | None
    claim_bytes: int | None
    age_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the pool; all parts together are the pool."""

    what: str
    held_bytes: int


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument(
        "--source",
        default="live",
        metavar="SOURCE",
        help="live (default), simulate:NAME or replay:FILE",
    )
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table; the exit code is 0 where the pool could be read."""
    snapshot = look(settings_of(options), options.source, LOOK_SECONDS, environment=os.environ)
    processes, memory = snapshot.latest.processes, snapshot.latest.memory
    if memory is None or memory.total_bytes is None:
        raise OutputError("/proc/meminfo: the pool cannot be read")
    shared = snapshot.machine is not None and snapshot.machine.is_gb10 is True
    held = holders(processes or (), memory.total_bytes, snapshot.latest.boottime_seconds)
    parts = pool_parts(memory, held if shared else ())
    claims = [one.claim for one in engines(processes or (), memory.total_bytes) if one.claim]
    if options.json:
        answer = {
            "pool_bytes": memory.total_bytes,
            "claims_ratio": sum(claims) if claims else None,
            "holders": None if processes is None else [asdict(one) for one in held],
            "parts": [asdict(part) for part in parts],
        }
        say(json.dumps(answer, indent=1))
        return 0
    if processes is None:
        say(f"GPU processes: unknown ({_why(snapshot)})")
    elif not held:
        say("GPU processes: none")
    else:
        _table(held)
    if len(claims) > 1 or sum(claims) > 1:
        say(f"claims add up to {sum(claims):.2f} of the pool; a claim is no hard cap here")
    say("")
    if not shared and held:
        say("the GPU is no GB10, or not known yet: its memory is not in the pool below")
    for part in parts:
        say(f"{part.held_bytes / GIB:8.1f} GiB  {part.what}")
    say(f"{sum(part.held_bytes for part in parts) / GIB:8.1f} GiB  the pool (MemTotal)")
    return 0


def holders(
    processes: Sequence[Process], pool_bytes: int, boottime_seconds: float | None
) -> list[Holder]:
    """Return who holds GPU memory, the largest first; an engine's processes are one holder."""
    launchers = {one.pid: one for one in processes if one.kind == "launcher"}
    graphics = [Engine([one]) for one in processes if one.kind == "graphics"]
    found = []
    for engine in (*engines(processes, pool_bytes), *graphics):
        members = list(engine.processes)
        above = {one.launcher_pid for one in members}
        members += [launchers[pid] for pid in above if pid in launchers]
        ages = [one.started_seconds for one in members if one.started_seconds is not None]
        age = None if boottime_seconds is None or not ages else boottime_seconds - min(ages)
        sizes = [one.gpu_bytes for one in engine.processes if one.gpu_bytes is not None]
        hosts = [one.resident_bytes for one in members if one.resident_bytes is not None]
        found.append(
            Holder(
                who=engine.subject,
                processes=len(members),
                container=next((one.container for one in members if one.container), None),
                gpu_bytes=sum(sizes) if sizes else None,
                host_bytes=sum(hosts) if hosts else None,
                claim_ratio=max(
                    (one.claim_ratio for one in members if one.claim_ratio), default=None
                ),
                claim_bytes=max(
                    (one.claim_bytes for one in members if one.claim_bytes), default=None
                ),
                age_seconds=age,
            )
        )
    found.sort(key=lambda one: (-(one.gpu_bytes or 0), one.who))
    return found


def pool_parts(memory: Memory, held: Sequence[Holder]) -> list[Part]:
    """Return the parts of the pool, which add up to it to the byte.

    Args:
        memory: a reading that holds the pool's size.
        held: who holds GPU memory out of this pool; nobody where the GPU has its own.
    """
    known = [
        Part(what=f"GPU memory of {one.who}", held_bytes=one.gpu_bytes)
        for one in held
        if one.gpu_bytes
    ]
    known += [
        Part(what=what, held_bytes=size)
        for what, size in (
            ("anonymous memory of all processes", memory.anonymous_bytes),
            ("page cache and shared memory", memory.cached_bytes),
            ("buffers", memory.buffers_bytes),
            ("huge pages", (memory.huge_pages_total or 0) * (memory.huge_page_bytes or 0)),
            ("the kernel's own (slab, page tables, stacks)", _kernel(memory)),
            ("free", memory.free_bytes),
        )
        if size
    ]
    rest = (memory.total_bytes or 0) - sum(part.held_bytes for part in known)
    what = "the driver's remainder: held by it and by no process listed"
    if rest < 0:
        what = "counted twice: GPU memory that is in the lines above as well"
    place = sum(1 for part in known if part.what.startswith("GPU memory"))
    known.insert(place, Part(what=what, held_bytes=rest))
    return known


def _kernel(memory: Memory) -> int:
    sizes = (
        *(memory.reclaimable_slab_bytes, memory.unreclaimable_slab_bytes),
        *(memory.page_tables_bytes, memory.kernel_stack_bytes, memory.per_cpu_bytes),
    )
    return sum(size or 0 for size in sizes)


def _table(held: Sequence[Holder]) -> None:
    """Print a line for each holder under the columns' names."""
    rows = [COLUMNS, *(_row(one) for one in held)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    for row in rows:
        cells = [
            cell.rjust(width) if COLUMNS[at].endswith("GiB") else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        say("  ".join(cells).rstrip())


def _row(one: Holder) -> tuple[str, ...]:
    claim = "-"
    if one.claim_bytes is not None:
        claim = f"{one.claim_bytes / GIB:.1f} GiB cache"
    elif one.claim_ratio is not None:
        claim = f"{one.claim_ratio:.2f}"
    return (
        one.who if one.processes == 1 else f"{one.who} ({one.processes} processes)",
        one.container or "-",
        _gib(one.gpu_bytes),
        _gib(one.host_bytes),
        claim,
        "no" if claim == "-" else "by itself",
        "-" if one.age_seconds is None else spoken(max(0.0, one.age_seconds)),
    )


def _gib(value: int | None) -> str:
    return "?" if value is None else f"{value / GIB:.1f}"


def _why(snapshot: Snapshot) -> str:
    for source in ("nvml", "processes"):
        for health in snapshot.sources:
            if health.source == source and health.reason is not None:
                return f"{source}: {health.reason}"
    return "no answer yet"
