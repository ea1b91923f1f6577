"""The disk is full at any byte, fills up under a running daemon, or has no descriptor left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_watch.blackbox.ring import FOLDER
from tests.blackbox.ring.boxes import Box, times
from tests.faults.box import FaultBox, limit
from tests.waiting import until

WHOLE = 2500
"""More than a segment of five samples takes."""


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may grow beyond that size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("first", range(10))
def test_a_disk_that_is_full_at_any_byte(tmp_path: Path, first: int) -> None:
    """Wherever the room ends, all five samples are on disk once there is room, each once."""
    for size in range(first * 7, WHOLE, 70):
        folder = tmp_path / str(size)
        box = Box(folder)
        with file_size_limit(size):
            box.fill(5)
        box.fill(70, first=5)
        assert times(folder) == [float(second) for second in range(75)]
        assert box.writer.status.dropped_samples == 0
        assert box.writer.status.active
        box.kill()


@pytest.mark.integration
def test_a_disk_that_fills_up_under_the_daemon(box: FaultBox) -> None:
    """Page and log say that recording is off, and why; with room it goes on without loss."""
    with box.daemon() as daemon:
        until(lambda: (daemon.metric("recording_samples_total") or 0.0) >= 2.0)
        limit(daemon, resource.RLIMIT_FSIZE, 100)
        until(lambda: daemon.metric("recording_active") == 0.0)
        assert daemon.event("recording_off")["reason"] in {"file_too_large", "short_write"}
        errors = [
            line for line in daemon.get("/metrics").splitlines() if "recording_errors" in line
        ]
        assert len(errors) >= 3
        limit(daemon, resource.RLIMIT_FSIZE, -1)
        until(lambda: daemon.metric("recording_active") == 1.0)
        assert daemon.metric("recording_dropped_samples_total") == 0.0
        box.stop(daemon)


@pytest.mark.integration
def test_no_descriptor_is_left(box: FaultBox) -> None:
    """A segment that cannot be opened turns recording off until it can; no tick is lost by it."""
    box.interval_seconds = 0.25
    box.settings["SPARK_WATCH_BLACKBOX__MAX_BYTES"] = str(1024 * 1024)
    with box.daemon() as daemon:
        until(lambda: (daemon.metric("recording_samples_total") or 0.0) >= 2.0)
        limit(daemon, resource.RLIMIT_NOFILE, 4)
        # the page cannot be asked without a descriptor, the log can
        assert daemon.event("recording_off")["reason"] == "too_many_open_files"
        limit(daemon, resource.RLIMIT_NOFILE, -1)
        until(lambda: daemon.metric("recording_active") == 1.0)
        assert daemon.metric('recording_errors_total{reason="too_many_open_files"}') is not None
        assert daemon.metric("recording_dropped_samples_total") == 0.0
        box.stop(daemon)


def fill(filler: Path) -> None:
    """Write until the file system takes nothing more."""
    with filler.open("wb", buffering=0) as full, contextlib.suppress(OSError):
        while True:
            full.write(b"x" * 512)


@pytest.mark.integration
@pytest.mark.long
def test_a_real_file_system_that_is_full(box: FaultBox) -> None:
    """On a tmpfs of 256 KiB that another file fills, recording stops and goes on after it."""
    box.state.mkdir()
    library = ctypes.CDLL(None, use_errno=True)
    place = os.fsencode(box.state)
    if library.mount(b"none", place, b"tmpfs", 0, b"size=256k") != 0:
        pytest.skip(f"no tmpfs may be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        with box.daemon() as daemon:
            until(lambda: (daemon.metric("recording_samples_total") or 0.0) >= 2.0)
            filler = box.state / "filler"
            fill(filler)
            until(lambda: daemon.metric('recording_errors_total{reason="no_space"}'))
            assert daemon.metric("recording_active") == 0.0
            filler.unlink()
            until(lambda: daemon.metric("recording_active") == 1.0)
            assert (box.state / FOLDER).is_dir()
            box.stop(daemon)
    finally:
        library.umount2(place, 2)
