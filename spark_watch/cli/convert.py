"""``spark-watch convert``: turn somebody else's log into a trace."""

from __future__ import annotations

import argparse
from pathlib import Path

from spark_watch.cli.common import note, say
from spark_watch.sources.recorded import convert

HELP = "turn the CSV log of nvidia-smi (or of another tool) into a trace"
EXAMPLE = "spark-watch convert smi.csv -o smi.jsonl.gz"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("file", type=Path, help="the log")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="where the trace goes, compressed where it ends in .gz",
    )
    parser.add_argument(
        "--gpu-name",
        metavar="NAME",
        help="the GPU the log was taken from, where it does not say (default: NVIDIA GB10)",
    )
    parser.add_argument(
        "--export", action="store_true", help="leave out what identifies the machine's boot"
    )


def run(options: argparse.Namespace) -> int:
    """Convert the file; say what was assumed and which lines were skipped."""
    done = convert(options.file, options.output, gpu_name=options.gpu_name, export=options.export)
    for line in done.notes:
        note(f"{options.file}: {line}")
    for one in done.skipped:
        note(f"{options.file}: line {one['line']} skipped: {one['why']}")
    say(f"{options.output}: {done.samples} samples")
    return 0
