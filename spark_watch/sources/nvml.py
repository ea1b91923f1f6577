"""NVML, read by a thread of its own, because any of its calls may be gone for minutes.

The loop never waits for it: :meth:`NvmlSource.latest` gives the last reading, and
:meth:`NvmlSource.pending_seconds` says how long the call has been out that keeps the next one away.
There is one thread and one call at a time. A second thread would wait for the same lock, and a
child process in such a call can no more be killed than a thread (NVIDIA/dcgm-exporter#84).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from spark_watch.sources.nvml_gate import Gate
from spark_watch.sources.nvml_session import NvmlReading, NvmlSession

__all__ = ["NvmlReading", "NvmlSource"]

STACK_BYTES: Final = 1 << 20
"""An eighth of the usual stack: with memory locked all of it counts, and NVML needs tens of KiB."""

NOTICE_SECONDS: Final = 1.0
"""A call out for less than this is a call like any other."""


class NvmlSource:
    """All GPUs of the machine; nothing here raises, and nothing but :meth:`wait` waits.

    A reading is new when it is another object than the last one. The same object again means that
    nothing was due yet, unless :meth:`pending_seconds` says why: a call that is late, which is a
    lost reading. Turns are counted from the start, so a loop of the same period meets one each
    tick.

    Args:
        period_seconds: how often the GPUs are read, 0.25 to 60.
        memory_total_bytes: ``MemTotal``, to tell device memory from the shared pool.
        device_node: the driver's first device file.
        clock: monotonic seconds.
    """

    name = "nvml"

    def __init__(
        self,
        *,
        period_seconds: float = 1.0,
        memory_total_bytes: int | None = None,
        device_node: Path = Path("/dev/nvidia0"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.last_duration_seconds: float | None = None
        """How long the last reading took from its first call to its last."""
        self._period_seconds = period_seconds
        self._clock = clock
        self._gate = Gate(clock=clock)
        self._session = NvmlSession(
            self._gate,
            period_seconds=period_seconds,
            memory_total_bytes=memory_total_bytes,
            device_node=device_node,
            clock=clock,
        )
        self._latest: NvmlReading | None = None
        self._read_once = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)

    def start(self) -> None:
        """Start reading. Returns before the first call is made."""
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._thread.start()
        finally:
            threading.stack_size(usual)

    def latest(self) -> NvmlReading | None:
        """Return the last reading, ``None`` before the first. Never waits."""
        return self._latest

    def pending_seconds(self, now: float) -> float | None:
        """Return how long the call has been out that is out now; ``None`` below one second.

        Args:
            now: on the clock that was given.
        """
        since = self._gate.outstanding_since
        if since is None or now - since < NOTICE_SECONDS:
            return None
        return now - since

    @property
    def calls(self) -> int:
        """NVML calls made so far."""
        return self._gate.calls

    @property
    def errors(self) -> dict[str, int]:
        """How often NVML calls failed so far, by reason."""
        return self._gate.errors

    def wait(self, timeout_seconds: float) -> NvmlReading | None:
        """Return a reading as soon as there is one; ``None`` where none came in time.

        For a command that looks once; the loop has :meth:`latest`.
        """
        self._read_once.wait(timeout_seconds)
        return self._latest

    def close(self, timeout_seconds: float = 0.5) -> None:
        """Stop after the call that is out, and let the thread give NVML back.

        Returns after the timeout at the latest; a thread that still waits for the driver is left
        behind and does not keep the process from ending.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        due = self._clock()
        while not self._stop.is_set():
            begun = self._clock()
            self._latest = self._turn(begun)
            self._read_once.set()
            now = self._clock()
            self.last_duration_seconds = now - begun
            due += self._period_seconds
            if due <= now:  # turns that were missed are not made up for
                due += (now - due) // self._period_seconds * self._period_seconds
                due += self._period_seconds
            self._stop.wait(due - now)
        self._session.close()

    def _turn(self, at: float) -> NvmlReading:
        """Read once. Whatever a driver may send, the thread lives: a dead one would look idle."""
        try:
            return self._session.read()
        except Exception as error:  # noqa: BLE001 - see above; the reading carries what it was
            reason = f"unexpected_{type(error).__name__.lower()}"
            return self._session.lose(at, reason)
