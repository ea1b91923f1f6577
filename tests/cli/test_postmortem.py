"""``postmortem``: rows, the end of a run, JSON, a cut-out that can be replayed, acknowledgement."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spark_watch.blackbox.ring import FOLDER
from spark_watch.cli import postmortem
from spark_watch.daemon.recorder import ACKNOWLEDGED
from spark_watch.model import GIB, KernelEvent, Memory
from tests.blackbox.ring.boxes import BOOT, OTHER_BOOT, START, Box, sample
from tests.cli.calls import Call
from tests.daemon.test_recorder import collapse


def two_runs(state_dir: Path) -> None:
    """Leave a run whose pool collapsed and the run after the machine came up again."""
    collapse(state_dir)
    box = Box(state_dir / FOLDER)
    for second in range(200, 260):
        box.put(sample(second, boot=OTHER_BOOT))
    box.kill()


def test_the_rows_and_the_end_of_the_last_unclean_run(call: Call, tmp_path: Path) -> None:
    """Each run has a row; the end that is chosen comes with what stood, a chart and a table."""
    two_runs(tmp_path)
    result = call("postmortem", tmp_path, "--run", "1")
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[0].split() == ["run", "started", "ended", "end", "machine"]
    assert lines[1].split() == [
        "1", "2027-01-15", "08:00:00", "2027-01-15", "08:00:59", "UNCLEAN", "restarted",
    ]  # fmt: skip
    assert "before it stood memory_collapse (critical)" in lines[2]
    assert any("memory_collapse CRITICAL: The host has" in line for line in lines)
    assert any(line.startswith("    pool |") and line.endswith("1.0 to 40.0 GiB") for line in lines)
    assert lines[-1].split()[:2] == ["0.0", "1.0"]


def test_a_quiet_end_has_no_precursor(call: Call, tmp_path: Path) -> None:
    """Without --run it is the last run that left no mark, and nothing is invented for it."""
    two_runs(tmp_path)
    out = call("postmortem", tmp_path).out
    assert "run 2, the end at 2027-01-15 08:04:19 UTC" in out
    assert "  no precursor recorded" in out.splitlines()


def test_the_published_form(call: Call, tmp_path: Path) -> None:
    """JSON holds a row for each run, oldest first, with exactly the published keys."""
    two_runs(tmp_path)
    first, second = json.loads(call("postmortem", tmp_path, "--json").out)["runs"]
    assert list(first) == [
        "started", "ended", "clean", "machine_restarted", "running",
        "last_sample_age_seconds", "precursors", "sentence", "samples",
    ]  # fmt: skip
    assert (first["started"], first["ended"]) == (START, START + 59)
    assert (first["clean"], first["machine_restarted"], first["running"]) == (False, True, False)
    assert first["last_sample_age_seconds"] == 141.0
    assert first["precursors"][0] == "memory_collapse"
    assert len(first["samples"]) == 60
    assert first["samples"][-1]["memory"]["available_bytes"] == GIB
    assert (second["precursors"], second["machine_restarted"]) == ([], False)


def test_a_cut_out_can_be_shared_and_replayed(call: Call, tmp_path: Path) -> None:
    """It names neither boot nor anything unknown, and the restart can still be judged from it."""
    two_runs(tmp_path)
    target = tmp_path / "cut.jsonl.gz"
    result = call("postmortem", tmp_path, "--run", "1", "--export", target)
    assert (result.code, result.out) == (0, f"{target}: 120 samples\n")
    report = json.loads(call("replay", target, "--json").out)
    assert report["samples"] == 120
    assert report["final"]["unclean_reboot"] == "warning"
    assert "memory_collapse" in {event["condition"] for event in report["events"]}
    plain = tmp_path / "cut.jsonl"
    call("postmortem", tmp_path, "--run", "1", "--minutes", "0.5", "--export", plain)
    text = plain.read_text()
    assert BOOT not in text
    assert OTHER_BOOT not in text
    assert '"pid":' not in text
    assert '"standing":' not in text
    assert len(text.splitlines()) == 1 + 31 + 60


def test_a_cut_out_never_overwrites_the_recording(call: Call, tmp_path: Path) -> None:
    """Neither a segment of the ring nor the trace that is read may be the target."""
    two_runs(tmp_path)
    segment = next((tmp_path / FOLDER).glob("*.jsonl*"))
    before = segment.read_bytes()
    result = call("postmortem", tmp_path, "--export", segment)
    assert result.code == 64
    assert "would overwrite" in result.error
    assert segment.read_bytes() == before


def test_the_own_recording_is_held_against_the_boot_of_now(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path it is this machine's: its boot id tells whether it restarted since."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    two_runs(tmp_path)
    rows = json.loads(call("postmortem", "--json").out)["runs"]
    assert [row["machine_restarted"] for row in rows] == [True, True]
    rows = json.loads(call("postmortem", tmp_path / FOLDER, "--json").out)["runs"]
    assert [row["machine_restarted"] for row in rows] == [True, True]


def test_an_acknowledgement_leaves_a_mark(call: Call, tmp_path: Path) -> None:
    """The file's time of change says when; asking again renews it."""
    two_runs(tmp_path)
    mark = tmp_path / ACKNOWLEDGED
    assert call("postmortem", tmp_path, "--ack").code == 0
    os.utime(mark, (1.0, 1.0))
    assert call("postmortem", tmp_path / FOLDER, "--ack").code == 0
    assert mark.stat().st_mtime > 1.0


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("none",), (74, "no recording there")),
        (("none", "--ack"), (65, "no recording there")),
        ((".", "--run", "3"), (64, "there are runs 1 to 2")),
        ((".", "--export", "x.jsonl", "--minutes", "0"), (64, "must be more than 0")),
        ((".", "--export", "none/x.jsonl"), (74, "no such file")),
    ],
)
def test_errors_are_one_line(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    answer: tuple[int, str],
) -> None:
    """What cannot be done is said in one line, with the exit code of its kind."""
    monkeypatch.chdir(tmp_path)
    two_runs(tmp_path)
    code, says = answer
    result = call("postmortem", *words)
    assert (result.code, says in result.error) == (code, True)


