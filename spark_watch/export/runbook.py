"""The runbook as a page, as it was rendered from ``deploy/runbook.md``."""

from __future__ import annotations

from importlib import resources


def page() -> bytes:
    """Return the page; it is read when it is asked for, so that it costs nothing until then."""
    return (resources.files("spark_watch.export") / "runbook.html").read_bytes()
