"""The platform holds a loaded GPU at a fraction of its clock, and no flag says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import IDLE_HOLD_SECONDS, Condition, Judgement, idle, spoken
from spark_watch.detectors.holds import MINIMUM_SAMPLES, ROUNDING_SECONDS, Hold
from spark_watch.detectors.timeline import HOLE_INTERVALS, Tick
from spark_watch.model import Gpu, State
from spark_watch.settings.g4 import LowPowerStateSettings

EPISODES_SECONDS: Final = 86400.0
EPISODES_KEPT: Final = 1000
"""Episodes are counted over a day, of which no more than these can be."""

BELOW_LIMIT: Final = 0.9
"""Under an owner's clock limit the levels stay this far below it: a GPU at its limit is fine."""

HEAT_REMEDY: Final = (
    "Heat comes first: see thermal_slowdown and board_hot, and let it cool down. If the clock "
    "stays this low on a cool board, shut down and take AC power away for some minutes; a reboot "
    "does not clear that."
)


class _Watch:
    """What is remembered of one GPU; only time under load counts, pauses between it do not."""

    __slots__ = (
        "episodes",
        "fine",
        "fine_count",
        "fine_seconds",
        "known",
        "last",
        "low",
        "low_seconds",
        "since",
        "was",
    )

    def __init__(self, hold_seconds: float) -> None:
        self.low = Hold(hold_seconds)
        self.fine = Hold(hold_seconds)
        self.since: float | None = None
        """When the episode began, ``None`` where there is none."""
        self.low_seconds = 0.0
        self.fine_seconds = 0.0
        self.fine_count = 0
        self.known = False
        """Whether it was seen to be fine, for as long as it must be stuck to be called that."""
        self.was: str | None = None
        """What the last reading under load was; ``None`` after a pause."""
        self.last = 0.0
        self.episodes: deque[float] = deque(maxlen=EPISODES_KEPT)

    def pause(self) -> None:
        """Take a reading without load."""
        self.was = None
        self.low.restart()
        self.fine.restart()

    def load(self, now: float, was: str, interval_seconds: float, clear_seconds: float) -> None:
        """Take a reading under load, which is ``low``, ``fine`` or ``between``."""
        gap = now - self.last
        if self.since is not None and gap > IDLE_HOLD_SECONDS:
            self._end(known=False)
        seconds = gap if self.was == was and gap <= HOLE_INTERVALS * interval_seconds else 0.0
        self.last = now
        self.was = was
        stuck = self.low.update(now, was == "low", interval_seconds)
        if self.since is None:
            if self.fine.update(now, was != "low", interval_seconds):
                self.known = True
            if stuck:
                self._begin(now)
            return
        if was == "low":
            self.low_seconds += seconds
        if was == "fine":
            self.fine_seconds += seconds
            self.fine_count += 1
            enough = self.fine_seconds >= clear_seconds - ROUNDING_SECONDS
            if enough and self.fine_count >= MINIMUM_SAMPLES:
                self._end(known=True)
        else:
            self.fine_seconds = 0.0
            self.fine_count = 0

    def _begin(self, now: float) -> None:
        self.since = now - self.low.held_seconds(now)
        self.low_seconds = now - self.since
        self.fine_seconds = 0.0
        self.fine_count = 0
        self.episodes.append(self.since)

    def _end(self, *, known: bool) -> None:
        self.since = None
        self.known = known
        self.low.restart()
        self.fine.restart()

    def episodes_in_a_day(self, now: float) -> int:
        """Forget episodes older than a day and return how many are left."""
        while self.episodes and now - self.episodes[0] > EPISODES_SECONDS:
            self.episodes.popleft()
        return len(self.episodes)


