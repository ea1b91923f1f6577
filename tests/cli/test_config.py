"""``config``: what is in force, and whether it is valid."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from spark_watch.settings.tree import Settings
from tests.cli.calls import Call, settings_file


def test_what_is_printed_can_be_read_again(call: Call, tmp_path: Path) -> None:
    """The settings in force are a settings file that gives the same settings."""
    folder = tmp_path / 'with "quotes" and ü'
    folder.mkdir()
    path = settings_file(folder, more="interval_seconds = 2.5\n[conditions.memory_low]\n"
                         "low_gib = 7.5\n")  # fmt: skip
    first = call("config", "--config", path)
    assert (first.code, first.err) == (0, "")
    values = tomllib.loads(first.out)
    assert values["interval_seconds"] == 2.5
    assert values["conditions"]["memory_low"]["low_gib"] == 7.5
    assert set(values["conditions"]) == set(Settings().model_dump()["conditions"])
    again = tmp_path / "again.toml"
    again.write_text(first.out, encoding="utf-8")
    assert call("config", "--config", again).out == first.out
    assert call("config", "--check", "--config", again).out == f"{again}: valid\n"


def test_what_is_not_set_is_a_comment(call: Call) -> None:
    """A setting without a value is shown and sets nothing."""
    assert "# gpu_clock_limit_hertz is not set\n" in call("config").out


def test_without_a_file_the_defaults_are_checked(call: Call) -> None:
    """Where no file is, the answer says what was checked."""
    result = call("config", "--check")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith(": valid\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("interval = 1\n", "interval: no such setting"),
        ("[conditions.memory_low]\nlow = 1\n", "conditions.memory_low.low: no such setting"),
        ('interval_seconds = "1 s"\n', "interval_seconds: "),
        ("interval_seconds = 1s\n", "not TOML: "),
    ],
)
def test_a_mistake_in_the_file_is_78(text: str, says: str, call: Call, tmp_path: Path) -> None:
    """One line with the file, the setting and what is wrong."""
    path = tmp_path / "bad.toml"
    path.write_text(text)
    result = call("config", "--check", "--config", path)
    assert (result.code, result.out) == (78, "")
    assert result.error.startswith(f"{path}: {says}")


def test_a_mistake_in_a_variable_is_78(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable with our prefix that is no setting stops the start."""
    monkeypatch.setenv("SPARK_WATCH_INTERVAL", "1")
    result = call("config", "--check")
    assert result.code == 78
    assert result.error == "SPARK_WATCH_INTERVAL: no such setting (environment)"


def test_a_combination_that_cannot_be_is_78(call: Call, tmp_path: Path) -> None:
    """Levels the wrong way round name their group and the file."""
    path = tmp_path / "bad.toml"
    path.write_text("[conditions.gpu_hot]\nwarning_celsius = 80.0\nleave_celsius = 90.0\n")
    result = call("config", "--check", "--config", path)
    assert result.code == 78
    assert result.error.startswith(f"{path}: conditions.gpu_hot: leave_celsius must be")
