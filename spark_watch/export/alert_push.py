"""Critical verdicts to Alertmanager at once: a pool can be gone before the next scrape.

What is posted is the very alert that the rules raise, so one incident stays one notification. It
lapses three minutes after the last renewal; "resolved" is never sent, since a box that recovers
for a second, or dies, must not call its own page off.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from spark_watch.model import Event, Sample, State

LIVES_SECONDS: Final = 180.0
"""How long an alert stands after it was last posted."""

RENEW_SECONDS: Final = 30.0
REQUEST_SECONDS: Final = 5.0
FIRST_RETRY_SECONDS: Final = 0.5
LAST_RETRY_SECONDS: Final = 30.0
STACK_BYTES: Final = 512 * 1024


def alert_name(condition: str, severity: str) -> str:
    """Return ``SparkWatch`` + the condition's name in camel case + the severity."""
    camel = "".join(word.capitalize() for word in condition.split("_"))
    return f"SparkWatch{camel}{severity.capitalize()}"


@dataclass(slots=True)
class _Standing:
    """A critical condition: what is said of it, whether it still stands and was posted once."""

    event: Event
    stands: bool = True
    posted: bool = False


class AlertPush:
    """Posts critical conditions from a thread of its own.

    There is at most one entry for each condition, so nothing grows while Alertmanager is away; one
    that is over before it could be posted is still posted once.

    Args:
        url: Alertmanager's base address.
        labels: what Prometheus adds to this box's series: ``instance``, ``job``, the fleet's own.
        log: takes the start and the end of a failure.
        renew_seconds: the time between two posts of what stands.
        lives_seconds: how long an alert stands after it was last posted.
    """

    def __init__(
        self,
        url: str,
        *,
        labels: Mapping[str, str],
        log: Any,
        renew_seconds: float = RENEW_SECONDS,
        lives_seconds: float = LIVES_SECONDS,
    ) -> None:
        self._parts = urlsplit(url)
        self._labels = dict(labels)
        self._log = log
        self._renew_seconds = renew_seconds
        self._lives = timedelta(seconds=lives_seconds)
        self._standing: dict[str, _Standing] = {}
        self._changed = threading.Condition()
        self._news = False
        self._closing = False
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._thread.start()
        finally:
            threading.stack_size(usual)

    def write(self, sample: Sample, events: Sequence[Event]) -> None:
        """Take note of what changed; it is posted by the other thread."""
        del sample
        if not events:
            return
        with self._changed:
            for event in events:
                self._note(event)
            if self._news:
                self._changed.notify()

    def _note(self, event: Event) -> None:
        known = self._standing.get(event.condition)
        if event.to_state is State.CRITICAL:
            self._news = self._news or known is None or not known.stands
            posted = known is not None and known.stands and known.posted
            self._standing[event.condition] = _Standing(event, posted=posted)
        elif known is not None and known.posted:
            del self._standing[event.condition]
        elif known is not None:
            known.stands = False

    def close(self, moment: object = None, *, clean: bool = True) -> None:
        """Stop posting; what stands lapses by itself."""
        del moment, clean
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(1.0)

    def _run(self) -> None:
        retry = FIRST_RETRY_SECONDS
        wait: float | None = None
        while True:
            with self._changed:
                if not self._news and not self._closing:
                    self._changed.wait(wait)
                if self._closing:
                    return
                self._news = False
                batch = list(self._standing.values())
            if not batch:
                wait = None
                continue
            error = self._post([entry.event for entry in batch])
            self._say(error)
            if error is not None:
                wait, retry = retry, min(LAST_RETRY_SECONDS, 2 * retry)
                continue
            wait, retry = self._renew_seconds, FIRST_RETRY_SECONDS
            self._posted(batch)

    def _posted(self, batch: Sequence[_Standing]) -> None:
        """Forget what was only owed; what stands is renewed."""
        with self._changed:
            for name in [entry.event.condition for entry in batch]:
                entry = self._standing.get(name)
                if entry is not None and entry.stands:
                    entry.posted = True
                elif entry is not None:
                    del self._standing[name]

    def _post(self, events: Sequence[Event]) -> str | None:
        """Post alerts; return what went wrong, ``None`` where nothing did."""
        ends = datetime.now(UTC) + self._lives
        body = json.dumps([self._alert(event, ends) for event in events]).encode()
        kind = (
            http.client.HTTPSConnection
            if self._parts.scheme == "https"
            else http.client.HTTPConnection
        )
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=REQUEST_SECONDS)
        try:
            connection.request(
                "POST",
                f"{self._parts.path}/api/v2/alerts",
                body,
                {"Content-Type": "application/json", "Connection": "close"},
            )
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            connection.close()
        return None if status == http.client.OK else f"status {status}"

    def _alert(self, event: Event, ends: datetime) -> dict[str, Any]:
        page = f"http://{self._labels['instance']}"
        title = event.condition.replace("_", " ")
        return {
            "labels": {
                **self._labels,
                "alertname": alert_name(event.condition, "critical"),
                "severity": "critical",
                "gotcha": event.gotcha,
                "condition": event.condition,
            },
            "annotations": {
                "summary": f"{event.gotcha} {title} on {self._labels['instance']}: critical",
                "description": event.sentence,
                "remedy": event.remedy,
                "runbook_url": f"{page}/runbook#{event.condition}",
            },
            "endsAt": ends.isoformat(),
        }

    def _say(self, error: str | None) -> None:
        if error is not None and not self._failing:
            self._log.warning("alert_push_failing", error=error)
        elif error is None and self._failing:
            self._log.info("alert_push_recovered")
        self._failing = error is not None
