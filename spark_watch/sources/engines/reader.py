"""Asks every server in turn, in a thread that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from spark_watch.errors import SourceError
from spark_watch.model import Progress
from spark_watch.sources.engines.addresses import address
from spark_watch.sources.engines.dialects import DIALECTS
from spark_watch.sources.engines.fetch import fetch
from spark_watch.sources.processes import Server

MOST_SERVERS: Final = 8
"""So many are asked; a Spark has room for a few."""

STEP_SECONDS: Final = 0.5
HTTP_PORT: Final = 80

REFUSALS: Final = 3
REST_SECONDS: Final = 60.0
"""A server that has refused three times in a row (it was started without metrics, it loads) is left
alone for a minute."""

KEPT_SECONDS: Final = 30.0
"""For so long (or three periods) the last answer of a server that hangs still stands."""


class Place(NamedTuple):
    """Where one server is asked."""

    workload: str
    engine: str
    host: str
    port: int
    paths: tuple[str, ...]


class _Told(NamedTuple):
    at: float
    report: Progress


class EngineReader:
    """The newest report of every server.

    Args:
        servers: returns the servers among the GPU's processes, read anew for each round.
        urls: ``ENGINE=http://HOST:PORT/PATH`` of servers named by hand.
        period_seconds: from one question to the next.
        proc_root: where proc is mounted.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        servers: Callable[[], Sequence[Server]],
        urls: Sequence[str] = (),
        period_seconds: float = 5.0,
        proc_root: Path = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._named = tuple(_place(url) for url in urls)
        self._period = period_seconds
        self._proc_root = proc_root
        self._clock = clock
        self._told: dict[str, _Told] = {}
        self._refusals: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._ways: dict[Server, Place] = {}
        self.errors: dict[str, int] = {}
        """How often a question failed, by reason."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="engines", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(STEP_SECONDS):
            self.step()

    def step(self) -> None:
        """Ask every server that is due, once each, and forget those that are gone."""
        places = {place.workload: place for place in self._places()}
        for gone in [*(self._told.keys() | self._due.keys()) - places.keys()]:
            self._told.pop(gone, None)
            self._due.pop(gone, None)
            self._refusals.pop(gone, None)
        for workload, place in places.items():
            if self._stop.is_set():
                return
            now = self._clock()
            if now < self._due.get(workload, now):
                continue
            self._due[workload] = now + self._period
            try:
                report = self._ask(place)
            except SourceError as error:
                self._note(workload, error.reason, now)
            except Exception:  # noqa: BLE001 - no server's answer may end the thread
                self._note(workload, "internal_error", now)
            else:
                self._refusals.pop(workload, None)
                self._told[workload] = _Told(self._clock(), report)

    def _note(self, workload: str, reason: str, now: float) -> None:
        self.errors[reason] = self.errors.get(reason, 0) + 1
        count = self._refusals[workload] = self._refusals.get(workload, 0) + 1
        if count >= REFUSALS:
            self._due[workload] = now + max(self._period, REST_SECONDS)

    def _places(self) -> list[Place]:
        servers = self._servers()
        ways = {}
        for server in servers:
            way = self._ways.get(server)
            if way is None:
                contained = server.container is not None
                host = address(server.pid, contained=contained, proc_root=self._proc_root)
                paths = DIALECTS[server.engine].paths
                way = Place(server.workload, server.engine, host, server.port, paths)
            ways[server] = way
        self._ways = ways
        return [*self._named, *ways.values()][:MOST_SERVERS]

    @staticmethod
    def _ask(place: Place) -> Progress:
        """Return the report from the first path that has one."""
        dialect = DIALECTS[place.engine]
        *others, last = place.paths
        for path in others:
            try:
                return dialect.read(place.workload, fetch(place.host, place.port, path))
            except SourceError as error:
                if error.reason in {"timeout", "refused", "unreachable"}:
                    raise
        return dialect.read(place.workload, fetch(place.host, place.port, last))

    @property
    def asks(self) -> bool:
        """Whether there is a server to ask."""
        return bool(self._named or self._ways)

    def latest(self) -> list[Progress]:
        """Return the newest reports that are not too old. Never blocks."""
        oldest = self._clock() - max(KEPT_SECONDS, 3 * self._period)
        return [told.report for told in tuple(self._told.values()) if told.at >= oldest]

    def close(self, wait_seconds: float = 0.5) -> None:
        """Ask the thread to end; a question that is out is not waited for."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(wait_seconds)


def _place(text: str) -> Place:
    engine, _, url = text.partition("=")
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or HTTP_PORT
    paths = (parts.path,) if parts.path.strip("/") else DIALECTS[engine].paths
    return Place(f"{engine}@{host}:{port}", engine, host, port, paths)
