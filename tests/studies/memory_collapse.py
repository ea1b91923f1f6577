"""Which rule sees a collapse of available memory soonest at equal false alarms.

``python -m tests.studies.memory_collapse > tests/studies/memory_collapse.md`` writes the page
beside it (``SPARK_WATCH_TRACES`` adds recordings; a minute and a half on one core). Each estimator
gives every reading a score, and its alarm is a score above a level. The level is set so that the
quiet series raise equally often; then the estimators are held against each other by how long before
the end they warn.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from spark_watch.detectors.g3_memory.memory_collapse import MemoryCollapse
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import GIB, Machine, Memory, Sample, State
from spark_watch.settings.g3 import MemoryCollapseSettings
from tests.studies.estimators import ESTIMATORS, Estimator
from tests.studies.series import Series, a_collapse, a_quiet_one, a_twin, recorded

SEED = 56824
COLLAPSES = 1200
QUIET = 1000
TWINS = 200
ALLOWED = (4, 8, 16)
"""How many quiet series may raise, for each of which a level is set."""

SHOWN = 8
"""Of these the table by kind is made."""

POOL = round(121.7 * GIB)


def scores(make: Callable[[], Estimator], series: Series) -> list[tuple[float, float]]:
    """Return (seconds, score) of every reading."""
    estimator = make()
    return [(now, estimator.score(now, gib)) for now, gib in series.points]


def lead(series: Series, moment: float | None) -> float:
    """Return the seconds from a moment to the series' end, 0.0 where there is none."""
    return 0.0 if moment is None or series.end is None else max(0.0, series.end - moment)


def shipped(series: Series, levels: MemoryCollapseSettings | None = None) -> dict[State, float]:
    """Return when the shipped condition was first in each state."""
    judge = Judge(
        [MemoryCollapse(levels or MemoryCollapseSettings())],
        Timeline(machine=Machine(gpu_name="NVIDIA GB10", memory_total_bytes=POOL)),
    )
    seen: dict[State, float] = {}
    for now, gib in series.points:
        memory = Memory(total_bytes=POOL, available_bytes=round(gib * GIB))
        judge.update(Sample(t=1e9 + now, memory=memory))
        seen.setdefault(judge.states()["memory_collapse"], now)
    return seen


def raised_at(seen: dict[State, float]) -> float | None:
    """Return when warning or critical stood first."""
    return min((seen[s] for s in (State.WARNING, State.CRITICAL) if s in seen), default=None)


def row(name: str, raised: int, level: float, leads: Sequence[float]) -> str:
    """Return one line of the first table."""
    ranked = sorted(leads)
    two, five = (sum(one >= limit for one in leads) / len(leads) for limit in (2.0, 5.0))
    return (
        f"| {name} | {raised} | {level:.2f} | {two:.1%} | {five:.1%} | {median(leads):.1f} | "
        f"{ranked[len(ranked) // 10]:.1f} |\n"
    )


def share_left(series: Iterable[Series], seen: Iterable[dict[State, float]], gib: float) -> float:
    """Return the share of the series that were critical with so much left."""
    said = [
        State.CRITICAL in at
        and [level for now, level in one.points if now <= at[State.CRITICAL]][-1] >= gib
        for one, at in zip(series, seen, strict=True)
    ]
    return sum(said) / len(said)


def compare(collapses: list[Series], quiet: list[Series]) -> tuple[str, dict[str, list[float]]]:
    """Return the lines of the first table, and each estimator's leads for the second."""
    lines = ""
    shown: dict[str, list[float]] = {}
    for name, make in ESTIMATORS.items():
        loudest = sorted(
            (max((score for _, score in scores(make, one)), default=0.0) for one in quiet),
            reverse=True,
        )
        scored = [scores(make, one) for one in collapses]
        for allowed in ALLOWED:
            level = loudest[allowed] * 1.0001
            leads = [
                lead(one, next((now for now, score in stream if score > level), None))
                for one, stream in zip(collapses, scored, strict=True)
            ]
            if allowed == SHOWN:
                shown[name] = leads
            lines += row(name, allowed, level, leads)
    return lines, shown


