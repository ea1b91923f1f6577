"""Sources that may block are read by a thread of their own, so that the host loop never waits.

Files of other processes, of ACPI and of the clock driver can wait on a lock or on firmware in just
the situation the daemon exists for. How long such a call has been out is itself a reading.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from spark_watch.sources.reading import Meter, Outcome

STEP_SECONDS: Final = 0.5
"""How often the thread looks whether something is due."""


class Background:
    """Reads some sources in one thread, one call at a time, never joined while a call is out.

    Args:
        meters: the sources with their periods.
        name: of the thread.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        meters: Iterable[Meter],
        *,
        name: str = "slow-sources",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self.meters = tuple(meters)
        self._clock = clock
        self._outcomes: deque[Outcome] = deque(maxlen=4 * len(self.meters))
        self._call: tuple[str, float] | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()
            self._stop.wait(STEP_SECONDS)

    def step(self) -> None:
        """Read whatever is due, once each."""
        for meter in self.meters:
            now = self._clock()
            if self._stop.is_set():
                return
            if meter.due(now):
                self._call = (meter.name, now)
                self._outcomes.append(meter.read())
                self._call = None

    def take(self) -> list[Outcome]:
        """Return what has come since the last call, oldest first. Never blocks."""
        taken = []
        while self._outcomes:
            taken.append(self._outcomes.popleft())
        return taken

    def pending(self) -> tuple[str, float] | None:
        """Return the source whose call is out and for how many seconds, ``None`` where none is."""
        call = self._call
        return None if call is None else (call[0], self._clock() - call[1])

    def close(self, wait_seconds: float = 0.5) -> None:
        """Ask the thread to end; wait for it only for a moment, and never for a blocked call."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(wait_seconds)
            if self._thread.is_alive():
                return
        for meter in self.meters:
            meter.source.close()
