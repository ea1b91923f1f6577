"""Sources that read the simulated Spark: one scenario, or all of them in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Final

from spark_watch.errors import UsageError
from spark_watch.model import Machine, Sample
from spark_watch.sources.simulated.machine import Spark
from spark_watch.sources.simulated.scenario import Scenario
from spark_watch.sources.simulated.scenarios import SCENARIOS

MIN_INTERVAL_SECONDS: Final = 0.25
MAX_INTERVAL_SECONDS: Final = 60.0
START_SECONDS: Final = 1_764_460_800.0
"""2025-11-30 00:00 UTC: where a scenario begins unless told otherwise."""

MAX_SPEED: Final = 60.0
CLOSEUP_SPEED: Final = 1.5
BETWEEN_SECONDS: Final = 90.0
"""Idle time between two scenarios of a demonstration."""


def scenario_named(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        UsageError: there is none; the text names those that exist.
    """
    try:
        return SCENARIOS[name]
    except KeyError:
        choices = ", ".join(SCENARIOS)
        raise UsageError(f"no scenario is named {name!r}: choose from {choices}") from None


class SimulatedSource:
    """One scenario, sampled at a fixed interval or whenever somebody asks.

    Args:
        scenario: a name out of :data:`SCENARIOS`, or a scenario of one's own.
        seed: decides every random number; the same seed gives the same samples.
        interval_seconds: 0.25 to 60; used by :meth:`samples` alone.
        start: unix seconds of the scenario's beginning. Left out, :meth:`read` begins at its first
            ``now`` and :meth:`samples` at a fixed moment.

    Raises:
        UsageError: no scenario has that name, or the interval is out of range.
    """

    name = "simulated"

    def __init__(
        self,
        scenario: str | Scenario,
        *,
        seed: int = 0,
        interval_seconds: float = 1.0,
        start: float | None = None,
    ) -> None:
        check_interval(interval_seconds)
        self.scenario = scenario_named(scenario) if isinstance(scenario, str) else scenario
        self.interval_seconds = interval_seconds
        self._seed = seed
        self._start = start
        self._live: Spark | None = None
        self._first_now = 0.0
        self._skipped = 0.0

    @property
    def machine(self) -> Machine:
        """What the box says of itself at the scenario's beginning."""
        return self._new_spark(START_SECONDS).machine

    def samples(self) -> Iterator[Sample]:
        """Every sample of the whole scenario, from a fresh box, on the scenario's own clock.

        Nothing is yielded for the moments at which nobody could read: while the power is away.
        """
        spark = self._new_spark(START_SECONDS if self._start is None else self._start)
        for number in range(int(self.scenario.seconds / self.interval_seconds) + 1):
            spark.advance_to(number * self.interval_seconds)
            sample = spark.sample()
            if sample is not None:
                yield sample

    def read(self, now: float) -> Sample:
        """The box at ``now``, where the first call is the scenario's beginning.

        After its end the box stays as the scenario left it. Time in which nobody could read is
        skipped: from then on the sample's own ``t`` is ahead of ``now`` by that much.
        """
        if self._live is None:
            self._live = self._new_spark(now if self._start is None else self._start)
            self._first_now = now
        spark = self._live
        spark.advance_to(max(spark.elapsed, now - self._first_now + self._skipped))
        before = spark.elapsed
        sample = _first_readable(spark)
        self._skipped += spark.elapsed - before
        return sample

    def _new_spark(self, start: float) -> Spark:
        spark = Spark(self._seed, start)
        spark.play(self.scenario.script)
        return spark


