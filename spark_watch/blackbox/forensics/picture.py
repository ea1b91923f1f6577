"""The end of a run as a table and as a small chart, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from spark_watch.blackbox.forensics.account import SHOWN_SECONDS
from spark_watch.blackbox.ring.recovery import seconds_between
from spark_watch.model import GIB, Sample

CHART_COLUMNS: Final = 60
BLOCKS: Final = "▁▂▃▄▅▆▇█"
DIGITS: Final = "01234567"
"""What stands for the eight levels where the terminal has no blocks."""

FLAT_RATIO: Final = 0.1
"""The smallest range of a curve, as a share of its highest value: noise is not to look steep."""

ROW_SECONDS: Final = 10.0
"""A row of the table; of the last ten seconds every sample is one."""

ROWS_LIMIT: Final = 20
"""Rows of the last ten seconds, at most: in danger mode there are four samples a second."""


class Quantity(NamedTuple):
    """One curve: its name, its unit, and how it is read off a sample."""

    name: str
    unit: str
    read: Callable[[Sample], float | None]


def _pool(sample: Sample) -> float | None:
    memory = sample.memory
    if memory is None or memory.available_bytes is None:
        return None
    return memory.available_bytes / GIB


def _power(sample: Sample) -> float | None:
    watts = [gpu.power_watts for gpu in sample.gpus or () if gpu.power_watts is not None]
    return max(watts, default=None)


def _clock(sample: Sample) -> float | None:
    clocks = [gpu.sm_hertz for gpu in sample.gpus or () if gpu.sm_hertz is not None]
    return min(clocks) / 1e6 if clocks else None


def _zone(sample: Sample) -> float | None:
    zones = [
        zone.temperature_celsius
        for zone in sample.zones or ()
        if zone.temperature_celsius is not None
    ]
    return max(zones, default=None)


def _pressure(sample: Sample) -> float | None:
    pressure = sample.pressure
    if pressure is None or pressure.full_avg10_ratio is None:
        return None
    return 100.0 * pressure.full_avg10_ratio


QUANTITIES: Final = (
    Quantity("pool", "GiB", _pool),
    Quantity("power", "W", _power),
    Quantity("zone", "C", _zone),
    Quantity("clock", "MHz", _clock),
    Quantity("pressure", "%", _pressure),
)
"""What can be seen of a machine that is about to be gone."""


def table(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield the lines of a table: seconds before the end, then each quantity, ``-`` where unread.

    Args:
        samples: oldest first.
    """
    heads = [f"{one.name} {one.unit}" for one in QUANTITIES]
    yield "  ".join([f"{'seconds':>8}", *(f"{head:>12}" for head in heads)])
    for left, group in _rows(samples):
        cells = [f"{0.0 - left:8.1f}"]
        for quantity in QUANTITIES:
            value = _newest(group, quantity)
            cells.append(f"{'-' if value is None else format(value, '.1f'):>12}")
        yield "  ".join(cells) + _calls(group[-1])


def _rows(samples: Sequence[Sample]) -> Iterator[tuple[float, list[Sample]]]:
    """Yield groups of samples: by ten seconds, and one by one at the end."""
    if not samples:
        return
    end = samples[-1]
    groups: dict[int, list[Sample]] = {}
    single = []
    for sample in samples:
        left = seconds_between(sample, end)
        if left < ROW_SECONDS:
            single.append(sample)
        else:
            groups.setdefault(int(left // ROW_SECONDS), []).append(sample)
    for _, group in sorted(groups.items(), reverse=True):
        yield seconds_between(group[-1], end), group
    for sample in single[-ROWS_LIMIT:]:
        yield seconds_between(sample, end), [sample]


def _newest(group: Sequence[Sample], quantity: Quantity) -> float | None:
    for sample in reversed(group):
        value = quantity.read(sample)
        if value is not None:
            return value
    return None


def _calls(sample: Sample) -> str:
    out = ", ".join(f"{source} {seconds:.0f} s" for source, seconds in sample.pending.items())
    return f"  no answer: {out}" if out else ""


def chart(samples: Sequence[Sample], *, blocks: bool = True) -> Iterator[str]:
    """Yield a line for each quantity that was read: its curve over two minutes, and its range.

    Each curve has its own scale, around the values that it shows.

    Args:
        samples: oldest first.
        blocks: draw with block characters; with digits otherwise.
    """
    levels = BLOCKS if blocks else DIGITS
    for quantity in QUANTITIES:
        columns: list[float | None] = [None] * CHART_COLUMNS
        values = []
        for sample in samples:
            value = quantity.read(sample)
            if value is not None:
                values.append(value)
                columns[_column(seconds_between(sample, samples[-1]))] = value
        if not values:
            continue
        low, high = min(values), max(values)
        curve = "".join(
            " " if value is None else levels[_level(value, low, high)] for value in columns
        )
        yield f"{quantity.name:>8} |{curve}| {low:.1f} to {high:.1f} {quantity.unit}"


def _column(left: float) -> int:
    place = int((SHOWN_SECONDS - left) / SHOWN_SECONDS * (CHART_COLUMNS - 1))
    return min(CHART_COLUMNS - 1, max(0, place))


def _level(value: float, low: float, high: float) -> int:
    """Return the level of a value; what moves by less than a tenth is drawn as flat as it is."""
    span = max(high - low, FLAT_RATIO * abs(high))
    if span == 0.0:
        return 0
    share = (value - (low + high) / 2) / span + 0.5
    return min(len(BLOCKS) - 1, max(0, int(share * len(BLOCKS))))
