"""The HTTP server through real sockets on loopback."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from spark_watch.errors import OutputError
from spark_watch.export import http1
from spark_watch.export.page import Page
from spark_watch.export.server import IDLE_SECONDS, MOST_CLIENTS, REQUEST_SECONDS, Server
from spark_watch.export.views import VIEWS, Answer
from tests.export.snapshots import SNAPSHOT
from tests.waiting import PATIENCE_SECONDS, until

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


class Time:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Visitor:
    """One client of the server, speaking bytes."""

    def __init__(self, server: Server) -> None:
        host, _, port = server.url.removeprefix("http://").rstrip("/").rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), PATIENCE_SECONDS)
        self._rest = b""

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.socket.sendall(data)

    def answer(self, *, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """Return the next answer: status, headers, body."""
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        size = int(headers["Content-Length"]) if body else 0
        while len(self._rest) < size:
            self._more()
        content, self._rest = self._rest[:size], self._rest[size:]
        return int(lines[0].split()[1]), headers, content

    def ended(self) -> bool:
        """Whether the server has closed the connection and nothing is left to read."""
        try:
            return self._rest == b"" and self.socket.recv(65536) == b""
        except ConnectionResetError:
            return True

    def _more(self) -> None:
        data = self.socket.recv(65536)
        assert data, "the connection ended in the middle of an answer"
        self._rest += data


Visit = Callable[[], Visitor]


@pytest.fixture
def time() -> Time:
    """The server's clock."""
    return Time()


@pytest.fixture
def page() -> Page:
    """A page with a snapshot."""
    page = Page()
    page.publish(SNAPSHOT)
    return page


@pytest.fixture
def server(page: Page, time: Time) -> Iterator[Server]:
    """A server that answers, on a free port."""
    server = Server(page, host="127.0.0.1", port=0, clock=time)
    server.start()
    yield server
    server.close()


@pytest.fixture
def visit(server: Server) -> Iterator[Visit]:
    """Make a client; all are closed at the end."""
    made: list[Visitor] = []

    def come() -> Visitor:
        made.append(Visitor(server))
        return made[-1]

    yield come
    for one in made:
        one.socket.close()


def ask(visitor: Visitor, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """Ask for a path."""
    visitor.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return visitor.answer(body=method != "HEAD")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/plain; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/api/v1/conditions", "application/json"),
        ("/runbook", "text/html; charset=utf-8"),
        ("/healthz", "text/plain; charset=utf-8"),
        ("/readyz", "text/plain; charset=utf-8"),
    ],
)
def test_every_path_answers(visit: Visit, path: str, kind: str) -> None:
    """200, with its type, and the same head for HEAD."""
    assert path in VIEWS
    visitor = visit()
    status, headers, body = ask(visitor, path)
    assert (status, headers["Content-Type"]) == (200, kind)
    assert body.endswith(b"\n")
    assert ask(visitor, path, "HEAD") == (200, headers, b"")


def test_the_paths_are_those_that_are_documented() -> None:
    """No path is there that the test above does not visit."""
    apis = {"/metrics", "/api/v1/conditions"}
    assert set(VIEWS) == {"/", "/runbook", "/healthz", "/readyz"} | apis


def test_conditions_have_their_published_form(visit: Visit) -> None:
    """The keys other programs rely on, one object for each condition, in the catalogue's order."""
    body = json.loads(ask(visit(), "/api/v1/conditions")[2])
    assert body["at"] == 1_790_000_000.0
    first, second = body["conditions"]
    assert {key: first[key] for key in first if key != "subjects"} == {
        "gotcha": "G3",
        "condition": "memory_low",
        "state": "warning",
        "subject": "host",
        "since": 1_789_999_940.0,
        "sentence": "The host has 6.0 GiB available.",
        "remedy": "Stop a job.",
    }
    assert (second["condition"], second["state"], second["subject"]) == (
        "gpu_hot",
        "unknown",
        "gpu0",
    )


def test_the_status_page_shows_the_worst_first(visit: Visit) -> None:
    """A person sees what is wrong in the first line, and what helps below it."""
    lines = ask(visit(), "/")[2].decode().splitlines()
    assert lines[2:5] == [
        "G3 memory_low WARNING: The host has 6.0 GiB available.",
        "    Stop a job.",
        "G4 gpu_hot UNKNOWN: It is so.",
    ]


