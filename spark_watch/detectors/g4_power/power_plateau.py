"""Power stays flat at a high temperature: a ceiling that is in order, or one that heat sets."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement, idle
from spark_watch.detectors.holds import Level
from spark_watch.detectors.run import Run, runs
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import FULL_SHARE
from spark_watch.model import Gpu, State
from spark_watch.settings.g4 import PowerPlateauSettings

STRETCHES: Final = 30
"""The window is kept as so many stretches, and judged when one is complete."""

LOADED_SHARE: Final = 0.9
"""So much of the window must be load: one sample between two batches is not an end of it."""

USUAL_SHARE: Final = 0.9
"""What the run exceeded for a tenth of its time stands for what it can do."""

LEAVE_SHARE: Final = 1.5
"""Power is flat no longer at this many times the deviation up to which it is."""

AT_LIMIT: Final = 0.97
"""From this share of the owner's clock limit on a clock is at the limit."""


class _Stretch:
    """Sums of the readings of one stretch of the window."""

    __slots__ = ("celsius", "count", "hertz", "loaded", "squares", "start", "watts")

    def __init__(self, start: float) -> None:
        self.start = start
        self.count = 0
        self.loaded = 0
        self.watts = 0.0
        self.squares = 0.0
        self.hertz = 0.0
        self.celsius = 0.0

    def add(self, watts: float, hertz: float, celsius: float, *, loaded: bool) -> None:
        """Take one reading."""
        self.count += 1
        self.loaded += loaded
        self.watts += watts
        self.squares += watts * watts
        self.hertz += hertz
        self.celsius += celsius


