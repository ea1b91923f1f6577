"""The same work takes half as long again, at a normal clock and with no flag."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from spark_watch.detectors.condition import Condition, Judgement, idle, spoken
from spark_watch.detectors.g5_bandwidth.own_speed import OwnSpeed, Reading
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.workloads import MOST_WORKLOADS, QUIET_PHASES, Moves, workloads
from spark_watch.model import Gpu, Progress, State
from spark_watch.settings.g5 import BandwidthDegradedSettings

Kind = tuple[Any, ...]
"""What tells one work from another: what is counted, the phase, the batch, the requests."""

KINDS: Final = 16
"""So many kinds of work are remembered of one workload; the one unseen for longest goes."""

SAME_RATIO: Final = 0.25
"""Steps whose tokens or bytes differ by less are the same work: they are read in whole steps."""

LOADED_RATIO: Final = 0.5
"""Power and clock of a GPU below this utilisation say nothing of the work."""


class _Pace(NamedTuple):
    """What was done between two reports: of which kind, how fast, how much a step."""

    kind: Kind
    speed: float
    size: float | None


class _Workload:
    """What is remembered of one workload: its kinds of work, each with its own speed."""

    __slots__ = ("before", "before_at", "kinds", "latest", "moved_at")

    def __init__(self, now: float, report: Progress) -> None:
        self.before = report
        self.before_at = now
        self.moved_at = now
        self.kinds: OrderedDict[Kind, OwnSpeed] = OrderedDict()
        self.latest: Kind | None = None

    def of(self, kind: Kind, settings: BandwidthDegradedSettings) -> OwnSpeed:
        """Return the speed of a kind of work, which is the latest from now on."""
        self.latest = kind
        one = self.kinds.setdefault(kind, OwnSpeed(settings))
        self.kinds.move_to_end(kind)
        while len(self.kinds) > KINDS:
            self.kinds.popitem(last=False)
        return one


class BandwidthDegraded(Condition[BandwidthDegradedSettings]):
    """Speed of each workload against what it was at the same work in this run.

    Work is the same where phase, batch and requests are, and where a step has as many tokens and
    bytes. What the workload cannot say is made up for by power: memory that is slow draws less,
    while a longer context or rejected drafts do not.

    Source: tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1, ggml-org/llama.cpp, discussion 18254.
    """

    name = "bandwidth_degraded"
    gotcha = "G5"
    part = "progress"
    sources = ("progress", "nvml")
    gb10_only = True
    needs = "feed"
    summary = (
        "The same work at < 75 % of its own learnt speed for 120 s at a normal clock; info where "
        "clock or power cannot tell"
    )
    remedies: ClassVar = {
        State.INFO: "Compare the workload's own settings first: sequence length, drafts, a second "
        "job on the GPU. If it is slow at the same work, see low_power_state and thermal_slowdown.",
        State.WARNING: "Note power and clock, stop the job and start it again; if it is as slow, "
        "shut down, take AC power away for some minutes and start again. Then measure the idle "
        "machine (spark-watch probe bandwidth). No counter and no event reason shows this state, "
        "and a clock lock does not change it.",
    }

    def __init__(self, settings: BandwidthDegradedSettings) -> None:
        super().__init__(settings)
        self._workloads: dict[str, _Workload] = {}
        self._gpu: Gpu | None = None
        self._gpu_at = 0.0

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each workload of a report; a sample without one says nothing."""
        feeds = workloads(tick)
        gpus = tick.sample.gpus
        if gpus:
            self._gpu, self._gpu_at = gpus[0], tick.now
        if tick.sample.progress is None:
            return None
        kept: dict[str, _Workload] = {}
        found: dict[str, Judgement | None] = {}
        for name, moves in list(feeds.items())[:MOST_WORKLOADS]:
            workload = self._workloads.get(name)
            if workload is None or moves.reset:
                workload = _Workload(tick.now, moves.report)
            kept[name] = workload
            found[name] = self._one(tick, moves, workload)
        self._workloads = kept
        return found

    def _one(self, tick: Tick, moves: Moves, workload: _Workload) -> Judgement:
        report = moves.report
        pace = _speed(workload, tick.now, report)
        if pace is not None:
            interval = max(tick.now - workload.moved_at, tick.interval("progress"))
            workload.of(pace.kind, self.settings).add(self._reading(tick, pace), interval)
            workload.moved_at = tick.now
        values: dict[str, Any] = {"workload": report.workload}
        latest = workload.latest
        if latest is None:
            return Judgement(
                State.UNKNOWN, "{workload} has not been seen at work whose speed tells.", values
            )
        if tick.now - workload.moved_at > moves.allowed_seconds(self.settings.hold_seconds):
            return idle("{workload} is not at work whose speed tells.", **values)
        return self._say(workload.kinds[latest], latest, values)

    def _reading(self, tick: Tick, pace: _Pace) -> Reading:
        """Return a pace with the GPU's power and clock, where they are fresh and it is loaded."""
        gpu = self._gpu
        if (
            gpu is None
            or tick.now - self._gpu_at > tick.stale_after("gpus")
            or (gpu.utilization_ratio is not None and gpu.utilization_ratio < LOADED_RATIO)
        ):
            return Reading(tick.now, pace.speed, pace.size, None, None)
        return Reading(tick.now, pace.speed, pace.size, gpu.power_watts, gpu.sm_hertz)

    def _say(self, one: OwnSpeed, kind: Kind, values: dict[str, Any]) -> Judgement:
        own, now = one.own, one.now
        if own is None or now is None:
            return Judgement(
                State.UNKNOWN,
                "The speed of {workload} at this work is being learnt: {learnt:.0f} of "
                "{learn:.0f} s, and it must be steady.",
                {
                    **values,
                    "learnt": one.learnt_seconds,
                    "learn": self.settings.learn_seconds,
                },
            )
        values |= {
            "speed": _shown(now.speed, kind),
            "own": _shown(own.speed, kind),
            "ratio": now.speed / own.speed * 100,
            "level": self.settings.slow_ratio * 100,
            "held": spoken(one.level.held_seconds(now.at)),
        }
        if not one.level.active:
            return Judgement(
                State.OK,
                "{workload} at {speed}, {ratio:.0f} % of its own {own} (level {level:.0f} %).",
                values,
            )
        state, why = self._weigh(one, own, now, kind)
        values["why"] = why
        return Judgement(
            state,
            "{workload} at {speed} for {held}, {ratio:.0f} % of its own {own} at the same work "
            "(level {level:.0f} %){why}.",
            values,
        )

    def _weigh(self, one: OwnSpeed, own: Reading, now: Reading, kind: Kind) -> tuple[State, str]:
        """Say how much a loss of speed proves, by size of the steps, clock and power."""
        settings = self.settings
        same = None
        if own.size is not None and now.size is not None:
            same = abs(now.size - own.size) <= SAME_RATIO * own.size
            if not same:
                return State.INFO, f"; a step has {now.size / own.size:.1f} times as much in it"
        if own.hertz is None or now.hertz is None:
            return State.INFO, "; the GPU's clock is not known"
        if now.hertz < settings.clock_ratio * own.hertz:
            return (
                State.INFO,
                f"; the clock explains it: {now.hertz / 1e6:.0f} MHz after {own.hertz / 1e6:.0f}",
            )
        is_loop = kind[0] == "steps" and kind[3] is None
        seen = f", at a normal clock ({now.hertz / 1e6:.0f} MHz)"
        if own.watts is not None and now.watts is not None:
            seen += f" and {now.watts:.1f} W after {own.watts:.1f}"
            if now.watts <= settings.power_ratio * own.watts and (
                is_loop or one.kept_seconds >= settings.server_seconds
            ):
                return State.WARNING, seen
        if is_loop and (same or kind[2] is not None):
            return State.WARNING, seen
        return State.INFO, f"{seen}: it may be other work, which nothing here says"


