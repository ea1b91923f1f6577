"""The Prometheus page: a function of the newest snapshot, rendered once for each form asked for."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from spark_watch.export.families import FAMILIES, NAMESPACE, Family
from spark_watch.export.http1 import accepts
from spark_watch.export.snapshot import Snapshot
from spark_watch.export.status.document import document
from spark_watch.export.status.history import History

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
TEXT: Final = "text/plain; version=0.0.4"
"""The two forms of the page; what else a client may name is answered with text."""

ALIVE_INTERVALS: Final = 5
ALIVE_SECONDS: Final = 10.0
"""The loop counts as alive for this many intervals, and at least so many seconds, after a tick."""


class _SnapshotCollector(Collector):
    """Builds every family anew from one snapshot; families without a sample are left out."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield the families without samples: registering touches nothing."""
        for family in FAMILIES:
            yield _empty(family)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield the families that have something to say."""
        if self._snapshot is None:
            return
        for family in FAMILIES:
            metric = _empty(family)
            shown: set[tuple[str, ...]] = set()
            for labels, value in family.read(self._snapshot):
                # one series twice, or one byte that is no UTF-8, would cost the whole page
                clean = tuple(label.encode("utf-8", "replace").decode() for label in labels)
                if value is not None and math.isfinite(value) and clean not in shown:
                    shown.add(clean)
                    metric.add_metric(clean, value)
            if metric.samples:
                yield metric


def _empty(family: Family) -> GaugeMetricFamily | CounterMetricFamily:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    return kind(f"{NAMESPACE}_{family.name}", family.help, labels=family.labels)


class Page:
    """Holds the newest snapshot and what was rendered from it.

    :meth:`publish` is called by the loop and only stores; everything else is called by whoever
    answers requests.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._published_at = 0.0
        self._rendered: dict[str, bytes] = {}
        self._rendered_from: Snapshot | None = None
        self._history = History()

    def publish(self, snapshot: Snapshot) -> None:
        """Take a new snapshot. Never waits for a request that is being answered."""
        self._published_at = time.monotonic()
        self._history.add(snapshot.at_seconds, snapshot.latest)
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot, ``None`` before the first."""
        return self._snapshot

    def alive(self, now: float) -> bool:
        """Whether the loop ticks.

        Args:
            now: monotonic seconds.
        """
        snapshot = self._snapshot
        if snapshot is None:
            return False
        limit = max(ALIVE_SECONDS, ALIVE_INTERVALS * snapshot.loop.interval_seconds)
        return now - self._published_at <= limit

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type.

        Args:
            accept: the request's Accept header; OpenMetrics where it asks for it, else text.
        """
        form = OPENMETRICS if accepts(accept, OPENMETRICS.partition(";")[0]) else TEXT
        encode, content_type = choose_encoder(form)

        def render(snapshot: Snapshot | None) -> bytes:
            registry = CollectorRegistry(auto_describe=False)
            registry.register(_SnapshotCollector(snapshot))
            return encode(registry)

        return self._once(content_type, render), content_type

    def status(self, now: float, paths: Sequence[str]) -> bytes:
        """Return the status page as HTML.

        Args:
            now: monotonic seconds.
            paths: what else the server has.
        """
        alive = self.alive(now)

        def render(snapshot: Snapshot | None) -> bytes:
            points = () if snapshot is None else self._history.points(snapshot.at_seconds)
            return document(snapshot, points, alive=alive, paths=paths)

        return self._once(f"status, alive: {alive}", render)

    def _once(self, form: str, render: Callable[[Snapshot | None], bytes]) -> bytes:
        """Return the newest snapshot in that form, rendered the first time it is asked for."""
        snapshot = self._snapshot
        with self._lock:
            if snapshot is not self._rendered_from:
                self._rendered = {}
                self._rendered_from = snapshot
            body = self._rendered.get(form)
            if body is None:
                body = self._rendered[form] = render(snapshot)
        return body
