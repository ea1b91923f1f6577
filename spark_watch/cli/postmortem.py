"""``spark-watch postmortem``: what the black box holds of runs that ended, and how they ended."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from spark_watch.blackbox.forensics import (
    Account,
    Judging,
    Passage,
    accounts_of,
    chart,
    passages_of,
    ring_in,
    table,
)
from spark_watch.blackbox.ring import FOLDER
from spark_watch.blackbox.trace import TraceHeader, TraceWriter
from spark_watch.cli.common import note, say, settings_arguments, settings_of
from spark_watch.cli.record import opened
from spark_watch.daemon.recorder import ACKNOWLEDGED
from spark_watch.daemon.replay import judge_for
from spark_watch.errors import InputError, OutputError, SourceError, UsageError
from spark_watch.settings.blackbox import SERVICE_STATE, state_directory
from spark_watch.settings.tree import Settings
from spark_watch.sources.boot import BootSource

HELP = "say how earlier runs ended and what stood before: after a freeze, a reboot or a kill"
EXAMPLE = "spark-watch postmortem --export night.jsonl.gz"

PROGRESS_SECONDS: Final = 1.0
"""A scan that takes longer says how far it is, this often."""

AFTER_SECONDS: Final = 120.0
"""How much of the next run a cut-out holds, so that the restart can be seen in it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="DIR|FILE",
        help="a state directory, a ring, a folder of traces, or a trace "
        "(default: this machine's own recording)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="cut the end of the run out as a trace that may be shared",
    )
    form.add_argument(
        "--ack",
        action="store_true",
        help="the last restart was seen: unclean_reboot need not stand",
    )
    parser.add_argument(
        "--run",
        dest="number",
        type=int,
        metavar="N",
        help="which run is shown or cut out (default: the last that did not end cleanly)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=60.0,
        metavar="N",
        help="how much of its end is cut out (default: 60)",
    )
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the runs, cut one out, or acknowledge the last restart of the machine."""
    settings = settings_of(options)
    own = _own(settings)
    path = options.path or own
    if options.ack:
        return _acknowledge(path)
    if not path.exists():
        raise OutputError(f"{path}: no recording there")
    progress = _Progress()
    passages = passages_of(path, progress.reading)
    accounts = accounts_of(
        passages,
        now=time.time(),
        boot_id=_boot_id(settings) if _same(path, own) else None,
        judging=lambda header: _judging(header, settings),
        progress=progress.telling,
    )
    if options.json:
        say(json.dumps({"runs": [one.as_json() for one in accounts]}, ensure_ascii=False))
        return 0
    if not accounts:
        say(f"{path}: no run is recorded yet")
        return 0
    number = _chosen(accounts, options.number)
    if options.export is not None:
        return _export(options, path, passages, number)
    for line in _runs(accounts):
        say(line)
    if not accounts[number].clean and not accounts[number].running:
        for line in _details(accounts[number], number):
            say(line)
    return 0


def _own(settings: Settings) -> Path:
    """Return this user's state directory, or the service's where only that holds a recording."""
    own = state_directory(settings.state_dir, os.environ, is_root=os.geteuid() == 0)
    if settings.state_dir is None and ring_in(own) is None and ring_in(SERVICE_STATE) is not None:
        return SERVICE_STATE
    return own


def _same(path: Path, own: Path) -> bool:
    """Whether a path is this machine's own recording."""
    return path.resolve() in {own.resolve(), (own / FOLDER).resolve()}


def _boot_id(settings: Settings) -> str | None:
    source = BootSource(proc_root=settings.proc_root)
    try:
        return source.read()
    except SourceError:
        return None
    finally:
        source.close()


def _judging(header: TraceHeader, settings: Settings) -> Judging:
    return judge_for(header, settings.conditions_in_force())


class _Progress:
    """Says on standard error how far a long scan is."""

    def __init__(self) -> None:
        self._due = time.monotonic() + PROGRESS_SECONDS

    def reading(self, done: int, of: int) -> None:
        """Say how many pieces have been read."""
        self._say(f"read {done} of {of}")

    def telling(self, done: int, of: int) -> None:
        """Say how many runs have been looked into."""
        self._say(f"looked into {done} of {of} runs")

    def _say(self, words: str) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + PROGRESS_SECONDS
            note(words)
            sys.stderr.flush()


def _chosen(accounts: Sequence[Account], wanted: int | None) -> int:
    """Return the index of the run to show: as asked, else the last unclean one, else the last."""
    if wanted is not None:
        if not 1 <= wanted <= len(accounts):
            raise UsageError(f"--run {wanted}: there are runs 1 to {len(accounts)}")
        return wanted - 1
    unclean = [index for index, one in enumerate(accounts) if not one.clean and not one.running]
    return unclean[-1] if unclean else len(accounts) - 1


