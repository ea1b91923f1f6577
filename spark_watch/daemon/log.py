"""The log: fixed events with their data as keys, written by a thread that may wait.

A pipe to a journal that has stopped reading must not stop the loop: lines go through a bounded
queue, and what does not fit is counted and said once there is room again.
"""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
from typing import Any, Final, TextIO

import structlog

QUEUE_LINES: Final = 1000
"""Lines that may wait to be written: minutes of the worst day, a few hundred kilobytes."""


class LogQueue:
    """Takes lines without ever waiting and writes them in its own thread.

    Args:
        stream: where the lines go.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._queue: queue.Queue[str | None] = queue.Queue(QUEUE_LINES)
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Queue one line; a line that does not fit is counted in ``dropped``."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        said = 0
        while (line := self._queue.get()) is not None:
            with contextlib.suppress(OSError, ValueError):
                if self.dropped > said:
                    lost = {"event": "log_lines_dropped", "count": self.dropped - said}
                    said = self.dropped
                    self._stream.write(json.dumps(lost) + "\n")
                self._stream.write(line + "\n")
                self._stream.flush()

    def close(self, wait_seconds: float = 1.0) -> None:
        """Write what is queued, for at most ``wait_seconds``."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)
        self._thread.join(wait_seconds)


class _Lines:
    """structlog's logger interface over a queue."""

    def __init__(self, lines: LogQueue) -> None:
        self._lines = lines

    def msg(self, message: str) -> None:
        self._lines.write(message)

    log = debug = info = warning = warn = error = critical = exception = msg


def configure(stream: TextIO | None = None) -> tuple[Any, LogQueue]:
    """Return a logger and the queue behind it.

    Lines are JSON, or coloured text where ``stream`` (standard error by default) is a terminal.
    """
    stream = stream or sys.stderr
    lines = LogQueue(stream)
    terminal = stream.isatty()
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    )
    logger = structlog.wrap_logger(
        _Lines(lines),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
    )
    return logger, lines
