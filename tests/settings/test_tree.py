"""Settings: which source wins, and that every mistake is named with its place in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_watch.errors import ConfigurationError
from spark_watch.settings.tree import Settings, load, split_address, variable_names

FILE = "127.0.0.1:1"
VARIABLE = "127.0.0.1:2"
FLAG = "127.0.0.1:3"
DEFAULT = "127.0.0.1:9810"


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """A settings file with an address and a level of its own."""
    path = tmp_path / "spark-watch.toml"
    path.write_text(f'listen = "{FILE}"\n[conditions.memory_low]\nlow_gib = 7.5\nthin_gib = 4.25\n')
    return path


@pytest.mark.parametrize(
    ("in_file", "variables", "flags", "wins"),
    [
        (False, {}, {}, DEFAULT),
        (True, {}, {}, FILE),
        (False, {"SPARK_WATCH_LISTEN": VARIABLE}, {}, VARIABLE),
        (False, {}, {"listen": FLAG}, FLAG),
        (True, {"SPARK_WATCH_LISTEN": VARIABLE}, {}, VARIABLE),
        (True, {}, {"listen": FLAG}, FLAG),
        (False, {"SPARK_WATCH_LISTEN": VARIABLE}, {"listen": FLAG}, FLAG),
        (True, {"SPARK_WATCH_LISTEN": VARIABLE}, {"listen": FLAG}, FLAG),
        (True, {"SPARK_WATCH_LISTEN": VARIABLE}, {"listen": None}, VARIABLE),
    ],
)
def test_the_nearer_source_wins(
    toml: Path, in_file: bool, variables: Mapping[str, str], flags: Mapping[str, Any], wins: str
) -> None:
    """Defaults give way to the file, the file to the environment, the environment to flags."""
    if not in_file:
        toml.write_text("")
    assert load(toml, variables, flags).listen == wins


def test_sources_are_merged_within_a_group(toml: Path) -> None:
    """A variable replaces one level of a condition; its neighbour from the file stands."""
    low = load(toml, {"SPARK_WATCH_CONDITIONS__MEMORY_LOW__LOW_GIB": "7.75"}, {})
    assert low.conditions.memory_low.low_gib == 7.75
    assert low.conditions.memory_low.thin_gib == 4.25
    assert low.listen == FILE


def test_a_group_can_be_one_variable(toml: Path) -> None:
    """A whole group as JSON is merged like the rest."""
    low = load(toml, {"SPARK_WATCH_CONDITIONS": '{"memory_low": {"low_gib": 7.75}}'}, {})
    assert (low.conditions.memory_low.low_gib, low.conditions.memory_low.thin_gib) == (7.75, 4.25)


def test_without_a_file_the_defaults_hold() -> None:
    """The default file is not there in a test, and nobody else's variables matter."""
    settings = load(None, {"PATH": "/bin", "SPARK_WATCHER": "x", "spark_watch_listen": "x"}, {})
    assert settings.model_dump() == Settings().model_dump()
    assert settings.interval_seconds == 1.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('lisen = "127.0.0.1:1"', "lisen: no such setting"),
        ("[conditions.memory_low]\nlow = 3", "conditions.memory_low.low: no such setting"),
        ("[conditions.memory_lower]", "conditions.memory_lower: no such setting"),
        ('interval_seconds = "1s"', "interval_seconds: Input should be a valid number"),
        ("interval_seconds = 100", "interval_seconds: Input should be less than or equal to 60"),
        ("interval_seconds = nan", "interval_seconds: Input should be"),
        ("listen = 9810", "listen: Input should be a valid string"),
        ('listen = "9810"', "listen: '9810' is not HOST:PORT"),
        ('listen = "a:99999"', "listen: 'a:99999' is not HOST:PORT"),
        ("gpu_clock_limit_hertz = 0", "gpu_clock_limit_hertz: Input should be greater than 0"),
        ("conditions = 3", "conditions: Input should be"),
        ("listen = ", "not TOML: "),
        ("a = 1\na = 2", "not TOML: "),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    """One line with the file, the setting and what is wrong; exit code 78."""
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(path, {}, {})
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 78


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SPARK_WATCH_LISEN", "x", "no such setting"),
        ("SPARK_WATCH_", "x", "no such setting"),
        ("SPARK_WATCH_CONDITIONS__MEMORY_LOW__LOW", "x", "no such setting"),
        ("SPARK_WATCH_CONDITIONS_MEMORY_LOW_LOW_GIB", "1", "no such setting"),
        ("SPARK_WATCH_INTERVAL_SECONDS", "1s", "interval_seconds: Input should be"),
        ("SPARK_WATCH_INTERVAL_SECONDS", "", "interval_seconds: Input should be"),
        ("SPARK_WATCH_INTERVAL_SECONDS", "true", "interval_seconds: Input should be"),
        ("SPARK_WATCH_LISTEN", "here", "listen: 'here' is not HOST:PORT"),
        ("SPARK_WATCH_CONDITIONS__MEMORY_LOW__LOW_GIB", "8GB", "conditions.memory_low.low_gib: In"),
        ("SPARK_WATCH_CONDITIONS", "{", "conditions: not JSON"),
        ("SPARK_WATCH_CONDITIONS__MEMORY_LOW", "8", "conditions.memory_low: not JSON"),
    ],
)
def test_a_mistake_in_a_variable_is_named(name: str, value: str, says: str) -> None:
    """One line with the variable and what is wrong."""
    with pytest.raises(ConfigurationError) as caught:
        load(None, {name: value}, {})
    assert str(caught.value).startswith(f"{name}: {says}")
    assert "\n" not in str(caught.value)


