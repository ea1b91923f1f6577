"""``spark-watch replay``: judge a recording."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from spark_watch.cli.common import (
    VERDICT_CODES,
    note,
    say,
    settings_arguments,
    settings_of,
    verdict_line,
)
from spark_watch.daemon.replay import Report, replay
from spark_watch.sources.recorded import open_recording

HELP = "judge a recording: a trace, or the CSV log of nvidia-smi"
EXAMPLE = "spark-watch replay night.jsonl.gz --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("file", type=Path, help="a .jsonl or .jsonl.gz trace, or a CSV log")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--gpu-name",
        metavar="NAME",
        help="the GPU a CSV log was taken from (default: NVIDIA GB10)",
    )
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Replay the file and print what was found; the exit code is that of the worst state seen."""
    settings = settings_of(options)
    with open_recording(options.file, gpu_name=options.gpu_name) as recording:
        report = replay(recording, settings.conditions_in_force())
        notes = list(recording.notes)
    for line in notes:
        note(f"{options.file}: {line}")
    if options.json:
        say(json.dumps(report.as_json(), ensure_ascii=False, indent=1))
    else:
        _print(report)
    return VERDICT_CODES[report.worst]


def _print(report: Report) -> None:
    say(
        f"{report.samples} samples over {clock(report.duration_seconds)}, "
        f"{report.machine.gpu_name or 'no GPU name'}, {report.header.origin or 'origin not said'}"
    )
    for one in report.skipped:
        say(f"line {one['line']} skipped: {one['why']}")
    for event in report.events:
        line = verdict_line(event.gotcha, event.condition, event.to_state, event.sentence)
        say(f"+{clock(event.elapsed_seconds)} {line}")
    unjudged = [name for name, judged in report.judged.items() if not judged]
    if unjudged:
        say(f"never judged, for lack of input: {', '.join(unjudged)}")


def clock(seconds: float) -> str:
    """Return ``H:MM:SS``."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
