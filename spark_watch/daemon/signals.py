"""Signals as flags that the loop looks at, and a wait that ends when one comes."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Final, Self

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """SIGTERM and SIGINT ask to stop, SIGHUP asks to reload; nothing happens inside a handler.

    Use as a context manager in the main thread; the handlers that stood before come back after it.
    """

    def __init__(self) -> None:
        self.stopping: signal.Signals | None = None
        self.reload = False
        self._before: dict[int, Any] = {}
        self._wake_before = -1
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    def __enter__(self) -> Self:
        """Install the handlers."""
        for number in (*STOPPING, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._handle)
        self._wake_before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Put back what stood before."""
        signal.set_wakeup_fd(self._wake_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._read.close()
        self._write.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stopping = signal.Signals(number)

    def wait(self, seconds: float) -> None:
        """Wait until ``seconds`` have passed or a signal came, whichever is first."""
        if seconds <= 0.0 or self.stopping is not None or self.reload:
            return
        select.select([self._read], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            self._read.recv(4096)
