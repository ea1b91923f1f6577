"""The host's files vanish, are empty, hold rubbish or block; its kernel logs without end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.box import FaultBox
from tests.waiting import until

pytestmark = pytest.mark.integration

FILES = {
    "meminfo": "meminfo",
    "vmstat": "vmstat",
    "pressure": "pressure/memory",
    "buddyinfo": "buddyinfo",
    "boot": "sys/kernel/random/boot_id",
    "cpu": "stat",
}
"""Which file of proc each source reads."""


def vanish(path: Path) -> None:
    """Take the file away."""
    path.unlink()


def empty(path: Path) -> None:
    """Leave nothing in it."""
    path.write_bytes(b"")


def rubbish(path: Path) -> None:
    """Leave what no kernel would write."""
    path.write_bytes(b"\xff\xfeMemTotal: many kB\n\0\0\0 -1 nan 99999999999999999999999\n" * 50)


def fifo(path: Path) -> None:
    """Put a pipe there that nobody writes to."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [vanish, empty, rubbish, fifo])
def test_files_that_are_no_use_from_the_start(
    box: FaultBox, damage: Callable[[Path], None]
) -> None:
    """Each source is named as failing, nothing is 0 for want of a reading, and the loop ticks."""
    for path in FILES.values():
        damage(box.proc / path)
    with box.daemon() as daemon:
        until(lambda: (daemon.metric("ticks_total") or 0.0) >= 8.0)
        for source in FILES:
            assert daemon.metric(f'source_success{{source="{source}"}}') == 0.0
        assert daemon.metric("memory_available_bytes") is None
        assert daemon.metric("recording_active") == 1.0
        unknown = 'condition_state{condition="memory_low",gotcha="G3",state="unknown"}'
        assert daemon.metric(unknown) == 1.0
        samples = box.stop(daemon)
    assert all(one.memory is None for one in samples)
    assert {failure.source for one in samples for failure in one.failed} >= {"meminfo", "vmstat"}


def test_files_that_go_bad_and_recover(box: FaultBox) -> None:
    """A reading that is lost is said and counted, and is back as soon as the file is."""
    path = box.proc / "meminfo"
    good = path.read_bytes()
    with box.daemon() as daemon:
        until(lambda: daemon.metric("memory_available_bytes"))
        for bad in (b"", b"rubbish\n", b"MemTotal:       many kB\n"):
            path.write_bytes(bad)
            until(lambda: daemon.metric('source_success{source="meminfo"}') == 0.0)
            path.write_bytes(good)
            until(lambda: daemon.metric('source_success{source="meminfo"}') == 1.0)
        samples = box.stop(daemon)
    lost = [one for one in samples if one.memory is None]
    assert all(any(failure.source == "meminfo" for failure in one.failed) for one in lost)
    assert len(lost) >= 3


def flood(box: FaultBox, seconds: int) -> None:
    """Log a hundred thousand lines a second, one in a thousand of them the driver's."""
    line = b"<6>[  100.000001] nothing of interest happened again\n"
    fault = b"<3>[  100.000001] NVRM: nvCheckOkFailed: NV_ERR_NO_MEMORY from rm\n"
    block = (line * 999 + fault) * 10
    stop = threading.Event()

    def write() -> None:
        with box.kmsg.open("ab", buffering=0) as log:
            for _ in range(10 * seconds):
                log.write(block)
                if stop.wait(0.1):
                    return

    box.interval_seconds = 1.0
    with box.daemon() as daemon:
        until(lambda: daemon.metric("ticks_total"))
        before = daemon.metric("self_resident_bytes")
        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        state = 'condition_state{condition="driver_allocation_failures",gotcha="G3",state="ok"}'
        until(lambda: daemon.metric(state) == 0.0)
        after = daemon.metric("self_resident_bytes")
        samples = box.stop(daemon)
    stop.set()
    counted = sum(event.count for one in samples for event in one.kernel or ())
    assert counted > 0
    assert before is not None
    assert after is not None
    assert after - before < 16 * 1024 * 1024


def test_a_hundred_thousand_kernel_lines_a_second(box: FaultBox) -> None:
    """Three seconds of it: the driver's failures among them are seen, no tick is lost."""
    flood(box, 3)


@pytest.mark.long
def test_a_minute_of_a_hundred_thousand_kernel_lines_a_second(box: FaultBox) -> None:
    """A minute of it: no tick is lost, and nothing grows."""
    flood(box, 60)
