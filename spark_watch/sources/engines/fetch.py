"""One GET with every limit there is: time, size, no redirect, nothing kept open."""

from __future__ import annotations

import socket
import time
from typing import Final

from spark_watch.errors import Unavailable

LIMIT_BYTES: Final = 1024 * 1024
LIMIT_SECONDS: Final = 1.0
"""For the whole question and answer, however slowly they come."""

HEAD_BYTES: Final = 16384
_BLANK: Final = b"\r\n\r\n"


def fetch(host: str, port: int, path: str) -> bytes:
    """Return the body of an answer with status 200.

    HTTP/1.0 is spoken, so that no answer comes in chunks and the end is the end of the connection.

    Raises:
        Unavailable: ``refused``, ``timeout``, ``too_large``, ``malformed``, ``redirect``, or the
            status as ``http_404``.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    try:
        with socket.create_connection((host, port), timeout=LIMIT_SECONDS) as connection:
            name = f"[{host}]" if ":" in host else host
            request = (
                f"GET {path} HTTP/1.0\r\nHost: {name}:{port}\r\nAccept: text/plain\r\n"
                "User-Agent: spark-watch\r\nConnection: close\r\n\r\n"
            )
            connection.sendall(request.encode("ascii"))
            return _body(connection, deadline)
    except TimeoutError as error:
        raise Unavailable("timeout") from error
    except ConnectionRefusedError as error:
        raise Unavailable("refused") from error
    except (OSError, UnicodeError) as error:
        raise Unavailable("unreachable") from error


def _body(connection: socket.socket, deadline: float) -> bytes:
    """Read the answer up to its announced length, or to its end."""
    data = bytearray()
    end = data.find(_BLANK)
    while end < 0:
        if len(data) > HEAD_BYTES or not _more(connection, deadline, data):
            raise Unavailable("malformed")
        end = data.find(_BLANK)
    length = _head(bytes(data[:end]))
    del data[: end + len(_BLANK)]
    while length is None or len(data) < length:
        if max(len(data), length or 0) > LIMIT_BYTES:
            raise Unavailable("too_large")
        if not _more(connection, deadline, data):
            if length is not None:
                raise Unavailable("malformed")
            break
    return bytes(data[:length])


def _more(connection: socket.socket, deadline: float, data: bytearray) -> bool:
    """Add what comes next; False at the end of the connection.

    Raises:
        Unavailable: the time is up.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise Unavailable("timeout")
    connection.settimeout(left)
    received = connection.recv(65536)
    data += received
    return bool(received)


def _head(head: bytes) -> int | None:
    """Return the announced length of a good answer, ``None`` where there is none."""
    status, *fields = head.split(b"\r\n")
    words = status.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():  # noqa: PLR2004 - version and code
        raise Unavailable("malformed")
    code = int(words[1])
    if code != 200:  # noqa: PLR2004 - HTTP's "OK"
        raise Unavailable("redirect" if code // 100 == 3 else f"http_{code}")  # noqa: PLR2004 - HTTP's class of redirects
    length = None
    for field in fields:
        name, _, value = field.partition(b":")
        name, value = name.strip().lower(), value.strip()
        if name == b"transfer-encoding" and value.lower() != b"identity":
            raise Unavailable("malformed")
        if name == b"content-length":
            if not value.isdigit() or len(value) > 18:  # noqa: PLR2004 - no body has 19 digits of bytes
                raise Unavailable("malformed")
            length = int(value)
    return length
