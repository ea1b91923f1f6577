"""Builds samples of the pool for the timelines of the memory conditions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from spark_watch.model import Failure, Memory, Sample

GIB = 1024**3
TOTAL = round(121.7 * GIB)
"""The pool for which levels in GiB are written."""

PUBLISHED = ((0.0, 28.97), (2.0, 28.96), (4.0, 27.31), (6.0, 23.79), (9.0, 10.61), (11.0, 6.27))
"""Seconds and GiB available of the collapse in vllm-project/vllm#56824."""


def line(points: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """Return the straight lines through the points as a function of seconds."""

    def at(second: float) -> float:
        if second <= points[0][0]:
            return points[0][1]
        for (begin, first), (end, last) in pairwise(points):
            if second <= end:
                return first + (last - first) * (second - begin) / (end - begin)
        return points[-1][1]

    return at


def seeded(seed: int) -> random.Random:
    """Return a generator that gives the same numbers again."""
    return random.Random(seed)  # noqa: S311 - a test must give the same numbers again


def every(interval: float, until: float, since: float = 0.0) -> list[float]:
    """Return the moments from ``since`` to ``until`` (both inclusive), ``interval`` apart."""
    return [since + n * interval for n in range(int((until - since) / interval + 1e-9) + 1)]


def available(
    seconds: Iterable[float],
    gib: Callable[[float], float | None],
    *,
    total: int | None = TOTAL,
    start: float = 1e9,
) -> list[Sample]:
    """Return samples of available memory at the given seconds; a lost reading where it is None."""
    samples = []
    for second in seconds:
        value = gib(second)
        if value is None:
            samples.append(
                Sample(t=start + second, failed=(Failure(source="meminfo", reason="malformed"),))
            )
        else:
            samples.append(
                Sample(
                    t=start + second,
                    memory=Memory(total_bytes=total, available_bytes=round(value * GIB)),
                )
            )
    return samples
