"""Rolling windows over irregular readings: the one place where they are kept.

Every window is bounded in memory whatever the interval, and knows how much of itself it has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

FULL_SHARE: Final = 0.95
"""A window is full when readings span this share of it: intervals are never exact."""


class Recent:
    """The readings of the last seconds, each kept as it came.

    For short windows. ``capacity`` bounds it: at a faster rate than it was made for, the oldest go,
    and a window that cannot reach back far enough is never full.

    Args:
        seconds: how far back the window reaches, inclusive.
        capacity: the most readings kept.
    """

    __slots__ = ("_points", "seconds")

    def __init__(self, seconds: float, capacity: int = 512) -> None:
        self.seconds = seconds
        self._points: deque[tuple[float, float]] = deque(maxlen=capacity)

    def add(self, now: float, value: float, keep_seconds: float | None = None) -> None:
        """Add a reading and drop what is older than the window.

        Args:
            now: seconds on the timeline, not before the last reading's.
            value: the reading.
            keep_seconds: reach further back than ``seconds`` (long intervals).
        """
        points = self._points
        points.append((now, value))
        edge = now - max(self.seconds, keep_seconds or 0.0) - 1e-9
        while points[0][0] < edge:
            points.popleft()

    def __len__(self) -> int:
        """Return how many readings there are."""
        return len(self._points)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """Yield (seconds, value), oldest first."""
        return iter(self._points)

    def __getitem__(self, index: int) -> tuple[float, float]:
        """Return one (seconds, value) by its place, -1 being the newest."""
        return self._points[index]

    @property
    def span_seconds(self) -> float:
        """Seconds between the oldest and the newest reading, 0.0 for fewer than two."""
        return self._points[-1][0] - self._points[0][0] if self._points else 0.0

    @property
    def full(self) -> bool:
        """Whether the readings span the window."""
        return len(self._points) > 1 and self.span_seconds >= self.seconds * FULL_SHARE

    def at(self, moment: float) -> float | None:
        """The newest reading not after ``moment``, ``None`` where there is none."""
        found = None
        for seconds, value in self._points:
            if seconds > moment:
                break
            found = value
        return found

    def median(self) -> float | None:
        """The median of the readings, ``None`` where there are none."""
        values = sorted(value for _, value in self._points)
        return values[len(values) // 2] if values else None

    def level_at(self, moment: float) -> float:
        """The value at ``moment`` on the straight lines between the readings.

        Before the oldest reading it is the oldest one's, after the newest the newest one's. There
        must be at least one reading. With it a change over two seconds is the same number at every
        interval: of a longer interval it is the two seconds' share.
        """
        after: tuple[float, float] | None = None
        for point in reversed(self._points):
            if point[0] <= moment:
                if after is None or after[0] <= point[0]:
                    return point[1]
                share = (moment - point[0]) / (after[0] - point[0])
                return point[1] + share * (after[1] - point[1])
            after = point
        return self._points[0][1]

    def clear(self) -> None:
        """Forget every reading."""
        self._points.clear()


class Growth:
    """How fast a cumulative counter grows, measured over the last seconds.

    A counter that went back was reset: the readings before count no more, and the rate is not
    known until there is a second one.

    Args:
        seconds: the stretch to measure over; two readings further apart are measured over theirs.
    """

    __slots__ = ("_recent", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._recent = Recent(seconds)

    def update(self, now: float, total: float) -> float | None:
        """Take a reading and return the growth a second, ``None`` where it is not known yet."""
        recent = self._recent
        gap = 0.0
        if len(recent):
            last_at, last = recent[-1]
            gap = now - last_at
            if total < last:
                recent.clear()
        recent.add(now, total, gap)
        begin, first = recent[0]
        return (total - first) / (now - begin) if now > begin else None


class Tally:
    """How many things happened in the last seconds.

    Bounded whatever the rate: what happened within a 64th of the window is counted together, and
    leaves together when the youngest of it is too old.

    Args:
        seconds: how far back the window reaches, inclusive.
    """

    __slots__ = ("_counts", "_since", "seconds", "total")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.total = 0
        """How many happened in the window, as of the last reading."""
        self._counts: deque[list[float]] = deque()
        self._since: float | None = None

    def add(self, now: float, count: int) -> int:
        """Take a reading that saw ``count`` things happen and return how many the window holds."""
        if self._since is None:
            self._since = now
        counts = self._counts
        if count:
            if counts and now - counts[-1][0] < self.seconds / 64:
                counts[-1][1] = now
                counts[-1][2] += count
            else:
                counts.append([now, now, count])
            self.total += count
        while counts and now - counts[0][1] > self.seconds + 1e-6:
            self.total -= int(counts.popleft()[2])
        return self.total

    def full(self, now: float) -> bool:
        """Whether the readings span the window."""
        return self._since is not None and now - self._since >= self.seconds * FULL_SHARE

    def restart(self) -> None:
        """Begin anew after a time that nobody watched; what was counted still counts."""
        self._since = None


class Bucket:
    """What is kept of the readings of one stretch of time."""

    __slots__ = ("count", "first", "high", "last", "low", "start", "total")

    def __init__(self, start: float, value: float) -> None:
        self.start = start
        self.count = 1
        self.total = value
        self.low = value
        self.high = value
        self.first = value
        self.last = value

    def add(self, value: float) -> None:
        """Take one more reading into the stretch."""
        self.count += 1
        self.total += value
        self.last = value
        if value < self.low:
            self.low = value
        elif value > self.high:
            self.high = value

    @property
    def mean(self) -> float:
        """The mean of the readings."""
        return self.total / self.count


class Buckets:
    """A long window kept as stretches of equal length (mean, lowest, highest, first, last).

    Args:
        seconds: how far back the window reaches.
        bucket_seconds: the length of a stretch.
    """

    __slots__ = ("_buckets", "_first", "_newest", "bucket_seconds", "seconds")

    def __init__(self, seconds: float, bucket_seconds: float) -> None:
        self.seconds = seconds
        self.bucket_seconds = bucket_seconds
        self._buckets: deque[Bucket] = deque(maxlen=int(seconds / bucket_seconds) + 2)
        self._first: float | None = None
        self._newest = 0.0

    def add(self, now: float, value: float) -> bool:
        """Add a reading; return True where it opened a new stretch (the old one is complete)."""
        self._newest = now
        if self._first is None:
            self._first = now
        start = now // self.bucket_seconds * self.bucket_seconds
        buckets = self._buckets
        if buckets and buckets[-1].start == start:
            buckets[-1].add(value)
            return False
        buckets.append(Bucket(start, value))
        edge = now - self.seconds - self.bucket_seconds
        while buckets[0].start <= edge:
            buckets.popleft()
        return True

    def __len__(self) -> int:
        """Return how many stretches hold at least one reading."""
        return len(self._buckets)

    def __iter__(self) -> Iterator[Bucket]:
        """Yield the stretches that hold readings, oldest first."""
        return iter(self._buckets)

    def __getitem__(self, index: int) -> Bucket:
        """Return one stretch by its place, -1 being the newest."""
        return self._buckets[index]

    @property
    def span_seconds(self) -> float:
        """Seconds from the first reading kept, or from the start of the window, to the newest."""
        if self._first is None:
            return 0.0
        oldest = max(self._first, self._buckets[0].start)
        return self._newest - oldest

    @property
    def full(self) -> bool:
        """Whether the readings span the window."""
        return self.span_seconds >= self.seconds * FULL_SHARE

    def clear(self) -> None:
        """Forget every reading."""
        self._buckets.clear()
        self._first = None
