"""Settings of the daemon's own way to Alertmanager."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from spark_watch.settings.frozen import Frozen

IDENTITY: Final = frozenset(
    {"alertname", "severity", "gotcha", "condition", "instance", "job", "state"}
)
"""Labels that make an alert what it is; none of them is for users to set."""

LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class AlertmanagerSettings(Frozen):
    """Where critical verdicts are posted without waiting for a scrape."""

    url: str | None = Field(
        default=None,
        description="Alertmanager to which critical verdicts are posted within a second, as "
        "http://HOST:PORT. Unset: only Prometheus tells it, after a scrape and an evaluation.",
    )
    labels: dict[str, str] = Field(
        default={},
        description="Labels that this box has in Prometheus beside instance and job, so that both "
        "ways name the same alert.",
    )

    @field_validator("url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            message = f"{value!r} is not http://HOST:PORT"
            raise ValueError(message)
        _ = parts.port  # raises ValueError where it is no port
        return value.rstrip("/")

    @field_validator("labels")
    @classmethod
    def _labels(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name in IDENTITY or LABEL.fullmatch(name) is None:
                message = f"{name!r} is not a label that can be set"
                raise ValueError(message)
        return value
