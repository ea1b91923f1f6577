"""From a ring, a folder of traces or one trace to the runs of a daemon in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_watch.blackbox.ring import FOLDER, RingFolder, runs_of
from spark_watch.blackbox.ring.recovery import seconds_between
from spark_watch.blackbox.trace import TraceHeader, read_trace
from spark_watch.errors import InputError, OutputError
from spark_watch.model import Sample

KEPT_SAMPLES: Final = 7200
"""Of each run of a plain trace: half an hour at four samples a second."""

Progress = Callable[[int, int], None]
"""Told how many of how many pieces have been read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One run of a daemon.

    Args:
        header: of its first segment.
        first: its first sample.
        last: its last sample.
        head: gives the samples of its first so many seconds, oldest first.
        tail: gives the samples of its last so many seconds, oldest first.
        running: whether its daemon still records.
        judged: whether the recorder wrote down with each sample what stood then.
    """

    header: TraceHeader
    first: Sample
    last: Sample
    head: Callable[[float], Iterable[Sample]]
    tail: Callable[[float], Iterable[Sample]]
    running: bool = False
    judged: bool = False


def ring_in(path: Path) -> Path | None:
    """Return the ring's folder: ``path`` itself or the one in it; ``None`` where there is none."""
    for folder in (path, path / FOLDER):
        try:
            if RingFolder(folder).segments():
                return folder
        except OSError:
            continue
    return None


def passages_of(path: Path, progress: Progress) -> list[Passage]:
    """Return the runs in a ring, in a folder of traces, or in one trace, oldest first.

    Raises:
        InputError: a file is no trace.
        OutputError: the path cannot be read.
    """
    if not path.is_dir():
        return list(_split(path))
    ring = ring_in(path)
    if ring is not None:
        return _of_ring(ring, progress)
    try:
        traces = sorted(
            file for file in path.iterdir() if file.name.endswith((".jsonl", ".jsonl.gz"))
        )
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    found: list[Passage] = []
    for number, trace in enumerate(traces, start=1):
        found += _split(trace)
        progress(number, len(traces))
    return found


def _of_ring(folder: Path, progress: Progress) -> list[Passage]:
    taken = RingFolder(folder).taken()
    runs = runs_of(folder)
    found = []
    for number, run in enumerate(runs, start=1):
        first, last = run.first(), run.last()
        if first is not None and last is not None:
            found.append(
                Passage(
                    header=first[0],
                    first=first[1],
                    last=last,
                    head=run.head,
                    tail=run.tail,
                    running=taken and run is runs[-1] and not last.stopped,
                    judged=True,
                )
            )
        progress(number, len(runs))
    return found


class _Kept:
    """The end of a run that is read once: its last samples."""

    def __init__(self, header: TraceHeader, first: Sample) -> None:
        self.header = header
        self.first = first
        self.samples: deque[Sample] = deque([first], maxlen=KEPT_SAMPLES)

    def tail(self, seconds: float) -> list[Sample]:
        last = self.samples[-1]
        return [one for one in self.samples if seconds_between(one, last) <= seconds]

    def head(self, seconds: float) -> list[Sample]:
        return [one for one in self.samples if seconds_between(self.first, one) <= seconds]

    def passage(self) -> Passage:
        return Passage(
            header=self.header,
            first=self.first,
            last=self.samples[-1],
            head=self.head,
            tail=self.tail,
        )


def _split(path: Path) -> Iterator[Passage]:
    """Yield the runs in one trace: a stop or a restart of the machine ends one."""
    kept: _Kept | None = None
    with read_trace(path) as reader:
        for sample in reader:
            before = kept.samples[-1] if kept is not None else None
            if kept is None or before is None or before.stopped or restarted(before, sample):
                if kept is not None:
                    yield kept.passage()
                kept = _Kept(reader.header, sample)
            else:
                kept.samples.append(sample)
    if kept is None:
        raise InputError(f"{path}: no sample in it")
    yield kept.passage()


def restarted(before: Sample, after: Sample) -> bool:
    """Whether the machine restarted between two samples, by boot id or else by its clock."""
    if before.boot_id is not None and after.boot_id is not None:
        return before.boot_id != after.boot_id
    if before.monotonic_seconds is None or after.monotonic_seconds is None:
        return False
    return after.monotonic_seconds < before.monotonic_seconds - 1.0