def test_before_the_first_sample() -> None:
    """The page is there and empty; health, readiness and conditions say that there is nothing."""
    server = Server(Page(), host="127.0.0.1", port=0)
    server.start()
    try:
        visitor = Visitor(server)
        answers = {path: ask(visitor, path)[0] for path in VIEWS}
        assert {path for path, status in answers.items() if status != 503} == {
            "/",
            "/metrics",
            "/runbook",
        }
        visitor.socket.close()
    finally:
        server.close()


def test_health_ends_when_the_loop_does(page: Page) -> None:
    """Ten seconds without a tick are still health, eleven are not."""
    assert not Page().alive(0.0)
    assert page.alive(page._published_at + 10.0)
    assert not page.alive(page._published_at + 10.1)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"rubbish\r\n\r\n", 400),
        (b"GET /nowhere HTTP/1.1\r\n\r\n", 404),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", 405),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * http1.LIMIT_BYTES + b"\r\n\r\n", 431),
        (b"a" * (http1.LIMIT_BYTES + 1), 431),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
    ],
)
def test_what_is_wrong_is_refused(visit: Visit, request_: bytes, status: int) -> None:
    """Each mistake has its status; all but a wrong path end the connection."""
    visitor = visit()
    visitor.send(request_)
    answered, headers, _ = visitor.answer()
    assert answered == status
    assert headers["Connection"] == ("keep-alive" if status == 404 else "close")
    assert status == 404 or visitor.ended()


