"""``spark-watch run``: the daemon."""

from __future__ import annotations

import argparse
import os

from spark_watch.cli.common import settings_arguments, settings_of
from spark_watch.cli.wiring import serve

HELP = "watch this machine (or a simulation, or a recording) and serve the page"
EXAMPLE = "spark-watch run --source simulate:demo --listen 127.0.0.1:9810"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--source",
        default="live",
        metavar="SOURCE",
        help="live (default), simulate:NAME (see spark-watch simulate --list) or replay:FILE",
    )
    parser.add_argument(
        "--speed",
        type=float,
        metavar="N",
        help="seconds of a simulation or recording that pass in a real second "
        "(default: 1; the demo: 30)",
    )
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="where the page is (default: 127.0.0.1:9810)"
    )
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT."""
    settings = settings_of(options, listen=options.listen)
    serve(settings, options, environment=os.environ)
    return 0
