"""What the kernel log still says of a process that is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_watch.sources.kernel_past import was_oom_killed

KILL = b"Out of memory: Killed process 4711 (python3) total-vm:99kB, anon-rss:9kB"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (b"<3>[   12.000001] " + KILL + b"\n", True),
        (b"3,812,99000000,-;" + KILL + b"\n SUBSYSTEM=x\n", True),
        (
            b"<3>[   12.000001] Memory cgroup out of memory: Killed process 4711 (python3)",
            True,
        ),
        (b"<3>[   12.000001] " + KILL.replace(b"4711", b"47110") + b"\n", False),
        (b"<3>[   12.000001] " + KILL.replace(b"4711", b"471") + b"\n", False),
        (b"<30>[   12.000001] " + KILL + b"\n", False),
        (b"<6>[   12.000001] python3 says: " + KILL + b"\n", False),
        (b"", False),
    ],
    ids=["dmesg", "kmsg", "cgroup, cut", "longer", "shorter", "a service", "a name", "empty"],
)
def test_a_kill_is_found_by_its_pid(tmp_path: Path, text: bytes, answer: bool) -> None:
    """Only the kernel's own line about this very process counts, wherever in the log it stands."""
    path = tmp_path / "kmsg"
    path.write_bytes(b"<6>[    1.000001] Linux version 6.17\n" * 1_000 + text)
    assert was_oom_killed(4711, path=path) is answer


def test_a_log_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    """Neither yes nor no where there is no log, or it is a folder."""
    assert was_oom_killed(1, path=tmp_path / "none") is None
    assert was_oom_killed(1, path=tmp_path) is None


def test_a_log_without_an_end_of_file_ends_too(tmp_path: Path) -> None:
    """A pipe that stays open is read as far as it goes, without waiting."""
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    keeper = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(keeper, b"<3>[   12.000001] " + KILL + b"\n")
        assert was_oom_killed(4711, path=path) is True
        assert was_oom_killed(4711, path=path) is False
    finally:
        os.close(keeper)
