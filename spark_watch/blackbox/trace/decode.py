"""From the objects of JSON to the records of the model, strictly."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Final

from spark_watch.blackbox.trace.header import TraceHeader
from spark_watch.blackbox.trace.schema import (
    LISTS,
    MACHINE,
    OBJECTS,
    VALUES,
    VERSION,
    VERSION_KEY,
    Refused,
    Shape,
    clean,
    interval,
    shown,
    text,
)
from spark_watch.model import Machine, Sample

_SAMPLE_KEYS: Final = frozenset((*VALUES, *LISTS, *OBJECTS, "machine"))
_HEADER_KEYS: Final = (VERSION_KEY, "interval_seconds", "machine", "origin", "recorder")


def _no_constant(name: str) -> float:
    raise Refused(f"{name} is no number")


_parse: Final[Callable[[str], Any]] = json.JSONDecoder(parse_constant=_no_constant).decode


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object in a line.

    Raises:
        Refused: it is no UTF-8, no JSON (``NaN`` and ``Infinity`` are not JSON), or no object.
    """
    try:
        value = _parse(data.decode())
    except Refused:
        raise
    except UnicodeDecodeError:
        raise Refused("not UTF-8 text") from None
    except (ValueError, RecursionError):  # a number of 5,000 digits is a plain ValueError
        raise Refused("not JSON") from None
    if type(value) is not dict:
        raise Refused("not a JSON object")
    return value


def _record(raw: Any, shape: Shape) -> tuple[Any, dict[str, Any]]:
    """The record in an object, and the keys that the record does not have."""
    if type(raw) is not dict:
        raise Refused(f"{shown(raw)} is no object")
    values: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    checks = shape.checks
    key = ""
    try:
        for key, value in raw.items():
            if key not in checks:
                unknown[key] = value
            elif value is not None:
                values[key] = checks[key](value)
    except Refused as refused:
        raise Refused(f"{shown_key(key)}: {refused}") from None
    for key in shape.required:
        if key not in values:
            raise Refused(f"{key} is missing")
    return shape.record(**values), unknown


def shown_key(key: str) -> str:
    """A key as an error names it: printable and short."""
    return clean(key)[:60]


def _records(raw: Any, shape: Shape) -> tuple[tuple[Any, ...], list[dict[str, Any]]]:
    """The records in a list, and the unknown keys of each; no list where none has any."""
    if type(raw) is not list:
        raise Refused(f"{shown(raw)} is no list")
    records: list[Any] = []
    unknown: list[dict[str, Any]] = []
    for item in raw:
        try:
            record, rest = _record(item, shape)
        except Refused as refused:
            raise Refused(f"[{len(records)}] {refused}") from None
        records.append(record)
        unknown.append(rest)
    return tuple(records), unknown if any(unknown) else []


def sample_from(raw: dict[str, Any], machine: Machine) -> Sample:
    """The sample in a line's object.

    Args:
        raw: the object, as it came out of JSON.
        machine: what the lines before said of the machine; the sample's own keys change it.

    Returns:
        A sample whose ``extra`` holds every key that is not known, on its own or, for the keys of
        a part, under the part's name: an object for an object, a list of objects for a list.

    Raises:
        Refused: a value is not what its key holds, or ``t`` is missing.
    """
    values: dict[str, Any] = {"machine": machine}
    extra: dict[str, Any] = {}
    key = ""
    try:
        for key, value in raw.items():
            if key not in _SAMPLE_KEYS:
                extra[key] = value
            elif value is not None:
                values[key], unknown = _part(key, value, machine)
                if unknown:
                    extra[key] = unknown
    except Refused as refused:
        raise Refused(f"{shown_key(key)}: {refused}") from None
    if "t" not in values:
        raise Refused("t is missing")
    if extra:
        values["extra"] = extra
    return Sample(**values)


def _part(key: str, value: Any, machine: Machine) -> tuple[Any, Any]:
    """What a known key of a sample holds, and the unknown keys in it."""
    if key in VALUES:
        return VALUES[key](value), None
    if key in LISTS:
        return _records(value, LISTS[key])
    if key in OBJECTS:
        return _record(value, OBJECTS[key])
    return _changed(machine, value)


def _changed(machine: Machine, raw: Any) -> tuple[Machine, dict[str, Any]]:
    """The machine with the keys of ``raw``, where ``null`` means: no longer known."""
    stated, unknown = _record(raw, MACHINE)
    changes = {key: getattr(stated, key) for key in raw if key in MACHINE.checks}
    return dataclasses.replace(machine, **changes), unknown


def header_from(raw: dict[str, Any]) -> TraceHeader:
    """The header in the first line's object.

    Raises:
        Refused: it is no header, of another version, or a value is not what its key holds.
    """
    if VERSION_KEY not in raw:
        raise Refused(f"no trace header ({VERSION_KEY} is missing)")
    version = raw[VERSION_KEY]
    if type(version) is not int or version != VERSION:
        raise Refused(f"trace version {shown(version)} is not known, only {VERSION}")
    extra = {key: value for key, value in raw.items() if key not in _HEADER_KEYS}
    values: dict[str, Any] = {}
    key = "interval_seconds"
    try:
        values[key] = interval(raw.get(key))
        for key in ("origin", "recorder"):
            if raw.get(key) is not None:
                values[key] = text(raw[key])
        key = "machine"
        if raw.get(key) is not None:
            values[key], unknown = _record(raw[key], MACHINE)
            if unknown:
                extra[key] = unknown
    except Refused as refused:
        raise Refused(f"{key}: {refused}") from None
    return TraceHeader(extra=extra, **values)
