"""The recorder: what reaches the disk and when, and what a disk that refuses does to it."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import threading
from pathlib import Path

import pytest

from spark_watch.blackbox.ring import RingFolder, RingWriter, runs_of
from spark_watch.blackbox.ring.writer import QUEUE_SAMPLES
from spark_watch.blackbox.trace import TraceHeader, read_trace
from spark_watch.model import Memory
from tests.blackbox.ring.boxes import BOOT, MIB, START, sample, times
from tests.blackbox.ring.conftest import Make


def test_nothing_is_touched_before_the_first_sample(tmp_path: Path, make: Make) -> None:
    """A writer without a sample makes no folder and is not active."""
    box = make(tmp_path / "ring")
    box.writer.step()
    assert not (tmp_path / "ring").exists()
    assert not box.writer.status.active


def test_samples_are_on_disk_as_soon_as_they_are_written(tmp_path: Path, make: Make) -> None:
    """Every sample can be read back by another process after the step that took it."""
    box = make(tmp_path / "ring")
    box.fill(3)
    assert times(tmp_path / "ring") == [0.0, 1.0, 2.0]
    assert box.writer.status.active
    assert box.writer.status.written_samples == 3
    assert box.writer.status.segments == 1


def test_the_header_says_boot_run_and_clocks(tmp_path: Path, make: Make) -> None:
    """A segment names the boot, its run and the three clocks at which it begins."""
    box = make(tmp_path / "ring")
    box.fill(1)
    with read_trace(RingFolder(tmp_path / "ring").segments()[0].path) as reader:
        assert reader.header.recorder == "spark-watch"
        assert dict(reader.header.extra) == {
            "run": 1,
            "run_started": START,
            "t": START,
            "monotonic_seconds": 1_000_000,
            "boottime_seconds": 1_000_000,
            "boot_id": BOOT,
        }


def test_a_quiet_time_is_synced_every_five_seconds(tmp_path: Path, make: Make) -> None:
    """Of twelve quiet seconds three bring a sync: the first sample and then every fifth second."""
    box = make(tmp_path / "ring")
    box.fill(12)
    assert box.disk.syncs == 3
    assert box.writer.status.last_sync_seconds == START + 11.0


def test_an_urgent_sample_is_synced_at_once(tmp_path: Path, make: Make) -> None:
    """While something is wrong each sample is on disk before the next one comes."""
    box = make(tmp_path / "ring")
    box.fill(1)
    for second in (1, 2, 3):
        box.put(sample(second), urgent=True)
    assert box.disk.syncs == 4


def test_the_ring_never_outgrows_its_size(tmp_path: Path, make: Make) -> None:
    """Over many times its size the ring keeps the newest samples, without a hole, in its bounds."""
    size = 64 * 1024
    box = make(tmp_path / "ring", max_bytes=size)
    noise = random.Random(7)  # noqa: S311 - what does not compress, not a secret
    largest = 0
    for second in range(1_500):
        memory = Memory(
            available_bytes=noise.getrandbits(36),
            free_bytes=noise.getrandbits(36),
            cached_bytes=noise.getrandbits(36),
            anonymous_bytes=noise.getrandbits(36),
        )
        box.put(sample(second, memory=memory))
        if second % 100 == 0:
            files = (tmp_path / "ring").iterdir()
            largest = max(largest, sum(file.stat().st_size for file in files))
    assert size // 2 < largest <= size
    kept = times(tmp_path / "ring")
    assert kept == [float(second) for second in range(int(kept[0]), 1_500)]
    assert 200 < len(kept) < 1_500


def test_closed_segments_are_packed_and_read_the_same(tmp_path: Path, make: Make) -> None:
    """What was closed is compressed piece by piece; no sample is lost or doubled by it."""
    box = make(tmp_path / "ring", max_bytes=4 * MIB)
    box.fill(1_000)
    segments = RingFolder(tmp_path / "ring").segments()
    assert len(segments) > 2
    assert all(segment.packed for segment in segments[:-1])
    assert not segments[-1].packed
    assert times(tmp_path / "ring") == [float(second) for second in range(1_000)]
    on_disk = sum(segment.size_bytes for segment in segments)
    assert box.writer.status.size_bytes == on_disk


def test_what_another_run_left_unpacked_is_packed(tmp_path: Path, make: Make) -> None:
    """A new run has a segment of its own and packs the one that a kill left open."""
    first = make(tmp_path / "ring")
    first.fill(5)
    first.kill()
    second = make(tmp_path / "ring")
    second.fill(10, first=100)
    old, new = RingFolder(tmp_path / "ring").segments()
    assert (old.number, old.run, old.packed) == (1, 1, True)
    assert (new.number, new.run, new.packed) == (2, 2, False)
    assert len(times(tmp_path / "ring")) == 15


def test_a_kill_in_the_middle_of_packing_leaves_nothing_behind(tmp_path: Path, make: Make) -> None:
    """A half-written pack is removed, and where both forms are there the packed one counts."""
    box = make(tmp_path / "ring", max_bytes=4 * MIB)
    box.fill(1_000)
    box.kill()
    folder = RingFolder(tmp_path / "ring")
    packed = folder.segments()[0].path
    packed.with_suffix("").write_bytes(b"the unpacked form\n")
    half = packed.with_name(packed.name + ".part")
    half.write_bytes(b"\x1f\x8b half")
    make(tmp_path / "ring").fill(1, first=2_000)
    assert not packed.with_suffix("").exists()
    assert not half.exists()
    assert len(times(tmp_path / "ring")) == 1_001


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "no_space"), (errno.EIO, "io_error"), (errno.EROFS, "read_only")],
)
def test_a_disk_that_refuses_turns_recording_off_until_it_answers(
    tmp_path: Path, make: Make, number: int, reason: str
) -> None:
    """The reason is said, tries become rarer, and what came meanwhile is written afterwards."""
    box = make(tmp_path / "ring")
    box.fill(3)
    box.disk.error = OSError(number, os.strerror(number))
    box.put(sample(3), urgent=True)
    assert (box.writer.status.active, box.writer.status.reason) == (False, reason)
    box.fill(20, first=4)
    tries = box.writer.status.errors[reason]
    assert tries == 5  # after 0, 1, 2, 4 and 8 s
    box.disk.error = None
    box.fill(20, first=24)
    assert box.writer.status.active
    assert box.writer.status.reason is None
    assert box.writer.status.dropped_samples == 0
    assert times(tmp_path / "ring") == [float(second) for second in range(44)]


def test_a_full_queue_drops_the_oldest_and_counts(tmp_path: Path, make: Make) -> None:
    """While the disk is away the newest samples wait; those that found no room are counted."""
    box = make(tmp_path / "ring")
    box.fill(1)
    box.disk.error = OSError(errno.EIO, "broken")
    for second in range(1, QUEUE_SAMPLES + 11):
        box.writer.put(sample(second), urgent=False)
    assert box.writer.status.dropped_samples == 10
    box.disk.error = None
    box.clock.now += 100.0
    box.writer.step()
    assert times(tmp_path / "ring") == [0.0, *map(float, range(11, QUEUE_SAMPLES + 11))]


def test_a_vanished_folder_is_noticed_and_made_again(tmp_path: Path, make: Make) -> None:
    """Writing into a file without a name is no recording: it is seen at the sync, and mended."""
    box = make(tmp_path / "state" / "ring")
    box.fill(1)
    shutil.rmtree(tmp_path / "state")
    box.fill(6, first=1)
    assert box.writer.status.errors == {"not_found": 1}
    box.fill(3, first=7)
    assert box.writer.status.active
    assert times(tmp_path / "state" / "ring")[-3:] == [7.0, 8.0, 9.0]


def test_a_folder_in_place_of_another_is_noticed(tmp_path: Path, make: Make) -> None:
    """A file of the same name in a new folder is not the one that is written to."""
    box = make(tmp_path / "ring")
    box.fill(1)
    path = RingFolder(tmp_path / "ring").segments()[0].path
    shutil.rmtree(tmp_path / "ring")
    (tmp_path / "ring").mkdir()
    path.touch()
    box.fill(10, first=1)
    assert box.writer.status.errors == {"not_found": 1}
    last = runs_of(tmp_path / "ring")[-1].last()
    assert last is not None
    assert last.t == START + 10


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, make: Make) -> None:
    """A file where the folder should be leaves recording off, with the reason, and no crash."""
    (tmp_path / "state").write_text("")
    box = make(tmp_path / "state" / "ring")
    box.fill(2)
    assert box.writer.status.reason in {"not_a_directory", "exists"}
    assert not box.writer.status.active


def test_a_second_daemon_is_kept_out(tmp_path: Path, make: Make) -> None:
    """Two daemons never write one ring: the second says so and takes over when the first ends."""
    first, second = make(tmp_path / "ring"), make(tmp_path / "ring")
    first.fill(1)
    assert RingFolder(tmp_path / "ring").taken()
    second.fill(1, first=50)
    assert second.writer.status.reason == "in_use"
    first.close()
    assert not RingFolder(tmp_path / "ring").taken()
    second.fill(3, first=51)
    assert second.writer.status.active
    assert times(tmp_path / "ring") == [0.0, 50.0, 51.0, 52.0, 53.0]


@pytest.mark.parametrize("room", [-10, 0, 50], ids=["no header", "a header", "half a sample"])
def test_a_failed_start_of_a_segment_leaves_no_empty_files(
    tmp_path: Path, make: Make, room: int
) -> None:
    """Tries on a full disk do not litter the ring with segments that hold nothing."""
    other = make(tmp_path / "other")
    other.fill(1)
    whole = RingFolder(tmp_path / "other").segments()[0].path.read_bytes()
    box = make(tmp_path / "ring")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    fits = whole.index(b"\n") + 1 + room
    resource.setrlimit(resource.RLIMIT_FSIZE, (fits, before[1]))
    try:
        box.fill(10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert box.writer.status.reason in {"short_write", "file_too_large"}
    assert RingFolder(tmp_path / "ring").segments() == []
    box.fill(10, first=10)
    assert times(tmp_path / "ring") == [float(second) for second in range(20)]


def test_a_slow_disk_never_delays_who_brings_samples(tmp_path: Path) -> None:
    """While a sync does not come back, samples are taken at once, and end up on disk after it."""
    entered, answer = threading.Event(), threading.Event()

    def sync(descriptor: int) -> None:
        del descriptor
        entered.set()
        answer.wait(30.0)

    writer = RingWriter(
        tmp_path / "ring", TraceHeader(interval_seconds=1.0), max_bytes=MIB, sync=sync
    )
    writer.start()
    writer.put(sample(0), urgent=True)
    assert entered.wait(10.0)
    for second in range(1, 100):
        writer.put(sample(second), urgent=True)
    assert times(tmp_path / "ring") == [0.0]
    answer.set()
    writer.close(wait_seconds=30.0)
    assert times(tmp_path / "ring") == [float(second) for second in range(100)]
    assert writer.status.dropped_samples == 0


def test_closing_does_not_wait_for_a_dead_disk(tmp_path: Path) -> None:
    """A stop ends in time although the sync never comes back."""
    entered, answer = threading.Event(), threading.Event()

    def sync(descriptor: int) -> None:
        del descriptor
        entered.set()
        answer.wait(30.0)

    writer = RingWriter(
        tmp_path / "ring", TraceHeader(interval_seconds=1.0), max_bytes=MIB, sync=sync
    )
    writer.start()
    writer.put(sample(0), urgent=True)
    assert entered.wait(10.0)
    writer.close(wait_seconds=0.05)
    assert times(tmp_path / "ring") == [0.0]
    answer.set()


def test_an_acknowledgement_is_seen_with_the_next_sync(tmp_path: Path, make: Make) -> None:
    """The time of the file's last change is there within five seconds, and not before."""
    mark = tmp_path / "acknowledged"
    box = make(tmp_path / "ring", acknowledged=mark)
    box.fill(1)
    assert box.writer.acknowledged_seconds is None
    mark.touch()
    os.utime(mark, (START, START))
    box.fill(5, first=1)
    assert box.writer.acknowledged_seconds == START


def test_unknown_files_in_the_folder_are_let_alone(tmp_path: Path, make: Make) -> None:
    """Whatever else lies in the folder is neither read, counted nor removed."""
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "notes.txt").write_text("mine")
    box = make(tmp_path / "ring", max_bytes=MIB)
    box.fill(3)
    assert box.writer.status.segments == 1
    assert (tmp_path / "ring" / "notes.txt").read_text() == "mine"
