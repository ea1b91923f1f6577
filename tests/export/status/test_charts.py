"""The charts, point by point."""

from __future__ import annotations

import re

from spark_watch.export.status.charts import Chart, Line, charts, drawn
from spark_watch.export.status.history import Point
from spark_watch.model import GIB

POWER = charts(None)[1]


def point(at: float, power: float | None) -> Point:
    """Return a point of which only the power is known."""
    return Point(at, None, None, power, None, None, None)


def paths(chart: Chart, points: list[Point], now: float = 600.0) -> list[str]:
    """Return what each line of the chart draws, at one reading in two seconds."""
    return re.findall(r'<path [^>]*d="([^"]*)"', drawn(chart, points, now, 2.0))


def test_a_reading_stands_at_its_place() -> None:
    """The right edge is now, the left ten minutes ago; 0 is the lower edge and 100 W the upper."""
    points = [point(0.0, 0.0), point(2.0, 100.0), point(598.0, 0.0), point(600.0, 50.0)]
    assert paths(POWER, points) == ["M34.0 68.0L35.2 6.0M398.8 68.0L400.0 37.0"]


def test_nothing_is_drawn_that_was_not_seen() -> None:
    """Over three intervals without a reading there is no line; a reading alone is a dot."""
    points = [point(500.0, 0.0), point(502.0, None), point(506.0, 0.0), point(514.0, 0.0)]
    drawing = paths(POWER, points)[0]
    assert drawing.count("M") == 2
    assert drawing.count("L") == 1
    assert drawing.endswith("h0")


def test_without_a_reading_it_is_not_known() -> None:
    """No line, and the words say so; never a 0."""
    said = drawn(POWER, [point(600.0, None)], 600.0, 2.0)
    assert "<path" not in said
    assert "GPU not known" in said
    assert "<b>not known</b>" in said


def test_an_old_reading_is_not_the_present_one() -> None:
    """A line that ended a minute ago has no newest value, only its range."""
    said = drawn(POWER, [point(538.0, 30.0), point(540.0, 40.0)], 600.0, 2.0)
    assert "<b>not known</b>" in said
    assert "GPU now not known, between 30 and 40 W" in said


def test_the_scale_holds_what_leaves_it() -> None:
    """Readings beyond the usual extent widen the scale instead of leaving the picture."""
    (path,) = paths(POWER, [point(598.0, 0.0), point(600.0, 200.0)])
    assert path == "M398.8 68.0L400.0 6.0"


def test_what_is_no_number_is_left_out() -> None:
    """A reading that is not finite is none."""
    assert paths(POWER, [point(600.0, float("nan"))]) == []


def test_the_pool_is_scaled_by_its_size() -> None:
    """The upper edge of the pool's chart is the pool, in GiB."""
    assert charts(100 * GIB)[0].high == 100.0
    half = Point(600.0, 50 * GIB, 25 * GIB, None, None, None, None)
    assert paths(charts(100 * GIB)[0], [half]) == ["M400.0 37.0h0", "M400.0 52.5h0"]


def test_a_line_is_told_apart_without_colour() -> None:
    """No chart has two lines of one style."""
    for chart in charts(None):
        styles = [line.style for line in chart.lines]
        assert len(set(styles)) == len(styles)
        assert all(isinstance(line, Line) for line in chart.lines)
