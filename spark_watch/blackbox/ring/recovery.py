"""What a ring still holds: its runs, how each ended, and the end of the last one for the judge.

Every whole line counts, whatever a kill or a power loss did to the line after it; what could not be
read is reported with its segment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

from spark_watch.blackbox.ring.folder import RingFolder, SegmentFile
from spark_watch.blackbox.trace import TraceHeader, read_trace
from spark_watch.errors import SparkWatchError
from spark_watch.model import Sample

RUNS_LIMIT: Final = 16
"""How many runs back a start looks: more restarts than that in a day say nothing new."""


class Run:
    """One run of the daemon: from its first sample to its last, over one or more segments.

    Args:
        segments: of this run, oldest first, at least one.

    Attributes:
        damages: what could not be read so far: ``(file name, why)``.
    """

    def __init__(self, segments: list[SegmentFile]) -> None:
        self.segments = segments
        self._first: tuple[TraceHeader, Sample] | None = None
        self._last: Sample | None = None
        self.damages: list[tuple[str, str]] = []

    @property
    def number(self) -> int:
        """The run's number in its ring."""
        return self.segments[0].run

    def first(self) -> tuple[TraceHeader, Sample] | None:
        """Return the oldest header that can be read and the first sample after it."""
        if self._first is None:
            self._first = next(self.samples(), None)
        return self._first

    @property
    def boot_id(self) -> str | None:
        """The boot in which the run began, ``None`` where its first sample does not say."""
        first = self.first()
        return None if first is None else first[1].boot_id

    def samples(self) -> Iterator[tuple[TraceHeader, Sample]]:
        """Yield every sample with its segment's header, oldest first."""
        for segment in self.segments:
            yield from self._read(segment)

    def last(self) -> Sample | None:
        """Return the last sample that can be read, ``None`` where no line of the run can."""
        for segment in reversed(self.segments):
            if self._last is not None:
                break
            for _, sample in self._read(segment):
                self._last = sample
        return self._last

    def head(self, seconds: float) -> Iterator[Sample]:
        """Yield the samples of the first so many seconds, oldest first."""
        start: Sample | None = None
        for _, sample in self.samples():
            start = start or sample
            if seconds_between(start, sample) > seconds:
                return
            yield sample

    def tail(self, seconds: float) -> Iterator[Sample]:
        """Yield the samples of the last so many seconds, oldest first, the last one included."""
        last = self.last()
        if last is None:
            return
        start = len(self.segments)
        while start > 0:
            start -= 1
            opened = next(self._read(self.segments[start]), None)
            if opened is not None and seconds_between(opened[1], last) >= seconds:
                break
        for segment in self.segments[start:]:
            for _, sample in self._read(segment):
                if seconds_between(sample, last) <= seconds:
                    yield sample

    def _read(self, segment: SegmentFile) -> Iterator[tuple[TraceHeader, Sample]]:
        path = segment.path
        if not path.exists() and not segment.packed:  # packed by its daemon meanwhile
            path = path.with_name(path.name + ".gz")
        try:
            with read_trace(path) as reader:
                for sample in reader:
                    yield reader.header, sample
                self._note(path, [skipped["why"] for skipped in reader.skipped])
        except SparkWatchError as error:
            self._note(path, [str(error)])

    def _note(self, path: Path, flaws: list[str]) -> None:
        for why in flaws:
            if (path.name, why) not in self.damages:
                self.damages.append((path.name, why))


def seconds_between(earlier: Sample, later: Sample) -> float:
    """Return seconds from one sample to a later one of the same boot, by the clock that is kept."""
    if earlier.monotonic_seconds is not None and later.monotonic_seconds is not None:
        return later.monotonic_seconds - earlier.monotonic_seconds
    return later.t - earlier.t


def runs_of(folder: Path) -> list[Run]:
    """Return the runs in a ring's folder, oldest first.

    Raises:
        OSError: the folder cannot be read.
    """
    segments = RingFolder(folder).segments()
    return [Run(list(group)) for _, group in groupby(segments, key=lambda one: one.run)]


def history(
    runs: list[Run], *, now: float, tail_seconds: float, back_seconds: float
) -> Iterator[Sample]:
    """Yield what a judge has to see of earlier runs before it goes on with a new one.

    Of each run that ended less than ``back_seconds`` ago its first and its last sample, so that
    every restart of the machine is seen; of the last run, and of the one before the last restart,
    the whole end. Where samples between two are left out the earlier one is marked as a stop,
    because nobody failed to watch there.

    Args:
        runs: all runs, oldest first.
        now: unix seconds.
        tail_seconds: how much of the last run's end is wanted.
        back_seconds: how far back restarts of the machine matter.
    """
    recent = [
        run
        for run in runs[-RUNS_LIMIT:]
        if (last := run.last()) is not None and (run is runs[-1] or now - last.t <= back_seconds)
    ]
    whole = {recent[-1].number} if recent else set()
    for later, earlier in pairwise(reversed(recent)):
        if later.boot_id != earlier.boot_id:
            whole.add(earlier.number)
            break
    for run in recent:
        first, last = run.first(), run.last()
        if first is None or last is None:
            continue
        marked: Sample | None = dataclasses.replace(first[1], stopped=True)
        for sample in run.tail(tail_seconds) if run.number in whole else (last,):
            if marked is not None and sample != first[1]:
                yield marked
            marked = None
            yield sample
