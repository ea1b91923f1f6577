"""``spark-watch simulate``: the scenarios, and traces made from them."""

from __future__ import annotations

import argparse
from pathlib import Path

from spark_watch.blackbox.trace import TraceHeader, TraceWriter
from spark_watch.cli.common import say
from spark_watch.cli.record import opened
from spark_watch.daemon.replay import OWN_RECORDER
from spark_watch.errors import UsageError
from spark_watch.model import Machine
from spark_watch.sources.simulated import SCENARIOS, SimulatedSource

HELP = "list the simulated scenarios, or write one as a trace"
EXAMPLE = "spark-watch simulate collapse -o collapse.jsonl"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("name", nargs="?", help="the scenario to write")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    parser.add_argument(
        "--interval",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="seconds between samples, 0.25 to 60 (default: 1)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the trace goes")


def run(options: argparse.Namespace) -> int:
    """List the scenarios, or write one."""
    if options.list or options.name is None:
        width = max(len(name) for name in SCENARIOS)
        for name, scenario in SCENARIOS.items():
            say(f"{name:<{width}}  {scenario.description}")
        return 0
    if options.output is None:
        raise UsageError("simulate NAME needs -o FILE for the trace")
    source = SimulatedSource(options.name, seed=options.seed, interval_seconds=options.interval)
    count = 0
    writer = None
    with opened(options.output) as stream:
        for sample in source.samples():
            if writer is None:
                header = TraceHeader(
                    interval_seconds=options.interval,
                    machine=sample.machine or Machine(),
                    origin=f"simulated: {options.name}, seed {options.seed}",
                    recorder=OWN_RECORDER,
                )
                writer = TraceWriter(stream, header)
            writer.write(sample)
            count += 1
    say(f"{options.output}: {count} samples")
    return 0
