"""Stretches of available memory for the study: collapses, quiet hours, and what lies between.

Everything is drawn from a seeded generator and lives on lists of (seconds, GiB available). The
kinds are those reported from real machines; the numbers of each are drawn around the reported ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spark_watch.blackbox.trace import read_trace
from spark_watch.model import GIB

END_GIB = 1.0
"""A generated collapse ends here: the host is gone."""

Points = list[tuple[float, float]]
Shape = Callable[[float], float]


class Series(NamedTuple):
    """One stretch of available memory: its kind, readings, and the end it leads to, if any."""

    kind: str
    points: Points
    end: float | None = None
    onset: float = 0.0


def line(points: Sequence[tuple[float, float]]) -> Shape:
    """Return the straight lines through the points."""

    def at(second: float) -> float:
        if second <= points[0][0]:
            return points[0][1]
        for (begin, first), (end, last) in pairwise(points):
            if second <= end:
                return first + (last - first) * (second - begin) / (end - begin)
        return points[-1][1]

    return at


def sampled(
    rng: random.Random, shape: Shape, until: float, interval: float, noise: float
) -> Points:
    """Return readings with jitter in time and a slow and a fast part of noise in level."""
    points = []
    now = rng.uniform(0.0, interval)
    slow = 0.0
    while now <= until:
        slow = 0.8 * slow + rng.gauss(0.0, noise / 2)
        points.append((now, max(0.05, shape(now) + slow + rng.gauss(0.0, noise / 2))))
        now += interval * rng.uniform(0.95, 1.05)
    return points


PUBLISHED = ((0.0, 28.97), (2.0, 28.96), (4.0, 27.31), (6.0, 23.79), (9.0, 10.61), (11.0, 6.27))


def a_collapse(rng: random.Random) -> Series:
    """Return one collapse, of a kind that was reported from real machines."""
    interval = rng.choice((0.25, 0.5, 1.0, 2.0))
    noise = rng.choice((0.02, 0.05, 0.1))
    kind = rng.choice(("published", "onset", "speeds-up", "spikes", "load-tips", "from-rest"))
    rest = rng.uniform(0.0, 90.0)
    if kind == "published":
        shift = [(rest + at, gib) for at, gib in PUBLISHED]
        return Series(
            kind, sampled(rng, line(shift), rest + 11.0, interval, noise), rest + 11, rest
        )
    if kind == "onset":
        level, rate = rng.uniform(9.0, 32.0), rng.uniform(1.2, 6.0)
        knots = [(0.0, level), (rest, level), (rest + level / rate, 0.0)]
    elif kind == "speeds-up":
        level, rate, doubling = (
            rng.uniform(15.0, 35.0),
            rng.uniform(0.2, 1.0),
            rng.uniform(2.0, 6.0),
        )
        knots, now = [(0.0, level), (rest, level)], rest
        while level > 0.0:
            now, level = now + 0.5, level - 0.5 * rate * 2 ** ((now - rest) / doubling)
            knots.append((now, level))
    elif kind == "spikes":
        level = rng.uniform(20.0, 40.0)
        first = rng.uniform(6.0, min(21.0, level - 6.0))
        pause, rate = rng.uniform(0.0, 3.0), rng.uniform(1.0, 4.0)
        wide = rng.uniform(0.5, 1.5)
        knots = [(0.0, level), (rest, level), (rest + wide, level - first)]
        knots.append((rest + wide + pause + 0.01, level - first))
        knots.append((rest + wide + pause + (level - first) / rate, 0.0))
    elif kind == "load-tips":
        pace, level = rng.uniform(0.17, 1.0), rng.uniform(12.0, 30.0)
        rate = rng.uniform(2.5, 5.0) * max(pace, 0.6)
        rest = max(rest, 20.0)
        knots = [(0.0, level + pace * rest), (rest, level), (rest + level / rate, 0.0)]
    else:
        level, rate = rng.uniform(30.0, 45.0), rng.uniform(1.5, 3.0)
        knots = [(0.0, level), (rest, level), (rest + level / rate, 0.0)]
    shape = line(knots)
    end = rest
    while shape(end) > END_GIB:
        end += 0.01
    return Series(kind, sampled(rng, shape, end, interval, noise), end, rest)


def a_quiet_one(rng: random.Random) -> Series:
    """Return a stretch in which nothing may be raised."""
    interval = rng.choice((0.25, 0.5, 1.0, 2.0))
    noise = rng.choice((0.02, 0.05, 0.1))
    kind = rng.choice(("load", "bursty-load", "dips", "swing", "thin", "start-up"))
    if kind == "load":
        rate, end = rng.uniform(0.17, 2.0), rng.uniform(8.2, 22.0)
        begin = rng.choice((rng.uniform(42.0, 60.0), rng.uniform(60.0, 116.0)))
        rest = rng.uniform(20.0, 60.0)
        done = rest + (begin - end) / rate
        return Series(
            kind,
            sampled(
                rng, line([(0.0, begin), (rest, begin), (done, end)]), done + 60, interval, noise
            ),
        )
    if kind == "bursty-load":
        pace, end, level = rng.uniform(0.4, 1.5), rng.uniform(9.0, 22.0), rng.uniform(70.0, 116.0)
        knots, now = [(0.0, level), (30.0, level)], 30.0
        while level > end:
            shard = rng.uniform(2.0, 5.0)
            fast = pace * rng.uniform(1.0, 1.6)
            now, level = now + shard / fast, level - shard
            knots.append((now, max(level, end)))
            now += rng.uniform(0.0, 1.0)
            knots.append((now, max(level, end)))
        return Series(kind, sampled(rng, line(knots), now + 60, interval, noise))
    if kind == "dips":
        level = rng.uniform(9.0, 22.0)
        knots, now = [(0.0, level)], 0.0
        while now < 600.0:
            now += rng.uniform(20.0, 90.0)
            deep, wide = rng.choice(
                (
                    (rng.uniform(0.3, 2.2), rng.uniform(0.2, 1.0)),
                    (rng.uniform(2.2, min(5.5, level - 3.0)), 0.02),
                )
            )
            knots += [(now, level), (now + wide, level - deep)]
            now += wide + rng.uniform(0.2, 5.0)
            knots += [(now, level - deep), (now + wide, level)]
            now += wide
        return Series(kind, sampled(rng, line(knots), 600.0, interval, noise))
    if kind == "swing":
        level, period = rng.uniform(5.0, 20.0), rng.uniform(30.0, 600.0)
        knots = [(0.0, level)]
        while knots[-1][0] < 900.0:
            knots.append((knots[-1][0] + period / 2, level + rng.uniform(-2.0, 2.0)))
        return Series(kind, sampled(rng, line(knots), 900.0, interval, noise))
    if kind == "thin":
        knots = [(at * 5.0, rng.uniform(1.55, 1.85)) for at in range(180)]
        return Series(kind, sampled(rng, line(knots), 890.0, interval, min(noise, 0.05)))
    level = rng.uniform(12.0, 40.0)
    down = level - rng.uniform(7.7, min(10.0, level - 2.0))
    knots = [(0.0, level), (60.0, level), (60.0 + down / rng.uniform(0.2, 0.35), level - down)]
    knots.append((knots[-1][0] + 20.0, level))
    return Series(kind, sampled(rng, line(knots), knots[-1][0] + 60, interval, noise))


def a_twin(rng: random.Random) -> Series:
    """Return a fast load from rest below 40 GiB that ends with room: a warning at most."""
    begin, end, rate = rng.uniform(26.0, 40.0), rng.uniform(8.2, 16.0), rng.uniform(0.8, 2.0)
    knots = [(0.0, begin), (60.0, begin), (60.0 + (begin - end) / rate, end)]
    interval = rng.choice((0.25, 0.5, 1.0, 2.0))
    return Series("twin", sampled(rng, line(knots), knots[-1][0] + 30, interval, 0.05))


def recorded(folder: Path) -> Iterator[Series]:
    """Return the recordings that hold memory: the faults with their end, the rest as quiet."""
    for path in sorted(folder.glob("*.jsonl")):
        samples = [
            (sample.t, sample.memory.available_bytes / GIB)
            for sample in read_trace(path)
            if sample.memory is not None and sample.memory.available_bytes is not None
        ]
        if not samples:
            continue
        points = [(at - samples[0][0], gib) for at, gib in samples]
        if path.name.startswith("issue-vllm"):
            yield Series("recorded", points, points[-1][0])
        elif not path.name.startswith("issue-"):
            yield Series("recorded", points)
