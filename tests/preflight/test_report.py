"""The two forms of the report, which other tools read."""

from __future__ import annotations

import re

import pytest

from spark_watch.model import GIB
from spark_watch.preflight.checks import CHECKS, report
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import GOTCHAS, Line, Report, Result, folded
from tests.preflight import boxes

LINE = re.compile(r"G(?:10|[1-9]) (?:PASS|FAIL|WARN|SKIP|INFO): \S.*[^.]")
FIX = re.compile(r"  fix: \S.*")


def line(result: Result, sentence: str = "said", *, gotcha: str = "G1", fix: str = "do") -> Line:
    """A line of a check."""
    return Line(gotcha, "check", result, sentence, fix)


@pytest.mark.parametrize(
    "facts", [boxes.facts(), Facts()], ids=["healthy", "nothing could be read"]
)
def test_the_form_of_the_lines(facts: Facts) -> None:
    """Each line is a number, a result and a sentence; a fix follows only where it is not PASS."""
    rows = report(facts).text()
    for before, row in zip(["", *rows], rows, strict=False):
        assert LINE.fullmatch(row) or (FIX.fullmatch(row) and LINE.fullmatch(before)), row
        if FIX.fullmatch(row):
            assert " PASS: " not in before


@pytest.mark.parametrize(
    "facts", [boxes.facts(), Facts()], ids=["healthy", "nothing could be read"]
)
def test_every_gotcha_has_a_line(facts: Facts) -> None:
    """G1 to G10 all speak, in that order, whatever there is to see."""
    numbers = [int(row.gotcha[1:]) for row in report(facts).lines]
    assert sorted(set(numbers)) == list(range(1, 11))
    assert numbers == sorted(numbers)


def test_checks_do_not_repeat_a_name() -> None:
    """Tools find a line by gotcha and check."""
    names = [(row.gotcha, row.check) for row in report(boxes.facts()).lines]
    assert len(set(names)) == len(names)


def test_a_healthy_spark_is_ready() -> None:
    """Nothing about it is worth a warning, and nothing was left out."""
    found = report(boxes.facts())
    assert [row for row in found.lines if row.result > Result.INFO] == []
    assert (found.verdict, found.exit_code) == ("ready", 0)
    document = found.as_json()
    assert document["platform"] == "dgx-spark"
    assert document["checks"]["G1"] == "pass"
    assert set(document["checks"]) == set(GOTCHAS) == set(CHECKS)
    assert document["headroom_gb"] == 112
    assert document["verdict"] == "ready"


def test_where_nothing_could_be_read_nothing_passes() -> None:
    """No reading is no health: every result is SKIP or INFO, and the headroom is null."""
    found = report(Facts())
    assert {row.result for row in found.lines} <= {Result.SKIP, Result.INFO}
    assert found.verdict == "ready-with-warnings"
    assert found.exit_code == 1
    assert found.as_json()["headroom_gb"] is None
    assert found.as_json()["platform"] == "other"


def test_headroom_is_whole_gib_rounded_down() -> None:
    """61.99 GiB are 61."""
    memory = boxes.memory(available_bytes=round(61.99 * GIB))
    assert report(boxes.facts(memory=memory)).as_json()["headroom_gb"] == 61


@pytest.mark.parametrize(
    ("results", "value"),
    [
        ([Result.PASS, Result.PASS], "pass"),
        ([Result.PASS, Result.INFO], "info: b"),
        ([Result.INFO, Result.SKIP], "skip: b"),
        ([Result.WARN, Result.SKIP], "warn: a"),
        ([Result.WARN, Result.FAIL], "fail: b"),
        ([Result.WARN, Result.WARN], "warn: a; b"),
    ],
)
def test_several_lines_fold_into_one(results: list[Result], value: str) -> None:
    """The worst of fail, warn, skip, info, pass wins, and its details are joined."""
    lines = [line(result, name) for result, name in zip(results, "ab", strict=True)]
    assert folded(lines) == value


@pytest.mark.parametrize(
    ("result", "short", "verdict", "code"),
    [
        (Result.PASS, False, "ready", 0),
        (Result.INFO, False, "ready", 0),
        (Result.SKIP, False, "ready-with-warnings", 1),
        (Result.WARN, False, "ready-with-warnings", 1),
        (Result.FAIL, False, "blocked", 2),
        (Result.PASS, True, "blocked", 2),
    ],
)
def test_the_verdict(result: Result, short: bool, verdict: str, code: int) -> None:
    """Blocked on any fail or short headroom, warnings on any warn or skip, else ready."""
    found = Report(lines=(line(result),), short=short)
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_foreign_text_stays_in_its_line() -> None:
    """An error text with newlines, escapes and no end becomes one printable line."""
    sentence = "torch failed:\n\x1b[31mG1 PASS: all fine\r\n" + "x" * 1000
    rows = line(Result.FAIL, sentence).text()
    assert len(rows) == 2
    assert rows[0].startswith("G1 FAIL: torch failed: [31mG1 PASS: all fine xxx")
    assert rows[0].isprintable()
    assert len(rows[0]) == len("G1 FAIL: ") + 400


def test_a_check_that_raises_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gotcha is skipped with the error's name; all others answer."""

    def broken(_: Facts) -> list[Line]:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("spark_watch.preflight.checks.CHECKS", {**CHECKS, "G4": broken})
    found = report(boxes.facts())
    assert found.checks()["G4"] == "skip: the check itself failed (ZeroDivisionError: by nothing)"
    assert found.checks()["G1"] == "pass"
