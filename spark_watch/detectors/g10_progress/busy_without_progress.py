"""The GPU is busy, draws next to nothing, and no token and no step comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from spark_watch.detectors.condition import Condition, Judgement, idle, spoken
from spark_watch.detectors.holds import ROUNDING_SECONDS, Level
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import Recent
from spark_watch.detectors.workloads import Moves, workloads
from spark_watch.model import Gpu, State
from spark_watch.settings.g10 import BusyWithoutProgressSettings


class _Watch:
    """What is remembered of one GPU."""

    __slots__ = ("level", "raised", "said", "temperature")

    def __init__(self, settings: BusyWithoutProgressSettings) -> None:
        self.level = Level(settings.hold_seconds, settings.leave_seconds)
        self.temperature = Recent(settings.hold_seconds)
        self.raised = False
        """Whether it was said of this stretch: warmth does not take it back."""
        self.said: Judgement | None = None
        """What the last reading that was busy at idle power was judged to be."""


class BusyWithoutProgress(Condition[BusyWithoutProgressSettings]):
    """A GPU at full utilisation and idle power.

    Utilisation says that a kernel is resident, not that it gets anywhere. Only a workload that
    reports can prove it: decode draws 17 to 36 W on healthy boxes. So without a report this is no
    more than something to know.

    Source: eugr/spark-vllm-docker#260, NVIDIA/nccl#2213.
    """

    name = "busy_without_progress"
    gotcha = "G10"
    part = "gpus"
    sources = ("nvml",)
    gb10_only = True
    needs = "load"
    summary = (
        "Utilisation >= 90 % at < 28 W and not warming for 60 s (info); with requests or steps "
        "that stand still as long: warning, critical from 120 s"
    )
    remedies: ClassVar = {
        State.INFO: "Ask the workload whether it moves: its tokens, its steps, its log. "
        "Small-batch decode may look like this and be fine. Let it report (spark-watch progress, "
        "or the engine's metrics) to have this judged.",
        State.WARNING: "Save the stacks first (py-spy dump --pid PID), on both machines where "
        "there are two, and the end of the engine's log. The health endpoint, utilisation and the "
        "network's counters stay fine in this state; waiting has rarely ended it.",
        State.CRITICAL: "Stop every process of the workload, on both machines where there are two, "
        "and start it again; restarting the API server alone leaves the engine process spinning. "
        "Across two Sparks use DDP or FSDP, not tensor parallelism. If a process does not end (D "
        "state), reboot: the host may freeze next.",
    }

    def __init__(self, settings: BusyWithoutProgressSettings) -> None:
        super().__init__(settings)
        self._watches: dict[int, _Watch] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each GPU by its power while it is busy, and by what the workloads say."""
        feeds = workloads(tick)
        gpus = tick.sample.gpus
        if gpus is None:
            return None
        stale = tick.stale_after("progress")
        fresh = [one for one in feeds.values() if tick.now - one.at <= stale]
        return {f"gpu{gpu.index}": self._one(tick, gpu, fresh) for gpu in gpus}

    def _one(self, tick: Tick, gpu: Gpu, feeds: list[Moves]) -> Judgement | None:
        settings = self.settings
        ratio, watts = gpu.utilization_ratio, gpu.power_watts
        if ratio is None or watts is None:
            return None
        watch = self._watches.get(gpu.index)
        if watch is None:
            watch = self._watches[gpu.index] = _Watch(settings)
        if gpu.temperature_celsius is not None:
            watch.temperature.add(tick.now, gpu.temperature_celsius, tick.interval("gpus"))
        busy = ratio >= settings.busy_ratio
        stood = watch.level.active
        stands = watch.level.update(
            tick.now,
            enter=busy and watts < settings.idle_watts,
            leave=not busy or watts >= settings.leave_watts,
            interval_seconds=tick.interval("gpus"),
        )
        values: dict[str, Any] = {
            "gpu": gpu.index,
            "ratio": ratio * 100,
            "watts": watts,
            "level": settings.idle_watts,
            "held": spoken(watch.level.held_seconds(tick.now)),
            "hold": settings.hold_seconds,
        }
        if stands:
            leaving = not busy or watts >= settings.leave_watts
            if leaving and self._moving(tick, feeds) is None:
                # a reading at rest or at work proves nothing new; what was said holds
                return watch.said
            watch.said = self._stands(tick, gpu, watch, feeds, values)
            return watch.said
        watch.raised = False
        watch.said = None
        if stood:
            return Judgement(
                State.OK, "GPU {gpu} is out of it: {watts:.1f} W at {ratio:.0f} %.", values
            )
        if not busy:
            return idle(
                "GPU {gpu} at {ratio:.0f} % utilisation is not busy ({busy:.0f} %).",
                **values,
                busy=settings.busy_ratio * 100,
            )
        return self._works(tick, watch, feeds, values)

    def _works(
        self, tick: Tick, watch: _Watch, feeds: list[Moves], values: dict[str, Any]
    ) -> Judgement:
        """Say of a busy GPU that it works, or that this cannot be known yet."""
        if values["watts"] >= self.settings.idle_watts:
            return Judgement(
                State.OK,
                "GPU {gpu} works: {watts:.1f} W at {ratio:.0f} % utilisation (level {level:.0f} "
                "W).",
                values,
            )
        moving = self._moving(tick, feeds)
        if moving is not None:
            return self._moves(moving, values)
        return Judgement(
            State.OK if watch.level.known else State.UNKNOWN,
            "GPU {gpu} at {watts:.1f} W with {ratio:.0f} % utilisation for {held}; it counts after "
            "{hold:.0f} s.",
            values,
        )

    def _stands(
        self,
        tick: Tick,
        gpu: Gpu,
        watch: _Watch,
        feeds: list[Moves],
        values: dict[str, Any],
    ) -> Judgement:
        """Say what a GPU that is busy at idle power amounts to."""
        settings = self.settings
        moving = self._moving(tick, feeds)
        if moving is not None:
            watch.raised = False
            return self._moves(moving, values)
        still, frozen = max(
            ((one.still_seconds(tick.now), one) for one in feeds if one.running),
            key=lambda pair: pair[0],
            default=(0.0, None),
        )
        if not watch.raised and self._warms(tick, watch):
            return Judgement(
                State.OK,
                "GPU {gpu} at {watts:.1f} W with {ratio:.0f} % utilisation for {held}, and it "
                "warms up.",
                values,
            )
        if frozen is None or still < frozen.allowed_seconds(settings.hold_seconds):
            return self._unproven(gpu, watch, feeds, values)
        watch.raised = True
        held = watch.level.held_seconds(tick.now)
        critical = settings.critical_seconds - ROUNDING_SECONDS
        worst = held >= critical and still >= frozen.allowed_seconds(critical)
        running = frozen.report.requests_running
        values["workload"] = frozen.report.workload
        values["what"] = "no step" if running is None else f"no token for {running:.0f} requests"
        values["still"] = spoken(still)
        return Judgement(
            State.CRITICAL if worst else State.WARNING,
            "GPU {gpu} at {ratio:.0f} % utilisation with {watts:.1f} W for {held} (level "
            "{level:.0f} W), and {workload} has made {what} for {still}: on one machine a kernel "
            "that spins or a UVM livelock, across two a collective that waits for the other.",
            values,
        )

    def _unproven(
        self, gpu: Gpu, watch: _Watch, feeds: list[Moves], values: dict[str, Any]
    ) -> Judgement:
        """Say what is seen where no workload says whether it moves."""
        if gpu.sm_hertz is not None and gpu.sm_hertz < self.settings.clock_hertz:
            return Judgement(
                State.OK,
                "GPU {gpu} at {watts:.1f} W with {ratio:.0f} % utilisation: at {mhz:.0f} MHz the "
                "clock explains it.",
                {**values, "mhz": gpu.sm_hertz / 1e6},
            )
        watch.raised = True
        values["why"] = "no workload reports its progress"
        if feeds:
            values["why"] = "no workload that reports has anything to do or says so"
        return Judgement(
            State.INFO,
            "GPU {gpu} at {ratio:.0f} % utilisation with {watts:.1f} W for {held} (level "
            "{level:.0f} W); {why}, so it may be decode, a kernel that spins or, across two "
            "machines, a collective that waits.",
            values,
        )

    def _moving(self, tick: Tick, feeds: list[Moves]) -> Moves | None:
        hold = self.settings.hold_seconds
        return next((one for one in feeds if one.moves(tick.now, hold)), None)

    def _moves(self, moving: Moves, values: dict[str, Any]) -> Judgement:
        values["workload"] = moving.report.workload
        return Judgement(
            State.OK,
            "GPU {gpu} at {watts:.1f} W with {ratio:.0f} % utilisation, and {workload} moves.",
            values,
        )

    def _warms(self, tick: Tick, watch: _Watch) -> bool:
        readings = watch.temperature
        if not len(readings):
            return False
        before = readings.level_at(tick.now - self.settings.hold_seconds)
        return readings[-1][1] - before >= self.settings.rising_celsius