def by_kind(collapses: list[Series], leads: dict[str, list[float]]) -> str:
    """Return the second table: the median lead, and the share warned 2 s before the end."""
    text = "| kind | 2 s were there | " + " | ".join(leads) + " |\n|---" * 1
    text += "|---" * (len(leads) + 1) + "|\n"
    for kind in sorted({one.kind for one in collapses}):
        mine = [n for n, one in enumerate(collapses) if one.kind == kind]
        there = sum(lead(collapses[n], collapses[n].onset) >= 2.0 for n in mine) / len(mine)
        cells = []
        for values in leads.values():
            picked = [values[n] for n in mine]
            two = sum(one >= 2.0 for one in picked) / len(picked)
            cells.append(f"{median(picked):.1f} s, {two:.0%}")
        text += f"| {kind} ({len(mine)}) | {there:.0%} | " + " | ".join(cells) + " |\n"
    return text


VERDICT = """
What follows:

- What a fall is compared with matters more than how it is measured. Against the mean of the half
  minute before, a load that rested in it looks like a change: the level must be set at 3 and
  more, and a load that tips over is seen late. Against the fastest 10 s of it 1.35 suffices.
- A change point with that same comparison warns 0.3 s sooner at the median, for the price of
  loads that start from rest between 42 and 49 GiB: it looks back 6 s instead of 2, and that is
  all of the difference. The interval slope is shipped, because it is one division and can be
  worked out by hand at three in the morning.
- A robust fit smooths the first second away, which is what a warning needs, and raises on loads
  that rested less than 15 s before.
- The eight loudest quiet series are dips of 2 to 5 GiB that two readings straddle. Three readings
  of those are a fall by any rule.
- Below 7.5 GiB, where no load that ends well still falls, the shipped rule asks for no change:
  from-rest collapses warned 2 s before rise from 85 % to 97 %, for no quiet series.
"""
"""Written by hand, from the numbers above it."""


def main() -> None:
    """Print the page."""
    rng = random.Random(SEED)  # noqa: S311 - a study must give the same numbers again
    collapses = [a_collapse(rng) for _ in range(COLLAPSES)]
    quiet = [a_quiet_one(rng) for _ in range(QUIET)]
    twins = [a_twin(rng) for _ in range(TWINS)]
    folder = os.environ.get("SPARK_WATCH_TRACES")
    real = list(recorded(Path(folder))) if folder else []
    quiet += [one for one in real if one.end is None]
    hours = sum(one.points[-1][0] - one.points[0][0] for one in quiet) / 3600.0

    lines, leads = compare(collapses, quiet)
    levels = MemoryCollapseSettings()
    said = [shipped(one) for one in collapses]
    loud = Counter(one.kind for one in quiet if raised_at(shipped(one)) is not None)
    leads["shipped"] = [lead(one, raised_at(at)) for one, at in zip(collapses, said, strict=True)]
    slow = MemoryCollapseSettings(no_load_gib_per_second=1000.0, critical_below_gib=8.0)
    without = [shipped(one, slow) for one in collapses]
    twin = [shipped(one) for one in twins]

    out = sys.stdout.write
    out("# Which rule sees a collapse soonest\n\n")
    out(
        f"{len(collapses)} generated collapses, {len(quiet)} quiet series ({hours:.0f} h, of which "
        f"{sum(one.kind == 'recorded' for one in quiet)} series recorded on real machines), seed "
        f"{SEED}. The lead runs to the end (1 GiB left).\n\n"
        "| estimator | quiet series raised | level | warned >= 2 s before | >= 5 s before | median "
        "lead, s | tenth, s |\n|---|---|---|---|---|---|---|\n"
    )
    out(lines + row("**shipped**", loud.total(), levels.faster_ratio, leads["shipped"]))
    out(f"\nQuiet series that the shipped rule raises: {dict(loud) or 'none'}.\n\n")
    out(f"Median lead and share warned 2 s before, {SHOWN} quiet series raised:\n\n")
    out(by_kind(collapses, leads))
    out(
        f"\nCritical with 5 GiB left: {share_left(collapses, said, 5.0):.1%} as shipped, "
        f"{share_left(collapses, without, 5.0):.1%} by level (8 GiB) alone.\n\n"
        f"Of {TWINS} loads from rest below 40 GiB that end with room "
        f"{sum(raised_at(at) is not None for at in twin)} are a warning, "
        f"{sum(State.CRITICAL in at for at in twin)} critical.\n"
    )
    for one in real:
        if one.end is not None:
            at = {state.label: moment for state, moment in shipped(one).items()}
            out(f"\nThe published collapse as it was recorded (11 s): {at}.\n")
    out(VERDICT)


if __name__ == "__main__":
    main()
