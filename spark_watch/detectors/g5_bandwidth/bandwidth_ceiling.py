"""A workload moves bytes as fast as this memory can: plan with that number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement, idle
from spark_watch.detectors.holds import Level
from spark_watch.detectors.timeline import Tick
from spark_watch.detectors.windows import FULL_SHARE, Growth
from spark_watch.detectors.workloads import MOST_WORKLOADS, Moves, workloads
from spark_watch.model import Progress, State
from spark_watch.settings.g5 import BandwidthCeilingSettings

GIGA: Final = 1e9

AT_LEAST_RATIO: Final = 0.01
"""A workload that moves less than this share of the ceiling rests."""


class _Pace:
    """How fast a count grows, read where it moves: steps come a minute apart.

    Args:
        seconds: the stretch to measure over; one from step to step where those are longer.
    """

    __slots__ = ("_growth", "_moved_at", "_rate", "_total")

    def __init__(self, seconds: float) -> None:
        self._growth = Growth(seconds)
        self._total: float | None = None
        self._moved_at = 0.0
        self._rate: float | None = None

    def update(self, now: float, total: float | None, allowed_seconds: float) -> float | None:
        """Take a count; one that stands for longer than it may has no pace."""
        if total is None:
            return None
        if total != self._total:
            self._total, self._moved_at = total, now
            self._rate = self._growth.update(now, total)
        elif now - self._moved_at > allowed_seconds:
            self._rate = self._growth.update(now, total)
        return self._rate


class _Meter:
    """What is remembered of one workload: how fast it moves, and since when it is watched."""

    __slots__ = ("level", "moved", "since", "steps", "tokens")

    def __init__(self, now: float, settings: BandwidthCeilingSettings) -> None:
        self.since = now
        self.moved = _Pace(settings.window_seconds)
        self.tokens = _Pace(settings.window_seconds)
        self.steps = _Pace(settings.window_seconds)
        self.level = Level(settings.hold_seconds)


class BandwidthCeiling(Condition[BandwidthCeilingSettings]):
    """Bytes a second of a workload, held against the memory.

    No counter of a GB10 shows them, so they come from the workload: what it reports, what the owner
    says a step moves, or, named an estimate, the size of its weights.
    """

    name = "bandwidth_ceiling"
    gotcha = "G5"
    part = "progress"
    sources = ("progress",)
    gb10_only = True
    needs = "feed"
    summary = (
        "A workload moves >= 180 GB/s, or >= 80 % of this machine's own read probe, for 30 s (info)"
    )
    remedies: ClassVar = {
        State.INFO: "Nothing is wrong: the workload is bound by memory. Plan with 180 to 192 GB/s "
        "(or with spark-watch probe bandwidth), not with the 273 of the specification. More speed "
        "comes from fewer bytes: a smaller data type, larger batches, a mixture of experts, "
        "speculative decoding. A higher clock or another power limit does not help.",
    }

    def __init__(self, settings: BandwidthCeilingSettings) -> None:
        super().__init__(settings)
        self._meters: dict[str, _Meter] = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge each workload of a report; a sample without one says nothing."""
        feeds = workloads(tick)
        if tick.sample.progress is None:
            return None
        self.measures = {}
        meters: dict[str, _Meter] = {}
        found: dict[str, Judgement | None] = {}
        for name, moves in feeds.items():
            meter = self._meters.get(name)
            if meter is None or moves.reset:
                meter = _Meter(tick.now, self.settings)
            meters[name] = meter
            found[name] = self._one(tick, moves, meter)
        self._meters = meters
        return found

    def _one(self, tick: Tick, moves: Moves, meter: _Meter) -> Judgement:
        report = moves.report
        values: dict[str, Any] = {
            "workload": report.workload,
            "specification": self.settings.specification_bytes_per_second / GIGA,
            "low": self.settings.budget_low_bytes_per_second / GIGA,
            "high": self.settings.budget_high_bytes_per_second / GIGA,
            "level": self._level / GIGA,
        }
        rate, basis = self._rate(tick.now, moves, meter)
        if not basis:
            return Judgement(
                State.UNKNOWN,
                "{workload} does not say how many bytes it moves; report them, or set "
                "bytes_per_step.",
                values,
            )
        if rate is None:
            return Judgement(
                State.UNKNOWN, "{workload} has not been watched for long enough.", values
            )
        values["rate"] = rate / GIGA
        values["basis"] = basis
        if rate > self.settings.specification_bytes_per_second:
            meter.level.restart()
            return Judgement(
                State.UNKNOWN,
                "{workload} would move {rate:.0f} GB/s ({basis}), more than the "
                "{specification:.0f} of the specification: it reads less than that, as with a "
                "mixture of experts, speculative decoding or a cache.",
                values,
            )
        if len(self.measures) < MOST_WORKLOADS:
            self.measures[("workload_memory_bytes_per_second", (report.workload,))] = rate
        return self._against(tick, rate, meter, values)

    def _against(self, tick: Tick, rate: float, meter: _Meter, values: dict[str, Any]) -> Judgement:
        """Hold a rate that can be against what this memory gives."""
        raised = meter.level.update(
            tick.now,
            enter=rate >= self._level,
            leave=rate < self._level * FULL_SHARE,
            interval_seconds=tick.interval("progress"),
        )
        if raised:
            return Judgement(
                State.INFO,
                "{workload} moves {rate:.0f} GB/s ({basis}) and is memory bound (from "
                "{level:.0f}): plan with {low:.0f} to {high:.0f} GB/s, not with {specification:.0f}"
                ".",
                values,
            )
        if rate < self._level * AT_LEAST_RATIO:
            return idle("{workload} moves nothing now.", **values)
        if rate >= self._level and not meter.level.known:
            return Judgement(
                State.UNKNOWN,
                "{workload} moves {rate:.0f} GB/s ({basis}), not for long enough yet.",
                values,
            )
        return Judgement(
            State.OK,
            "{workload} moves {rate:.0f} GB/s ({basis}) and is not memory bound (from "
            "{level:.0f}).",
            values,
        )

    @property
    def _level(self) -> float:
        probe = self.settings.probe_bytes_per_second
        if probe is not None:
            return self.settings.probe_ratio * probe
        return self.settings.budget_low_bytes_per_second

    def _rate(self, now: float, moves: Moves, meter: _Meter) -> tuple[float | None, str]:
        """Return bytes a second, ``None`` while not known, and what the number rests on.

        No basis at all means that nothing says how many bytes a step moves.
        """
        report = moves.report
        allowed = moves.allowed_seconds(self.settings.window_seconds)
        moved = meter.moved.update(now, report.bytes_total, allowed)
        tokens = meter.tokens.update(now, report.generation_tokens_total, allowed)
        steps = meter.steps.update(now, report.steps_total, allowed)
        enough = now - meter.since >= self.settings.window_seconds * FULL_SHARE
        if report.bytes_total is not None:
            return (moved if enough else None), "as it reports"
        per_step, basis = self.settings.bytes_per_step, "bytes_per_step as set"
        if per_step is None and (report.steps_total is None or report.requests_running is not None):
            # only decode reads its weights once a step; a training step reads them several times
            per_step, basis = report.model_bytes, "an estimate from the size of its weights"
        if per_step is None:
            return None, ""
        pace = steps if report.steps_total is not None else _decode_steps(report, tokens)
        return (pace * per_step if enough and pace is not None else None), basis


def _decode_steps(report: Progress, tokens: float | None) -> float | None:
    """Return decode steps a second: one step makes a token for each request that runs."""
    streams = report.batch or report.requests_running
    if tokens is None or not streams:
        return tokens if tokens == 0.0 else None
    return tokens / streams
