"""Values with units as nvidia-smi and other loggers write them, and what stands for no value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from spark_watch.blackbox.trace.schema import Refused, shown


class Quantity(NamedTuple):
    """A kind of value: its units, lower case, each with its size in the base unit."""

    name: str
    units: Mapping[str, float]


POWER: Final = Quantity("a power", {"w": 1, "watts": 1, "watt": 1, "mw": 1e-3})
TEMPERATURE: Final = Quantity("a temperature", {"c": 1, "°c": 1, "celsius": 1})
FREQUENCY: Final = Quantity("a clock", {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9})
SHARE: Final = Quantity(
    "a share", {"%": 0.01, "pct": 0.01, "percent": 0.01, "ratio": 1, "fraction": 1}
)
SIZE: Final = Quantity(
    "a size",
    {
        "b": 1,
        "bytes": 1,
        "kib": 2**10,
        "mib": 2**20,
        "gib": 2**30,
        "ki": 2**10,
        "mi": 2**20,
        "gi": 2**30,
    },
)
DURATION: Final = Quantity(
    "a duration",
    {
        "s": 1,
        "sec": 1,
        "secs": 1,
        "seconds": 1,
        "ms": 1e-3,
        "us": 1e-6,
        "\u00b5s": 1e-6,
        "\u03bcs": 1e-6,
        "ns": 1e-9,
    },
)
PLAIN: Final = Quantity("a plain number", {})

DECIMAL_OR_BINARY: Final = frozenset({"kb", "mb", "gb", "k", "m", "g"})
"""Size units that one program means as powers of 1000 and the next as powers of 1024."""

# A comma before three digits may group thousands, so it is not read.
_VALUE: Final = re.compile(
    r"([+-]?\d+(?:\.\d+|,\d{1,2}|,\d{4,})?(?:[eE][+-]?\d+)?)\s*(%|°?[A-Za-z\u00b5\u03bc]+)?",
    re.ASCII,
)

_ABSENT: Final = frozenset(
    {"", "-", "n/a", "na", "nan", "none", "null", "not supported", "not available", "unknown"}
)
_ERRORS: Final[Mapping[str, str]] = {
    "unknown error": "unknown_error",
    "err!": "unknown_error",
    "gpu is lost": "gpu_is_lost",
    "gpu requires reset": "reset_required",
}


def is_absent(cell: str) -> bool:
    """Whether a cell holds no value: ``[N/A]``, ``[Not Supported]``, any other word in brackets."""
    return (
        (cell.startswith("[") and cell.endswith("]"))
        or cell.lower() in _ABSENT
        or error_in(cell) is not None
    )


def error_in(cell: str) -> str | None:
    """The failed reading that a cell reports, in snake case; ``None`` where it reports none."""
    return _ERRORS.get(cell.strip("[]").lower())


def split_value(cell: str) -> tuple[float, str] | None:
    """The number and the unit (lower case, empty where there is none) of a cell, or ``None``."""
    match = _VALUE.fullmatch(cell)
    if match is None:
        return None
    return float(match[1].replace(",", ".")), (match[2] or "").lower()


def read_value(cell: str, quantity: Quantity, unit: str | None) -> float:
    """The value of a cell in the base unit.

    Args:
        cell: the text, not absent.
        quantity: what it is a value of.
        unit: the unit of a bare number, lower case; ``None`` where nothing says it.

    Raises:
        Refused: no number, a unit of another quantity, or no unit where one is needed.
    """
    split = split_value(cell)
    if split is None:
        raise Refused(f"{shown(cell)} is no number")
    number, own_unit = split
    if not quantity.units:
        if own_unit:
            raise Refused(f"{shown(cell)} is no plain number")
        return number
    stated = own_unit or unit
    if stated is None:
        raise Refused(f"{shown(cell)} has no unit")
    if stated not in quantity.units:
        raise Refused(f"{shown(cell)}: {shown(stated)} is no unit of {quantity.name}")
    value = number * quantity.units[stated]
    if not math.isfinite(value):
        raise Refused(f"{shown(cell)} is beyond every number")
    return round(value, 9)
