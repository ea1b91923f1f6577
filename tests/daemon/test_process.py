"""The daemon as a real process: real signals, a real supervisor's socket, a driver that stalls."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.process import command, environment, running
from tests.stand.nvml_stand import NvmlStand
from tests.waiting import PATIENCE_SECONDS, until

IDLE = ("--source", "simulate:idle")
SHORT_OF_FULL = "[conditions.memory_low]\nlow_gib = {}\n"
F_SETPIPE_SZ = 1031


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket on which systemd listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE_SECONDS)
        yield listening


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    """Exit code 0, the reason in the log, and the port is free."""
    with running(*IDLE) as daemon:
        url = daemon.event("listening")["url"]
        until(lambda: daemon.get("/metrics"))
        daemon.signal(number)
        assert daemon.end() == 0
        assert daemon.event("stopping")["reason"] == number.name
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=5)  # noqa: S310 - our own address


def test_a_reload_that_fails_keeps_the_old_settings_and_says_so(tmp_path: Path) -> None:
    """A bad file: log and metric say so, the rules go on; a good one is taken up again."""
    settings = tmp_path / "spark-watch.toml"
    settings.write_text(SHORT_OF_FULL.format("7.5"))
    with running(*IDLE, "--config", str(settings)) as daemon:
        until(lambda: daemon.metric("ticks_total"))
        assert daemon.metric("config_reload_success") is None
        settings.write_text(SHORT_OF_FULL.format('"much"'))
        daemon.signal(signal.SIGHUP)
        refused = daemon.event("reload_refused")
        assert str(settings) in refused["error"]
        assert "conditions.memory_low.low_gib" in refused["error"]
        assert refused["level"] == "warning"
        until(lambda: daemon.metric("config_reload_success") == 0.0)
        before = daemon.metric("ticks_total") or 0.0
        until(lambda: (daemon.metric("ticks_total") or 0.0) > before)
        settings.write_text('listen = "127.0.0.1:1"\n' + SHORT_OF_FULL.format("7.25"))
        daemon.signal(signal.SIGHUP)
        assert daemon.event("reloaded")["conditions_changed"] is True
        until(lambda: daemon.metric("config_reload_success") == 1.0)


def test_a_setting_that_needs_a_restart_is_named(tmp_path: Path) -> None:
    """What a reload cannot change is said by name; the same rules stay in force."""
    settings = tmp_path / "spark-watch.toml"
    settings.write_text("")
    with running(*IDLE, "--config", str(settings)) as daemon:
        until(lambda: daemon.metric("ticks_total"))
        settings.write_text("interval_seconds = 2\n")
        daemon.signal(signal.SIGHUP)
        assert daemon.event("reload_needs_restart")["setting"] == "interval_seconds"
        assert daemon.event("reloaded")["conditions_changed"] is False


def test_systemd_is_told(systemd: socket.socket) -> None:
    """Ready, signs of life, a reload with its moment and its end, and the stop, in this order."""
    variables = {"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "100000"}
    with running(*IDLE, variables=variables) as daemon:
        assert systemd.recv(4096).splitlines()[0] == b"READY=1"
        assert systemd.recv(4096) == b"WATCHDOG=1"
        daemon.signal(signal.SIGHUP)
        message = until(lambda: _other_than(systemd, b"WATCHDOG=1"))
        first, second = message.split(b"\n")
        assert first == b"RELOADING=1"
        assert second.startswith(b"MONOTONIC_USEC=")
        assert int(second.partition(b"=")[2]) > 0
        assert systemd.recv(4096) == b"READY=1"
        daemon.signal(signal.SIGTERM)
        assert until(lambda: _other_than(systemd, b"WATCHDOG=1")) == b"STOPPING=1"
        assert daemon.end() == 0


def _other_than(systemd: socket.socket, usual: bytes) -> bytes:
    message = systemd.recv(4096)
    return b"" if message == usual else message


def test_a_driver_that_never_answers_holds_nothing_up(
    nvml_library: Path, gb10: NvmlStand, systemd: socket.socket, tmp_path: Path
) -> None:
    """The first NVML call is out for good: ready, ticking, alive, and the page says how long."""
    gb10.stall("nvmlInitWithFlags", 3600.0)
    variables = gb10.environment(nvml_library) | {
        "NOTIFY_SOCKET": systemd.getsockname(),
        "WATCHDOG_USEC": "100000",
    }
    settings = tmp_path / "fast.toml"
    settings.write_text("interval_seconds = 0.25\n")
    with running("--config", str(settings), variables=variables) as daemon:
        assert systemd.recv(4096).splitlines()[0] == b"READY=1"
        assert systemd.recv(4096) == b"WATCHDOG=1"
        until(lambda: gb10.stalled)
        out = 'source_pending_seconds{source="nvml"}'
        first = until(lambda: daemon.metric(out)) or 0.0
        ticks = daemon.metric("ticks_total") or 0.0
        until(lambda: (daemon.metric(out) or 0.0) > first)
        until(lambda: (daemon.metric("ticks_total") or 0.0) >= ticks + 4)
        assert systemd.recv(4096) == b"WATCHDOG=1"
        assert gb10.stalled == 1
        assert daemon.metric('source_success{source="meminfo"}') == 1.0
        assert daemon.get("/readyz") == "ok\n"
        assert daemon.metric('source_success{source="nvml"}') in {None, 0.0}
        unknown = 'condition_state{condition="gpu_hot",gotcha="G4",state="unknown"}'
        assert daemon.metric(unknown) == 1.0
        daemon.signal(signal.SIGTERM)
        assert daemon.end() == 0


def test_a_log_that_nobody_reads_holds_nothing_up() -> None:
    """With the pipe to the journal full from the start it serves, ticks and ends all the same."""
    reading, writing = os.pipe()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    fcntl.fcntl(writing, F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * 4096)
    process = subprocess.Popen(
        command("run", *IDLE, "--listen", f"127.0.0.1:{port}"), env=environment(), stderr=writing
    )
    try:
        os.close(writing)

        def ready() -> bool:
            try:
                url = f"http://127.0.0.1:{port}/readyz"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        until(ready)
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reading)
