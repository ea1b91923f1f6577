"""Who else says that memory is short: the driver, the kernel's pressure, swap."""

from __future__ import annotations

from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Growth
from spark_watch.model import GIB

MIB = GIB // 1024
"""One mebibyte in bytes."""


class Witness:
    """Remembers the last moment at which a second source said that memory is short.

    Args:
        seconds: how long a witness counts.
        pressure_ratio: share of time in which every task waited for memory.
        swap_in_mib_per_second: how fast pages must come back from swap.
    """

    __slots__ = ("_at", "_swapped_in", "pressure_ratio", "seconds", "swap_in", "what")

    def __init__(
        self, *, seconds: float, pressure_ratio: float, swap_in_mib_per_second: float
    ) -> None:
        self.seconds = seconds
        self.pressure_ratio = pressure_ratio
        self.swap_in = swap_in_mib_per_second * MIB
        self._swapped_in = Growth(2.0)
        self._at: float | None = None
        self.what = ""

    def update(self, tick: Tick) -> bool:
        """Look at a sample and return whether a witness stands; ``what`` names the last one."""
        sample = tick.sample
        now = tick.now
        if sample.kernel:
            for event in sample.kernel:
                if event.kind == "nv_err_no_memory":
                    self._at, self.what = now, "driver allocation failures"
        pressure = sample.pressure
        if (
            pressure is not None
            and pressure.full_avg10_ratio is not None
            and pressure.full_avg10_ratio >= self.pressure_ratio
        ):
            self._at, self.what = now, "memory pressure"
        if sample.vm is not None and sample.vm.swapped_in_bytes is not None:
            rate = self._swapped_in.update(now, sample.vm.swapped_in_bytes)
            if rate is not None and rate >= self.swap_in:
                self._at, self.what = now, "pages coming back from swap"
        return self._at is not None and now - self._at <= self.seconds
