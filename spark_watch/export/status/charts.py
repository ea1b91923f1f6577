"""Ten minutes as small line charts: inline SVG, drawn on the server."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from spark_watch.export.status.history import SPAN_SECONDS, STEP_SECONDS, Point
from spark_watch.export.status.markup import Markup, element, joined
from spark_watch.model import GIB

WIDTH: Final = 400
HEIGHT: Final = 84
LEFT: Final = 34
TOP: Final = 6
BOTTOM: Final = 16

GAP_INTERVALS: Final = 3.0
"""A line is broken where so many intervals have no reading: nothing is drawn that was not seen."""

POWER_SCALE_WATTS: Final = 100.0
"""A GB10's GPU takes 97 to 101 W at most (djangodevreng/dgx-spark-benchmarks)."""

CLOCK_SCALE_GIGAHERTZ: Final = 3.0
POOL_SCALE_GIB: Final = 128.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    style: str
    pick: Callable[[Point], float | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """One quantity over ten minutes. ``low`` and ``high`` are the scale's least extent."""

    title: str
    unit: str
    digits: int
    low: float
    high: float
    lines: tuple[Line, ...]


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def charts(memory_bytes: int | None) -> tuple[Chart, ...]:
    """Return the four charts.

    Args:
        memory_bytes: the size of the pool, by which its chart is scaled.
    """
    pool = POOL_SCALE_GIB if memory_bytes is None else memory_bytes / GIB
    return (
        Chart(
            "Pool",
            "GiB",
            1,
            0.0,
            pool,
            (
                Line("available", "first", lambda point: _scaled(point.available_bytes, GIB)),
                Line("free to CUDA", "second", lambda point: _scaled(point.free_bytes, GIB)),
            ),
        ),
        Chart(
            "Power",
            "W",
            0,
            0.0,
            POWER_SCALE_WATTS,
            (Line("GPU", "first", lambda point: point.power_watts),),
        ),
        Chart(
            "Temperature",
            "°C",
            0,
            20.0,
            100.0,
            (
                Line("GPU die", "first", lambda point: point.die_celsius),
                Line("hottest zone", "second", lambda point: point.board_celsius),
            ),
        ),
        Chart(
            "Clock",
            "GHz",
            2,
            0.0,
            CLOCK_SCALE_GIGAHERTZ,
            (Line("SM", "first", lambda point: _scaled(point.sm_hertz, 1e9)),),
        ),
    )


def drawn(chart: Chart, points: Sequence[Point], now: float, interval_seconds: float) -> Markup:
    """Return a chart as a figure whose caption says its newest, lowest and highest values.

    Args:
        chart: what is drawn.
        points: oldest first.
        now: unix seconds, the right edge.
        interval_seconds: how far apart readings are.
    """
    series = [
        (
            line,
            [(p.at_seconds, value) for p in points if (value := _finite(line.pick(p))) is not None],
        )
        for line in chart.lines
    ]
    values = [value for _, known in series for _, value in known]
    low = min([chart.low, *values])
    high = max([chart.high, *values])
    gap = GAP_INTERVALS * max(interval_seconds, STEP_SECONDS)

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT) * (1.0 - (now - at) / SPAN_SECONDS)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value - low) / (high - low))

    paths = [
        element(
            "path",
            class_=line.style,
            d=_path([(x(at), y(value)) for at, value in known], _breaks(known, gap)),
        )
        for line, known in series
        if known
    ]
    newest = [known[-1][1] if known and now - known[-1][0] <= gap else None for _, known in series]
    caption = [_legend(chart, line, value) for line, value in zip(chart.lines, newest, strict=True)]
    said = [
        _words(chart, line, known, value)
        for (line, known), value in zip(series, newest, strict=True)
    ]
    picture = element(
        "svg",
        _frame(chart, low, high, y),
        *paths,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{chart.title}, last ten minutes: {'; '.join(said)}",
    )
    return element(
        "figure",
        element("figcaption", element("h3", f"{chart.title}, {chart.unit}"), *caption),
        picture,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _frame(chart: Chart, low: float, high: float, y: Callable[[float], float]) -> Markup:
    """Return the grid with its labels."""
    middle = (low + high) / 2
    digits = 1 if chart.high < 10 else 0  # noqa: PLR2004 - a scale up to 3 needs a digit
    out = []
    for value in (low, middle, high):
        at = f"{y(value):.1f}"
        out.append(element("line", class_="grid", x1=str(LEFT), x2=str(WIDTH), y1=at, y2=at))
        out.append(
            element(
                "text",
                f"{value:.{digits}f}",
                x=str(LEFT - 5),
                y=f"{y(value) + 4:.1f}",
                class_="scale",
            )
        )
    for share, words, anchor in (
        (0.0, "10 min ago", "start"),
        (0.5, "5", "middle"),
        (1.0, "now", "end"),
    ):
        place = f"{LEFT + (WIDTH - LEFT) * share:.0f}"
        out.append(element("text", words, x=place, y=str(HEIGHT - 3), class_=f"time {anchor}"))
    return joined(*out)


def _breaks(known: Sequence[tuple[float, float]], gap: float) -> list[bool]:
    """Return for each reading whether a line starts anew there."""
    return [
        place == 0 or known[place][0] - known[place - 1][0] > gap for place in range(len(known))
    ]


def _path(places: Sequence[tuple[float, float]], breaks: Sequence[bool]) -> str:
    """Return the path; a reading alone is a dot (the line's round cap)."""
    words = []
    for number, ((x, y), anew) in enumerate(zip(places, breaks, strict=True)):
        words.append(f"{'M' if anew else 'L'}{x:.1f} {y:.1f}")
        last = number + 1 == len(places) or breaks[number + 1]
        if anew and last:
            words.append("h0")
    return "".join(words)


def _shown(chart: Chart, value: float | None) -> str:
    return "not known" if value is None else f"{value:.{chart.digits}f}"


def _words(
    chart: Chart, line: Line, known: Sequence[tuple[float, float]], newest: float | None
) -> str:
    if not known:
        return f"{line.name} not known"
    values = [value for _, value in known]
    return (
        f"{line.name} now {_shown(chart, newest)}, between {_shown(chart, min(values))} "
        f"and {_shown(chart, max(values))} {chart.unit}"
    )


def _legend(chart: Chart, line: Line, newest: float | None) -> Markup:
    return element(
        "span",
        element("span", class_=f"key {line.style}", aria_hidden="true"),
        f"{line.name} ",
        element("b", _shown(chart, newest)),
        class_="legend",
    )
