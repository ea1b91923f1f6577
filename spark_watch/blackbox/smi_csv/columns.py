"""Which column of a log is what, by the names of ``nvidia-smi --help-query-gpu`` and common others.

A column is read only where its meaning is certain. ``mem_used_mb`` is not: whose memory, and is an
MB 10^6 bytes or 2^20? What is not read is named in a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_watch.blackbox.smi_csv import units
from spark_watch.blackbox.smi_csv.units import Quantity, read_value, split_value
from spark_watch.blackbox.trace.schema import LISTS, OBJECTS, Check, Refused, clean, shown

REASONS: Final[Mapping[int, str]] = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of the mask: ``nvmlClocksEventReason*`` and ``nvmlClocksThrottleReason*`` of nvml.h."""

SLOWDOWNS: Final = frozenset(
    {
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
    }
)
"""The reasons that must all be columns before "none is active" can be said of a row."""

_MASK: Final = re.compile(r"0x[0-9a-fA-F]{1,16}", re.ASCII)
_INDEX: Final = re.compile(r"\d{1,3}", re.ASCII)
_PSTATE: Final = re.compile(r"[Pp](\d{1,2})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a column fills.

    Args:
        key: the field it fills; unique among the columns of a log.
        read: from a cell that is not absent and the unit of bare numbers to the value.
        unit: of a bare number where neither the cell nor the title has one; ``None``: refused.
        rank: the lowest of several columns for one key is read.
    """

    key: str
    read: Callable[[str, str | None], Any]
    unit: str | None = None
    rank: int = 0


def _measured(key: str, check: Check, quantity: Quantity, unit: str | None, rank: int = 0) -> Role:
    def read(cell: str, stated: str | None) -> Any:
        value = read_value(cell, quantity, stated)
        return check(round(value) if quantity is units.SIZE else value)

    return Role(key=key, read=read, unit=unit, rank=rank)


def _of_gpu(field: str, quantity: Quantity, unit: str | None, rank: int = 0) -> Role:
    return _measured(f"gpu.{field}", LISTS["gpus"].checks[field], quantity, unit, rank)


def _of_host(part: str, field: str, quantity: Quantity, unit: str | None = None) -> Role:
    return _measured(f"{part}.{field}", OBJECTS[part].checks[field], quantity, unit)


def _utilization(cell: str, unit: str | None) -> Any:
    split = split_value(cell)
    if split is not None and unit is None and not split[1] and 0 < split[0] < 1:
        raise Refused(f"{shown(cell)} may be a share or per cent")
    value = read_value(cell, units.SHARE, unit or "%")
    return LISTS["gpus"].checks["utilization_ratio"](value)


def _text(cell: str, _: str | None) -> str:
    return cell


def _index(cell: str, _: str | None) -> int:
    if not _INDEX.fullmatch(cell) or int(cell) > MOST_GPUS:
        raise Refused(f"{shown(cell)} is no GPU's index")
    return int(cell)


def _mask(cell: str, _: str | None) -> tuple[str, ...]:
    if not _MASK.fullmatch(cell):
        raise Refused(f"{shown(cell)} is no mask of event reasons")
    bits = int(cell, 16)
    return tuple(
        REASONS.get(1 << bit, f"bit_{bit}") for bit in range(bits.bit_length()) if bits >> bit & 1
    )


def _pstate(cell: str, _: str | None) -> int:
    match = _PSTATE.fullmatch(cell)
    if not match:
        raise Refused(f"{shown(cell)} is no performance state")
    return int(match[1])


def _flag(words: Mapping[str, bool]) -> Callable[[str, str | None], bool]:
    def read(cell: str, _: str | None) -> bool:
        flag = words.get(cell.lower())
        if flag is None:
            raise Refused(f"{shown(cell)} is none of {', '.join(words)}")
        return flag

    return read


_active = _flag({"active": True, "not active": False})
_enabled = _flag({"enabled": True, "disabled": False})

MOST_GPUS: Final = 63
"""The largest index believed; beyond it the column counts rows, not GPUs."""

TIME: Final = Role(key="time", read=_text)
ELAPSED: Final = Role(key="time", read=_text, unit="s", rank=1)
INDEX: Final = Role(key="index", read=_index)
UUID: Final = Role(key="uuid", read=_text)
BUS: Final = Role(key="bus", read=_text)
NAME: Final = Role(key="name", read=_text)
POWER: Final = _of_gpu("power_watts", units.POWER, "w")
TEMPERATURE: Final = _of_gpu("temperature_celsius", units.TEMPERATURE, "c")
CLOCK: Final = _of_gpu("sm_hertz", units.FREQUENCY, "mhz")
UTILIZATION: Final = Role(key="gpu.utilization_ratio", read=_utilization)
PSTATE: Final = Role(key="gpu.performance_state", read=_pstate)
MASK: Final = Role(key="mask", read=_mask)

_MEAN_POWER: Final = _of_gpu("power_watts", units.POWER, "w", rank=1)
_INSTANT_POWER: Final = _of_gpu("power_watts", units.POWER, "w", rank=2)
_GRAPHICS_CLOCK: Final = _of_gpu("sm_hertz", units.FREQUENCY, "mhz", rank=1)

_EXACT: Final[Mapping[str, Role]] = {
    "memory.total": _of_gpu("memory_total_bytes", units.SIZE, "mib"),
    "memory.used": _of_gpu("memory_used_bytes", units.SIZE, "mib"),
}
"""Names that mean this only as nvidia-smi spells them."""

_KNOWN: Final[Mapping[str, Role]] = {
    **dict.fromkeys(("timestamp", "time", "ts", "datetime", "date_time", "t", "t_epoch"), TIME),
    **dict.fromkeys(("epoch", "unix", "unix_time", "time_of_day", "hh_mm_ss"), TIME),
    **dict.fromkeys(("elapsed", "elapsed_time", "time_elapsed", "seconds", "sec"), ELAPSED),
    **dict.fromkeys(("index", "gpu_index", "gpu_idx", "gpu_id"), INDEX),
    **dict.fromkeys(("uuid", "gpu_uuid"), UUID),
    **dict.fromkeys(("pci_bus_id", "gpu_bus_id"), BUS),
    **dict.fromkeys(("name", "gpu_name"), NAME),
    "driver_version": Role(key="driver", read=_text),
    "mig_mode_current": Role(key="mig", read=_enabled),
    **dict.fromkeys(("power_draw", "power", "gpu_power", "gpu_power_draw"), POWER),
    "power_draw_average": _MEAN_POWER,
    "power_draw_instant": _INSTANT_POWER,
    **dict.fromkeys(
        ("temperature_gpu", "temp", "temperature", "gpu_temp", "gpu_temperature", "temp_gpu"),
        TEMPERATURE,
    ),
    **dict.fromkeys(
        ("clocks_sm", "clocks_current_sm", "sm_clock", "clock_sm", "gpu_sm_clock"), CLOCK
    ),
    "sm": _of_gpu("sm_hertz", units.FREQUENCY, None),  # without a unit it may be a utilization
    **dict.fromkeys(
        ("clocks_gr", "clocks_current_graphics", "clocks_current_gr", "graphics_clock"),
        _GRAPHICS_CLOCK,
    ),
    **dict.fromkeys(
        ("utilization_gpu", "util", "gpu_util", "utilization", "gpu_utilization", "util_gpu"),
        UTILIZATION,
    ),
    "pstate": PSTATE,
    **{f"clocks_{word}_reasons_active": MASK for word in ("event", "throttle")},
    **{
        f"clocks_{word}_reasons_{reason}": Role(key=f"reason.{reason}", read=_active)
        for word in ("event", "throttle")
        for reason in REASONS.values()
    },
    **{
        f"clocks_event_reasons_counters_{reason}": _measured(
            f"seconds.{reason}", OBJECTS["pressure"].checks["full_seconds"], units.DURATION, "us"
        )
        for reason in REASONS.values()
    },
    **dict.fromkeys(
        ("mem_available", "memavailable"), _of_host("memory", "available_bytes", units.SIZE)
    ),
    **dict.fromkeys(("mem_total", "memtotal"), _of_host("memory", "total_bytes", units.SIZE)),
    **dict.fromkeys(("mem_free", "memfree"), _of_host("memory", "free_bytes", units.SIZE)),
    "psi_mem_full_avg10": _of_host("pressure", "full_avg10_ratio", units.SHARE, "%"),
    "psi_mem_some_avg10": _of_host("pressure", "some_avg10_ratio", units.SHARE, "%"),
    "load1": _of_host("cpu", "load1", units.PLAIN),
}
"""Names in lower case with ``_`` for every other character, without their unit."""

_ALL_UNITS: Final = frozenset(
    unit
    for quantity in (
        units.POWER,
        units.TEMPERATURE,
        units.FREQUENCY,
        units.SHARE,
        units.SIZE,
        units.DURATION,
    )
    for unit in quantity.units
)

_BRACKETED: Final = re.compile(r"(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]")
_NOT_WORD: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that is read.

    Args:
        title: its name in the file, for errors.
        role: what it fills.
        unit: of its bare numbers, as the title or the role says; ``None`` where neither does.
    """

    title: str
    role: Role
    unit: str | None = None

    def read(self, cell: str) -> Any:
        """The value of a cell that is not absent.

        Raises:
            Refused: it is no value of this column; the text names the column.
        """
        try:
            return self.role.read(cell, self.unit)
        except Refused as refused:
            raise Refused(f"{self.title}: {refused}") from None


def column_of(title: str) -> Column | None:
    """The column that a title names, or ``None`` where its meaning is not certain.

    The unit is what stands in brackets or, for names with ``_``, at the end (``power_w``).
    """
    base, unit = title.strip().lstrip("# ").lower(), None
    bracketed = _BRACKETED.fullmatch(base)
    if bracketed:
        base, unit = bracketed[1], bracketed[2] or None
    role = _EXACT.get(base)
    if role is None:
        name = _NOT_WORD.sub("_", base).strip("_")
        role = _KNOWN.get(name)
        if role is None and unit is None and "_" in name:
            name, _, unit = name.rpartition("_")
            role = _KNOWN.get(name)
    if role is None or (unit is not None and unit not in _ALL_UNITS):
        return None
    if role.key == "time" and unit is not None and unit not in units.DURATION.units:
        return None
    return Column(title=clean(title.strip())[:40], role=role, unit=unit or role.unit)
