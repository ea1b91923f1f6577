"""Calling the command line inside this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_watch.cli import main
from tests.conftest import ROOT

PROC = ROOT / "tests" / "fixtures" / "proc" / "gb10"
SYS = ROOT / "tests" / "fixtures" / "sys" / "gb10"


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line on standard error, without the program's name."""
        (line,) = self.err.splitlines()
        return line.removeprefix("spark-watch: ")


class Call:
    """Runs a command and returns what came of it."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str | Path) -> Result:
        """Run it with these words."""
        self._capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        caught = self._capsys.readouterr()
        return Result(code, caught.out, caught.err)


def settings_file(folder: Path, *, proc: Path = PROC, sys: Path = SYS, more: str = "") -> Path:
    """Write a settings file that points to other roots than the machine's, and return it."""
    kmsg = folder / "kmsg"
    kmsg.touch()
    path = folder / "spark-watch.toml"
    path.write_text(
        f"proc_root = '{proc}'\nsys_root = '{sys}'\nkmsg_path = '{kmsg}'\n{more}", encoding="utf-8"
    )
    return path