class LowPowerState(Condition[LowPowerStateSettings]):
    """SM clock far below normal while utilisation is high.

    Heat does not do this and no clock event reason is set. It may stay until AC power is removed
    or come and go in episodes of minutes. Source: Blackwellboy/model-serving-minefield#55.
    """

    name = "low_power_state"
    gotcha = "G4"
    part = "gpus"
    sources = ("nvml",)
    gb10_only = True
    needs = "load"
    summary = "SM clock < 1000 MHz at >= 80 % utilisation for 2 s; critical from 20 s of load"
    remedies: ClassVar = {
        State.WARNING: "Watch it for a minute: if it stays, stop the job, shut down and take AC "
        "power away for some minutes. If the clock is locked this low on purpose, set "
        "gpu_clock_limit_hertz. Lowering the load does not help.",
        State.CRITICAL: "Stop the job, shut down, take AC power away for some minutes (unplug the "
        "adapter at the wall), start again. A reboot does not clear it, nor does restarting the "
        "job; a clock lock (nvidia-smi -lgc) is accepted and not held. It is not heat.",
    }

    def __init__(self, settings: LowPowerStateSettings) -> None:
        super().__init__(settings)
        limit = settings.gpu_clock_limit_hertz
        ceiling = limit * BELOW_LIMIT if limit is not None else settings.clear_hertz
        self._low_hertz = min(settings.low_hertz, ceiling)
        self._clear_hertz = min(settings.clear_hertz, ceiling)
        self._watches: dict[int, _Watch] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each GPU by its clock while it is loaded."""
        gpus = tick.sample.gpus
        if gpus is None:
            return None
        return {f"gpu{gpu.index}": self._one(tick, gpu) for gpu in gpus}

    def _one(self, tick: Tick, gpu: Gpu) -> Judgement | None:
        ratio, clock = gpu.utilization_ratio, gpu.sm_hertz
        if ratio is None or clock is None:
            return None
        watch = self._watches.get(gpu.index)
        if watch is None:
            watch = self._watches[gpu.index] = _Watch(self.settings.warning_seconds)
        if ratio < self.settings.loaded_ratio:
            watch.pause()
            return idle(
                "GPU {gpu} at {ratio:.0f} % utilisation; its clock says something from "
                "{level:.0f} %.",
                gpu=gpu.index,
                ratio=ratio * 100,
                level=self.settings.loaded_ratio * 100,
            )
        was = "low" if clock < self._low_hertz else "between"
        if clock >= self._clear_hertz:
            was = "fine"
        watch.load(tick.now, was, tick.interval("gpus"), self.settings.clear_seconds)
        values: dict[str, Any] = {
            "gpu": gpu.index,
            "mhz": clock / 1e6,
            "level": self._low_hertz / 1e6,
            "ratio": ratio * 100,
        }
        if watch.since is not None:
            return self._stuck(tick.now, gpu, watch, values)
        if not watch.known:
            return idle(
                "GPU {gpu} loaded for too short a time: {mhz:.0f} MHz at {ratio:.0f} %.", **values
            )
        if was == "low":
            return Judgement(
                State.OK,
                "GPU {gpu} at {mhz:.0f} MHz with {ratio:.0f} % utilisation for {held:.1f} s; below "
                "{level:.0f} MHz it counts as stuck after {hold:.0f} s.",
                {
                    **values,
                    "held": watch.low.held_seconds(tick.now),
                    "hold": self.settings.warning_seconds,
                },
            )
        return Judgement(
            State.OK,
            "GPU {gpu} at {mhz:.0f} MHz with {ratio:.0f} % utilisation, above {level:.0f} MHz.",
            values,
        )

    def _stuck(self, now: float, gpu: Gpu, watch: _Watch, values: dict[str, Any]) -> Judgement:
        """Say in which state an episode is, and whether it seems to end."""
        since = now if watch.since is None else watch.since
        values["held"] = spoken(now - since)
        values["episode"] = watch.episodes_in_a_day(now)
        values["power"] = "" if gpu.power_watts is None else f" and {gpu.power_watts:.1f} W"
        heat = [reason for reason in gpu.event_reasons or () if "thermal" in reason]
        values["flags"] = ""
        if heat:
            values["flags"] = f" Slowed by heat as well ({', '.join(heat)})."
        critical = watch.low_seconds >= self.settings.critical_seconds - ROUNDING_SECONDS
        template = (
            "GPU {gpu} held at {mhz:.0f} MHz with {ratio:.0f} % utilisation{power} for {held} "
            "(level {level:.0f} MHz): low-power state of the platform, episode {episode} in "
            "24 h.{flags}"
        )
        if watch.was != "low":
            values["fine"] = watch.fine_seconds
            values["clear"] = self.settings.clear_seconds
            template = (
                "GPU {gpu} back at {mhz:.0f} MHz with {ratio:.0f} % utilisation{power} for "
                "{fine:.0f} s of load after a low-power state (level {level:.0f} MHz) that began "
                "{held} ago; clear after {clear:.0f} s, episode {episode} in 24 h."
            )
        return Judgement(
            State.CRITICAL if critical else State.WARNING,
            template,
            values,
            remedy=HEAT_REMEDY if heat else None,
        )