def test_an_empty_state_is_no_error(call: Call, tmp_path: Path) -> None:
    """Before the first run there is nothing to tell, in both forms."""
    assert call("postmortem", tmp_path).out == f"{tmp_path}: no run is recorded yet\n"
    assert json.loads(call("postmortem", tmp_path, "--json").out) == {"runs": []}


def test_a_long_scan_says_how_far_it_is(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes longer than a second shows its progress on standard error; the rest does not."""
    two_runs(tmp_path)
    assert call("postmortem", tmp_path, "--json").err == ""
    monkeypatch.setattr(postmortem, "PROGRESS_SECONDS", 0.0)
    result = call("postmortem", tmp_path, "--json")
    assert "spark-watch: read 2 of 2" in result.err
    assert "spark-watch: looked into 1 of 2 runs" in result.err
    assert len(json.loads(result.out)["runs"]) == 2


def test_kernel_lines_and_gaps_are_shown(call: Call, tmp_path: Path) -> None:
    """The end of a run names holes in the samples and what the kernel logged, by its seconds."""
    box = Box(tmp_path / FOLDER)
    box.put(sample(0, memory=Memory(available_bytes=GIB)))
    box.put(sample(30, kernel=(KernelEvent(kind="nv_err_no_memory", count=12),)))
    box.put(sample(31, kernel=(KernelEvent(kind="nv_err_no_memory", count=3),)))
    box.put(sample(32, kernel=(KernelEvent(kind="xid", code=119),)))
    box.kill()
    out = call("postmortem", tmp_path).out.splitlines()
    told = [line.split() for line in out]
    assert ["-32.0", "no", "sample", "for", "30.0", "s"] in told
    assert ["-2.0", "to", "-1.0", "kernel:", "nv_err_no_memory", "(15", "times)"] in told
    assert ["0.0", "kernel:", "xid", "119"] in told
