"""What was recorded, as samples: a trace, or a CSV log of nvidia-smi or another tool."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from spark_watch.blackbox.lines import Lines, Skipped
from spark_watch.blackbox.smi_csv import CsvReader
from spark_watch.blackbox.trace import TraceHeader, TraceReader, TraceWriter
from spark_watch.errors import OutputError, UsageError
from spark_watch.model import Machine, Sample


class RecordedSource:
    """A recording, whichever of the two forms it has; what it is is told by its content.

    Args:
        path: the file, gzip or not.
        gpu_name: of the machine, instead of what the recording says.

    Raises:
        InputError: neither a trace with a known header nor a log whose columns are known.
        OutputError: missing, a directory, not permitted, or the device fails.
    """

    name = "recorded"

    def __init__(self, path: Path | str, gpu_name: str | None = None) -> None:
        lines = Lines(path)
        with ExitStack() as on_failure:
            on_failure.callback(lines.close)
            self._reader: TraceReader | CsvReader
            if lines.start().startswith(b"{"):
                self._reader = TraceReader(lines)
            else:
                self._reader = CsvReader(lines, gpu_name)
            on_failure.pop_all()
        self._gpu_name = gpu_name
        self.header: TraceHeader = dataclasses.replace(
            self._reader.header, machine=self._named(self._reader.header.machine)
        )

    def _named(self, machine: Machine) -> Machine:
        if self._gpu_name is None:
            return machine
        return dataclasses.replace(machine, gpu_name=self._gpu_name)

    @property
    def notes(self) -> list[str]:
        """What was decided about the file, in words: a missing GPU name, columns not read."""
        return self._reader.notes

    @property
    def skipped(self) -> list[Skipped]:
        """The lines that were not read so far, and why; complete once the samples are used up."""
        return self._reader.skipped

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples in the order of the file, each with ``machine`` set; works once.

        Raises:
            OutputError: the file cannot be read any more.
        """
        if self._gpu_name is None:
            yield from self._reader
            return
        machine = named = self.header.machine
        for sample in self._reader:
            if sample.machine is not None and sample.machine != machine:
                machine, named = sample.machine, self._named(sample.machine)
            yield dataclasses.replace(sample, machine=named)

    def close(self) -> None:
        """Close the file; calling it again changes nothing."""
        self._reader.close()

    def __enter__(self) -> Self:
        """Return the recording itself; it is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def open_recording(path: Path | str, gpu_name: str | None = None) -> RecordedSource:
    """Open a trace or a CSV log; see :class:`RecordedSource`."""
    return RecordedSource(path, gpu_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What became of a file that was converted."""

    samples: int
    notes: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def convert(
    path: Path | str, out: Path | str, gpu_name: str | None = None, *, export: bool = False
) -> Conversion:
    """Write a recording out as a trace, gzip where the new name ends in ``.gz``.

    Args:
        path: a trace or a CSV log.
        out: the trace; what was there before is overwritten once the recording is known to be one.
        gpu_name: of the machine, instead of what the recording says.
        export: leave out what tells one owner's machine from another's.

    Raises:
        InputError: the recording cannot be read.
        UsageError: both names are one file.
        OutputError: either file cannot be read or written.
    """
    target = Path(out)
    samples = 0
    try:
        with open_recording(path, gpu_name) as recording, ExitStack() as stack:
            if target.exists() and target.samefile(path):
                raise UsageError(f"{target}: the trace would overwrite what it is made from")
            writer = TraceWriter(_created(target, stack), recording.header, export=export)
            for sample in recording:
                writer.write(sample)
                samples += 1
    except OSError as error:  # the reader has its own words for what it cannot read
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error
    return Conversion(
        samples=samples, notes=tuple(recording.notes), skipped=tuple(recording.skipped)
    )


def _created(target: Path, stack: ExitStack) -> BinaryIO:
    """The open file, closed with the stack; the gzip header tells neither name nor time."""
    file = stack.enter_context(target.open("wb"))
    if target.suffix != ".gz":
        return file
    zipped = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
    return cast("BinaryIO", stack.enter_context(zipped))
