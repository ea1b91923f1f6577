"""``spark-watch preflight`` and ``spark-watch explain`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_watch.cli import main
from spark_watch.model import GIB
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.gather import Request
from spark_watch.preflight.report import GOTCHAS
from tests.preflight import boxes


class Gathered:
    """Gives the command the facts of a test, and keeps what it asked for."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}
        self.request = Request()

    def __call__(self, request: Request) -> Facts:
        """Take a request and return facts."""
        self.request = request
        return boxes.facts(workload=request.workload, pins=request.pins, **self.parts)


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> Gathered:
    """A healthy Spark, unless the test says otherwise."""
    found = Gathered()
    monkeypatch.setattr("spark_watch.preflight.gather.gather", found)
    return found


def test_lines_and_file(
    gathered: Gathered, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines go to the output and the report to its file; a healthy Spark ends with 0."""
    del gathered
    target = tmp_path / "report.json"
    assert main(["preflight", "--json", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("G1 PASS: torch 2.9.1+cu130 built for CUDA 13.0")
    document = json.loads(target.read_text())
    assert list(document)[:4] == ["platform", "checks", "headroom_gb", "verdict"]
    assert list(document["checks"]) == list(GOTCHAS)


def test_json_alone(gathered: Gathered, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``-`` the output is the report and nothing else."""
    del gathered
    assert main(["preflight", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "ready"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--workload-gib", "61"], 0),
        (["--workload-gib", "106"], 1),
        (["--workload-gib", "113"], 2),
        (["--params", "70e9", "--method", "qlora"], 0),
        (["--params", "70e9", "--method", "lora", "--dtype", "bf16"], 2),
        (["--params", "9e9", "--method", "full", "--optimizer", "adamw_8bit"], 0),
    ],
)
def test_exit_codes(gathered: Gathered, words: list[str], code: int) -> None:
    """0 for ready, 1 with warnings, 2 for blocked: 70e9 in bf16 are 130 GiB of 112."""
    del gathered
    assert main(["preflight", *words]) == code


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--python", "/nowhere/python"], "--python /nowhere/python: no such file or folder"),
        (["--launch", "/nowhere"], "--launch /nowhere: no such file or folder"),
        (["--playbooks", "/nowhere"], "--playbooks /nowhere: no such file or folder"),
        (["--playbook", "x"], "--playbook names one inside --playbooks"),
        (["--method", "lora"], "--method says nothing without --params"),
        (["--gradient-checkpointing"], "--gradient-checkpointing says nothing without --params"),
        (["--params", "70"], "--params 70: must be 1e6 to 1e13"),
        (["--workload-gib", "-1"], "--workload-gib -1: must be 0 to 1000000"),
        (["--workload-gib", "nan"], "--workload-gib nan: must be 0 to 1000000"),
        (["--workload-gib", "1", "--params", "1e9"], "--workload-gib is a total"),
    ],
)
def test_wrong_usage(
    gathered: Gathered, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    """One line on standard error says what is wrong, and the exit code is 64."""
    del gathered
    assert main(["preflight", *words]) == 64
    error = capsys.readouterr().err
    assert error.startswith(f"spark-watch: {complaint}")
    assert error.count("\n") == 1


def test_a_report_that_cannot_be_written(gathered: Gathered, tmp_path: Path) -> None:
    """A folder that is not there ends with 74."""
    del gathered
    assert main(["preflight", "--json", str(tmp_path / "none" / "report.json")]) == 74


def test_a_list_that_cannot_be_read(gathered: Gathered, tmp_path: Path) -> None:
    """A list that is not there, or no text, ends with 65."""
    del gathered
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert main(["preflight", "--lock", str(tmp_path / "none")]) == 65
    assert main(["preflight", "--lock", str(tmp_path / "binary")]) == 65


def test_what_is_asked_for(gathered: Gathered, tmp_path: Path) -> None:
    """Flags, an environment's folder and a list arrive as they were meant."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("")
    (tmp_path / "lock").write_text("# pins\nTorch==2.9.1+cu130 ; x\nflash_attn[a]==2.8 \\\n-e .\n")
    words = ["--python", str(tmp_path), "--launch", str(tmp_path), "--lock", str(tmp_path / "lock")]
    main(["preflight", *words, "--params", "1e9", "--activations-gib", "10"])
    request = gathered.request
    assert request.python == tmp_path / "bin" / "python"
    assert request.launch == (tmp_path,)
    assert request.pins == {"torch": "2.9.1+cu130", "flash-attn": "2.8"}
    assert request.workload is not None
    assert request.workload.activation_bytes == 10 * GIB
    assert request.foreign is True


@pytest.mark.parametrize("gotcha", GOTCHAS)
def test_every_gotcha_is_explained(gotcha: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From symptom to fix, with sources, in lines of at most 100 characters."""
    assert main(["explain", gotcha.lower()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{gotcha} ")
    names = [line.split(":")[0].strip() for line in lines[1:] if not line.startswith("   ")]
    wanted = ["symptom", "cause", "check", "fix", "source"]
    assert [name for name in dict.fromkeys(names) if name != "differs"] == wanted
    assert max(map(len, lines)) <= 100


def test_all_symptoms(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has a symptom and no number finds the number."""
    assert main(["explain"]) == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("G")] == list(GOTCHAS)
    assert "undefined symbol" in text


def test_no_such_gotcha(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no eleventh."""
    assert main(["explain", "G11"]) == 64
    assert "there are G1 to G10" in capsys.readouterr().err