def test_a_mistake_in_a_flag_is_named(toml: Path) -> None:
    """The flag is blamed, not the file or the variable it replaces."""
    with pytest.raises(ConfigurationError, match=r"^--listen: listen: 'x' is not HOST:PORT"):
        load(toml, {"SPARK_WATCH_LISTEN": VARIABLE}, {"listen": "x"})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing, a folder, or no text: each in one line."""
    with pytest.raises(ConfigurationError, match=r"nowhere.toml: no such file"):
        load(tmp_path / "nowhere.toml", {}, {})
    with pytest.raises(ConfigurationError, match=f"{tmp_path}: is a directory"):
        load(tmp_path, {}, {})
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"binary.toml: not UTF-8"):
        load(binary, {}, {})


def test_settings_never_change() -> None:
    """A tree that was read is frozen, down to its leaves."""
    settings = Settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.listen = FLAG
    with pytest.raises(ValueError, match="frozen"):
        settings.conditions.memory_low.low_gib = 1.0


def test_a_clock_lock_reaches_the_conditions_that_judge_the_clock() -> None:
    """One setting for the machine is taken over by every rule that has none of its own."""
    free, locked = Settings(), load(None, {"SPARK_WATCH_GPU_CLOCK_LIMIT_HERTZ": "2.1e9"}, {})
    assert free.conditions_in_force() is free.conditions
    assert locked.conditions_in_force().low_power_state.gpu_clock_limit_hertz == 2.1e9
    assert locked.conditions_in_force().memory_low == locked.conditions.memory_low


def test_every_setting_has_a_variable() -> None:
    """Names of variables are those of the tree, joined by two underlines."""
    names = list(variable_names(Settings))
    assert {"SPARK_WATCH_LISTEN", "SPARK_WATCH_CONDITIONS__GPU_HOT__HOLD_SECONDS"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9810", ("127.0.0.1", 9810)),
        ("[::1]:0", ("::1", 0)),
        ("spark.local:65535", ("spark.local", 65535)),
    ],
)
def test_an_address_is_split(text: str, address: tuple[str, int]) -> None:
    """Host and port, the brackets of IPv6 taken off."""
    assert split_address(text) == address


@pytest.mark.parametrize("text", ["", ":1", "a", "a:", "a:-1", "a:65536", "a:1e3", "a:٣"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """A host and a decimal port from 0 to 65535, nothing else."""
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        split_address(text)
