"""How fast available memory falls, and whether it began to fall faster a moment ago."""

from __future__ import annotations

from typing import Final

from spark_watch.detectors.timeline import STALE_SECONDS
from spark_watch.detectors.windows import FULL_SHARE, Recent

RATE_SECONDS: Final = 2.0
"""The rate is that of the last two seconds: the shortest published collapse takes 1.5 s
(NVIDIA/dgx-spark-playbooks#116), the best documented one 11 s (vllm-project/vllm#56824)."""

LOSS_SECONDS: Final = 4.0
"""How far back a loss is looked at."""

STRETCH_SECONDS: Final = 10.0
"""A steady load has been as fast as this for at least so long."""

BEFORE_SECONDS: Final = 30.0
"""How far before the last two seconds a steady load is looked for."""

BEFORE_INTERVALS: Final = 3
"""The same at long intervals."""

DRAIN_SECONDS: Final = 20.0
"""A slow fall is looked at over so long: noise of 0.1 GiB in 5 s does not add up to one."""

DRAIN_SHARE: Final = 0.5
"""In the last quarter of it a slow fall must have kept this share of its pace."""

RESTING_SHARE: Final = 0.25
"""In its last interval a fall must have kept this share of its rate, or it has come to rest."""

LASTING_GIB: Final = 0.25
"""A fall lasts while each second (or interval) lost this much; noise is 0.1 GiB in 5 s
(NousResearch/hermes-agent#90713)."""

LASTING_SHARE: Final = 0.15
"""The second before the newest must have lost this share of the newest, or it was a step."""


class Fall:
    """The last half minute of available memory (GiB) and what it says about now.

    Between two readings memory is taken to run straight, so that all numbers mean seconds whatever
    the interval: of an interval longer than two seconds the rate is that interval's mean. Before
    the first reading it is taken to have been level.

    Attributes:
        rate: GiB a second lost over the last two seconds, negative where it rose.
        lost: GiB lost over the last four seconds, or the last interval where that is longer.
        step: GiB lost over the last second, or the last interval where that is longer.
        lasted: over how many such stretches on end, up to three, it fell; 0 where the last
            interval came to rest.
        gap_seconds: seconds since the reading before, 0.0 at the first.
        falling: whether the last interval still kept a quarter of the rate.
        drained: GiB lost over the last twenty seconds; 0.0 where the last quarter of them has not
            kept half the pace, or where they hold no three readings.
    """

    __slots__ = (
        "_interval",
        "_now",
        "_recent",
        "_watched_since",
        "drained",
        "falling",
        "gap_seconds",
        "lasted",
        "lost",
        "rate",
        "step",
    )

    def __init__(self) -> None:
        self._recent = Recent(BEFORE_SECONDS + RATE_SECONDS + STRETCH_SECONDS)
        self._now = 0.0
        self._interval = 1.0
        self._watched_since = 0.0
        self.rate = 0.0
        self.lost = 0.0
        self.step = 0.0
        self.lasted = 0
        self.gap_seconds = 0.0
        self.falling = False
        self.drained = 0.0

    def add(self, now: float, gib: float, interval_seconds: float) -> None:
        """Take a reading.

        Args:
            now: seconds on the timeline.
            gib: available memory.
            interval_seconds: the measured interval of the readings.
        """
        recent = self._recent
        self._now = now
        self._interval = interval_seconds
        if not len(recent):
            recent.add(now, gib)
            self._watched_since = now
            return
        last_at, last = recent[-1]
        gap = self.gap_seconds = now - last_at
        if gap > max(STALE_SECONDS, BEFORE_INTERVALS * interval_seconds):
            self._watched_since = now
        recent.add(now, gib, (BEFORE_INTERVALS + 2) * max(interval_seconds, gap))
        unit = max(1.0, gap)
        level_at = recent.level_at
        one, two = level_at(now - unit), level_at(now - 2 * unit)
        self.rate = (level_at(now - RATE_SECONDS) - gib) / RATE_SECONDS
        self.lost = level_at(now - max(LOSS_SECONDS, gap)) - gib
        step = self.step = one - gib
        self.falling = last - gib > RESTING_SHARE * self.rate * gap and last > gib
        self.drained = level_at(now - DRAIN_SECONDS) - gib
        late = level_at(now - DRAIN_SECONDS / 4) - gib
        if late < DRAIN_SHARE / 4 * self.drained or gap > DRAIN_SECONDS / 2:
            self.drained = 0.0
        self.lasted = 0
        if self.falling and step >= LASTING_GIB:
            self.lasted = 1
            pace = max(LASTING_GIB, LASTING_SHARE * step)
            if two - one >= pace:
                self.lasted = 3 if level_at(now - 3 * unit) - two >= LASTING_GIB else 2

    @property
    def full(self) -> bool:
        """Whether enough was seen to say that nothing falls: 32 s, or four intervals.

        A hole in which the reading before went stale starts that anew.
        """
        window = max(BEFORE_SECONDS + RATE_SECONDS, (BEFORE_INTERVALS + 1) * self._interval)
        return self._now - self._watched_since >= FULL_SHARE * window

    @property
    def sustained(self) -> bool:
        """Whether it fell in each of the last two seconds, or intervals where they are longer."""
        return self.lasted >= 2  # noqa: PLR2004 - two, as said

    def seconds_to(self, floor_gib: float) -> float:
        """Seconds until memory reaches the floor at this rate: 0.0 below it, inf at rest."""
        left = self._recent[-1][1] - floor_gib
        if self.rate <= 0.0:
            return float("inf")
        return max(0.0, left / self.rate)

    def rate_before(self) -> float:
        """GiB a second of the fastest ten seconds in the half minute before the last two seconds.

        At long intervals the fastest of the three intervals before the last one. Never below 0.0.
        A load that was under way already shows here at its full pace, where a mean over the whole
        half minute would still hold the rest it started from.
        """
        recent = self._recent
        end = self._now - max(RATE_SECONDS, self.gap_seconds)
        begin = end - max(BEFORE_SECONDS, BEFORE_INTERVALS * self._interval)
        fastest = recent.level_at(end - STRETCH_SECONDS) - recent.level_at(end)
        for at, gib in recent:
            if begin <= at < end:
                fastest = max(fastest, recent.level_at(at - STRETCH_SECONDS) - gib)
        return max(0.0, fastest / STRETCH_SECONDS)
