"""Asking servers that answer, hang, flood, redirect, reset and disappear."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.sources.engines.addresses import address
from spark_watch.sources.engines.fetch import LIMIT_BYTES, fetch
from spark_watch.sources.engines.reader import REST_SECONDS, EngineReader
from spark_watch.sources.processes import Server

METRICS = b"vllm:num_requests_running 1\nvllm:generation_tokens_total %d\n"


class Engine:
    """A server on loopback that answers every connection with the bytes it is given.

    ``answer`` may be an iterator of pieces; ``hold`` keeps the connection open after them.
    """

    def __init__(self) -> None:
        self.answer: bytes = b""
        self.hold = False
        self.asked: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def says(self, body: bytes, status: str = "200 OK", head: str = "") -> None:
        """Answer with this body from now on."""
        self.answer = f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body

    def _serve(self) -> None:
        while not self._done.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(4096).split(b"\r\n")[0])
                try:
                    connection.sendall(self.answer)
                except OSError:
                    continue
                if self.hold:
                    self._done.wait()

    def close(self) -> None:
        """Stop answering."""
        self._done.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A running server that is closed afterwards."""
    made = Engine()
    yield made
    made.close()


def reason(engine: Engine) -> str:
    """Return why a question to the server failed."""
    with pytest.raises(Unavailable) as refused:
        fetch("127.0.0.1", engine.port, "/metrics")
    return refused.value.reason


def test_answer(engine: Engine) -> None:
    """The body is what comes after the head, up to its length or to the end."""
    engine.says(b"hello")
    assert fetch("127.0.0.1", engine.port, "/metrics") == b"hello"
    assert engine.asked == [b"GET /metrics HTTP/1.0"]
    engine.hold = True
    engine.says(b"hello", head="Content-Length: 5\r\n")
    assert fetch("127.0.0.1", engine.port, "/metrics") == b"hello"


@pytest.mark.parametrize(
    ("status", "head", "expected"),
    [
        ("404 Not Found", "", "http_404"),
        ("302 Found", "Location: http://192.0.2.1/\r\n", "redirect"),
        ("200 OK", "Transfer-Encoding: chunked\r\n", "malformed"),
        ("200 OK", "Content-Length: many\r\n", "malformed"),
        ("200 OK", "Content-Length: 100\r\n", "malformed"),
        ("200 OK", f"Content-Length: {LIMIT_BYTES + 1}\r\n", "too_large"),
    ],
)
def test_refused_answers(engine: Engine, status: str, head: str, expected: str) -> None:
    """No redirect is followed, nothing is guessed, nothing large is taken."""
    engine.says(b"hello", status, head)
    assert reason(engine) == expected


def test_no_http(engine: Engine) -> None:
    """What is no answer at all is malformed."""
    for answer in (b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"\0" * 40000, b"HTTP/1.1\r\n\r\n"):
        engine.answer = answer
        assert reason(engine) == "malformed"


def test_a_hundred_megabytes(engine: Engine) -> None:
    """No more than a mebibyte and one piece is ever taken."""
    engine.says(b"x" * (4 * LIMIT_BYTES))
    assert reason(engine) == "too_large"


def test_a_server_that_hangs_costs_a_second(engine: Engine) -> None:
    """Connected and silent, or dripping: after a second it is given up."""
    engine.hold = True
    begun = time.monotonic()
    assert reason(engine) == "timeout"
    assert time.monotonic() - begun < 2.0


def test_nobody_there(engine: Engine) -> None:
    """A port that nobody listens on refuses."""
    port = engine.port
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(Unavailable) as refused:
        fetch("127.0.0.1", port, "/metrics")
    assert refused.value.reason == "refused"


def reader(engine: Engine, now: list[float], *, container: str | None = None) -> EngineReader:
    """Return a reader that asks one vLLM there."""
    server = Server("vllm/7", "vllm", 7, engine.port, container)
    return EngineReader(servers=lambda: (server,), clock=lambda: now[0])