class DemoSource:
    """Every scenario in turn on one box, for ever.

    Between two scenarios the box is put in order and left alone for ninety seconds of its time.

    Args:
        seed: decides every random number.
        speed: seconds of the box in one real second of :meth:`read`, 1 to 60; at 30 a round takes
            six minutes.
        interval_seconds: 0.25 to 60; used by :meth:`samples` alone.
        start: unix seconds of the beginning. Left out, :meth:`read` begins at its first ``now`` and
            :meth:`samples` at a fixed moment.

    Raises:
        UsageError: the speed or the interval is out of range.
    """

    name = "simulated"

    def __init__(
        self,
        *,
        seed: int = 0,
        speed: float = 30.0,
        interval_seconds: float = 1.0,
        start: float | None = None,
    ) -> None:
        if not 1.0 <= speed <= MAX_SPEED:
            raise UsageError(f"speed is {speed:g}: choose from 1 to {MAX_SPEED:g}")
        check_interval(interval_seconds)
        self.interval_seconds = interval_seconds
        self._seed = seed
        self._speed = speed
        self._start = start
        self._order = cycle(SCENARIOS.values())
        self._spark: Spark | None = None
        self._last_now = 0.0
        self._begun = 0.0
        self.scenario = next(self._order)
        """The scenario on stage now."""

    @property
    def machine(self) -> Machine:
        """What the box would say of itself."""
        return Spark(self._seed, START_SECONDS).machine

    def samples(self) -> Iterator[Sample]:
        """A sample every ``interval_seconds`` of the box's time, without an end."""
        spark = self._open(START_SECONDS if self._start is None else self._start)
        while True:
            yield _first_readable(spark)
            self._run(spark, self.interval_seconds, speed=1.0)

    def read(self, now: float) -> Sample:
        """The box after the time since the last call, at the demonstration's pace.

        Where a scenario has a closeup, time slows down to near the real pace, so that a collapse
        of eleven seconds can be watched. ``t`` begins at the first ``now``, runs ahead of it and
        never goes back.
        """
        if self._spark is None:
            self._spark = self._open(now if self._start is None else self._start)
            self._last_now = now
        self._run(self._spark, max(0.0, now - self._last_now), speed=self._speed)
        self._last_now = max(now, self._last_now)
        return _first_readable(self._spark)

    def _open(self, start: float) -> Spark:
        spark = Spark(self._seed, start)
        spark.play(self.scenario.script)
        return spark

    def _run(self, spark: Spark, seconds: float, *, speed: float) -> None:
        """Spend that many seconds, piece by piece, each at the pace of its stretch."""
        left = seconds
        while left > 0.0:
            position = spark.elapsed - self._begun
            if position >= self.scenario.seconds + BETWEEN_SECONDS:
                self._next_scenario(spark)
                continue
            pace, until = self._stretch(position, speed)
            step = min(left, (until - position) / pace)
            spark.advance_to(self._begun + min(until, position + step * pace))
            if position < self.scenario.seconds <= spark.elapsed - self._begun:
                spark.clear()
            left -= step

    def _stretch(self, position: float, speed: float) -> tuple[float, float]:
        """The pace at ``position`` in the scenario, and the position where it next changes."""
        end = self.scenario.seconds
        stop = end if position < end else end + BETWEEN_SECONDS
        for start, close in self.scenario.closeups:
            if position < start:
                return speed, min(start, stop)
            if position < close:
                return min(speed, CLOSEUP_SPEED), min(close, stop)
        return speed, stop

    def _next_scenario(self, spark: Spark) -> None:
        self.scenario = next(self._order)
        self._begun = spark.elapsed
        spark.play(self.scenario.script)


def check_interval(interval_seconds: float) -> None:
    """Refuse an interval at which the windows of the conditions make no sense.

    Raises:
        UsageError: it is not within 0.25 to 60 seconds.
    """
    if not MIN_INTERVAL_SECONDS <= interval_seconds <= MAX_INTERVAL_SECONDS:
        raise UsageError(
            f"interval_seconds is {interval_seconds:g}: choose from "
            f"{MIN_INTERVAL_SECONDS:g} to {MAX_INTERVAL_SECONDS:g}"
        )


def _first_readable(spark: Spark) -> Sample:
    """The sample of now, or of the first moment at which there is somebody to read again."""
    while (sample := spark.sample()) is None:
        spark.advance_to(spark.silent_until)
    return sample
