"""Pages come back from swap as fast as they went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool, available_bytes
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Growth
from spark_watch.model import GIB, State
from spark_watch.settings.g3 import SwapThrashSettings

MIB = GIB // 1024
"""One mebibyte in bytes."""

RATE_SECONDS = 2.0
"""Traffic is measured over two seconds, or over an interval where that is longer."""


class SwapThrash(Condition[SwapThrashSettings]):
    """Swap traffic, not swap use: parked pages cost nothing."""

    name = "swap_thrash"
    gotcha = "G3"
    part = "vm"
    sources = ("vmstat",)
    summary = (
        "swap-in >= 16 MiB/s for 10 s (warning); in and out both with < 8 GiB available "
        "(critical); out alone (info)"
    )
    remedies: ClassVar = {
        State.INFO: "Cold pages leave for swap: nothing to do. Swap does not hold CUDA memory, so "
        "this makes little room for a model.",
        State.WARNING: "Stop whatever runs beside the engine (builds, notebooks, a second server); "
        "the engine's own host memory is being read back from disk. More swap does not help; "
        "the next start needs a smaller memory fraction.",
        State.CRITICAL: "Stop the newest process now: the box spends its time moving pages and may "
        "stop answering. swapoff makes it worse, dropping caches does not help, and a container "
        "limit does not hold CUDA memory. Afterwards start with a smaller memory fraction.",
    }

    def __init__(self, settings: SwapThrashSettings) -> None:
        super().__init__(settings)
        self._pool = Pool()
        self._in = Growth(RATE_SECONDS)
        self._out = Growth(RATE_SECONDS)
        self._reading = Level(settings.hold_seconds, settings.leave_seconds)
        self._both = Level(settings.hold_seconds, settings.leave_seconds)
        self._writing = Level(settings.hold_seconds, settings.leave_seconds)

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the growth of the two counters.

        The first reading says nothing yet; one after a reset of the counters says nothing new.
        """
        available = available_bytes(self._pool.update(tick))
        vm = tick.sample.vm
        if vm is None or vm.swapped_in_bytes is None:
            return None
        now = tick.now
        incoming = self._in.update(now, vm.swapped_in_bytes)
        out = vm.swapped_out_bytes
        outgoing = None if out is None else self._out.update(now, out)
        if incoming is not None:
            self.measures = {("swap_in_bytes_per_second", ()): incoming}
            if outgoing is not None:
                self.measures[("swap_out_bytes_per_second", ())] = outgoing
            short = available is not None and available < tick.gib(
                self.settings.available_below_gib
            )
            self._hold(tick, incoming, outgoing or 0.0, short=short)
        elif self._reading.known:
            return None
        else:
            return {
                "host": Judgement(
                    State.UNKNOWN, "Swap traffic of the host needs two readings of its counters."
                )
            }
        return {"host": self._say(now, incoming, outgoing or 0.0, available)}

    def _hold(self, tick: Tick, incoming: float, out: float, *, short: bool) -> None:
        level = self.settings.mib_per_second * MIB
        leave = self.settings.leave_mib_per_second * MIB
        interval = tick.interval("vm")
        self._reading.update(
            tick.now, enter=incoming >= level, leave=incoming < leave, interval_seconds=interval
        )
        self._both.update(
            tick.now,
            enter=incoming >= level and out >= level and short,
            leave=incoming < leave or out < leave,
            interval_seconds=interval,
        )
        self._writing.update(
            tick.now, enter=out >= level, leave=out < leave, interval_seconds=interval
        )

    def _say(self, now: float, incoming: float, out: float, available: int | None) -> Judgement:
        values = {
            "in": incoming / MIB,
            "out": out / MIB,
            "level": self.settings.mib_per_second,
            "available": "unknown" if available is None else f"{available / GIB:.1f} GiB",
        }
        if self._both.active:
            return Judgement(
                State.CRITICAL,
                "The host swaps {in:.0f} MiB/s in and {out:.0f} MiB/s out, both at or near "
                "{level:.0f} MiB/s for {held:.0f} s (available: {available}).",
                {**values, "held": self._both.held_seconds(now)},
            )
        if self._reading.active:
            return Judgement(
                State.WARNING,
                "The host swaps {in:.0f} MiB/s in and {out:.0f} MiB/s out, in at or near "
                "{level:.0f} MiB/s for {held:.0f} s (available: {available}).",
                {**values, "held": self._reading.held_seconds(now)},
            )
        if self._writing.active:
            return Judgement(
                State.INFO,
                "The host swaps {out:.0f} MiB/s out and {in:.0f} MiB/s in, out at or near "
                "{level:.0f} MiB/s for {held:.0f} s.",
                {**values, "held": self._writing.held_seconds(now)},
            )
        return Judgement(
            State.OK if self._reading.known else State.UNKNOWN,
            "The host swaps {in:.1f} MiB/s in and {out:.1f} MiB/s out; {level:.0f} MiB/s in would "
            "count after {hold:.0f} s.",
            {**values, "hold": self.settings.hold_seconds},
        )