def _runs(accounts: Sequence[Account]) -> Iterator[str]:
    """Yield a row for each run, and for each that left no mark what is known of its end."""
    yield f"{'run':>4}  {'started':<20}  {'ended':<20}  {'end':<8}  machine"
    for number, one in enumerate(accounts, start=1):
        end = "running" if one.running else "clean" if one.clean else "UNCLEAN"
        machine = "restarted" if one.machine_restarted else "no restart seen"
        ended = "" if one.ended is None else moment(one.ended)
        yield f"{number:>4}  {moment(one.started):<20}  {ended:<20}  {end:<8}  {machine}"
        if end == "UNCLEAN":
            yield f"      {one.sentence}"


def _details(account: Account, number: int) -> Iterator[str]:
    """Yield the end of one run: what stood, what the kernel said, gaps, curves and readings."""
    end = account.ended or account.started
    yield ""
    yield f"run {number + 1}, the end at {moment(end)} UTC, seconds before it:"
    yield ""
    if not account.appearances:
        yield "  no precursor recorded"
    for one in account.appearances:
        words = one.sentence or "it stood already where the recording that is read begins"
        span = _span(one.since - end, one.until - end)
        yield f"  {span}  {one.condition} {one.worst.name}: {words}"
    for at, gap in account.gaps:
        yield f"  {_span(at - end, at - end)}  no sample for {gap:.1f} s"
    yield from _kernel(account, end)
    yield ""
    for line in chart(account.samples, blocks=_draws_blocks()):
        yield line
    yield ""
    for line in table(account.samples):
        yield line


def _span(first: float, last: float) -> str:
    """Return two moments as seconds before the end, or the one where they are the same."""
    return f"{first:8.1f} to {last:6.1f}" if last > first else f"{first:8.1f}{'':10}"


def _kernel(account: Account, end: float) -> Iterator[str]:
    """Yield what the kernel logged, lines of one kind and code together, by first appearance."""
    seen: dict[tuple[str, str | int | None], tuple[float, float, int]] = {}
    for at, event in account.kernel:
        first, _, count = seen.get((event.kind, event.code), (at, at, 0))
        seen[event.kind, event.code] = (first, at, count + event.count)
    for (kind, code), (first, last, count) in seen.items():
        named = kind if code is None else f"{kind} {code}"
        times = f" ({count} times)" if count > 1 else ""
        yield f"  {_span(first - end, last - end)}  kernel: {named}{times}"


def _draws_blocks() -> bool:
    try:
        "▁█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def moment(t: float) -> str:
    """Return a unix time as UTC, to the second."""
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _export(
    options: argparse.Namespace, path: Path, passages: Sequence[Passage], number: int
) -> int:
    """Write the end of one run, and how the next one began, as a trace without identities."""
    if not 0.0 < options.minutes <= 1e6:  # noqa: PLR2004 - two years
        raise UsageError(f"--minutes {options.minutes:g}: must be more than 0")
    target: Path = options.export
    ring = ring_in(path)
    if target.exists() and (
        target.resolve() == path.resolve()
        or (ring is not None and target.resolve().parent == ring.resolve())
    ):
        raise UsageError(f"{target}: the cut-out would overwrite what it is made from")
    passage = passages[number]
    header = TraceHeader(
        interval_seconds=passage.header.interval_seconds,
        machine=passage.header.machine,
        origin="cut out of a recording by spark-watch",
        recorder=passage.header.recorder,
    )
    samples = 0
    with opened(target) as stream:
        writer = TraceWriter(stream, header, export=True)
        for sample in passage.tail(60.0 * options.minutes):
            writer.write(sample)
            samples += 1
        for after in passages[number + 1 : number + 2]:
            for sample in after.head(AFTER_SECONDS):
                writer.write(sample)
                samples += 1
    say(f"{target}: {samples} samples")
    return 0


def _acknowledge(path: Path) -> int:
    """Leave the mark that the daemon looks at every five seconds.

    Raises:
        InputError: there is no recording whose restart could be acknowledged.
        OutputError: the mark cannot be written.
    """
    ring = ring_in(path)
    if ring is None:
        raise InputError(f"{path}: no recording there")
    mark = ring.parent / ACKNOWLEDGED
    try:
        mark.touch()
        os.utime(mark)
    except OSError as error:
        raise OutputError(f"{mark}: {(error.strerror or str(error)).lower()}") from error
    say("acknowledged: unclean_reboot ends within seconds where the daemon runs")
    return 0
