"""``spark-watch record``: write what is read to a trace."""

from __future__ import annotations

import argparse
import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from spark_watch.blackbox.trace import TraceHeader, TraceWriter
from spark_watch.cli.common import note, say, settings_arguments, settings_of
from spark_watch.errors import OutputError, UsageError
from spark_watch.model import Event, Sample
from spark_watch.sources.feed import Moment

HELP = "record this machine to a trace until interrupted"
EXAMPLE = "spark-watch record night.jsonl.gz --seconds 28800 --export"

MOST_SECONDS: Final = 1e9
"""Thirty years: what is longer, or no number, is a slip of the keyboard."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("file", type=Path, help="the trace, compressed where it ends in .gz")
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="stop after that long (default: at ^C)"
    )
    parser.add_argument(
        "--export", action="store_true", help="leave out what identifies the machine's boot"
    )
    parser.add_argument(
        "--source",
        default="live",
        metavar="SOURCE",
        help="live (default), simulate:NAME or replay:FILE",
    )
    settings_arguments(parser)


class TraceSink:
    """Writes every sample of the loop to a trace, and a clean stop's marker at the end.

    Args:
        stream: an open binary stream.
        header: the first line.
        export: see :class:`TraceWriter`.
    """

    def __init__(self, stream: BinaryIO, header: TraceHeader, *, export: bool) -> None:
        self._stream = stream
        self._writer = TraceWriter(stream, header, export=export)
        self.samples = 0
        self._last: Sample | None = None

    def write(self, sample: Sample, events: Sequence[Event]) -> None:
        """Write one sample."""
        del events
        self._writer.write(sample)
        self._stream.flush()
        self._last = sample
        self.samples += 1

    def close(self, moment: Moment, *, clean: bool) -> None:
        """Mark a clean stop, on the clocks of the samples: those of a played source are its own.

        A marker by this machine's clocks would look like a restart of the other.
        """
        if not clean:
            return
        last = self._last
        self._writer.write(
            Sample(
                t=last.t if last else moment.t,
                monotonic_seconds=last.monotonic_seconds if last else moment.monotonic,
                boottime_seconds=last.boottime_seconds if last else moment.boottime,
                boot_id=last.boot_id if last else None,
                stopped=True,
            )
        )


def run(options: argparse.Namespace) -> int:
    """Record until a signal, the end of the source, or the time is up."""
    from spark_watch.cli.wiring import daemon_for  # noqa: PLC0415 - the loop is loaded where it runs

    settings = settings_of(options)
    ticks = None
    if options.seconds is not None:
        if not 0.0 < options.seconds < MOST_SECONDS:
            raise UsageError(f"--seconds {options.seconds:g}: must be more than 0")
        ticks = max(1, round(options.seconds / settings.interval_seconds))
    with opened(options.file) as stream:
        sinks: list[Any] = []

        def sink_for(header: TraceHeader) -> TraceSink:
            sink = TraceSink(stream, header, export=options.export)
            sinks.append(sink)
            return sink

        daemon = daemon_for(
            settings, options.source, environment=os.environ, sink_for=sink_for, max_ticks=ticks
        )
        note(f"recording to {options.file}; ^C ends it")
        daemon.run()
    say(f"{options.file}: {sinks[0].samples} samples")
    return 0


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a new trace for writing.

    Raises:
        OutputError: it cannot be opened, or writing fails.
    """
    try:
        with path.open("wb") as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=plain, mode="wb", mtime=0) as packed:
                    yield packed  # type: ignore[misc]  # a GzipFile writes bytes like any stream
            else:
                yield plain
    except OSError as error:
        raise OutputError(f"{path}: {(error.strerror or str(error)).lower()}") from error
