"""Power rails of the out-of-tree ``spbm`` driver, where its owner has loaded it.

Nothing else on a GB10 tells the power of the whole box or of the CPU
(https://github.com/antheas/spark_hwmon). Its ``power*_cap`` files change the machine when written;
nothing here opens one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError, Unavailable, Unsupported
from spark_watch.sources.files import KeptFile, children, integer, label, read_once

FLAGS: Final = frozenset({"prochot", "pl_level", "tj_max"})
"""Names in a reading that are no watts: 1 while the CPU is told to throttle, the level of the
active power limit, and the hottest junction in degrees Celsius."""

_DRIVER: Final = b"spbm"
_INPUT: Final = re.compile(r"(power|temp)(\d{1,3})_input")
_READINGS_PER_SCAN: Final = 60


@dataclass(frozen=True, slots=True)
class _Channel:
    name: str
    file: KeptFile
    divisor: int = 1
    least: int = 0


class RailsSource:
    """Reads the device named ``spbm`` under ``class/hwmon`` below ``sys_root``.

    Source: https://docs.kernel.org/hwmon/sysfs-interface.html
    """

    name = "rails"

    def __init__(self, *, sys_root: Path = Path("/sys")) -> None:
        self._folder = sys_root / "class" / "hwmon"
        self._channels: tuple[_Channel, ...] = ()
        self._readings_left = 0

    def read(self) -> Mapping[str, float]:
        """Return the driver's own names to watts, and those of :data:`FLAGS` where it has them.

        Channels are named by their label files: versions of the driver number them differently. A
        channel that fails, a rail below 0 W and a junction at 0 C are left out.

        Raises:
            Unsupported: ``not_found`` where the driver is not loaded.
            Unavailable: ``malformed`` where it is and no channel could be read.
        """
        if self._readings_left == 0:
            self._scan()
        self._readings_left -= 1
        values: dict[str, float] = {}
        for channel in self._channels:
            value = _value(channel)
            if value is not None:
                values[channel.name] = value
        if not values:
            self._readings_left = 0
            raise Unavailable("malformed", "no channel of spbm could be read")
        return values

    def close(self) -> None:
        """Close every descriptor."""
        for channel in self._channels:
            channel.file.close()
        self._channels = ()
        self._readings_left = 0

    def _scan(self) -> None:
        self.close()
        for device in children(self._folder, absent=Unsupported):
            if _text(self._folder / device / "name").strip() == _DRIVER:
                self._channels = tuple(_channels(self._folder / device))
                self._readings_left = _READINGS_PER_SCAN
                return
        raise Unsupported("not_found", f"{self._folder}: spbm is not loaded")


def _channels(device: Path) -> list[_Channel]:
    channels = [
        _Channel(flag, KeptFile(device / flag))
        for flag in ("prochot", "pl_level")
        if (device / flag).exists()
    ]
    for match in map(_INPUT.fullmatch, children(device)):
        if match is None:
            continue
        kind, number = match.groups()
        name = label(_text(device / f"{kind}{number}_label"))
        file = KeptFile(device / match[0])
        if kind == "power" and name is not None and name not in FLAGS:
            channels.append(_Channel(name, file, divisor=1_000_000))
        elif kind == "temp" and name == "tj_max":
            channels.append(_Channel(name, file, divisor=1000, least=1))
    return channels


def _text(path: Path) -> bytes:
    """Return the text of ``path``, empty where it cannot be read."""
    try:
        return read_once(path)
    except SourceError:
        return b""


def _value(channel: _Channel) -> float | None:
    try:
        number = integer(channel.file.read())
    except SourceError:
        return None
    return None if number is None or number < channel.least else number / channel.divisor
