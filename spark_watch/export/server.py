"""The HTTP server: one thread, whatever the number of clients and however slow they are.

A client costs a small buffer, never a thread, and may not take longer than a few seconds over a
request. Where there are too many, the one that has kept us waiting longest goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from spark_watch.errors import OutputError
from spark_watch.export import http1
from spark_watch.export.page import Page
from spark_watch.export.views import TEXT, VIEWS, Answer

MOST_CLIENTS: Final = 256
"""Connections held at a time; at most so many response buffers as well."""

REQUEST_SECONDS: Final = 5.0
"""How long a client may take to send a request, or to take its answer."""

IDLE_SECONDS: Final = 150.0
"""How long a connection may rest between two requests: longer than any scrape interval in use."""

BACKLOG: Final = 512
"""Connections the kernel keeps for us: in a rush nobody has to knock twice."""

SWEEP_SECONDS: Final = 1.0
STACK_BYTES: Final = 512 * 1024


class _Client(asyncio.BufferedProtocol):
    """One connection: it is asked for no more than one request head until that is answered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._paused = False
        self.transport: asyncio.Transport | None = None
        self.deadline = 0.0
        self.waiting_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP gives nothing else
        self.transport = transport
        transport.set_write_buffer_limits(high=0)
        self._wait(REQUEST_SECONDS)
        self._server.joined(self)

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._server.left(self)

    def pause_writing(self) -> None:
        """Part of an answer waits for the client: it has the time of a request to take it."""
        self._paused = True
        self._wait(REQUEST_SECONDS)
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """The client has taken its answer; what it asked for meanwhile is next."""
        self._paused = False
        self._wait(IDLE_SECONDS)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
            self._advance()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the room that all clients share: it is read from before the next one gets it."""
        del sizehint
        return self._server.room

    def buffer_updated(self, nbytes: int) -> None:
        """Take what the client sent and answer the requests that are whole."""
        if not self._buffer:
            self._wait(REQUEST_SECONDS)
        self._buffer += self._server.room[:nbytes]
        self._advance()

    def _advance(self) -> None:
        """Answer whole requests one after the other, for as long as the client takes the answers.

        A few thousand requests fit in one read, and an answer is a thousand times a request: the
        next one is answered only when the one before has left our memory.
        """
        answered = False
        while not self._paused and self.transport is not None and not self.transport.is_closing():
            end = self._buffer.find(b"\r\n\r\n")
            if end > http1.LIMIT_BYTES or (end < 0 and len(self._buffer) > http1.LIMIT_BYTES):
                self._refuse(http1.Refused(431, "request head too large"))
                return
            if end < 0:
                if answered and self._buffer:
                    self._wait(REQUEST_SECONDS)
                return
            head = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            self._answer(head, self.transport)
            answered = True

    def _answer(self, head: bytes, transport: asyncio.Transport) -> None:
        try:
            request = http1.parse(head)
        except http1.Refused as refused:
            self._refuse(refused)
            return
        self._wait(IDLE_SECONDS)
        answer = self._server.respond(request)
        transport.write(
            http1.response(
                answer.status,
                answer.content_type,
                answer.body,
                keep_alive=request.keep_alive,
                head_only=request.method == "HEAD",
                headers=answer.headers,
            )
        )
        if not request.keep_alive:
            self._wait(REQUEST_SECONDS)
            transport.close()

    def _refuse(self, refused: http1.Refused) -> None:
        if self.transport is not None:
            body = f"{refused.reason}\n".encode()
            self.transport.write(http1.response(refused.status, TEXT, body, keep_alive=False))
            self.transport.close()
            self._wait(REQUEST_SECONDS)

    def _wait(self, seconds: float) -> None:
        self.waiting_since = self._server.clock()
        self.deadline = self.waiting_since + seconds


class Server:
    """Serves a page on one address. The port is ours at once, answered from :meth:`start` on.

    Args:
        page: what is served.
        host: an address of this machine.
        port: the port; 0 takes a free one, which :attr:`url` then names.
        clock: monotonic seconds, by which clients use up their time.

    Raises:
        OutputError: the port is in use, or may not be bound.
    """

    def __init__(
        self,
        page: Page,
        *,
        host: str,
        port: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._page = page
        self.clock = clock
        self.room = memoryview(bytearray(http1.LIMIT_BYTES))
        self._clients: dict[_Client, None] = {}  # in the order in which they came
        self._socket = _bound(host, port)
        bound = self._socket.getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        self.url = f"http://{shown}:{bound[1]}/"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start answering; once it does, another call changes nothing."""
        if self._thread is not None:
            return
        self._loop = asyncio.new_event_loop()
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._thread = threading.Thread(target=self._run, name="http", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(usual)

    def respond(self, request: http1.Request) -> Answer:
        """Return the answer to one request."""
        view: Callable[[Page, Any], Answer] | None = VIEWS.get(request.path)
        if view is None:
            return Answer(404, TEXT, b"no such page\n")
        return view(self._page, request.headers)

    def joined(self, client: _Client) -> None:
        """Take a new client in; where there are too many, the one that waits longest goes."""
        self._clients[client] = None
        if len(self._clients) > MOST_CLIENTS:
            oldest = min(self._clients, key=lambda other: other.waiting_since)
            self.left(oldest)  # at once: many may join before the loop comes to its end
            _abort(oldest)

    def left(self, client: _Client) -> None:
        """Forget a client that has gone."""
        self._clients.pop(client, None)

    def close(self, wait_seconds: float = 2.0) -> None:
        """Stop answering and give the port back."""
        loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)
            thread.join(wait_seconds)
        self._socket.close()

    def _run(self) -> None:
        loop = self._loop
        if loop is None:
            return
        asyncio.set_event_loop(loop)
        opening = loop.create_task(
            loop.create_server(lambda: _Client(self), sock=self._socket, backlog=BACKLOG)
        )
        self._sweep(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(opening).close()
            for client in tuple(self._clients):
                _abort(client)
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Drop every client that has used up its time."""
        now = self.clock()
        for client in tuple(self._clients):
            if now > client.deadline:
                _abort(client)
        loop.call_later(SWEEP_SECONDS, self._sweep, loop)


def _abort(client: _Client) -> None:
    if client.transport is not None:
        client.transport.abort()


def _bound(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        OutputError: naming the address and why.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise OutputError(f"{host}:{port}: {error.strerror or error}") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)  # only then is the port refused to others
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise OutputError(f"cannot listen on {host}:{port}: {reason.lower()}") from error
    return listening
