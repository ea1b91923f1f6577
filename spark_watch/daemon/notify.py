"""What systemd is told: ready, alive, reloading, stopping.

Source: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Final

WATCHDOG_SHARE: Final = 0.25
"""How much of the watchdog's time may pass between two signs of life (systemd advises half)."""


class Notifier:
    """Sends states to the socket systemd named; without one every call does nothing.

    A send never blocks: where the socket's buffer is full the state is dropped, because a loop that
    waits for its supervisor is a loop that can be stopped by it.

    Args:
        environment: the process's variables (``NOTIFY_SOCKET``, ``WATCHDOG_USEC``,
            ``WATCHDOG_PID``).
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket: socket.socket | None = None
        address = environment.get("NOTIFY_SOCKET", "")
        if address[:1] in {"/", "@"}:
            if address.startswith("@"):
                address = "\0" + address[1:]
            with contextlib.suppress(OSError):
                self._socket = socket.socket(
                    socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
                )
                self._socket.setblocking(False)
                self._socket.connect(address)
        pid = environment.get("WATCHDOG_PID")
        usec = environment.get("WATCHDOG_USEC", "")
        ours = pid is None or pid == str(os.getpid())
        self.watchdog_seconds = int(usec) / 1e6 if usec.isdigit() and ours else None
        """Within how many seconds systemd wants a sign of life; ``None`` where it does not."""
        self._alive_at = float("-inf")

    def send(self, *states: str) -> None:
        """Send assignments such as ``READY=1``."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.send("\n".join(states).encode())

    def alive(self, now: float) -> None:
        """Send a sign of life where one is due.

        Args:
            now: monotonic seconds.
        """
        if self.watchdog_seconds is None:
            return
        if now - self._alive_at >= self.watchdog_seconds * WATCHDOG_SHARE:
            self._alive_at = now
            self.send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
