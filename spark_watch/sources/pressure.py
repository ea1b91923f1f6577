"""``/proc/pressure/memory``: how much of the time tasks waited for memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.model import Pressure
from spark_watch.sources.files import KeptFile

_LINE: Final = re.compile(
    rb"^(some|full) avg10=(\d{1,3}\.\d\d) avg60=\d{1,3}\.\d\d avg300=\d{1,3}\.\d\d "
    rb"total=(\d{1,20})\n",
    re.MULTILINE,
)
_WHOLE_PERCENT: Final = 100.0
_MICROSECONDS: Final = 1_000_000


class PressureSource:
    """Reads ``pressure/memory`` below ``proc_root``.

    Source: https://docs.kernel.org/accounting/psi.html
    """

    name = "pressure"

    def __init__(self, *, proc_root: Path = Path("/proc")) -> None:
        self._file = KeptFile(proc_root / "pressure" / "memory", absent=Unsupported)

    def read(self) -> Pressure:
        """Return the ten-second means as shares of 1 and the total stall time in seconds.

        Raises:
            Unsupported: the kernel was built without pressure stall information (the file is
                absent) or started with it switched off (EOPNOTSUPP).
            Unavailable: ``malformed`` where neither line could be read; otherwise the kernel's
                answer.
        """
        return parse(self._file.read())

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()


def parse(text: bytes) -> Pressure:
    """Return what ``text`` says; the values of a line that is absent or garbled are ``None``.

    Raises:
        Unavailable: ``malformed`` where neither line could be read.
    """
    values: dict[str, float] = {}
    for kind, percent, microseconds in _LINE.findall(text):
        if float(percent) <= _WHOLE_PERCENT:
            values[f"{kind.decode()}_avg10_ratio"] = float(percent) / _WHOLE_PERCENT
            values[f"{kind.decode()}_seconds"] = int(microseconds) / _MICROSECONDS
    if not values:
        raise Unavailable("malformed", "no line of /proc/pressure/memory could be read")
    return Pressure(**values)
