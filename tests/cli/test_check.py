"""``check`` and ``status``: a line for each condition and the worst state's exit code."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.export.page import Page
from spark_watch.export.server import Server
from spark_watch.model import State
from tests.cli.calls import Call, settings_file
from tests.export.snapshots import SNAPSHOT, standing
from tests.stand.nvml_stand import NvmlStand

LINE = re.compile(r"G\d+ [a-z_]+ (UNKNOWN|OK|INFO|WARNING|CRITICAL): \S.*")


def states(out: str) -> dict[str, str]:
    """Return condition to state as printed, every line being one of the fixed form."""
    found = {}
    for line in out.splitlines():
        assert LINE.fullmatch(line), line
        _, condition, state, *_ = line.split()
        found[condition] = state.rstrip(":")
    return found


def test_a_look_at_a_box(call: Call, gb10: NvmlStand, tmp_path: Path) -> None:
    """On fixture roots and a scripted GB10: every condition once, host and GPU judged."""
    gb10.gpus[0].temperature_celsius = 51
    result = call("check", "--config", settings_file(tmp_path), "--seconds", "2")
    assert result.code == 0
    found = states(result.out)
    assert list(found) == [kind.name for kind in CATALOGUE]
    assert found["memory_collapse"] in {"OK", "UNKNOWN"}
    assert found["gpu_hot"] == "OK"
    assert found["driver_stalled"] == "OK"
    assert "51 C" in result.out


def test_a_look_without_any_source(call: Call, gb10: NvmlStand, tmp_path: Path) -> None:
    """Roots that cannot be read and a driver that is gone: all unknown, each source named, 3."""
    gb10.fail("nvmlInitWithFlags", 9)
    nowhere = tmp_path / "nowhere"
    settings = settings_file(tmp_path, proc=nowhere, sys=nowhere)
    (tmp_path / "kmsg").unlink()
    result = call("check", "--config", settings, "--seconds", "2")
    assert result.code == 3
    found = states(result.out)
    never = {"telemetry_gap"}
    assert {state for name, state in found.items() if name not in never} == {"UNKNOWN"}
    named = re.findall(r"^spark-watch: not read: (\w+) \(\w+\)$", result.err, re.MULTILINE)
    assert {"nvml", "meminfo", "vmstat", "pressure", "buddyinfo", "thermal", "processes",
            "kernel_log", "boot", "cpu"} <= set(named)  # fmt: skip


def test_a_look_is_short_however_seldom_the_daemon_looks(call: Call, tmp_path: Path) -> None:
    """With a minute between samples a look of half a second takes about a second, not minutes."""
    settings = settings_file(tmp_path, more="interval_seconds = 60\n")
    started = time.monotonic()
    result = call("check", "--config", settings, "--seconds", "0.5", "--source", "simulate:idle")
    assert time.monotonic() - started < 10
    assert result.code == 0


def test_a_look_at_a_recording_is_refused_or_judged(call: Call, tmp_path: Path) -> None:
    """A recording that is not there is named: exit code 74."""
    result = call("check", "--source", f"replay:{tmp_path / 'nowhere'}")
    assert (result.code, result.out) == (74, "")


@contextmanager
def served(*standings: tuple[str, State]) -> Iterator[str]:
    """Serve a page on which conditions of these names stand so; yield its address."""
    page = Page()
    page.publish(
        replace(SNAPSHOT, standings=tuple(standing(name, state) for name, state in standings))
    )
    server = Server(page, host="127.0.0.1", port=0)
    server.start()
    try:
        yield server.url
    finally:
        server.close()


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([State.OK, State.INFO], 0),
        ([State.OK, State.UNKNOWN], 0),
        ([State.WARNING, State.UNKNOWN], 1),
        ([State.WARNING, State.CRITICAL], 2),
        ([State.UNKNOWN], 3),
        ([], 3),
    ],
)
def test_the_exit_code_is_that_of_the_worst(given: list[State], code: int, call: Call) -> None:
    """0 ok or info, 1 warning, 2 critical, 3 where nothing could be judged."""
    with served(*(("rule_" + "abc"[place], state) for place, state in enumerate(given))) as url:
        result = call("status", url)
    assert (result.code, result.err) == (code, "")
    assert list(states(result.out).values()) == [state.name for state in given]


def test_the_daemon_s_own_json(call: Call) -> None:
    """``--json`` prints what the daemon sent, with the same exit code."""
    with served(("memory_low", State.WARNING)) as url:
        result = call("status", url, "--json")
    assert result.code == 1
    assert json.loads(result.out)["conditions"][0]["condition"] == "memory_low"


def test_the_address_of_the_settings_is_the_default(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an address the one the daemon listens on is asked, past any proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with served(("memory_low", State.OK)) as url:
        monkeypatch.setenv("SPARK_WATCH_LISTEN", url.removeprefix("http://").rstrip("/"))
        assert call("status").code == 0


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """Answer whoever comes with these bytes; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            visitor, _ = listening.accept()
            with visitor:
                visitor.recv(4096)
                visitor.sendall(data)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            thread.join(10)


def page_of(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    """Return a whole answer."""
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, more, len(body), body)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", 74),
        (b"SSH-2.0-OpenSSH_9.6\r\n", 74),
        (b"\x00\xff" * 50, 74),
        (b"HTTP/1.1 abc\r\n\r\n", 74),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", 65),
        (page_of(b"no", b"404 Not Found"), 74),
        (page_of(b"no", b"503 Service Unavailable"), 74),
        (page_of(b"", b"302 Found", b"Location: http://127.0.0.1:1/\r\n"), 74),
        (page_of(b"<html>"), 65),
        (page_of(b"\xff\xfe"), 65),
        (page_of(b"[]"), 65),
        (page_of(b'{"conditions": 3}'), 65),
        (page_of(b'{"conditions": [{"state": "fine"}]}'), 65),
        (page_of(b'{"conditions": [{"state": 1}]}'), 65),
        (page_of(b"[" * 100_000), 65),
    ],
)
def test_whatever_else_listens_there(data: bytes, code: int, call: Call) -> None:
    """No HTTP, an error or a redirect is 74; an answer that is not the daemon's is 65."""
    with answering(data) as url:
        result = call("status", url)
    assert (result.code, result.out) == (code, "")
    assert result.error.startswith(url)


def test_nobody_listens_there(call: Call) -> None:
    """A closed port and a name nobody knows: 74, with the address."""
    for url in ("http://127.0.0.1:1", "http://no.such.host.invalid:9810"):
        result = call("status", url)
        assert (result.code, result.out) == (74, "")
        assert result.error.startswith(url)