def test_report_reset_and_change_of_names(engine: Engine) -> None:
    """Counts come as they are, a reset too; a page without known names is a failure."""
    now = [0.0]
    asking = reader(engine, now)
    for at, tokens in ((0.0, 100), (5.0, 200), (10.0, 3)):
        now[0] = at
        engine.says(METRICS % tokens)
        asking.step()
        (report,) = asking.latest()
        assert (report.workload, report.generation_tokens_total) == ("vllm/7", tokens)
    now[0] = 15.0
    engine.says(b"other:name 1\n")
    asking.step()
    assert asking.errors == {"no_known_names": 1}
    assert len(asking.latest()) == 1, "the last answer stands for a while"
    now[0] = 41.0
    assert asking.latest() == []


def test_not_asked_before_it_is_due(engine: Engine) -> None:
    """Once in five seconds."""
    now = [0.0]
    asking = reader(engine, now)
    engine.says(METRICS % 1)
    for at in (0.0, 1.0, 4.9, 5.0):
        now[0] = at
        asking.step()
    assert len(engine.asked) == 2


def test_other_paths_are_tried(engine: Engine) -> None:
    """Where the usual page is missing the other known one is asked."""
    engine.says(b"", "404 Not Found")
    asking = reader(engine, [0.0])
    asking.step()
    assert engine.asked == [b"GET /metrics HTTP/1.0", b"GET /v1/metrics HTTP/1.0"]
    assert asking.errors == {"http_404": 1}


def test_a_server_without_metrics_is_left_alone(engine: Engine) -> None:
    """After three refusals it is asked once a minute, and heard again once it answers."""
    now = [0.0]
    asking = reader(engine, now)
    engine.says(b"", "404 Not Found")
    for at in range(60):
        now[0] = float(at)
        asking.step()
    assert asking.errors == {"http_404": 3}
    engine.says(METRICS % 1)
    now[0] = 10.0 + REST_SECONDS
    asking.step()
    assert len(asking.latest()) == 1


def test_a_server_that_ended_is_forgotten(engine: Engine) -> None:
    """Its workload goes with its process."""
    servers = [Server("vllm/7", "vllm", 7, engine.port, None)]
    asking = EngineReader(servers=lambda: servers, clock=lambda: 0.0)
    engine.says(METRICS % 1)
    asking.step()
    assert len(asking.latest()) == 1
    servers.clear()
    asking.step()
    assert asking.latest() == []


def test_named_by_hand(engine: Engine) -> None:
    """A server that is set is asked at its own path, under its address."""
    url = f"llama.cpp=http://127.0.0.1:{engine.port}/x"
    asking = EngineReader(servers=tuple, urls=[url], clock=lambda: 0.0)
    engine.says(b"llamacpp:n_decode_total 5\n")
    asking.step()
    (report,) = asking.latest()
    assert (report.workload, report.steps_total) == (f"llama.cpp@127.0.0.1:{engine.port}", 5)
    assert engine.asked == [b"GET /x HTTP/1.0"]


def test_the_thread_ends(engine: Engine) -> None:
    """A reader whose server hangs is closed without waiting for it."""
    engine.hold = True
    asking = EngineReader(servers=lambda: (Server("vllm/7", "vllm", 7, engine.port, None),))
    asking.start()
    begun = time.monotonic()
    asking.close()
    assert time.monotonic() - begun < 1.0


TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- {0}
        /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
"""


def test_address_of_a_container(tmp_path: Path) -> None:
    """A container's own address where it has one, loopback where it shares the host's network."""
    for name, ip in (("self", "192.0.2.7"), ("1", "192.0.2.7"), ("2", "172.17.0.3")):
        (tmp_path / name / "net").mkdir(parents=True)
        (tmp_path / name / "net" / "fib_trie").write_text(TRIE.format(ip))
    assert address(1, contained=True, proc_root=tmp_path) == "127.0.0.1"
    assert address(2, contained=True, proc_root=tmp_path) == "172.17.0.3"
    assert address(2, contained=False, proc_root=tmp_path) == "127.0.0.1"
    assert address(3, contained=True, proc_root=tmp_path) == "127.0.0.1"
