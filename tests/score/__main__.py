"""``python -m tests.score``: score every condition on recorded and generated traces."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from tests.score import runner
from tests.score.table import Result, render

SEEDS = 20


def main() -> int:
    """Run the score; return 0 where every bar holds, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.score", description=main.__doc__)
    parser.add_argument(
        "--traces",
        type=Path,
        default=os.environ.get("SPARK_WATCH_TRACES"),
        metavar="DIR",
        help="recorded traces with their labels (default: $SPARK_WATCH_TRACES)",
    )
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, metavar="N", help=f"seeds a family ({SEEDS})"
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only families with this in their name"
    )
    parser.add_argument("--workers", type=int, default=runner.WORKERS, help="processes (2)")
    parser.add_argument(
        "--dump", nargs=2, metavar=("FAMILY/SEED", "DIR"), help="write one trace and its labels"
    )
    options = parser.parse_args()
    if options.dump:
        return dump(*options.dump)
    started = time.monotonic()
    if options.traces is None:
        say("no recorded traces: --traces or SPARK_WATCH_TRACES names their folder")
    todo = [
        task
        for task in runner.tasks(options.seeds, options.traces)
        if options.only in (task.family or str(task.path))
    ]
    scores = tuple(runner.run(todo, options.workers))
    result = Result(scores, runner.GOTCHAS)
    say(render(result))
    samples = sum(score.samples for score in scores)
    say(f"{len(scores)} traces, {samples} samples, {time.monotonic() - started:.0f} s")
    return 0 if all(holds for _, holds in result.bars()) else 1


def say(line: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(f"{line}\n")


def dump(name: str, folder: str) -> int:
    """Write one generated trace and its labels into a folder."""
    family, _, seed = name.rpartition("/")
    generated = runner.generate(family, int(seed))
    path = Path(folder) / f"{family.replace(':', '-')}-{seed}.jsonl"
    with path.open("wb") as stream:
        runner.write(generated, stream)
    labels = generated.scenario.labels() | {"trace": path.name}
    path.with_suffix(".labels.json").write_text(json.dumps(labels, indent=1), encoding="utf-8")
    say(str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
