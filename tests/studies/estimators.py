"""The estimators that the study compares: each gives every reading a score, high for a collapse."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Protocol

from spark_watch.detectors.g3_memory.fall import Fall
from spark_watch.detectors.windows import Recent
from spark_watch.settings.g3 import MemoryCollapseSettings

LEVELS = MemoryCollapseSettings()
"""The shipped levels; all estimators share those that are no estimator's own."""


class Estimator(Protocol):
    """Gives each reading a score; the higher, the more like a collapse."""

    def score(self, now: float, gib: float) -> float:
        """Take a reading and return its score, 0.0 where the other gates are shut."""


def near(gib: float, rate: float) -> bool:
    """Whether the floor is within the warning's seconds: the gate all estimators share."""
    return (
        gib < LEVELS.available_below_gib
        and rate > 0.0
        and (gib - LEVELS.floor_gib) / rate <= LEVELS.warning_seconds
    )


class MeanBefore:
    """Interval slope over 2 s against the mean slope of the 30 s before."""

    def __init__(self) -> None:
        self._fall = Fall()

    def score(self, now: float, gib: float) -> float:
        """Return the ratio of the two slopes."""
        fall = self._fall
        fall.add(now, gib, 1.0)
        return self._ratio() if near(gib, fall.rate) and gate(fall) else 0.0

    def _ratio(self) -> float:
        recent = self._fall._recent
        end = recent[-1][0] - max(2.0, self._fall.gap_seconds)
        before = (recent.level_at(end - 30.0) - recent.level_at(end)) / 30.0
        return self._fall.rate / max(before, 0.01)


def gate(fall: Fall) -> bool:
    """Whether more was lost than in a dip: the shipped rule's gate."""
    if fall.step >= LEVELS.step_gib:
        return True
    return fall.lost >= LEVELS.lost_gib and (
        fall.lasted > 2 or (fall.sustained and fall.lost >= LEVELS.dip_gib)
    )


class FastestBefore(MeanBefore):
    """Interval slope over 2 s against the fastest 10 s of the 30 s before: what is shipped."""

    def _ratio(self) -> float:
        return self._fall.rate / max(self._fall.rate_before(), 0.01)


class RobustFit:
    """Theil-Sen slope of the last 4 s (three readings at least) against that of the 30 s before."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque(maxlen=256)

    def score(self, now: float, gib: float) -> float:
        """Return the ratio of the two slopes."""
        points = self._points
        points.append((now, gib))
        late = [point for point in points if point[0] >= now - 4.01]
        if len(late) < 3:
            late = list(points)[-3:]
        if gib >= LEVELS.available_below_gib or len(late) < 3:
            return 0.0
        rate = -theil_sen(late)
        if not near(gib, rate) or late[0][1] - gib < LEVELS.dip_gib:
            return 0.0
        begin = late[0][0]
        early = [point for point in points if begin - 30.0 <= point[0] <= begin][::2]
        before = -theil_sen(early[-20:]) if len(early) > 2 else 0.0
        return rate / max(before, 0.01)


def theil_sen(points: Sequence[tuple[float, float]]) -> float:
    """Return the median slope of all pairs."""
    return median(
        (late[1] - early[1]) / (late[0] - early[0])
        for n, early in enumerate(points)
        for late in points[n + 1 :]
    )


class Cusum:
    """GiB lost beyond the pace of the last 30 s (a slow mean) and a drift of 0.2 GiB/s."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._pace = 0.0
        self._sum = 0.0
        self._since = (0.0, 0.0)

    def score(self, now: float, gib: float) -> float:
        """Return the sum while the floor is near at the rate since it left zero."""
        if self._last is None:
            self._last = self._since = (now, gib)
            return 0.0
        at, before = self._last
        gap, lost = now - at, before - gib
        self._sum += lost - (1.5 * max(0.0, self._pace) + 0.2) * gap
        self._pace += (lost / gap - self._pace) * min(1.0, gap / 15.0)
        if self._sum <= 0.0:
            self._sum = 0.0
            self._since = (now, gib)
        self._last = (now, gib)
        if now <= self._since[0]:
            return 0.0
        return self._sum if near(gib, (self._since[1] - gib) / (now - self._since[0])) else 0.0


class LikelihoodRatio:
    """Generalised likelihood ratio of one change of slope within the last 6 s.

    The pace before the change is the mean of the half minute before it, or, with ``fastest``, the
    fastest 10 s of it, which is what the shipped rule compares with.
    """

    def __init__(self, *, fastest: bool = False) -> None:
        self._fastest = fastest
        self._fall = Fall()
        self._recent = Recent(45.0)
        self._paces: deque[float] = deque(maxlen=512)

    def score(self, now: float, gib: float) -> float:
        """Return the largest statistic of a change to a fall that nears the floor."""
        recent = self._recent
        recent.add(now, gib)
        self._fall.add(now, gib, 1.0)
        self._paces.append((recent.level_at(now - 10.0) - gib) / 10.0)
        while len(self._paces) > len(recent):
            self._paces.popleft()
        if gib >= LEVELS.available_below_gib or not gate(self._fall):
            return 0.0
        best = fastest = 0.0
        for (at, level), pace in zip(recent, self._paces, strict=True):
            fastest = max(fastest, pace)
            after = now - at
            if not 0.9 <= after <= 6.0 or level - gib < LEVELS.lost_gib:
                continue
            rate = (level - gib) / after
            if not near(gib, rate):
                continue
            mean = max(0.0, recent.level_at(at - 30.0) - level) / 30.0
            before = fastest if self._fastest else mean
            best = max(best, (rate - 1.5 * before) * (after * 30.0 / (after + 30.0)) ** 0.5)
        return best


ESTIMATORS: dict[str, Callable[[], Estimator]] = {
    "interval slope, mean of 30 s before": MeanBefore,
    "interval slope, fastest 10 s before": FastestBefore,
    "robust fit (Theil-Sen, 4 s)": RobustFit,
    "change point (CUSUM)": Cusum,
    "change point (GLR), mean before": LikelihoodRatio,
    "change point (GLR), fastest 10 s before": partial(LikelihoodRatio, fastest=True),
}
"""By the name the tables give it."""
