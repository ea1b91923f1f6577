"""One HTTP/1.1 request head, parsed strictly: whatever we do not understand is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from spark_watch.model import EMPTY

LIMIT_BYTES: Final = 16384
"""The longest request head; a scrape's is under 400 bytes."""

_LINE: Final = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]{1,2048}) HTTP/1\.([01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")


class Refused(Exception):
    """A request that gets a 4xx or 5xx.

    Args:
        status: the status.
        reason: a few words for the body.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked. Header names are lower case; ``path`` is without the query."""

    method: str
    path: str
    headers: Mapping[str, str]
    keep_alive: bool


def parse(head: bytes) -> Request:
    """Parse a request head without its final empty line.

    Raises:
        Refused: 400 malformed, 405 another method, 413 a body, 505 another version.
    """
    lines = head.split(b"\r\n")
    first = _LINE.fullmatch(lines[0])
    if first is None:
        if re.search(rb" HTTP/\d", lines[0]) and b" HTTP/1." not in lines[0]:
            raise Refused(505, "only HTTP/1.0 and HTTP/1.1")
        raise Refused(400, "malformed request line")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise Refused(400, "malformed header")
        name = match[1].decode("ascii").lower()
        value = match[2].decode("latin-1").strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise Refused(413, "no body is expected")
    method = first[1].decode("ascii")
    if method not in {"GET", "HEAD"}:
        raise Refused(405, "only GET and HEAD")
    tokens = {token.strip().lower() for token in headers.get("connection", "").split(",")}
    keep = "close" not in tokens if first[3] == b"1" else "keep-alive" in tokens
    target = first[2].decode("ascii")
    return Request(method, target.partition("?")[0].partition("#")[0], headers, keep)


def accepts(header: str, kind: str) -> bool:
    """Whether an Accept header names a media type, and not to refuse it (``q=0``).

    Args:
        header: the header's value; a wildcard names nothing.
        kind: the type in lower case, without parameters.
    """
    for choice in header.lower().split(","):
        named, *parameters = (word.strip() for word in choice.split(";"))
        if named == kind:
            return not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", word) for word in parameters)
    return False


def response(
    status: int,
    content_type: str,
    body: bytes,
    *,
    keep_alive: bool,
    head_only: bool = False,
    headers: Mapping[str, str] = EMPTY,
) -> bytes:
    """Return a whole response, with ``headers`` beside the usual ones."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
    ]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head if head_only else head + body
