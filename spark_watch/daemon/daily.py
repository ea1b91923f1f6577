"""The checks that run nobody's code, at start and once a day, beside the loop and never in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from spark_watch.export.snapshot import Snapshot
from spark_watch.preflight.report import Report

FIRST_SECONDS: Final = 15.0
"""After so long every source has been read once, NVML and the slow ones included."""

DAY_SECONDS: Final = 86_400.0

STACK_BYTES: Final = 256 * 1024
"""With memory locked all of a stack counts."""


class DailyPreflight:
    """Looks at what the daemon sees once a day, in a thread of its own.

    Args:
        look: makes the report from a snapshot; takes seconds, and may raise.
        log: a structlog logger whose writes do not wait.
        first_seconds: when the first look is taken, from the start on.
        again_seconds: time between two looks.
    """

    def __init__(
        self,
        look: Callable[[Snapshot], Report],
        *,
        log: Any,
        first_seconds: float = FIRST_SECONDS,
        again_seconds: float = DAY_SECONDS,
    ) -> None:
        self._look = look
        self._log = log
        self._first_seconds = first_seconds
        self._again_seconds = again_seconds
        self._seen: Snapshot | None = None
        self._report: Report | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="preflight", daemon=True)

    def start(self) -> None:
        """Start the thread; it waits first."""
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._thread.start()
        finally:
            threading.stack_size(usual)

    def close(self, timeout_seconds: float = 0.5) -> None:
        """Ask the thread to end; a look that is under way keeps nobody from ending."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        """Take note of a snapshot and return it with the newest report. Never waits."""
        self._seen = snapshot
        return snapshot if self._report is None else replace(snapshot, preflight=self._report)

    def _run(self) -> None:
        delay = self._first_seconds
        while not self._stop.wait(delay):
            delay = self._again_seconds
            if self._seen is not None:
                self._take(self._seen)
            else:
                delay = self._first_seconds

    def _take(self, snapshot: Snapshot) -> None:
        try:
            self._report = report = self._look(snapshot)
        except Exception as error:  # noqa: BLE001 - the daemon goes on whatever a check meets
            self._log.error("preflight_failed", error=repr(error))
            return
        self._log.info("preflight", verdict=report.verdict)
