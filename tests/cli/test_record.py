"""``record``, ``convert`` and ``simulate``: what they write can be read again."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spark_watch.sources.simulated import SCENARIOS
from tests.cli.calls import Call, settings_file
from tests.daemon.process import command, environment
from tests.stand.nvml_stand import NvmlStand
from tests.waiting import PATIENCE_SECONDS, until

IDLE = ("--source", "simulate:idle")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four samples a second."""
    monkeypatch.setenv("SPARK_WATCH_INTERVAL_SECONDS", "0.25")


def lines(path: Path) -> list[dict[str, Any]]:
    """Return every line of a trace."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["night.jsonl", "night.jsonl.gz"])
def test_a_recording_can_be_replayed(name: str, call: Call, tmp_path: Path) -> None:
    """A second at 4 Hz is four samples and the mark of a clean stop; the same box is judged."""
    path = tmp_path / name
    result = call("record", path, *IDLE, "--seconds", "1")
    assert (result.code, result.out) == (0, f"{path}: 4 samples\n")
    assert "^C ends it" in result.err
    header, *samples = lines(path)
    assert header["recorder"] == "spark-watch"
    assert header["interval_seconds"] == 0.25
    assert len(samples) == 5
    assert [sample.get("stopped", False) for sample in samples] == [False] * 4 + [True]
    replayed = call("replay", path, "--json")
    assert replayed.code == 0
    report = json.loads(replayed.out)
    assert (report["samples"], report["skipped"]) == (5, [])
    assert report["trace"]["gpu_name"] == "NVIDIA GB10"
    assert report["final"]["gpu_hot"] == "ok"


def test_the_stop_is_on_the_clocks_of_the_samples(call: Call, tmp_path: Path) -> None:
    """Without a boot id the end of a played box is still no restart of it; with one it has it."""
    path = tmp_path / "night.jsonl"
    call("record", path, *IDLE, "--seconds", "0.5")
    *_, last, stop = lines(path)
    assert (stop["boot_id"], stop["t"]) == (last["boot_id"], last["t"])
    call("record", path, *IDLE, "--seconds", "0.5", "--export")
    *_, last, stop = lines(path)
    assert stop["monotonic_seconds"] == last["monotonic_seconds"]
    assert call("replay", path).code == 0


def test_a_recording_of_this_machine(call: Call, gb10: NvmlStand, tmp_path: Path) -> None:
    """Live sources on fixture roots: the pool, the GPU by name, and no identity with --export."""
    assert gb10.gpus
    settings = settings_file(tmp_path)
    path = tmp_path / "live.jsonl"
    assert call("record", path, "--config", settings, "--seconds", "1.5").code == 0
    samples = lines(path)[1:]
    assert samples[0]["memory"]["total_bytes"] == 127_562_340 * 1024
    assert any("boot_id" in sample for sample in samples)
    assert any("gpus" in sample for sample in samples)
    assert json.loads(call("replay", path, "--json").out)["trace"]["gpu_name"] == "NVIDIA GB10"
    call("record", path, "--config", settings, "--seconds", "0.5", "--export")
    assert "boot_id" not in path.read_text()
    assert "GPU-00000000" not in path.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_recording_is_whole(number: signal.Signals, tmp_path: Path) -> None:
    """^C ends it with exit code 0, every line whole, the last one the mark of a clean stop."""
    path = tmp_path / "night.jsonl"
    process = subprocess.Popen(
        command("record", str(path), *IDLE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"SPARK_WATCH_INTERVAL_SECONDS": "0.25"}),
    )
    try:
        until(lambda: path.exists() and len(path.read_bytes().splitlines()) > 2)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert lines(path)[-1]["stopped"] is True


@pytest.mark.parametrize("path", ["/dev/full", "/nowhere/x.jsonl", "/"])
def test_a_recording_that_cannot_be_written_is_74(path: str, call: Call) -> None:
    """A full disk, a folder that is not there, a folder: one line that names it."""
    result = call("record", path, *IDLE, "--seconds", "2")
    assert (result.code, result.out) == (74, "")
    assert result.err.splitlines()[-1].startswith(f"spark-watch: {path}: ")


def test_a_story_as_a_trace(call: Call, tmp_path: Path) -> None:
    """A scenario is written whole, and replayed it is what its name says."""
    path = tmp_path / "collapse.jsonl.gz"
    result = call("simulate", "collapse", "--interval", "1", "-o", path)
    assert result.code == 0
    assert result.out == f"{path}: {len(lines(path)) - 1} samples\n"
    replayed = call("replay", path, "--json")
    assert replayed.code == 2
    assert "critical" in {
        event["to"]
        for event in json.loads(replayed.out)["events"]
        if event["condition"] == "memory_collapse"
    }


def test_the_stories_are_listed(call: Call) -> None:
    """Every scenario is a line with what happens in it."""
    result = call("simulate", "--list")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == list(SCENARIOS)


def test_a_log_is_converted(call: Call, tmp_path: Path) -> None:
    """A CSV log becomes a trace that replays alike; what was assumed and skipped is said."""
    log = tmp_path / "smi.csv"
    rows = [f"2026/11/30 10:00:{second:02d}.000, 50, 20.00 W" for second in range(5)]
    log.write_text("\n".join(["timestamp, temperature.gpu, power.draw [W]", *rows, "x, 1"]) + "\n")
    path = tmp_path / "smi.jsonl.gz"
    result = call("convert", log, "-o", path)
    assert (result.code, result.out) == (0, f"{path}: 5 samples\n")
    assert "GB10" in result.err
    assert "line 7 skipped" in result.err
    header, first, *_ = lines(path)
    assert header["machine"]["gpu_name"] == "NVIDIA GB10"
    assert first["gpus"] == [{"index": 0, "power_watts": 20.0, "temperature_celsius": 50.0}]
    ours = json.loads(call("replay", path, "--json").out)
    theirs = json.loads(call("replay", log, "--json").out)
    assert (ours["events"], ours["final"]) == (theirs["events"], theirs["final"])


def test_what_cannot_be_converted(call: Call, tmp_path: Path) -> None:
    """Onto itself 64, no known columns 65, not there 74: one line each, nothing overwritten."""
    log = tmp_path / "smi.csv"
    log.write_text("timestamp, temperature.gpu\n2026/11/30 10:00:00.000, 50\n")
    strange = tmp_path / "strange.csv"
    strange.write_text("a,b\n1,2\n")
    kept = log.read_text()
    out = tmp_path / "out.jsonl"
    for file, target, code in (
        (log, log, 64),
        (strange, out, 65),
        (tmp_path / "nowhere", out, 74),
        (log, Path("/nowhere/out.jsonl"), 74),
        (log, Path("/dev/full"), 74),
    ):
        result = call("convert", file, "-o", target)
        assert (result.code, result.out) == (code, "")
        assert len(result.err.splitlines()[-1:]) == 1
    assert log.read_text() == kept
    assert not out.exists()
