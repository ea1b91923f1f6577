"""Thermal zones. A GB10 has seven, all of type ``acpitz``, so a zone is known by its number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError, Unsupported
from spark_watch.model import Zone
from spark_watch.sources.files import KeptFile, children, integer, label, read_once

_ZONE: Final = re.compile(r"thermal_zone(\d{1,4})")
_READINGS_PER_SCAN: Final = 60
"""Zones come and go with modules, not with time: the folder is listed again this seldom."""

_COLDEST: Final = -40_000
_HOTTEST: Final = 200_000
"""Millidegrees Celsius that no zone of a running machine reaches."""


@dataclass(frozen=True, slots=True)
class _Sensor:
    zone: int
    type: str
    file: KeptFile


class ThermalSource:
    """Reads every ``class/thermal/thermal_zone*`` below ``sys_root``.

    Source: https://docs.kernel.org/driver-api/thermal/sysfs-api.html
    """

    name = "thermal"

    def __init__(self, *, sys_root: Path = Path("/sys")) -> None:
        self._folder = sys_root / "class" / "thermal"
        self._sensors: tuple[_Sensor, ...] = ()
        self._readings_left = 0

    def read(self) -> tuple[Zone, ...]:
        """Return every zone by number; one that fails or reads nonsense has no temperature.

        Nonsense is 0 (a sensor that is switched off), -40 C or less and 200 C or more.

        Raises:
            Unsupported: ``not_found`` where the machine has no thermal zone.
            Unavailable: the folder could not be listed.
        """
        if self._readings_left == 0:
            self._scan()
        self._readings_left -= 1
        return tuple(
            Zone(zone=sensor.zone, type=sensor.type, temperature_celsius=_celsius(sensor.file))
            for sensor in self._sensors
        )

    def close(self) -> None:
        """Close every descriptor."""
        for sensor in self._sensors:
            sensor.file.close()
        self._sensors = ()
        self._readings_left = 0

    def _scan(self) -> None:
        self.close()
        numbers = sorted(
            int(match[1])
            for match in map(_ZONE.fullmatch, children(self._folder, absent=Unsupported))
            if match
        )
        if not numbers:
            raise Unsupported("not_found", f"{self._folder}: no thermal zone")
        self._sensors = tuple(
            _Sensor(
                zone=number,
                type=_type(self._folder / f"thermal_zone{number}" / "type"),
                file=KeptFile(self._folder / f"thermal_zone{number}" / "temp"),
            )
            for number in numbers
        )
        self._readings_left = _READINGS_PER_SCAN


def _type(path: Path) -> str:
    try:
        return label(read_once(path)) or "unknown"
    except SourceError:
        return "unknown"


def _celsius(file: KeptFile) -> float | None:
    try:
        millidegrees = integer(file.read())
    except SourceError:
        return None
    if not millidegrees or not _COLDEST < millidegrees < _HOTTEST:
        return None
    return millidegrees / 1000
