"""The black box: whether samples reach the disk, how much is kept, what was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch.blackbox.ring import RecorderStatus
from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import Snapshot


def _recorder(pick: Callable[[RecorderStatus], float | None]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return one(None if snapshot.recorder is None else pick(snapshot.recorder))

    return read


def _errors(snapshot: Snapshot) -> Samples:
    if snapshot.recorder is None:
        return ()
    return (((reason,), count) for reason, count in sorted(snapshot.recorder.errors.items()))


def _locked(snapshot: Snapshot) -> Samples:
    locked = snapshot.loop.memory_locked
    return one(None if locked is None else float(locked))


FAMILIES: Final = (
    Family(
        "recording_active",
        "gauge",
        "1 while samples reach the disk, absent where nothing is to be recorded: spark-watch.",
        _recorder(lambda status: float(status.active)),
    ),
    Family(
        "recording_size_bytes",
        "gauge",
        "What the recording takes on disk: spark-watch.",
        _recorder(lambda status: status.size_bytes),
    ),
    Family(
        "recording_segments",
        "gauge",
        "Files of the recording: spark-watch.",
        _recorder(lambda status: status.segments),
    ),
    Family(
        "recording_samples",
        "counter",
        "Samples written to the recording: spark-watch.",
        _recorder(lambda status: status.written_samples),
    ),
    Family(
        "recording_dropped_samples",
        "counter",
        "Samples that were lost because the disk was too slow or refused: spark-watch.",
        _recorder(lambda status: status.dropped_samples),
    ),
    Family(
        "recording_last_sync_timestamp_seconds",
        "gauge",
        "When all that was written was last known to be on disk: fdatasync(2).",
        _recorder(lambda status: status.last_sync_seconds),
    ),
    Family(
        "recording_errors",
        "counter",
        "Failures of the recording, by reason: spark-watch.",
        _errors,
        ("reason",),
    ),
    Family(
        "memory_lock_active",
        "gauge",
        "1 while the daemon is kept in memory, absent where it did not try: mlockall(2).",
        _locked,
    ),
)
