"""What holds for every command: help, one line for an error, the right exit code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spark_watch import __version__
from spark_watch.cli import COMMANDS, parser
from spark_watch.errors import (
    ConfigurationError,
    InputError,
    OutputError,
    SparkWatchError,
    UsageError,
)
from tests.cli.calls import Call
from tests.daemon.process import command, environment
from tests.waiting import PATIENCE_SECONDS


def example(name: str) -> list[str]:
    """Return the words of a command's example."""
    text = " ".join(_help(name).split())
    return text.rpartition("example: spark-watch ")[2].split()


def _help(name: str) -> str:
    commands = next(
        action for action in parser()._actions if isinstance(action.choices, dict)
    ).choices
    assert isinstance(commands, dict)
    text: str = commands[name].format_help()
    return text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_works(name: str, call: Call) -> None:
    """The example of the help is a command line that the parser takes."""
    result = call(name, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"example: spark-watch {name}" in " ".join(result.out.split())
    assert parser().parse_args(example(name)).command == name


def test_the_help_lists_every_command_and_the_exit_codes(call: Call) -> None:
    """Whoever asks for help sees what there is and what the codes mean."""
    result = call("--help")
    assert result.code == 0
    for name in COMMANDS:
        assert re.search(rf"^    {name}\b", result.out, re.MULTILINE)
    for code in ("0 ok or info", "1 warning", "2 critical", "3 nothing", "64", "65", "74", "78"):
        assert code in " ".join(result.out.split())


def test_the_version_is_the_package_s_own(call: Call) -> None:
    """``--version`` names program and version."""
    assert call("--version").out == f"spark-watch {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("dance",),
        ("--flag",),
        ("run", "--flag"),
        ("run", "file"),
        ("run", "--source", "magic"),
        ("run", "--source", "live:x"),
        ("run", "--source", "simulate:"),
        ("run", "--source", "simulate:nothing"),
        ("run", "--speed", "fast"),
        ("run", "--speed", "2"),
        ("run", "--speed", "nan", "--source", "simulate:idle"),
        ("run", "--speed", "0", "--source", "simulate:idle"),
        ("check", "--seconds", "0"),
        ("check", "--seconds", "nan"),
        ("check", "--seconds", "1e9"),
        ("record",),
        ("record", "x", "--seconds", "0"),
        ("record", "x", "--seconds", "-1"),
        ("record", "x", "--seconds", "nan"),
        ("record", "x", "--seconds", "inf"),
        ("replay",),
        ("convert", "x"),
        ("simulate", "idle"),
        ("simulate", "nothing", "-o", "x"),
        ("simulate", "idle", "--interval", "0", "-o", "x"),
        ("simulate", "idle", "--interval", "nan", "-o", "x"),
        ("status", "ftp://127.0.0.1"),
        ("status", "http://[::1"),
        ("status", "http://127.0.0.1:port"),
        ("status", "127.0.0.1:9810"),
        ("status", "http://"),
    ],
)
def test_a_line_that_makes_no_sense_is_64(
    words: tuple[str, ...], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line on standard error, nothing on standard output, no file left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_WATCH_LISTEN", "127.0.0.1:0")
    result = call(*words)
    assert (result.code, result.out) == (64, "")
    assert result.error
    assert [path for path in tmp_path.iterdir() if path.stat().st_size] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError, 64),
        (InputError, 65),
        (SparkWatchError, 70),
        (OutputError, 74),
        (ConfigurationError, 78),
    ],
)
def test_every_error_has_its_code(error: type[SparkWatchError], code: int) -> None:
    """The codes are those of sysexits.h."""
    assert error.exit_code == code


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bad_setting_is_78_wherever_settings_are_read(
    name: str, call: Call, tmp_path: Path
) -> None:
    """Each command that takes ``--config`` names the file and the setting."""
    if "--config" not in _help(name):
        return
    path = tmp_path / "bad.toml"
    path.write_text("interval_seconds = 0\n")
    file = [str(tmp_path / "x")] if name in {"record", "replay"} else []
    result = call(name, *file, "--config", path)
    assert (result.code, result.out) == (78, "")
    assert result.error.startswith(f"{path}: interval_seconds: ")


def test_output_that_cannot_be_written_is_74(tmp_path: Path) -> None:
    """A full disk behind standard output: one line, no traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("simulate", "--list"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    assert done.returncode == 74
    assert done.stderr == "spark-watch: cannot write: no space left on device\n"
    assert tmp_path.exists()


def test_a_reader_that_leaves_is_no_error() -> None:
    """Output into a pipe that is closed (a pager that was left): quiet, exit code 0."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("config"),
        stdout=writing,
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("way", ["module", "entry point"])
def test_both_ways_in_are_one(way: str) -> None:
    """``python -m spark_watch`` and ``spark-watch`` are the same program with its exit codes."""
    if way == "module":
        start = command()
    else:
        script = shutil.which("spark-watch", path=str(Path(sys.executable).parent))
        if script is None:
            pytest.skip("spark-watch is not installed beside this interpreter")
        start = [script]
    for words, code in ((["--version"], 0), (["config", "--config", "/nowhere"], 78)):
        done = subprocess.run(
            [*start, *words],
            capture_output=True,
            env=environment(),
            check=False,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == code
        assert len((done.stdout + done.stderr).splitlines()) == 1
