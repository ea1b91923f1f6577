"""Our own recording has a hole: for that time nobody watched, often because nobody could."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement, spoken
from spark_watch.detectors.last_seen import LastSeen
from spark_watch.detectors.timeline import Tick
from spark_watch.model import State
from spark_watch.settings.g3_driver import TelemetryGapSettings


class TelemetryGap(Condition[TelemetryGapSettings]):
    """A hole between two samples of our own recorder, within one boot.

    Suspend and steps of the wall clock do not count, because the monotonic clock does not count
    them. A hole after a clean stop was wanted. One across a restart is ``unclean_reboot``'s.
    """

    name = "telemetry_gap"
    gotcha = "G3"
    part = "sample"
    sources = ()
    needs = "event"
    summary = "Own recording silent for more than 60 s and 20 intervals; stands for 15 min"
    remedies: ClassVar = {
        State.WARNING: "Look at what stood before the hole (spark-watch postmortem) and at the "
        "kernel log of that time: a machine short of memory stops its own watch first. Restarting "
        "spark-watch does not bring the samples back.",
    }

    def __init__(self, settings: TelemetryGapSettings) -> None:
        super().__init__(settings)
        self._last = LastSeen()
        self._ended_at: float | None = None
        self._gap: Mapping[str, str] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the time since the sample before; a gap stands for a while after it ended."""
        if not tick.own_recording:
            return {
                "host": Judgement(
                    State.UNKNOWN,
                    "Not our own recording: a hole in it says nothing of the machine.",
                )
            }
        settings = self.settings
        last = self._last
        before = last.sample
        if before is not None and not before.stopped:
            level = max(settings.gap_seconds, settings.gap_intervals * tick.interval("sample"))
            if tick.since_last_seconds > level:
                self._ended_at = tick.now
                self._gap = {
                    "gap": spoken(tick.since_last_seconds),
                    "level": spoken(level),
                    "before": last.words(),
                }
        last.update(tick.sample)
        ended = self._ended_at
        if ended is not None and tick.now - ended < settings.stand_seconds:
            return {
                "host": Judgement(
                    State.WARNING,
                    "No sample for {gap} (level {level}), until {ago:.0f} s ago; the last before "
                    "it showed {before}.",
                    {**self._gap, "ago": tick.now - ended},
                )
            }
        self._ended_at = None
        if before is None:
            return {"host": Judgement(State.UNKNOWN, "The first sample: no hole can be seen yet.")}
        return {
            "host": Judgement(
                State.OK,
                "No hole of more than {level:.0f} s in our own recording.",
                {"level": settings.gap_seconds},
            )
        }
