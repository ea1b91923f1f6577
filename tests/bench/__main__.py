"""``make bench``: what the daemon costs here, as numbers, counts and shares of what is allowed."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from spark_watch.cli.common import say
from spark_watch.daemon.replay import judge_for, replay
from spark_watch.model import Machine, Sample
from spark_watch.settings.tree import load
from spark_watch.sources.feed import Moment
from spark_watch.sources.recorded import open_recording
from tests.bench.box import Box, cpu_seconds, daemon, memory_bytes, page
from tests.stand import nvml_stand

MIB: Final = 1024**2

Row = tuple[str, float, str, float]
"""What was measured, the number, its unit, what is allowed."""


def main() -> int:
    """Measure and print; the exit code tells nothing about speed, since machines differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the daemon runs")
    parser.add_argument("--python", default=sys.executable, help="interpreter for the daemon")
    options = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder))
        try:
            rows += cost(box, options.python, options.seconds)
            rows += scrapes(box, options.python)
            rows += ticks(box)
        finally:
            box.close()
        rows += judged()
        rows += replays(Path(folder))
    say(f"{'what':<52}{'measured':>12} {'unit':<10}{'allowed':>9}{'share':>8}")
    for what, number, unit, allowed in rows:
        say(f"{what:<52}{number:>12.3f} {unit:<10}{allowed:>9g}{number / allowed:>8.2f}")
    return 0


def cost(box: Box, python: str, seconds: float) -> list[Row]:
    """Run the daemon at 1 Hz with a scrape every 5 s."""
    with daemon(box, python) as (pid, url, started):
        first = until(lambda: b"sparkwatch_gpu_power_watts" in page(url))
        time.sleep(5.0)
        before, at = cpu_seconds(pid), time.monotonic()
        while time.monotonic() - at < seconds:
            time.sleep(5.0)
            box.breathe()
            page(url)
        spent = cpu_seconds(pid) - before
        wall = time.monotonic() - at
        resident, proportional = memory_bytes(pid)
    return [
        ("start to first full page", first - started, "s", 2.0),
        ("CPU at 1 Hz, a scrape every 5 s", 100 * spent / wall, "% of a core", 0.5),
        ("resident memory", resident / MIB, "MiB", 52.0),
        ("proportional memory", proportional / MIB, "MiB", 52.0),
    ]


def until(ready: Callable[[], bool]) -> float:
    """Return the moment at which something became true, asked every 10 ms for 20 s at most."""
    end = time.monotonic() + 20.0
    while time.monotonic() < end:
        try:
            if ready():
                return time.monotonic()
        except OSError:
            pass
        time.sleep(0.01)
    raise SystemExit("the daemon did not get ready in 20 s")


def scrapes(box: Box, python: str) -> list[Row]:
    """Scrape ten times a second for twenty seconds."""
    times = []
    with daemon(box, python) as (_, url, _started):
        until(lambda: b"sparkwatch_gpu_power_watts" in page(url))
        time.sleep(3.0)
        for number in range(200):
            at = time.monotonic()
            body = page(url)
            times.append(1000 * (time.monotonic() - at))
            if number % 10 == 0:
                box.breathe()
            time.sleep(max(0.0, 0.1 - (time.monotonic() - at)))
    times.sort()
    series = sum(1 for line in body.splitlines() if line and not line.startswith(b"#"))
    return [
        ("scrape, 10 a second, median", statistics.median(times), "ms", 15.0),
        ("scrape, 10 a second, 99th percentile", times[int(0.99 * len(times))], "ms", 15.0),
        ("series on the page", series, "series", 650.0),
        ("bytes of a scrape", len(body), "bytes", 100_000.0),
    ]


def ticks(box: Box) -> list[Row]:
    """Read and judge in this process, and take the loop thread's own CPU time."""
    nvml_stand.load(box.nvml)
    nvml_stand.show(box.stand)
    from spark_watch.cli.wiring import feed_for  # noqa: PLC0415 - NVML must be the stand's

    settings = load(None, {}, {})
    feed, header = feed_for(settings, "live", None)
    judge = judge_for(header, settings.conditions_in_force())
    reading, judging = [], []
    samples: list[Sample] = []
    feed.start()
    done = threading.Event()
    try:
        for _ in range(30):
            box.breathe()
            began = time.thread_time()
            sample = feed.read(Moment.now())
            read = time.thread_time()
            if sample is None:
                break
            judge.update(sample)
            judged = time.thread_time()
            samples.append(sample)
            reading.append(1e6 * (read - began))
            judging.append(1e6 * (judged - read))
            done.wait(0.5)
    finally:
        feed.close()
    return [
        ("reading a sample, median, caches cold", statistics.median(reading), "us", 1000.0),
        ("judging a sample, median, caches cold", statistics.median(judging), "us", 200.0),
    ]


def judged() -> list[Row]:
    """Judge an hour of a simulated server at 1 Hz, sample after sample, every condition on."""
    from spark_watch.blackbox.trace import TraceHeader  # noqa: PLC0415 - not for the daemon
    from spark_watch.sources.simulated import SimulatedSource  # noqa: PLC0415 - see above

    source = SimulatedSource("healthy-decode", seed=1)
    samples = [source.read(1.8e9 + second) for second in range(3600)]
    header = TraceHeader(interval_seconds=1.0, machine=samples[0].machine or Machine())
    judge = judge_for(header, load(None, {}, {}).conditions)
    times = []
    for sample in samples:
        began = time.thread_time()
        judge.update(sample)
        times.append(1e6 * (time.thread_time() - began))
    return [("judging a sample, median, every condition", statistics.median(times), "us", 200.0)]


def replays(folder: Path) -> list[Row]:
    """Replay a day at 1 Hz, made of a simulated healthy server written over and over."""
    from spark_watch.blackbox.trace import TraceHeader, TraceWriter  # noqa: PLC0415 - not for the daemon
    from spark_watch.sources.simulated import SimulatedSource  # noqa: PLC0415 - see above

    path = folder / "day.jsonl"
    source = SimulatedSource("healthy-decode", seed=1)
    now = 1.8e9
    with path.open("wb") as stream:
        first = source.read(now)
        writer = TraceWriter(
            stream,
            TraceHeader(
                interval_seconds=1.0, machine=first.machine or Machine(), recorder="spark-watch"
            ),
        )
        for second in range(86_400):
            writer.write(source.read(now + second))
    began = time.monotonic()
    with open_recording(path) as recording:
        report = replay(recording, load(None, {}, {}).conditions)
    spent = time.monotonic() - began
    return [("replay of a day at 1 Hz", spent * 86_400 / report.samples, "s", 30.0)]


if __name__ == "__main__":
    sys.exit(main())
