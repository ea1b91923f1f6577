"""From the records of the model to the lines of a trace."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from spark_watch.blackbox.trace.header import TraceHeader
from spark_watch.blackbox.trace.schema import LISTS, OBJECTS, VERSION_KEY, clean
from spark_watch.model import EMPTY, Machine, Sample

_DECIMALS: Final = 6
"""Digits after the point: a microsecond of a counter, a millionth of a watt or of a share."""

_CLOCK_DECIMALS: Final = 3
_CLOCKS: Final = frozenset({"t", "monotonic_seconds", "boottime_seconds"})

_EXACT: Final = 2**53
"""Below it a float that is a whole number is written as one, which is shorter and loses nothing."""

_to_json: Final[Callable[[Any], str]] = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode

_SAMPLE_KEYS: Final = tuple(
    field.name for field in dataclasses.fields(Sample) if field.name not in {"machine", "extra"}
)
_UNSAID: Final[Mapping[str, Any]] = {"failed": (), "stopped": False, "pending": EMPTY}
"""What a sample that leaves the key out means, apart from ``None``."""

_NOT_EXPORTED: Final = frozenset({"boot_id", "container"})
"""Keys that tell one owner's machine from another's; ``container`` is a name people choose."""


def to_line(value: Mapping[str, Any]) -> bytes:
    """A JSON object as one line, with its end.

    Raises:
        ValueError: a number in it is not finite.
        RecursionError: it is nested too deeply.
    """
    return _to_json(value).encode() + b"\n"


def _plain(value: Any) -> Any:
    """A value of a record as JSON holds it; ``None`` for a number that is not finite."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, float):
        return _number(value, _DECIMALS)
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item) for key, item in value.items()}
    return _object(value) if hasattr(value, "__dataclass_fields__") else value


def _number(value: float, decimals: int) -> float | None:
    if not math.isfinite(value):
        return None
    value = round(float(value), decimals)  # an int is welcome as a float
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _object(record: Any) -> dict[str, Any]:
    plain = ((name, _plain(getattr(record, name))) for name in record.__dataclass_fields__)
    return {name: value for name, value in plain if value is not None}


def header_object(header: TraceHeader, *, export: bool = False) -> dict[str, Any]:
    """The header as the object of its line, in the order of the format's table.

    Args:
        header: what to write.
        export: leave out the unknown keys, of which nobody can say what they tell.
    """
    line: dict[str, Any] = {
        VERSION_KEY: header.version,
        "interval_seconds": _plain(header.interval_seconds),
        "machine": _object(header.machine),
    }
    if header.origin is not None:
        line["origin"] = clean(header.origin)
    if header.recorder is not None:
        line["recorder"] = clean(header.recorder)
    if not export:
        _merge(line, header.extra)
    return line


def sample_object(
    sample: Sample, known: Machine | None = None, *, export: bool = False
) -> dict[str, Any]:
    """The sample as the object of its line, in the order of the format's table.

    Args:
        sample: what to write.
        known: what the lines before said of the machine; only what differs from it is written.
        export: leave out ``boot_id``, container names and unknown keys.
    """
    line: dict[str, Any] = {}
    for key in _SAMPLE_KEYS:
        value = getattr(sample, key)
        if value is None or (key in _UNSAID and value == _UNSAID[key]):
            continue
        plain = _number(value, _CLOCK_DECIMALS) if key in _CLOCKS else _plain(value)
        if plain is not None:
            line[key] = plain
    if sample.machine is not None and sample.machine != known:
        line["machine"] = _difference(known or Machine(), sample.machine)
    if export:
        _drop(line)
    else:
        _merge(line, sample.extra)
    return line


def _difference(known: Machine, machine: Machine) -> dict[str, Any]:
    """What changed, with ``None`` for what is no longer known."""
    return {
        name: _plain(getattr(machine, name))
        for name in Machine.__dataclass_fields__
        if getattr(machine, name) != getattr(known, name)
    }


def _merge(line: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Put the unknown keys back where they were read."""
    for key, value in extra.items():
        if key not in line:
            if key not in OBJECTS and key not in LISTS:
                line[key] = value
        elif isinstance(value, Mapping) and isinstance(line[key], dict):
            line[key] |= {name: rest for name, rest in value.items() if name not in line[key]}
        elif isinstance(value, list) and isinstance(line[key], list):
            for item, rest in zip(line[key], value, strict=False):
                item |= {name: more for name, more in rest.items() if name not in item}


def _drop(line: dict[str, Any]) -> None:
    for key in _NOT_EXPORTED:
        line.pop(key, None)
        for process in line.get("processes", ()):
            process.pop(key, None)
