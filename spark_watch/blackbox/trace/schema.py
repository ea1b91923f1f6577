"""Trace v1: which keys a line may hold, and what each of them accepts.

The bounds are no judgement. They are wide enough for every machine there is, and narrow enough to
catch another unit: milliseconds as ``t``, millidegrees, per cent where a share belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from spark_watch.model import (
    Cpu,
    Failure,
    Gpu,
    KernelEvent,
    Machine,
    Memory,
    Pressure,
    Process,
    Progress,
    Vm,
    Zone,
)

VERSION: Final = 1
VERSION_KEY: Final = "spark_watch_trace"


class Refused(ValueError):
    """A value is not what its key holds; the text says which key and why."""


Check = Callable[[Any], Any]
"""Takes a value out of JSON, never ``None``; gives the value of the record or raises Refused."""


def shown(value: object) -> str:
    """A value out of a file as an error may show it: printable ASCII, at most 40 characters."""
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004 - see the docstring


def clean(value: str) -> str:
    """The text with ``?`` for whatever is not printable: line ends, escapes, lone surrogates."""
    if value.isprintable():
        return value
    return "".join(character if character.isprintable() else "?" for character in value)


def _real(low: float, high: float) -> Check:
    def check(value: Any) -> float:
        if type(value) is not float and type(value) is not int:
            raise Refused(f"{shown(value)} is no number")
        if not low <= value <= high:
            raise Refused(f"{shown(value)} is not within {low:g} to {high:g}")
        return float(value)

    return check


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise Refused(f"{shown(value)} is no whole number")
        if not low <= value <= high:
            raise Refused(f"{shown(value)} is not within {low} to {high}")
        return value

    return check


def text(value: Any) -> str:
    """Text, cleaned of what is not printable."""
    if type(value) is not str:
        raise Refused(f"{shown(value)} is no text")
    return clean(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise Refused(f"{shown(value)} is neither true nor false")
    return value


def _code(value: Any) -> str | int:
    return text(value) if type(value) is str else int(_count(value))


def _texts(value: Any) -> tuple[str, ...]:
    if type(value) is not list:
        raise Refused(f"{shown(value)} is no list")
    return tuple([text(item) for item in value])


def _by_name(check: Check) -> Check:
    def check_all(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Refused(f"{shown(value)} is no object")
        return {clean(name): check(item) for name, item in value.items()}

    return check_all


def _blocks(value: Any) -> dict[int, int]:
    if type(value) is not dict:
        raise Refused(f"{shown(value)} is no object")
    if not all(size.isascii() and size.isdigit() and len(size) < _SIZE_DIGITS for size in value):
        raise Refused("a block size is no whole number of bytes")
    return {int(size): _count(count) for size, count in value.items()}


_SIZE_DIGITS: Final = 20
_bytes = _whole(0, 2**63)
_count = _whole(0, 2**63)
_seconds = _real(0, 1e11)
_watts = _real(0, 1e5)
_celsius = _real(-300, 1000)
_hertz = _real(0, 1e12)
_ratio = _real(0, 1.05)
_amount = _real(0, 1e300)

interval: Final = _real(1e-3, 1e8)
"""Seconds from sample to sample, in the header."""


class Shape(NamedTuple):
    """How an object of a line becomes a record."""

    record: Callable[..., Any]
    checks: Mapping[str, Check]
    required: tuple[str, ...] = ()


MACHINE: Final = Shape(
    Machine,
    {
        "gpu_name": text,
        "driver_version": text,
        "kernel": text,
        "memory_total_bytes": _bytes,
        "gpu_count": _count,
        "partitioned": _flag,
    },
)

VALUES: Final[Mapping[str, Check]] = {
    "t": _seconds,
    "monotonic_seconds": _seconds,
    "boottime_seconds": _seconds,
    "boot_id": text,
    "late_seconds": _real(-3600, 1e11),
    "stopped": _flag,
    "rails": _by_name(_real(-1e12, 1e12)),
    "free_blocks": _blocks,
    "pending": _by_name(_seconds),
}
"""The keys of a sample that hold one value."""

OBJECTS: Final[Mapping[str, Shape]] = {
    "memory": Shape(Memory, dict.fromkeys(Memory.__dataclass_fields__, _bytes)),
    "pressure": Shape(
        Pressure,
        {
            "some_avg10_ratio": _ratio,
            "full_avg10_ratio": _ratio,
            "some_seconds": _seconds,
            "full_seconds": _seconds,
        },
    ),
    "vm": Shape(Vm, dict.fromkeys(Vm.__dataclass_fields__, _count)),
    "cpu": Shape(
        Cpu,
        {
            "busy_ratio": _ratio,
            "busiest_core_ratio": _ratio,
            "max_hertz": _hertz,
            "load1": _amount,
        },
    ),
}
"""The keys of a sample that hold one object."""

LISTS: Final[Mapping[str, Shape]] = {
    "failed": Shape(Failure, {"source": text, "reason": text}, ("source", "reason")),
    "gpus": Shape(
        Gpu,
        {
            "index": _count,
            "power_watts": _watts,
            "temperature_celsius": _celsius,
            "sm_hertz": _hertz,
            "utilization_ratio": _ratio,
            "event_reasons": _texts,
            "event_seconds": _by_name(_seconds),
            "energy_joules": _amount,
            "performance_state": _whole(0, 32),
            "memory_total_bytes": _bytes,
            "memory_used_bytes": _bytes,
        },
        ("index",),
    ),
    "zones": Shape(
        Zone,
        {"zone": _count, "type": text, "temperature_celsius": _celsius},
        ("zone", "type"),
    ),
    "processes": Shape(
        Process,
        {
            "pid": _count,
            "name": text,
            "kind": text,
            "engine": text,
            "container": text,
            "gpu_bytes": _bytes,
            "resident_bytes": _bytes,
            "swapped_bytes": _bytes,
            "major_faults": _count,
            "cgroup_refaults": _count,
            "started_seconds": _seconds,
            "launcher_pid": _count,
            "claim_ratio": _real(0, 100),
            "claim_bytes": _bytes,
        },
        ("pid",),
    ),
    "kernel": Shape(KernelEvent, {"kind": text, "code": _code, "count": _count}, ("kind",)),
    "progress": Shape(
        Progress,
        {
            "workload": text,
            "phase": text,
            "batch": _amount,
            "generation_tokens_total": _amount,
            "prompt_tokens_total": _amount,
            "steps_total": _amount,
            "step_seconds": _seconds,
            "bytes_total": _amount,
            "requests_running": _amount,
            "requests_waiting": _amount,
            "preemptions_total": _amount,
            "kv_cache_usage_ratio": _ratio,
            "model_bytes": _amount,
        },
        ("workload",),
    ),
}
"""The keys of a sample that hold a list of objects."""
