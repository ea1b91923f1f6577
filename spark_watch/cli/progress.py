"""``spark-watch progress``: report from a shell script, as the client does from Python."""

from __future__ import annotations

import argparse
import json
import math
import socket
from typing import Any, Final

from spark_watch.client import socket_paths
from spark_watch.errors import OutputError, UsageError

HELP = "report a workload's progress to a running daemon, from a shell script"
EXAMPLE = "spark-watch progress nightly --steps 1 --step-seconds 12.4 --batch 8"

WAIT_SECONDS: Final = 1.0
"""A daemon that does not take a message within this time is not waited for."""

NUMBERS: Final = {
    "steps": "steps done since the last report",
    "step_seconds": "seconds that one of them took",
    "tokens": "tokens made or trained on since the last report",
    "bytes": "bytes moved to and from memory since the last report",
    "batch": "samples or requests in a step",
    "model_bytes": "size of the weights, from which a decode step's bytes are estimated",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("workload", help="its name: at most 48 letters, digits and _.:-")
    for name, text in NUMBERS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, metavar="N", help=text)
    parser.add_argument(
        "--phase",
        metavar="NAME",
        help="what is being done (train, decode, prefill, load, checkpoint, evaluate)",
    )
    parser.add_argument("--socket", metavar="PATH", help="the daemon's socket (default: found)")


def run(options: argparse.Namespace) -> int:
    """Send one message; the exit code is 0 where a daemon has taken it."""
    message: dict[str, Any] = {"v": 1, "workload": options.workload}
    for name in NUMBERS:
        value = getattr(options, name)
        if value is None:
            continue
        if not math.isfinite(value) or value < 0:
            raise UsageError(f"--{name.replace('_', '-')} {value:g}: must be a number from 0 on")
        message[name] = value
    if options.phase is not None:
        message["phase"] = options.phase
    _check(message)
    paths = [options.socket] if options.socket else socket_paths()
    reasons = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.settimeout(WAIT_SECONDS)
        for path in paths:
            try:
                sending.sendto(json.dumps(message).encode(), path)
            except TimeoutError:
                reasons.append(f"{path}: the daemon is busy")
            except OSError as error:
                reasons.append(f"{path}: {(error.strerror or str(error)).lower()}")
            else:
                return 0
    raise OutputError("; ".join(reasons))


def _check(message: dict[str, Any]) -> None:
    """Refuse what the daemon would refuse without a word.

    Raises:
        UsageError: the name, the phase or a number is not what a message may hold.
    """
    from spark_watch.sources.mailbox import Refused, parse  # noqa: PLC0415 - not for --help

    try:
        parse(json.dumps(message).encode())
    except Refused as error:
        raise UsageError(f"{error}: not what a report may hold (see --help)") from error
