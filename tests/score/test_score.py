"""The score as a whole: traces go through the product's judge, and the bars are bars."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spark_watch.model import State
from spark_watch.sources.simulated import Span
from tests.score import runner
from tests.score.grade import Alarm, Found, Score
from tests.score.recorded import labelled
from tests.score.table import Result, render

DAY = 86_400.0


def found(*, recorded: bool, after: float | None) -> Found:
    """A fault span of ten seconds' deadline, found after that many."""
    span = Span(start=0, end=20, why="why", gotchas=("G3",), condition="memory_low")
    return Found(
        trace="trace/0",
        recorded=recorded,
        span=span,
        deadline=10.0,
        after=after,
        by=None if after is None else "memory_low",
        named_after=after,
    )


def alarm(*, recorded: bool) -> Alarm:
    """A false warning."""
    return Alarm(
        trace="trace/0",
        recorded=recorded,
        at=3.0,
        condition="memory_low",
        state=State.WARNING,
        sentence="host: low",
        why="healthy",
    )


def result(*scores: Score) -> Result:
    """What those scores add up to."""
    return Result(scores, {"memory_low": "G3"})


def test_all_bars_hold_where_everything_is_right() -> None:
    """A recorded fault in time and 61 quiet days with one false warning pass."""
    good = Score(trace="a", recorded=True, found=[found(recorded=True, after=4.0)])
    days = Score(trace="b", recorded=False, quiet_seconds=61 * DAY, alarms=[alarm(recorded=False)])
    assert all(holds for _, holds in result(good, days).bars())


@pytest.mark.parametrize(
    "bad",
    [
        Score(trace="late", recorded=True, found=[found(recorded=True, after=11.0)]),
        Score(trace="missed", recorded=True, found=[found(recorded=True, after=None)]),
        Score(trace="false", recorded=True, alarms=[alarm(recorded=True)]),
        Score(
            trace="noisy", recorded=False, quiet_seconds=30 * DAY, alarms=[alarm(recorded=False)]
        ),
        Score(trace="broken", recorded=False, errors=["boom"]),
    ],
    ids=lambda score: score.trace,
)
def test_each_bar_fails_on_its_own(bad: Score) -> None:
    """One thing wrong fails exactly one bar."""
    assert sum(not holds for _, holds in result(bad).bars()) == 1 + (
        bad.trace != "noisy"
    )  # without a quiet day the generated bar cannot hold either


def test_the_report_lists_what_went_wrong() -> None:
    """Trace, second, condition and sentence of each miss and each false warning are in the text."""
    text = render(
        result(
            Score(
                trace="trace/0",
                recorded=False,
                found=[found(recorded=False, after=None)],
                alarms=[alarm(recorded=False)],
                quiet_seconds=DAY,
            )
        )
    )
    assert "trace/0 at 0.0 s: G3 memory_low warning within 10.0 s: never (why)" in text
    assert "trace/0 at 3.0 s: memory_low warning: host: low [healthy]" in text
    assert "no recorded positive: 1\n  memory_low" in text


def test_a_generated_trace_goes_through_the_judge() -> None:
    """Every sample is graded, also where the trace goes through a file first."""
    for seed in (0, 1):
        family = "engine-crash"
        expected = sum(1 for _ in runner.generate(family, seed).samples)
        score = runner.score(runner.Task(family, seed))
        assert score.samples == expected
        assert not score.errors


def test_a_recorded_folder_is_found_and_scored(tmp_path: Path) -> None:
    """A dumped trace and its labels come back as one recorded trace; low confidence is left out."""
    shown = subprocess.run(
        [sys.executable, "-m", "tests.score", "--dump", "driver-stall/1", str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    trace = Path(shown.stdout.strip())
    labels = trace.with_suffix(".labels.json")
    answer = json.loads(labels.read_text(encoding="utf-8"))
    answer["spans"][0]["confidence"] = "low"
    labels.write_text(json.dumps(answer), encoding="utf-8")
    ((path, spans),) = labelled(tmp_path)
    assert path == trace
    assert len(spans) == len(answer["spans"]) - 1
    score = runner.score(runner.Task("", 0, path, spans))
    assert score.recorded
    assert score.samples > 100
    assert len(score.found) == 2