def _speed(workload: _Workload, now: float, report: Progress) -> _Pace | None:
    """Return what was done since the last report, ``None`` where its speed does not tell."""
    before, since = workload.before, workload.before_at
    if report.steps_total is not None and report.steps_total == before.steps_total:
        return None
    workload.before, workload.before_at = report, now
    if report.phase in QUIET_PHASES or report.phase != before.phase or now <= since:
        return None
    if report.steps_total is not None:
        return _steps(before, report, now - since)
    return _tokens(before, report, now - since)


def _steps(before: Progress, report: Progress, seconds: float) -> _Pace | None:
    """A loop's speed: steps a second, as it says or from the steps between two changes."""
    if report.steps_total is None or before.steps_total is None:
        return None
    steps = report.steps_total - before.steps_total
    step_seconds = report.step_seconds or seconds / steps
    size = None
    streams = report.requests_running
    counted = [(before.bytes_total, report.bytes_total)]
    if streams is None:
        # a server's forward passes have as many tokens in them as there are requests
        counted.append((before.generation_tokens_total, report.generation_tokens_total))
    elif not streams or streams != before.requests_running:
        return None
    for old, new in counted:
        if old is not None and new is not None and new > old:
            size = (new - old) / steps
            break
    return _Pace(("steps", report.phase, report.batch, streams), 1.0 / step_seconds, size)


def _tokens(before: Progress, report: Progress, seconds: float) -> _Pace | None:
    """A server's speed: tokens a second while the same requests decode and no prompt is read."""
    tokens, last = report.generation_tokens_total, before.generation_tokens_total
    streams = report.requests_running
    if (
        tokens is None
        or last is None
        or tokens <= last
        or not streams
        or streams != before.requests_running
        or report.prompt_tokens_total != before.prompt_tokens_total
    ):
        return None
    kind = ("tokens", report.phase, report.batch, streams)
    return _Pace(kind, (tokens - last) / seconds, None)


def _shown(speed: float, kind: Kind) -> str:
    """Return a speed as people say it."""
    if kind[0] == "tokens":
        return f"{speed:.1f} tokens/s"
    seconds = 1.0 / speed
    return f"{seconds * 1e3:.0f} ms a step" if seconds < 1.0 else f"{seconds:.2f} s a step"
