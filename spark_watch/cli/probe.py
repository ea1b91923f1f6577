"""``spark-watch probe bandwidth``: what this machine's memory gives, measured while it is idle."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from spark_watch.cli.common import note, say, settings_arguments, settings_of
from spark_watch.cli.wiring import look
from spark_watch.errors import OutputError, SourceError, UsageError
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import GIB, State
from spark_watch.settings.blackbox import state_directory
from spark_watch.settings.probe import write_probe
from spark_watch.settings.tree import Settings

HELP = "measure memory bandwidth on an idle GPU; needs the extra spark-watch[probe]"
EXAMPLE = "spark-watch probe bandwidth"

LOOK_SECONDS: Final = 4.0
HEADROOM_GIB: Final = 24.0
"""The probe takes 8 GiB; with less than three times that available a box is not idle."""

IDLE_RATIO: Final = 0.1
BAR: Final = 24
MIB: Final = 1024**2

IGNORED: Final = frozenset({"unclean_reboot", "telemetry_gap"})
"""What these say is over, and says nothing of the box as it is now."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "what", nargs="?", choices=("bandwidth",), default="bandwidth", help="what is measured"
    )
    parser.add_argument("--no-store", action="store_true", help="print the result and keep nothing")
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Refuse, or measure, print and store; the exit code is 0 where it was measured."""
    settings = settings_of(options)
    refuse(look(settings, "live", LOOK_SECONDS, environment=os.environ))
    _ask_the_daemon(settings)
    from spark_watch.sources.bandwidth import probe  # noqa: PLC0415 - CUDA is loaded here alone

    try:
        found = probe(_bar)
    except SourceError as error:
        raise OutputError(str(error)) from error
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\r" + " " * (BAR + 40) + "\r")
    now = time.time()
    say(
        f"{found.gpu_name}, driver {found.driver_version or 'unknown'}, {_clock(found.clock_hertz)}"
    )
    say("a read of N bytes counts N, a write N, a copy 2 N; median of 20, lowest to highest")
    for row in found.rows:
        say(
            f"{row.kind:5} {row.size_bytes // MIB:5d} MiB  {row.median / 1e9:8.1f} GB/s  "
            f"({row.lowest / 1e9:.1f} to {row.highest / 1e9:.1f})"
        )
    result: dict[str, Any] = {
        "v": 1,
        "at": now,
        "date": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        "read_bytes_per_second": found.read_bytes_per_second,
        **asdict(found),
    }
    if options.no_store:
        return 0
    folder = state_directory(settings.state_dir, os.environ, is_root=os.geteuid() == 0)
    try:
        path = write_probe(folder, result)
    except OSError as error:
        raise OutputError(f"{folder}: {(error.strerror or str(error)).lower()}") from error
    say(f"stored in {path}; a daemon takes it up when it starts or reloads")
    if os.geteuid() != 0:
        note("a daemon of the system does not read your folder: run the probe as root for it")
    return 0


def refuse(snapshot: Snapshot) -> None:
    """Let an idle box pass.

    Raises:
        UsageError: why the box is not idle enough, or why that cannot be known.
    """
    latest = snapshot.latest
    why = ""
    raised = [
        standing.finding
        for standing in snapshot.standings
        if standing.finding.state >= State.WARNING and standing.finding.condition not in IGNORED
    ]
    busy = [one for one in latest.processes or () if one.kind == "compute"]
    memory = latest.memory
    available = memory.available_bytes if memory is not None else None
    if raised:
        why = f"{raised[0].condition} stands at {raised[0].state.label}: {raised[0].sentence}"
    elif not latest.gpus:
        why = "NVML answers nothing of a GPU, so nobody knows whether it is idle"
    elif latest.processes is None:
        why = "the GPU's processes cannot be listed, so nobody knows whether it is idle"
    elif busy:
        why = f"the GPU is in use by {', '.join(one.subject for one in busy[:4])}"
    elif any((gpu.utilization_ratio or 0.0) >= IDLE_RATIO for gpu in latest.gpus):
        why = "the GPU is busy"
    elif available is None or available < HEADROOM_GIB * GIB:
        seen = "unknown" if available is None else f"{available / GIB:.1f} GiB"
        why = f"available memory is {seen}, and the probe wants {HEADROOM_GIB:.0f} GiB"
    if why:
        raise UsageError(f"not measured: {why}")


def _ask_the_daemon(settings: Settings) -> None:
    """Refuse as well where a running daemon, which has watched for longer, has a warning.

    Raises:
        UsageError: what it says.
    """
    import json  # noqa: PLC0415 - with the command below

    from spark_watch.cli.status import fetch  # noqa: PLC0415 - HTTP is loaded where it is used

    try:
        rows = json.loads(fetch(f"http://{settings.listen}/api/v1/conditions"))["conditions"]
        raised = [
            row
            for row in rows
            if row["state"] in {"warning", "critical"} and row["condition"] not in IGNORED
        ]
    except (OutputError, ValueError, KeyError, TypeError):
        note("no daemon answers; what this look saw has to do")
        return
    if raised:
        row = raised[0]
        raise UsageError(
            f"not measured: the daemon has {row['condition']} at {row['state']}: {row['sentence']}"
        )


def _bar(what: str, share: float) -> None:
    """Show how far the probe is, where somebody watches."""
    if not sys.stderr.isatty():
        return
    done = round(BAR * share)
    sys.stderr.write(f"\r[{'#' * done}{'-' * (BAR - done)}] {what:24}")
    sys.stderr.flush()


def _clock(hertz: float | None) -> str:
    return "clock unknown" if hertz is None else f"SM clock {hertz / 1e6:.0f} MHz"
