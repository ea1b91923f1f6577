"""A daemon as a process of its own, with what it logs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.conftest import ROOT
from tests.waiting import PATIENCE_SECONDS, until


def command(*words: str) -> list[str]:
    """Return the command line of the product."""
    return [sys.executable, "-m", "spark_watch", *words]


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's variables without the product's own, and these."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_WATCH_", "NOTIFY_", "WATCHDOG_"))
    }
    return kept | dict(variables or {})


class Running:
    """A daemon that runs."""

    def __init__(self, *words: str, variables: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command("run", "--listen", "127.0.0.1:0", *words),
            cwd=ROOT,
            env=environment(variables),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(
                json.loads(line) if line.startswith("{") else {"event": "", "text": line}
            )

    def event(self, name: str) -> dict[str, Any]:
        """Return the first line with that event, as soon as there is one."""
        return until(lambda: next((one for one in self.lines if one["event"] == name), None) or {})

    def get(self, path: str) -> str:
        """Return a page."""
        url = self.event("listening")["url"].rstrip("/") + path
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - ours
            body: bytes = answer.read()
        return body.decode()

    def metric(self, series: str) -> float | None:
        """Return the value of a series as it stands on the page, ``None`` where it does not."""
        for line in self.get("/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name == f"sparkwatch_{series}":
                return float(value)
        return None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Return the exit code."""
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return code


@contextmanager
def running(*words: str, variables: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run a daemon on a free port of loopback; it is gone afterwards, whatever happened."""
    daemon = Running(*words, variables=variables)
    try:
        yield daemon
    finally:
        daemon.process.kill()
        daemon.end()
        assert daemon.process.stderr is not None
        daemon.process.stderr.close()