class _Window:
    """What the last minutes were like, worked out from whole stretches.

    Attributes:
        watts: median power. ``deviation`` is its standard deviation over its mean.
        hertz: median SM clock.
        celsius: temperature of the newest third, ``climb`` how far that is above the oldest third.
        loaded: share of the readings under load.
    """

    __slots__ = (
        "_seconds",
        "_stretches",
        "celsius",
        "climb",
        "deviation",
        "hertz",
        "loaded",
        "watts",
    )

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stretches: deque[_Stretch] = deque(maxlen=STRETCHES + 1)
        self.watts = self.hertz = self.celsius = self.climb = self.deviation = self.loaded = 0.0

    def clear(self) -> None:
        """Forget every reading."""
        self._stretches.clear()

    def add(self, now: float, watts: float, hertz: float, celsius: float, *, loaded: bool) -> bool:
        """Add a reading; return whether a stretch was completed by it."""
        stretches = self._stretches
        length = self._seconds / STRETCHES
        start = now // length * length
        opened = not stretches or stretches[-1].start != start
        if opened:
            stretches.append(_Stretch(start))
            while stretches[0].start <= start - self._seconds - length:
                stretches.popleft()
        stretches[-1].add(watts, hertz, celsius, loaded=loaded)
        return opened

    def full(self, now: float) -> bool:
        """Whether the stretches reach back over the window."""
        return bool(self._stretches) and (
            now - self._stretches[0].start >= self._seconds * FULL_SHARE
        )

    def work_out(self) -> None:
        """Bring the attributes up to date."""
        stretches = self._stretches
        count = sum(one.count for one in stretches)
        mean = sum(one.watts for one in stretches) / count
        spread = sum(one.squares for one in stretches) / count - mean * mean
        self.deviation = math.sqrt(max(0.0, spread)) / mean if mean > 0.0 else 0.0
        self.loaded = sum(one.loaded for one in stretches) / count
        middle = len(stretches) // 2
        self.watts = sorted(one.watts / one.count for one in stretches)[middle]
        self.hertz = sorted(one.hertz / one.count for one in stretches)[middle]
        degrees = [one.celsius / one.count for one in stretches]
        third = max(1, len(degrees) // 3)
        self.celsius = sum(degrees[-third:]) / third
        self.climb = self.celsius - sum(degrees[:third]) / third


class _Watch:
    """What is remembered of one GPU."""

    __slots__ = ("flat", "held_down", "judgement", "run", "usual_hertz", "usual_watts", "window")

    def __init__(self, settings: PowerPlateauSettings) -> None:
        self.window = _Window(settings.window_seconds)
        self.flat = Level(0.0, settings.clear_seconds)
        self.held_down = Level(0.0, settings.clear_seconds)
        self.judgement: Judgement | None = None
        self.run = 0
        self.usual_watts = 0.0
        self.usual_hertz = 0.0

    def follow(self, run: Run) -> None:
        """Take what the run can do; while power is held down that does not sink with it."""
        watts = run.power.quantile(USUAL_SHARE) or 0.0
        hertz = run.clock.quantile(USUAL_SHARE) or 0.0
        if self.held_down.active:
            watts, hertz = max(watts, self.usual_watts), max(hertz, self.usual_hertz)
        self.usual_watts, self.usual_hertz = watts, hertz

    def begin(self, run: Run) -> None:
        """Begin another run: nothing of the one before says what this one can do."""
        self.run = run.number
        self.window.clear()
        self.flat.restart()
        self.held_down.restart()
        self.judgement = None


class PowerPlateau(Condition[PowerPlateauSettings]):
    """Flat power at a die that climbs or stays hot, and whether the GPU did better before.

    Flat and hot alone is what a GB10 at its practical ceiling looks like (97 to 101 W at 2.4 GHz,
    djangodevreng/dgx-spark-benchmarks), so it is for information. Power and clock well below what
    the same run reached, steady and hot, is power held down. NVML's power is that of the GPU rail
    alone; it is held against this run, never against the 140 W of the chip or the 240 W of the
    adapter.
    """

    name = "power_plateau"
    gotcha = "G4"
    part = "gpus"
    sources = ("nvml",)
    gb10_only = True
    needs = "load"
    summary = (
        "5 min of load, hot, with flat power <= 85 % and SM clock <= 93 % of this run's own best"
    )
    remedies: ClassVar = {
        State.INFO: "Nothing to do while the clock is high: the GPU rail takes about 100 W at "
        "most. Do not hold it against 140 W (the whole chip) or 240 W (the adapter).",
        State.WARNING: "Compare speed with the start of the run. If it fell too, see to the air "
        "path (intake, outlet, dust, fan) and the room; check thermal_slowdown and board_hot. A "
        "clock limit set meanwhile looks the same: name it in gpu_clock_limit_hertz. Another "
        "power adapter does not help.",
    }

    def __init__(self, settings: PowerPlateauSettings) -> None:
        super().__init__(settings)
        self._watches: dict[int, _Watch] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each GPU by its last five minutes of load."""
        gpus = tick.sample.gpus
        if gpus is None:
            return None
        return {f"gpu{gpu.index}": self._one(tick, gpu) for gpu in gpus}

    def _one(self, tick: Tick, gpu: Gpu) -> Judgement | None:
        watts, hertz, celsius = gpu.power_watts, gpu.sm_hertz, gpu.temperature_celsius
        ratio = gpu.utilization_ratio
        if watts is None or hertz is None or celsius is None or ratio is None:
            return None
        settings = self.settings
        watch = self._watches.get(gpu.index)
        if watch is None:
            watch = self._watches[gpu.index] = _Watch(settings)
        run = runs(tick)[gpu.index]
        if run.number != watch.run:
            watch.begin(run)
        window = watch.window
        if tick.hole("gpus"):
            window.clear()
            watch.judgement = None
        loaded = ratio >= settings.loaded_ratio
        opened = window.add(tick.now, watts, hertz, celsius, loaded=loaded)
        if not window.full(tick.now):
            watch.judgement = None
        elif opened:
            watch.judgement = self._judge(tick, gpu.index, watch, run)
        if watch.judgement is not None and loaded:
            return watch.judgement
        return idle(
            "GPU {gpu} at {ratio:.0f} % utilisation; {minutes:.0f} min of steady load from "
            "{level:.0f} % are judged.",
            gpu=gpu.index,
            ratio=ratio * 100,
            minutes=settings.window_seconds / 60,
            level=settings.loaded_ratio * 100,
        )

    def _judge(self, tick: Tick, index: int, watch: _Watch, run: Run) -> Judgement | None:
        """Judge a full window; ``None`` where too little of it was load."""
        settings, window = self.settings, watch.window
        window.work_out()
        if window.loaded < LOADED_SHARE:
            return None
        watch.follow(run)
        interval = max(tick.interval("gpus"), settings.window_seconds / STRETCHES)
        flat = window.deviation <= settings.deviation_ratio
        moved = window.deviation > settings.deviation_ratio * LEAVE_SHARE
        hot = window.celsius >= settings.hot_celsius
        climbs = window.climb >= settings.climb_celsius and window.celsius >= settings.warm_celsius
        below = self._is_below(window, watch)
        plateau = watch.flat.update(
            tick.now,
            enter=flat and (hot or climbs),
            leave=moved or not (hot or climbs),
            interval_seconds=interval,
        )
        held_down = watch.held_down.update(
            tick.now,
            enter=flat and below and self._is_as_hot(window, run),
            leave=moved or not below,
            interval_seconds=interval,
        )
        values: dict[str, Any] = {
            "gpu": index,
            "watts": window.watts,
            "usual_watts": watch.usual_watts,
            "mhz": window.hertz / 1e6,
            "usual_mhz": watch.usual_hertz / 1e6,
            "celsius": window.celsius,
            "minutes": settings.window_seconds / 60,
            "held": settings.window_seconds / 60 + watch.held_down.held_seconds(tick.now) / 60,
            "power_level": settings.power_ratio * 100,
            "clock_level": settings.clock_ratio * 100,
            "spread": window.deviation * 100,
            "hot": settings.hot_celsius,
        }
        if held_down:
            return Judgement(
                State.WARNING,
                "GPU {gpu} held at {watts:.0f} W and {mhz:.0f} MHz at {celsius:.0f} C for "
                "{held:.0f} min; this run reached {usual_watts:.0f} W and {usual_mhz:.0f} MHz "
                "(levels {power_level:.0f} % and {clock_level:.0f} % of that).",
                values,
            )
        if plateau:
            ceiling = window.watts >= settings.ceiling_watts
            return Judgement(
                State.INFO,
                "GPU {gpu} flat at {watts:.0f} W and {mhz:.0f} MHz at {celsius:.0f} C over "
                "{minutes:.0f} min"
                + (
                    ": the practical ceiling of its rail."
                    if ceiling
                    else "; not held down: the best tenth of this run is {usual_watts:.0f} W and "
                    "{usual_mhz:.0f} MHz."
                ),
                values,
            )
        return Judgement(
            State.OK,
            "GPU {gpu} at {watts:.0f} W (spread {spread:.0f} %), {mhz:.0f} MHz and {celsius:.0f} C "
            "over {minutes:.0f} min: no plateau at {hot:.0f} C and above.",
            values,
        )

    def _is_below(self, window: _Window, watch: _Watch) -> bool:
        """Whether power and clock are below what this run reached, and no limit explains it."""
        settings = self.settings
        limit = settings.gpu_clock_limit_hertz
        if limit is not None and window.hertz >= limit * AT_LIMIT:
            return False
        return (
            window.watts <= settings.power_ratio * watch.usual_watts
            and window.hertz <= settings.clock_ratio * watch.usual_hertz
        )

    def _is_as_hot(self, window: _Window, run: Run) -> bool:
        """Whether the die is as hot as this run makes it: a clock limit would have cooled it."""
        settings = self.settings
        warmest = run.temperature.quantile(USUAL_SHARE)
        return (
            warmest is not None
            and window.celsius >= max(settings.hot_celsius, warmest - settings.cooled_celsius)
            and window.climb > -settings.climb_celsius
        )
