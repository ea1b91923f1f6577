"""Load and clock of the CPU."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from spark_watch.errors import SourceError, Unavailable
from spark_watch.model import Cpu
from spark_watch.sources.files import KeptFile, children, natural, source_error

_POLICY: Final = re.compile(r"policy\d{1,4}")
_LOAD: Final = re.compile(rb"(\d{1,7}\.\d\d) ")


class _Core(NamedTuple):
    """Seconds since boot of one core, or of several together."""

    total: float
    idle: float


class CpuSource:
    """Reads core times through psutil, the load average, and the clocks of cpufreq.

    ``psutil`` has one root for the whole process, ``psutil.PROCFS_PATH``. It is ``proc_root`` while
    a reading takes and then what it was before: nothing else here reads through psutil.

    Source: https://docs.kernel.org/filesystems/proc.html (``stat``, ``loadavg``),
    https://docs.kernel.org/admin-guide/pm/cpufreq.html (``scaling_cur_freq``)
    """

    name = "cpu"

    def __init__(self, *, proc_root: Path = Path("/proc"), sys_root: Path = Path("/sys")) -> None:
        self._proc_root = proc_root
        self._load = KeptFile(proc_root / "loadavg")
        self._policies = sys_root / "devices" / "system" / "cpu" / "cpufreq"
        self._clocks: tuple[KeptFile, ...] = ()
        self._cores: list[_Core] = []

    def read(self) -> Cpu:
        """Return the load since the last reading that succeeded, and the fastest core's clock.

        Shares are ``None`` at the first reading, and where the number of cores has changed or time
        has not moved. Clock and load average are ``None`` where they cannot be read.

        Raises:
            Unavailable: ``malformed`` where the core times make no sense; otherwise the kernel's
                answer for them.
        """
        before = self._cores
        self._cores = self._core_times()
        busy = busiest = None
        if len(before) == len(self._cores):
            shares = [_busy(*pair) for pair in zip(before, self._cores, strict=True)]
            busy = _busy(_together(before), _together(self._cores))
            busiest = max((share for share in shares if share is not None), default=None)
        return Cpu(
            busy_ratio=busy,
            busiest_core_ratio=busiest,
            max_hertz=self._fastest(),
            load1=self._load_average(),
        )

    def close(self) -> None:
        """Close every descriptor and forget the last core times."""
        for file in (self._load, *self._clocks):
            file.close()
        self._clocks = ()
        self._cores = []

    def _core_times(self) -> list[_Core]:
        path = self._proc_root / "stat"
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise Unavailable("not_a_file", f"{path}: not a regular file")
            times = _psutil_times(self._proc_root)
        except OSError as error:
            raise source_error(error, path) from error
        except (ValueError, TypeError, IndexError) as error:
            raise Unavailable("malformed", f"{path}: {error}") from error
        # Guest time is counted within user time, and its share of nice within nice.
        cores = [
            _Core(sum(each) - each.guest - each.guest_nice, each.idle + each.iowait)
            for each in times
        ]
        sane = all(min(each) >= 0 for each in times)
        if not (cores and sane and all(core.idle <= core.total < math.inf for core in cores)):
            raise Unavailable("malformed", f"{path} holds no core times")
        return cores

    def _fastest(self) -> float | None:
        if not self._clocks:
            self._clocks = tuple(_clocks(self._policies))
        kilohertz = [_kilohertz(file) for file in self._clocks]
        fastest = max((each for each in kilohertz if each), default=None)
        return None if fastest is None else fastest * 1000.0

    def _load_average(self) -> float | None:
        try:
            match = _LOAD.match(self._load.read())
        except SourceError:
            return None
        return None if match is None else float(match[1])


def _psutil_times(proc_root: Path) -> list[Any]:
    before, psutil.PROCFS_PATH = psutil.PROCFS_PATH, str(proc_root)
    try:
        return psutil.cpu_times(percpu=True)
    finally:
        psutil.PROCFS_PATH = before


def _together(cores: list[_Core]) -> _Core:
    return _Core(sum(core.total for core in cores), sum(core.idle for core in cores))


def _busy(before: _Core, after: _Core) -> float | None:
    """Return the share of the time between two readings that was not idle, 0 to 1."""
    elapsed = after.total - before.total
    if elapsed <= 0:
        return None
    # Waiting for I/O may run backwards (the kernel says so), and idle with it.
    return min(1.0, max(0.0, 1 - (after.idle - before.idle) / elapsed))


def _clocks(folder: Path) -> Iterator[KeptFile]:
    """Yield the clock of every group of cores that share one; none on a virtual machine."""
    with suppress(SourceError):
        for name in children(folder):
            if _POLICY.fullmatch(name):
                yield KeptFile(folder / name / "scaling_cur_freq")


def _kilohertz(file: KeptFile) -> int | None:
    try:
        return natural(file.read().strip())
    except SourceError:
        return None
