"""What systemd is told, through a real datagram socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_watch.daemon.notify import Notifier


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket on which systemd listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


def test_states_arrive_as_one_datagram(systemd: socket.socket) -> None:
    """Several assignments are lines of one message."""
    notifier = Notifier({"NOTIFY_SOCKET": systemd.getsockname()})
    notifier.send("READY=1", "STATUS=watching")
    assert systemd.recv(4096) == b"READY=1\nSTATUS=watching"
    notifier.close()
    notifier.send("STOPPING=1")
    notifier.close()


def test_an_abstract_socket_is_found() -> None:
    """A name that begins with @ is one of the kernel's own."""
    name = f"spark-watch-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        listening.settimeout(10)
        notifier = Notifier({"NOTIFY_SOCKET": "@" + name})
        notifier.send("READY=1")
        assert listening.recv(4096) == b"READY=1"
        notifier.close()


@pytest.mark.parametrize(
    "environment",
    [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere"}, {"NOTIFY_SOCKET": "x"}],
)
def test_without_systemd_nothing_happens(environment: dict[str, str]) -> None:
    """No socket, a strange one or one that nobody listens on: a send is no error."""
    notifier = Notifier(environment | {"WATCHDOG_USEC": "1000"})
    notifier.send("READY=1")
    notifier.alive(1.0)
    notifier.close()


def test_a_full_socket_does_not_stop_us(systemd: socket.socket) -> None:
    """Where systemd does not read, the state is dropped and the call returns."""
    notifier = Notifier({"NOTIFY_SOCKET": systemd.getsockname()})
    for _ in range(5000):
        notifier.send("WATCHDOG=1")
    notifier.close()


def test_signs_of_life_come_in_a_quarter_of_the_time(systemd: socket.socket) -> None:
    """With 180 s a sign is due every 45 s, and the first at once."""
    notifier = Notifier({"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "180000000"})
    assert notifier.watchdog_seconds == 180.0
    for now in range(100):
        notifier.alive(float(now))
    notifier.send("END=1")
    assert [systemd.recv(99) for _ in range(4)] == [b"WATCHDOG=1"] * 3 + [b"END=1"]
    notifier.close()


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}, 2.0),
        ({"WATCHDOG_USEC": "2000000"}, 2.0),
    ],
)
def test_the_watchdog_is_only_ours(environment: dict[str, str], seconds: float | None) -> None:
    """A time that is meant for another process, or is no time, is not kept."""
    assert Notifier(environment).watchdog_seconds == seconds
