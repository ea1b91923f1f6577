"""A request head is taken as the standard writes it, or refused with the right status."""

from __future__ import annotations

import pytest

from spark_watch.export.http1 import Refused, parse, response


@pytest.mark.parametrize(
    ("head", "path", "keep_alive"),
    [
        (b"GET / HTTP/1.1", "/", True),
        (b"GET /metrics?x=1#y HTTP/1.1\r\nHost: a", "/metrics", True),
        (b"GET /metrics HTTP/1.1\r\nConnection: Close", "/metrics", False),
        (b"GET /metrics HTTP/1.1\r\nConnection: te, close", "/metrics", False),
        (b"GET /metrics HTTP/1.0", "/metrics", False),
        (b"GET /metrics HTTP/1.0\r\nconnection: keep-alive", "/metrics", True),
        (b"HEAD /healthz HTTP/1.1\r\nContent-Length: 0", "/healthz", True),
    ],
)
def test_a_request_is_understood(head: bytes, path: str, keep_alive: bool) -> None:
    """Path without its query, and whether the connection stays."""
    request = parse(head)
    assert (request.path, request.keep_alive) == (path, keep_alive)


def test_headers_that_come_twice_are_one_list() -> None:
    """Names do not depend on case; values are joined in their order."""
    request = parse(b"GET / HTTP/1.1\r\nAccept: a;q=0.1\r\nACCEPT:\t b ")
    assert request.headers["accept"] == "a;q=0.1, b"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET", 400),
        (b"GET /", 400),
        (b"GET  / HTTP/1.1", 400),
        (b" GET / HTTP/1.1", 400),
        (b"get / HTTP/1.1", 400),
        (b"GET /\x00 HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /" + b"a" * 3000 + b" HTTP/1.1", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nname : value", 400),
        (b"GET / HTTP/1.1\r\na: b\r\n folded: c", 400),
        (b"GET / HTTP/1.1\r\na: b\nc: d", 400),
        (b"GET / HTTP/1.1\r\na: \x00", 400),
        (b"POST / HTTP/1.1", 405),
        (b"OPTIONS * HTTP/1.1", 405),
        (b"POST / HTTP/1.1\r\nContent-Length: 5", 413),
        (b"GET / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 9", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked", 413),
        (b"PRI * HTTP/2.0", 505),
        (b"GET / HTTP/0.9", 505),
        (b"GET / HTTP/3", 505),
    ],
)
def test_whatever_else_is_refused(head: bytes, status: int) -> None:
    """Malformed, another method, a body or another version: each has its status."""
    with pytest.raises(Refused) as caught:
        parse(head)
    assert caught.value.status == status


def test_a_response_says_how_long_it_is_even_without_its_body() -> None:
    """The answer to HEAD is the answer to GET without the body."""
    whole = response(200, "text/plain", b"hello", keep_alive=True)
    head = response(200, "text/plain", b"hello", keep_alive=True, head_only=True)
    assert whole == head + b"hello"
    assert b"\r\nContent-Length: 5\r\n" in head
    assert b"\r\nConnection: keep-alive\r\n" in head


def test_whoever_uses_another_method_is_told_which_there_are() -> None:
    """405 comes with Allow, as the standard demands."""
    assert b"\r\nAllow: GET, HEAD\r\n" in response(405, "text/plain", b"", keep_alive=False)
