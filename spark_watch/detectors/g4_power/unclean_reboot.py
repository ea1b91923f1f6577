"""The machine came up again without having been stopped."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement, spoken
from spark_watch.detectors.last_seen import LastSeen
from spark_watch.detectors.timeline import Tick
from spark_watch.model import State
from spark_watch.settings.g4_boot import UncleanRebootSettings

TWICE: Final = 2
"""So many within the time that one stands are critical."""


NO_RECORD: Final = Judgement(State.UNKNOWN, "No record of the boot before: not known how it ended.")
CLEAN: Final = Judgement(
    State.OK, "No restart without a clean stop stands: none lately, or it was acknowledged."
)


class UncleanReboot(Condition[UncleanRebootSettings]):
    """A new boot id after a sample that is not the last one of a clean stop.

    What other conditions said in the last ten minutes is told as what stood before, never as the
    cause. In the same boot a missing stop mark is a killed daemon and no matter of this rule.
    Without the record of a boot before, nothing is known of how it ended.
    """

    name = "unclean_reboot"
    gotcha = "G4"
    part = "sample"
    sources = ("boot",)
    needs = "event"
    survives_reboot = True
    summary = "New boot without our stop mark; stands for 24 h; twice in 24 h critical"
    remedies: ClassVar = {
        State.WARNING: "Read spark-watch postmortem and the end of the last boot's log (journalctl "
        "-b -1 -e). If nothing stood before, suspect power: the adapter, the socket, the unit "
        "itself; run the vendor's field diagnostics if it happens again. Lowering a memory "
        "fraction does not help a power loss.",
        State.CRITICAL: "Keep long jobs off this machine, cap the clock (nvidia-smi -lgc 0,2100) "
        "and see whether it stays up; if it does not, run the vendor's field diagnostics and ask "
        "for a replacement. See that no unit starts the same job again at boot (systemctl "
        "disable): a job that brings the machine down would do so again.",
    }

    def __init__(self, settings: UncleanRebootSettings) -> None:
        super().__init__(settings)
        self._last = LastSeen()
        self._last_at = 0.0
        self._stood: dict[str, tuple[float, State]] = {}
        self._restarts: deque[float] = deque(maxlen=16)
        self._told: Mapping[str, str] = {}
        self._acknowledged = False
        self._clean: bool | None = None

    def acknowledge(self) -> None:
        """Somebody has seen the last restart: it does not stand any more, but it still counts."""
        self._acknowledged = True

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge whether this boot began after a clean stop of the one before."""
        self._note_standing(tick)
        if tick.rebooted:
            self._restart(tick)
        self._last.update(tick.sample)
        self._last_at = tick.now
        return {"host": self._say(tick)}

    def _note_standing(self, tick: Tick) -> None:
        """Keep what other conditions said up to the sample before."""
        standing: Mapping[str, State] = tick.notes.get("standing", {})
        for name, state in standing.items():
            if name != self.name:
                self._stood[name] = (self._last_at, state)

    def _restart(self, tick: Tick) -> None:
        """Take note of the restart between the sample before and this one."""
        last = self._last
        before = last.sample
        self._clean = before is None or before.stopped
        if not self._clean:
            edge = self._last_at - self.settings.precursor_seconds
            stood = [
                f"{name} ({state.label})"
                for name, (seen_at, state) in self._stood.items()
                if seen_at >= edge
            ]
            self._told = {
                "age": spoken(tick.since_last_seconds),
                "stood": "before it stood " + ", ".join(stood)
                if stood
                else "no precursor recorded",
                "seen": last.words(),
            }
            self._restarts.append(tick.now)
            self._acknowledged = False
        self._stood = {}
        last.restart()

    def _say(self, tick: Tick) -> Judgement:
        restarts = self._restarts
        while restarts and tick.now - restarts[0] >= self.settings.stand_seconds:
            restarts.popleft()
        if restarts and not self._acknowledged:
            values: dict[str, Any] = {
                **self._told,
                "count": len(restarts),
                "ago": spoken(tick.now - restarts[-1]),
                "stand": spoken(self.settings.stand_seconds),
            }
            template = (
                "The machine restarted without a clean stop, seen {ago} ago; the last sample "
                "before was {age} old; {stood}; it showed {seen}"
            )
            if len(restarts) >= TWICE:
                template += " ({count} times within {stand})"
                return Judgement(State.CRITICAL, template + ".", values)
            return Judgement(State.WARNING, template + ".", values)
        if self._clean is None:
            return Judgement(State.UNKNOWN, "No record of the boot before: not known how it ended.")
        return CLEAN