def test_many_requests_at_once_are_answered_in_order(visit: Visit) -> None:
    """Requests that come in one piece, and one cut in two, each get their answer in turn."""
    visitor = visit()
    visitor.send(GET + b"GET /nowhere HTTP/1.1\r\n\r\n" + GET[:10])
    assert [visitor.answer()[0], visitor.answer()[0]] == [200, 404]
    visitor.send(GET[10:] + b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n" + GET)
    assert [visitor.answer()[0], visitor.answer()[0]] == [200, 200]
    assert visitor.ended()


def test_a_flood_of_requests_is_answered_one_by_one(
    visit: Visit, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand requests whose answers nobody reads cost one answer of memory, not thousands."""
    visitor = visit()
    answered: list[str] = []
    respond = server.respond

    def counted(request: http1.Request) -> Answer:
        answered.append(request.path)
        return respond(request)

    monkeypatch.setattr(server, "respond", counted)
    flood = b"GET /metrics HTTP/1.1\r\n\r\n" * 2000
    visitor.socket.setblocking(False)
    visitor.socket.send(flood)
    (client,) = until(lambda: tuple(server._clients))
    until(lambda: client._paused)
    assert client.transport is not None
    size = len(respond(http1.parse(b"GET /metrics HTTP/1.1")).body)
    assert client.transport.get_write_buffer_size() < 2 * size
    assert len(answered) < 1000
    visitor.socket.setblocking(True)
    visitor.socket.settimeout(PATIENCE_SECONDS)
    assert [visitor.answer()[0] for _ in range(2000)] == [200] * 2000


def test_a_request_a_byte_at_a_time_is_dropped_at_its_deadline(
    visit: Visit, server: Server, time: Time
) -> None:
    """Each byte does not buy more time: five seconds after the first the client is gone."""
    visitor = visit()
    for byte in GET[:8]:
        before = len(b"".join(bytes(client._buffer) for client in server._clients))
        visitor.send(bytes([byte]))
        until(lambda: sum(len(one._buffer) for one in server._clients) == before + 1)  # noqa: B023 - called in its turn
        time.now += REQUEST_SECONDS / 8
    assert len(server._clients) == 1
    time.now += 0.1
    assert visitor.ended()
    until(lambda: not server._clients)


def test_half_a_request_behind_a_whole_one_is_dropped_too(
    visit: Visit, server: Server, time: Time
) -> None:
    """The long rest between two requests is not for one that has begun."""
    visitor = visit()
    visitor.send(GET + b"GET /")
    assert visitor.answer()[0] == 200
    until(lambda: all(one.deadline == time.now + REQUEST_SECONDS for one in server._clients))
    time.now += REQUEST_SECONDS + 0.1
    assert visitor.ended()
    until(lambda: not server._clients)


def test_a_silent_client_is_dropped_and_a_resting_one_later(visit: Visit, time: Time) -> None:
    """Who sends nothing goes after five seconds, who was answered after two and a half minutes."""
    silent = visit()
    resting = visit()
    resting.send(GET)
    assert resting.answer()[0] == 200
    time.now += REQUEST_SECONDS + 0.1
    assert silent.ended()
    resting.send(GET)
    assert resting.answer()[0] == 200
    time.now += IDLE_SECONDS + 0.1
    assert resting.ended()


def test_a_client_that_never_reads_is_dropped(visit: Visit, server: Server, time: Time) -> None:
    """An answer that is not taken within the time of a request goes with its client."""
    visitor = visit()
    visitor.socket.setblocking(False)
    visitor.socket.send(b"GET /metrics HTTP/1.1\r\n\r\n" * 2000)
    until(lambda: any(client._paused for client in server._clients))
    time.now += REQUEST_SECONDS + 0.1
    until(lambda: not server._clients)


def test_a_thousand_connections_cost_no_thread(visit: Visit, server: Server) -> None:
    """With a thousand open at once a new one gets its answer, by as many threads as before."""
    threads = threading.active_count()
    crowd = [visit() for _ in range(1000)]
    assert ask(visit(), "/metrics")[0] == 200
    assert threading.active_count() == threads
    until(lambda: len(server._clients) <= MOST_CLIENTS)
    crowd[-1].send(GET)
    assert crowd[-1].answer()[0] == 200
    assert crowd[0].ended()


def test_ipv6(page: Page) -> None:
    """An IPv6 address is served, and stands in brackets in the URL."""
    try:
        server = Server(page, host="::1", port=0)
    except OutputError as error:
        pytest.skip(f"no IPv6 on this machine: {error}")
    server.start()
    try:
        assert re.fullmatch(r"http://\[::1\]:\d+/", server.url)
        visitor = Visitor(server)
        assert ask(visitor, "/readyz")[0] == 200
        visitor.socket.close()
    finally:
        server.close()


def test_a_port_in_use_is_an_output_error(server: Server, page: Page) -> None:
    """One line that names the address, exit code 74; also before the first one answers."""
    port = int(server.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(OutputError, match=rf"cannot listen on 127.0.0.1:{port}: address already"):
        Server(page, host="127.0.0.1", port=port)
    silent = Server(page, host="127.0.0.1", port=0)
    port = int(silent.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(OutputError) as caught:
        Server(page, host="127.0.0.1", port=port)
    assert caught.value.exit_code == 74
    silent.close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_an_address_of_another_machine_is_an_output_error(page: Page, host: str) -> None:
    """A name that is not known and an address that is not ours are named in one line."""
    with pytest.raises(OutputError, match=re.escape(host)):
        Server(page, host=host, port=0)


def test_close_gives_the_port_back(page: Page) -> None:
    """After close the port can be taken again at once, and the clients are gone."""
    first = Server(page, host="127.0.0.1", port=0)
    first.start()
    visitor = Visitor(first)
    assert ask(visitor, "/readyz")[0] == 200
    port = int(first.url.rstrip("/").rpartition(":")[2])
    first.close()
    assert visitor.ended()
    visitor.socket.close()
    assert first._thread is not None
    assert not first._thread.is_alive()
    again = Server(page, host="127.0.0.1", port=port)
    again.close()


def test_close_right_after_start(page: Page) -> None:
    """However early close comes, the thread ends and the port is free."""
    for _ in range(20):
        server = Server(page, host="127.0.0.1", port=0)
        server.start()
        server.close()
        assert server._thread is not None
        assert not server._thread.is_alive()


def test_who_asks_before_the_first_sample_gets_a_page_with_it() -> None:
    """The port is open before the first tick; a scrape that comes then waits for the series."""
    page = Page()
    server = Server(page, host="127.0.0.1", port=0)
    before = set(threading.enumerate())
    try:
        visitor = Visitor(server)
        visitor.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        page.publish(SNAPSHOT)
        server.start()
        server.start()
        status, _, body = visitor.answer()
        assert status == 200
        assert b"sparkwatch_condition_state{" in body
        started = set(threading.enumerate()) - before
        assert [thread.name for thread in started] == ["http"]
        visitor.socket.close()
    finally:
        server.close()
