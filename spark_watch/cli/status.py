"""``spark-watch status``: ask a running daemon."""

from __future__ import annotations

import argparse
import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import urlsplit

from spark_watch.cli.common import VERDICT_CODES, say, settings_arguments, settings_of, verdict_line
from spark_watch.daemon.verdict import worst
from spark_watch.errors import InputError, OutputError, UsageError
from spark_watch.model import State

HELP = "print what a running daemon says, a line per condition"
EXAMPLE = "spark-watch status http://127.0.0.1:9810"

LIMIT_BYTES: Final = 4 * 1024 * 1024
WAIT_SECONDS: Final = 5.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "url", nargs="?", help="the daemon's address (default: that of the settings)"
    )
    parser.add_argument("--json", action="store_true", help="print the daemon's JSON as it came")
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each condition; the exit code is that of the worst state."""
    url = options.url or f"http://{settings_of(options).listen}"
    text = fetch(url.rstrip("/") + "/api/v1/conditions")
    if options.json:
        say(text.strip())
    try:
        rows: list[dict[str, Any]] = json.loads(text)["conditions"]
        states: list[tuple[str, State]] = []
        for row in rows:
            state = State[row["state"].upper()]
            states.append((str(row["condition"]), state))
            if not options.json:
                say(verdict_line(row["gotcha"], row["condition"], state, row["sentence"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{url}: the answer is not spark-watch's") from error
    return VERDICT_CODES[worst(states)]


def fetch(url: str) -> str:
    """Get a page of a daemon.

    Raises:
        UsageError: it is no HTTP address.
        OutputError: nobody answered, or not with 200.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"{url}: not an http:// or https:// address")
    try:
        with _direct().open(url, timeout=WAIT_SECONDS) as answer:
            data: bytes = answer.read(LIMIT_BYTES)
    except urllib.error.HTTPError as error:
        raise OutputError(f"{url}: {error.code} {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)
        reason = getattr(cause, "strerror", None) or str(cause) or type(error).__name__
        raise OutputError(f"{url}: {' '.join(str(reason).split())}") from error
    return data.decode("utf-8", "replace")


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: our daemon sends none, and whoever does is not our daemon."""

    def redirect_request(self, *unused: object) -> None:
        """Return nothing to go to, which makes the answer an error."""


def _direct() -> urllib.request.OpenerDirector:
    """Return an opener that goes to the address itself, whatever proxy the environment names."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)
