"""The processes on the pool may together take more than there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.g6_contention.engines import Engine, hidden, listed_engines
from spark_watch.detectors.g6_contention.restarts import Restarts
from spark_watch.detectors.holds import Level
from spark_watch.detectors.pool import Pool, available_bytes
from spark_watch.detectors.timeline import Tick
from spark_watch.model import GIB, State
from spark_watch.settings.g6 import PoolOvercommittedSettings


class PoolOvercommitted(Condition[PoolOvercommittedSettings]):
    """Claims that add up to more than the pool, or a heavy process beside another one.

    Only where CPU and GPU share one pool: elsewhere each GPU has its own and MemAvailable says
    nothing of it.
    """

    name = "pool_overcommitted"
    gotcha = "G6"
    part = "processes"
    sources = ("processes",)
    gb10_only = True
    summary = "Claims > 1.0 of the pool (info > 0.9), or a heavy process beside another (info)"
    remedies: ClassVar = {
        State.INFO: "Fine as long as both stay as they are. Before a long run give each a size "
        "that fits (vLLM --kv-cache-memory-bytes, SGLang --mem-fraction-static). A fraction is no "
        "hard cap on this machine, and a container's memory limit does not hold CUDA memory.",
        State.WARNING: "Stop one of the two now, the one that is easier to start again, by its own "
        "stop command; then start both with sizes that fit (vLLM --kv-cache-memory-bytes). "
        "Lowering a fraction alone does not help: it is no hard cap, a profile run goes beyond "
        "it. A container's memory limit does not hold CUDA memory. Killing an API server alone "
        "leaves its engine process holding the memory.",
    }

    def __init__(self, settings: PoolOvercommittedSettings) -> None:
        super().__init__(settings)
        self._restarts = Restarts(settings.restart_window_seconds, settings.short_life_seconds)
        hold = settings.hold_seconds
        self._pool = Pool()
        self._over = Level(hold)
        self._full = Level(hold)
        self._beside = Level(hold)
        self._tight = Level(hold)

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge the engines that hold GPU memory together."""
        memory = self._pool.update(tick)
        if tick.sample.processes is None:
            return None
        unseen = hidden(tick, memory)
        if unseen is not None:
            return {"host": unseen}
        found = listed_engines(tick)
        claimed = [engine for engine in found if engine.claim is not None]
        claims = sum(engine.claim or 0.0 for engine in claimed)
        self.measures = {("pool_claims_ratio", ()): claims} if claimed else {}
        loop = self._restarts.update(tick, found)
        over, full = self._judge_claims(tick, claims if len(claimed) > 1 else 0.0)
        heavy, beside, tight = self._judge_neighbours(tick, found, available_bytes(memory))
        if over or (full and not tight):
            state = State.WARNING if over else State.INFO
            return self._claims(state, claimed, claims)
        if heavy is not None and (tight or beside):
            state = State.WARNING if tight else State.INFO
            return self._neighbours(state, heavy, found, available_bytes(memory))
        if loop is not None and loop[1] >= self.settings.restarts:
            return {"host": self._loops(found, *loop)}
        return {"host": self._quiet(found, claims)}

    def _judge_claims(self, tick: Tick, claims: float) -> tuple[bool, bool]:
        """Return whether the sum stands above the pool, and above what the host leaves."""
        now, interval = tick.now, tick.interval("processes")
        over = claims > self.settings.warning_claims_ratio
        full = claims > self.settings.info_claims_ratio
        return (
            self._over.update(now, enter=over, leave=not over, interval_seconds=interval),
            self._full.update(now, enter=full, leave=not full, interval_seconds=interval),
        )

    def _judge_neighbours(
        self, tick: Tick, found: Sequence[Engine], available: int | None
    ) -> tuple[Engine | None, bool, bool]:
        """Return the heavy engine, whether it stands beside another, and with little memory."""
        settings = self.settings
        heavy = None
        if len(found) > 1:
            level = settings.heavy_leave_gib if self._beside.active else settings.heavy_gib
            heavy = next((one for one in found if self._is_heavy(one, tick.gib(level))), None)
        now, interval = tick.now, tick.interval("processes")
        together = heavy is not None
        beside = self._beside.update(
            now, enter=together, leave=not together, interval_seconds=interval
        )
        low = available is not None and available < tick.gib(settings.low_memory_gib)
        high = available is not None and available >= tick.gib(settings.leave_memory_gib)
        tight = self._tight.update(
            now,
            enter=together and low,
            leave=not together or high,
            interval_seconds=interval,
        )
        return heavy, beside, tight

    def _is_heavy(self, engine: Engine, level_bytes: float) -> bool:
        if engine.claim is not None:
            return engine.claim > self.settings.heavy_claim_ratio
        return engine.gpu_bytes >= level_bytes

    def _claims(
        self, state: State, claimed: Sequence[Engine], claims: float
    ) -> Mapping[str, Judgement | None]:
        largest = max(claimed, key=lambda engine: engine.claim or 0.0)
        return {
            largest.subject: Judgement(
                state,
                "{count} engines claim {claims:.2f} of the pool (level {level:.2f}): {who}.",
                {
                    "count": len(claimed),
                    "claims": claims,
                    "level": self.settings.warning_claims_ratio
                    if state is State.WARNING
                    else self.settings.info_claims_ratio,
                    "who": ", ".join(f"{engine.subject} {engine.claim:.2f}" for engine in claimed),
                },
            )
        }

    def _neighbours(
        self, state: State, heavy: Engine, found: Sequence[Engine], available: int | None
    ) -> Mapping[str, Judgement | None]:
        values: dict[str, Any] = {
            "heavy": heavy.subject,
            "held": heavy.gpu_bytes / GIB,
            "others": ", ".join(
                f"{engine.subject} ({engine.gpu_bytes / GIB:.1f} GiB)"
                for engine in found
                if engine is not heavy
            ),
        }
        template = "{heavy} holds {held:.1f} GiB of GPU memory"
        if heavy.claim is None:
            template += " without a claim that could be read"
        else:
            values["claim"] = heavy.claim
            template += " with a claim of {claim:.2f} of the pool"
            if heavy.claim >= self.settings.near_capacity_ratio:
                template += ", near its capacity,"
        template += " beside {others}"
        if available is not None:
            values["available"] = available / GIB
            template += "; {available:.1f} GiB are available"
        return {heavy.subject: Judgement(state, template + ".", values)}

    def _loops(self, found: Sequence[Engine], name: str, count: int) -> Judgement:
        return Judgement(
            State.INFO,
            "{name} has ended {count} times within {short:.0f} s of its start in the last "
            "{window:.0f} min, beside {others}: it may find too little memory.",
            {
                "name": name,
                "count": count,
                "short": self.settings.short_life_seconds,
                "window": self.settings.restart_window_seconds / 60.0,
                "others": ", ".join(engine.subject for engine in found) or "none now",
            },
        )

    def _quiet(self, found: Sequence[Engine], claims: float) -> Judgement:
        if len(found) > 1:
            unsized = [one for one in found if one.claim is None and not one.sized]
            if unsized:
                return Judgement(
                    State.UNKNOWN,
                    "NVML does not say how much {who} holds, and no claim of it could be read.",
                    {"who": unsized[0].subject},
                )
            if not all(level.known for level in (self._over, self._full, self._beside)):
                return Judgement(
                    State.UNKNOWN,
                    "{count} engines on one pool; what they claim counts after {hold:.0f} s.",
                    {"count": len(found), "hold": self.settings.hold_seconds},
                )
        return Judgement(
            State.OK,
            "{count} engines on the pool, claims {claims:.2f} of it, none heavy beside another.",
            {"count": len(found), "claims": claims},
        )
