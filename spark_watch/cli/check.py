"""``spark-watch check``: one short look at this machine."""

from __future__ import annotations

import argparse
import os

from spark_watch.cli.common import (
    VERDICT_CODES,
    note,
    say,
    settings_arguments,
    settings_of,
    verdict_line,
)
from spark_watch.cli.wiring import look
from spark_watch.daemon.verdict import worst

HELP = "take one short look at this machine and print a line per condition"
EXAMPLE = "spark-watch check"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--seconds", type=float, default=3.0, metavar="N", help="how long to look (default: 3)"
    )
    parser.add_argument(
        "--source", default="live", metavar="SOURCE", help="live (default) or simulate:NAME"
    )
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Look, print, and end with the worst state's exit code.

    A short look can raise a condition but can call only those ok whose level alone says so.
    """
    snapshot = look(settings_of(options), options.source, options.seconds, environment=os.environ)
    for health in snapshot.sources:
        if health.success is False:
            note(f"not read: {health.source} ({health.reason})")
    findings = [standing.finding for standing in snapshot.standings]
    for finding in findings:
        say(verdict_line(finding.gotcha, finding.condition, finding.state, finding.sentence))
    return VERDICT_CODES[worst((finding.condition, finding.state) for finding in findings)]
