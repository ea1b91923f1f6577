"""The recorder: a bounded queue and one thread, the only place where a disk may be slow."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from spark_watch.blackbox.ring.folder import RingFolder, SegmentFile
from spark_watch.blackbox.ring.packing import Packing
from spark_watch.blackbox.ring.segment import OpenSegment
from spark_watch.blackbox.ring.status import RecorderStatus, reason_of
from spark_watch.blackbox.trace import TraceHeader
from spark_watch.errors import OutputError
from spark_watch.model import EMPTY, Sample

QUEUE_SAMPLES: Final = 256
"""What may wait for a slow disk: four minutes at 1 Hz, one in danger mode, about a megabyte."""

SYNC_SECONDS: Final = 5.0
"""How much of a healthy time a power loss may take."""

RETRY_SECONDS: Final = (1.0, 60.0)
"""The first and the longest wait after a failure; each wait is twice the one before."""

SEGMENT_BYTES: Final = 1024 * 1024
"""Of one segment before it is closed: about eight minutes at 1 Hz with eight GPU processes."""

SEGMENTS: Final = 64
"""A small ring has smaller segments, so that dropping one is never much of it."""

STACK_BYTES: Final = 256 * 1024
"""Stack of the thread: the default of 8 MiB would be locked into memory for nothing."""


class RingWriter:
    """Keeps samples on disk, within a size, without ever delaying who brings them.

    Nothing touches the disk before the first sample. Where the disk refuses, recording is off: it
    is tried again later, and samples wait in the queue as long as there is room. A segment is
    closed by size, packed a piece at each sample, and dropped when it is the oldest and the ring
    is full.

    Args:
        folder: the ring.
        header: the first line of every segment; its extra keys are written too.
        max_bytes: what all segments together may take.
        acknowledged: a file whose time of change is watched, see :attr:`acknowledged_seconds`.
        sync: makes what was written to a descriptor durable.
        clock: monotonic seconds.
        wall: unix seconds.
    """

    def __init__(
        self,
        folder: Path,
        header: TraceHeader,
        *,
        max_bytes: int,
        acknowledged: Path | None = None,
        sync: Callable[[int], None] = os.fdatasync,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.folder = RingFolder(folder)
        self.acknowledged_seconds: float | None = None
        """Unix time of the last change of the file ``acknowledged``, looked at with each sync."""
        self._header = header
        self._max_bytes = max_bytes
        self._segment_bytes = min(SEGMENT_BYTES, max_bytes // SEGMENTS)
        self._acknowledged = acknowledged
        self._sync = sync
        self._clock = clock
        self._wall = wall

        self._queue: deque[tuple[Sample, bool]] = deque(maxlen=QUEUE_SAMPLES)
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._dropped = 0
        self._closing = False
        self._ended = False
        self._thread: threading.Thread | None = None

        self._lock = -1
        self._run: int | None = None
        self._run_started: float | None = None
        self._next_number = 1
        self._open: OpenSegment | None = None
        self._closed: deque[SegmentFile] = deque()
        self._closed_bytes = 0
        self._to_pack: deque[SegmentFile] = deque()
        self._packing: tuple[SegmentFile, Packing] | None = None
        self._unsynced = False
        self._sync_due = float("-inf")
        self._retry_at = float("-inf")
        self._retry_seconds = RETRY_SECONDS[0]
        self._written = 0
        self._last_sync: float | None = None
        self._reason: str | None = None
        self._errors: dict[str, int] = {}
        self._published = RecorderStatus()

    @property
    def status(self) -> RecorderStatus:
        """How it stands; never waits."""
        published = self._published
        if published.dropped_samples == self._dropped:
            return published
        return replace(published, dropped_samples=self._dropped)

    def start(self) -> None:
        """Start the thread."""
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._thread = threading.Thread(target=self._loop, name="recorder", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(usual)

    def put(self, sample: Sample, *, urgent: bool) -> None:
        """Take a sample. Never waits: where the queue is full its oldest sample goes, counted.

        Args:
            sample: what is to be written.
            urgent: the disk must have it before the next one comes.
        """
        if len(self._queue) == self._queue.maxlen:
            self._dropped += 1
        self._queue.append((sample, urgent))
        if self._wake.empty():
            self._wake.put(None)

    def close(self, wait_seconds: float = 2.0) -> None:
        """Write what waits, and end; a disk that does not answer is left behind after a while."""
        self._closing = True
        self._wake.put(None)
        if self._thread is not None:
            self._thread.join(wait_seconds)

    def _loop(self) -> None:
        wait = SYNC_SECONDS
        while not self._ended:
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=wait)
            wait = self.step()

    def step(self) -> float:
        """Do what is due now; return after how many seconds something is due again."""
        now = self._clock()
        closing = self._closing
        if now < self._retry_at and not closing:
            return self._retry_at - now
        try:
            self._work(now, closing=closing)
        except (OSError, OutputError) as error:
            self._fail(error, now)
        if closing:
            self._give_back()
            self._ended = True
        self._publish()
        return max(0.0, self._retry_at - now) if self._reason else SYNC_SECONDS

    def _work(self, now: float, *, closing: bool) -> None:
        urgent = self._drain()
        if self._open is None:
            return
        # After a failure only a sync proves that the disk takes samples again.
        must = urgent or closing or self._reason is not None
        if self._unsynced and (must or now >= self._sync_due):
            self._open.sync()
            self._unsynced = False
            self._last_sync = self._wall()
        if now >= self._sync_due:
            self._sync_due = now + SYNC_SECONDS
            self._look_for_acknowledgement()
        if self._open.size_bytes >= self._segment_bytes:
            self._close_segment()
        if not closing:
            self._pack()
        self._reason = None
        self._retry_seconds = RETRY_SECONDS[0]

    def _drain(self) -> bool:
        """Write what waits; return whether one of it must be on disk at once."""
        any_urgent = False
        while self._queue:
            try:
                item = self._queue.popleft()
            except IndexError:
                break
            sample, urgent = item
            try:
                if self._open is None:
                    self._open = self._new_segment(sample)
                self._open.write(sample)
            except BaseException:
                if len(self._queue) < QUEUE_SAMPLES:
                    self._queue.appendleft(item)
                else:
                    self._dropped += 1
                raise
            self._written += 1
            self._unsynced = True
            any_urgent = any_urgent or urgent
        return any_urgent

    def _new_segment(self, sample: Sample) -> OpenSegment:
        if self._lock < 0:
            self._take_folder()
        self._drop_oldest()
        number = self._next_number
        if self._run is None:
            self._run = number
            self._run_started = sample.t
        machine = sample.machine or self._header.machine
        self._header = replace(self._header, machine=machine)
        header = replace(self._header, extra={**self._header.extra, **self._origin(sample)})
        path = self.folder.segment_path(number, self._run)
        segment = OpenSegment(path, header, self._sync)
        self._next_number = number + 1
        self._unsynced = True
        return segment

    def _origin(self, sample: Sample) -> Mapping[str, Any]:
        """What a segment's header says of the run and the moment at which it begins."""
        origin: dict[str, Any] = {
            "run": self._run,
            "run_started": self._run_started,
            "t": sample.t,
            "monotonic_seconds": sample.monotonic_seconds,
            "boottime_seconds": sample.boottime_seconds,
            "boot_id": sample.boot_id,
        }
        return {key: value for key, value in origin.items() if value is not None}

    def _take_folder(self) -> None:
        self._lock = self.folder.take()
        self.folder.tidy()
        self._closed = deque(self.folder.segments())
        self._closed_bytes = sum(one.size_bytes for one in self._closed)
        self._to_pack = deque(one for one in self._closed if not one.packed)
        if self._closed:
            self._next_number = max(self._next_number, self._closed[-1].number + 1)

    def _close_segment(self) -> None:
        segment = self._open
        if segment is None or self._run is None:
            return
        self._open = None
        if self._unsynced:
            segment.sync()
            self._unsynced = False
        segment.close()
        one = SegmentFile(self._next_number - 1, self._run, segment.path, segment.size_bytes)
        self._closed.append(one)
        self._closed_bytes += one.size_bytes
        self._to_pack.append(one)

    def _drop_oldest(self) -> None:
        """Make room for a whole segment and for the packed form of another."""
        room = self._max_bytes - 2 * self._segment_bytes
        while self._closed and self._closed_bytes > room:
            one = self._closed.popleft()
            self._closed_bytes -= one.size_bytes
            if self._to_pack and self._to_pack[0] is one:
                self._to_pack.popleft()
            if self._packing is not None and self._packing[0] is one:
                self._packing[1].abandon()
                self._packing = None
            one.path.unlink(missing_ok=True)

    def _pack(self) -> None:
        """Pack one piece of the oldest segment that is not packed."""
        if self._packing is None:
            if not self._to_pack:
                return
            one = self._to_pack.popleft()
            try:
                self._packing = (one, Packing(one.path))
            except OSError as error:
                self._count(reason_of(error))
                return
        one, packing = self._packing
        try:
            done = packing.step()
        except OSError as error:  # no reason to stop recording: it stays as it is, and counts
            packing.abandon()
            self._packing = None
            self._count(reason_of(error))
            return
        if done:
            self._packing = None
            packed = one._replace(path=packing.packed_path, size_bytes=packing.packed_bytes)
            self._closed[self._closed.index(one)] = packed
            self._closed_bytes += packed.size_bytes - one.size_bytes

    def _look_for_acknowledgement(self) -> None:
        if self._acknowledged is not None:
            with contextlib.suppress(OSError):
                self.acknowledged_seconds = self._acknowledged.stat().st_mtime

    def _fail(self, error: BaseException, now: float) -> None:
        """Give up the segment and the folder until the next try."""
        self._reason = reason_of(error)
        self._count(self._reason)
        self._retry_at = now + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS[1])
        self._unsynced = False
        self._give_back()

    def _count(self, reason: str) -> None:
        self._errors[reason] = self._errors.get(reason, 0) + 1

    def _give_back(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._packing is not None:
            self._packing[1].abandon()
            self._packing = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _publish(self) -> None:
        size, count = self._closed_bytes, len(self._closed)
        if self._open is not None:
            size += self._open.size_bytes
            count += 1
        self._published = RecorderStatus(
            active=self._open is not None or (self._reason is None and self._run is not None),
            reason=self._reason,
            size_bytes=size,
            segments=count,
            written_samples=self._written,
            dropped_samples=self._dropped,
            last_sync_seconds=self._last_sync,
            errors=dict(self._errors) if self._errors else EMPTY,
        )
