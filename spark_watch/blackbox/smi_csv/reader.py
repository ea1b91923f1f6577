"""A log as a recording: a header, and samples of one moment each."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from spark_watch.blackbox.lines import Lines, SkippedLines
from spark_watch.blackbox.smi_csv.columns import MOST_GPUS, SLOWDOWNS
from spark_watch.blackbox.smi_csv.rows import Row, Rows, find_layout
from spark_watch.blackbox.trace.header import TraceHeader
from spark_watch.blackbox.trace.schema import Refused, clean
from spark_watch.errors import InputError
from spark_watch.model import Cpu, Failure, Gpu, Machine, Memory, Pressure, Sample

ASSUMED_GPU: Final = "NVIDIA GB10"
"""What a log without a GPU name is taken for."""

_GPU_WORDS: Final = ("nvidia", "gb10", "tesla", "geforce", "quadro", "grid")
"""Words of which a GPU's name holds one; a column ``name`` of another tool may hold anything."""

_OF_MACHINE: Final = frozenset(
    {"name", "driver", "mig", "memory.total_bytes", "gpu.memory_used_bytes"}
)
"""Fields of a row that say something of the machine."""

_HOST_PARTS: Final[Mapping[str, type[Memory | Pressure | Cpu]]] = {
    "memory": Memory,
    "pressure": Pressure,
    "cpu": Cpu,
}


