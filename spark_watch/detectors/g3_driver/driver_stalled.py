"""An NVML call does not come back: the driver waits for memory, or for its firmware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.pool import Pool, available_bytes
from spark_watch.detectors.timeline import Tick
from spark_watch.model import State
from spark_watch.settings.g3_driver import DriverStalledSettings

ANSWERS: Final = Judgement(State.OK, "NVML answers.")


class DriverStalled(Condition[DriverStalledSettings]):
    """How long the one NVML call in flight has been out.

    The time is measured by the source, so a level counts at the first sample that shows it. The
    first call ever wakes the driver and may be slow: until NVML has answered once only the longer
    times count.
    """

    name = "driver_stalled"
    gotcha = "G3"
    part = "gpus"
    sources = ("nvml",)
    summary = "NVML call out for more than 10 s; 60 s critical, 20 s with < 8 GiB available"
    remedies: ClassVar = {
        State.WARNING: "Stop the youngest GPU job by its own means while the host still answers, "
        "and start nothing on the GPU. Do not run nvidia-smi in a loop: each one waits for the "
        "same lock.",
        State.CRITICAL: "Save what can be saved from a shell that is already open, then reboot; "
        "if that hangs, hold the power button. A process that waits in the driver is in D state "
        "and cannot be killed: no kill-and-restart loops, and no nvidia-smi, which would wait "
        "too. A container restart does not help.",
    }

    def __init__(self, settings: DriverStalledSettings) -> None:
        super().__init__(settings)
        self._answered = False
        self._pool = Pool()

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the call that is out; an answer says ok, a failed call says nothing."""
        memory = self._pool.update(tick)
        out = tick.sample.pending.get("nvml")
        if tick.sample.gpus is not None:
            self._answered = True
            if out is None or out <= self.settings.warning_seconds:
                return {"host": ANSWERS}
        return None if out is None else self._outstanding(tick, out, available_bytes(memory))

    def _outstanding(
        self, tick: Tick, out: float, available: int | None
    ) -> Mapping[str, Judgement | None] | None:
        settings = self.settings
        low = available is not None and available < tick.gib(settings.low_memory_gib)
        critical_seconds = settings.critical_seconds
        if low:
            critical_seconds = min(critical_seconds, settings.low_memory_critical_seconds)
        if out > critical_seconds:
            state, level = State.CRITICAL, critical_seconds
        elif out > settings.warning_seconds and self._answered:
            state, level = State.WARNING, settings.warning_seconds
        else:
            return None
        values = {"out": out, "level": level}
        template = "An NVML call has been out for {out:.0f} s (level {level:.0f} s)"
        if not self._answered:
            template += "; NVML has not answered once since this watch began"
        if available is not None:
            values["available"] = tick.in_gib(available)
            template += "; {available:.1f} GiB are available"
        return {"host": Judgement(state, template + ".", values)}