class CsvReader:
    """A log: header and notes at once, its samples by iterating, once.

    The file is read twice: the interval is the median over the whole log, and a log without a
    single row that can be read is refused before anybody waits for its samples. Rows of several
    GPUs, told apart by their index, UUID or bus id, make one sample when they belong to one round.

    Args:
        lines: where the lines come from; closed together with the reader.
        gpu_name: of the machine, instead of what the log says.

    Raises:
        InputError: no table, no time, nothing known beside it, no row that can be read, or times
            that do not advance.
        OutputError: the file cannot be read.
    """

    def __init__(self, lines: Lines, gpu_name: str | None = None) -> None:
        self._lines = lines
        self.skipped = SkippedLines()
        self.notes: list[str] = []
        try:
            lines.start()
            lines.rewindable()
            self._layout = find_layout(lines)
            self.notes.extend(self._layout.notes)
            self.header = self._survey(gpu_name)
        except Refused as refused:
            self.close()
            raise InputError(f"{lines.name}: {refused}") from None
        except BaseException:
            self.close()
            raise

    def _survey(self, gpu_name: str | None) -> TraceHeader:
        """The header, from a first pass over all rows."""
        skipped = SkippedLines()
        self._lines.rewind()
        rows = Rows(self._lines, self._layout, skipped)
        times = array("d")
        first: Row | None = None
        found: dict[str, Any] = {}
        gpus: set[int] = set()
        for row in rows:
            first = first or row
            if row.gpu == first.gpu:
                times.append(row.t)
            gpus.add(row.gpu)
            for key in row.values.keys() & _OF_MACHINE:
                found.setdefault(key, row.values[key])
        if first is None:
            why = f"; line {skipped[0]['line']}: {skipped[0]['why']}" if skipped else ""
            raise Refused(f"no row can be read{why}")
        if len(times) == 1 and len(gpus) > MOST_GPUS // 4:
            raise Refused("the index counts rows, not GPUs")
        if rows.clock.note is not None:
            self.notes.append(rows.clock.note)
        machine = Machine(
            gpu_name=gpu_name or self._name(found.get("name")),
            driver_version=clean(found["driver"]) if "driver" in found else None,
            partitioned=found.get("mig"),
            memory_total_bytes=found.get("memory.total_bytes"),
        )
        if machine.is_gb10 and "gpu.memory_used_bytes" in found:
            self.notes.append("memory.used is not read: a GB10 has no memory of its own")
        return TraceHeader(
            interval_seconds=self._interval(times),
            machine=machine,
            origin="converted from a CSV log",
        )

    def _name(self, stated: str | None) -> str:
        if stated is not None and any(word in stated.lower() for word in _GPU_WORDS):
            return clean(stated)
        self.notes.append(f"no GPU name in the log: taken for {ASSUMED_GPU}")
        return ASSUMED_GPU

    def _interval(self, times: array[float]) -> float:
        if len(times) == 1:
            self.notes.append("a single row: the interval is taken for 1 s")
            return 1.0
        interval = round(statistics.median(after - before for before, after in pairwise(times)), 3)
        if interval <= 0:
            raise Refused(
                "the time of most rows does not advance: several GPUs without an `index` column,"
                " or a clock too coarse for the interval"
            )
        return interval

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples in the order of the file, then close it.

        Raises:
            OutputError: the file cannot be read any more.
        """
        try:
            self._lines.rewind()
            group: list[Row] = []
            for row in Rows(self._lines, self._layout, self.skipped):
                if group and not self._same_round(group, row):
                    yield self._sample(group)
                    group = []
                group.append(row)
            if group:
                yield self._sample(group)
        finally:
            self.close()

    def _same_round(self, group: list[Row], row: Row) -> bool:
        return (
            all(row.gpu != other.gpu for other in group)
            and abs(row.t - group[0].t) < self.header.interval_seconds / 2
        )

    def _sample(self, group: list[Row]) -> Sample:
        gpus = [self._gpu(row) for row in sorted(group, key=lambda row: row.gpu)]
        error = next((row.error for row in group if row.error is not None), None)
        if not self._layout.about_gpu:
            gpus = []
        lost = error is not None and all(gpu == Gpu(index=gpu.index) for gpu in gpus)
        parts = {name: _part(name, group[0]) for name in _HOST_PARTS}
        return Sample(
            t=group[0].t,
            gpus=None if lost or not gpus else tuple(gpus),
            failed=(Failure(source="nvml", reason=error),) if lost and error else (),
            machine=self.header.machine,
            **parts,
        )

    def _gpu(self, row: Row) -> Gpu:
        values = _of_part("gpu", row)
        if self.header.machine.is_gb10:
            values.pop("memory_total_bytes", None)
            values.pop("memory_used_bytes", None)
        seconds = _of_part("seconds", row)
        return Gpu(
            index=row.gpu,
            event_reasons=_reasons(row),
            event_seconds=seconds or None,
            **values,
        )

    def close(self) -> None:
        """Close the file; calling it again changes nothing."""
        self._lines.close()

    def __enter__(self) -> Self:
        """Return the reader itself; it is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def _of_part(part: str, row: Row) -> dict[str, Any]:
    """The values whose key begins with the part's name, by the rest of their key."""
    prefix = f"{part}."
    return {
        key.removeprefix(prefix): value
        for key, value in row.values.items()
        if key.startswith(prefix)
    }


def _part(name: str, row: Row) -> Any:
    values = _of_part(name, row)
    return _HOST_PARTS[name](**values) if values else None


def _reasons(row: Row) -> tuple[str, ...] | None:
    """The active event reasons, or ``None`` where the row cannot say that there is none.

    The mask says all. Single columns say all only if every slowdown is among them.
    """
    mask: tuple[str, ...] | None = row.values.get("mask")
    if mask is not None:
        return mask
    flags = _of_part("reason", row)
    active = tuple(reason for reason, stands in flags.items() if stands)
    return active if active or flags.keys() >= SLOWDOWNS else None


def read_csv(source: Path | str | BinaryIO, gpu_name: str | None = None) -> CsvReader:
    """Open a log of nvidia-smi or a CSV file of another tool, gzip or not.

    Args:
        source: a path, or a binary stream, which is closed with the reader.
        gpu_name: of the machine, instead of what the log says.

    Raises:
        InputError: it is no log whose columns are known; the text says what is missing.
        OutputError: missing, a directory, not permitted, or the device fails.
    """
    return CsvReader(Lines(source), gpu_name)
