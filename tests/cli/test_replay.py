"""``replay``: a recording written by hand, its report and its exit code."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.model import GIB, STATE_LABELS
from tests.cli.calls import Call

HEADER: dict[str, Any] = {
    "spark_watch_trace": 1,
    "interval_seconds": 1,
    "origin": "by hand",
    "machine": {"gpu_name": "NVIDIA GB10", "memory_total_bytes": round(121.7 * GIB)},
}


def trace(folder: Path, *samples: dict[str, Any], header: dict[str, Any] | None = None) -> Path:
    """Write a trace, a second from sample to sample where they do not say."""
    path = folder / "trace.jsonl"
    lines = [HEADER if header is None else header]
    lines += [{"t": 1000 + number} | sample for number, sample in enumerate(samples)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def hot(celsius: float) -> dict[str, Any]:
    """Return a sample of a die at that temperature, and of a pool with much room."""
    return {
        "gpus": [{"index": 0, "temperature_celsius": celsius}],
        "memory": {"available_bytes": 90 * GIB},
    }


def pool(gib: float) -> dict[str, Any]:
    """Return a sample of a pool with so much room."""
    return {"memory": {"total_bytes": round(121.7 * GIB), "available_bytes": round(gib * GIB)}}


def test_the_report_has_its_published_form(call: Call, tmp_path: Path) -> None:
    """Every key that other programs read, each with what it holds, and none besides."""
    path = trace(tmp_path, *[hot(50)] * 3, *[hot(92)] * 70)
    with path.open("a") as file:
        file.write('rubbish\n{"t": 1073}\n')
    result = call("replay", path, "--json")
    assert (result.code, result.err) == (1, "")
    report = json.loads(result.out)
    names = [kind.name for kind in CATALOGUE]
    events = report.pop("events")
    final, judged = report.pop("final"), report.pop("judged")
    assert report == {
        "trace": {"origin": "by hand", "interval_seconds": 1.0, "gpu_name": "NVIDIA GB10"},
        "duration_seconds": 73.0,
        "samples": 74,
        "skipped": [{"line": 75, "why": "not JSON"}],
    }
    assert list(final) == names
    assert list(judged) == names
    assert set(final.values()) <= set(STATE_LABELS)
    assert judged["gpu_hot"] is True
    assert judged["board_hot"] is False
    mine = [event for event in events if event["condition"] == "gpu_hot"]
    assert [(event["t"], event["from"], event["to"]) for event in mine] == [
        (0.0, "unknown", "ok"),
        (63.0, "ok", "warning"),
    ]
    for event in events:
        assert list(event) == [
            "t", "gotcha", "condition", "subject", "from", "to", "sentence", "remedy",
        ]  # fmt: skip
    assert (mine[1]["gotcha"], mine[1]["subject"]) == ("G4", "gpu0")
    assert "92 C" in mine[1]["sentence"]
    assert mine[1]["remedy"]


def test_the_report_for_people(call: Call, tmp_path: Path) -> None:
    """A head line, lines that were skipped, a line for each change, and what was never judged."""
    path = trace(tmp_path, *[hot(50)] * 3, *[hot(92)] * 70)
    with path.open("a") as file:
        file.write("rubbish\n")
    result = call("replay", path)
    assert result.code == 1
    first, second, *rest = result.out.splitlines()
    assert first == "73 samples over 0:01:12, NVIDIA GB10, by hand"
    assert second == "line 75 skipped: not JSON"
    assert [line for line in rest if " WARNING: " in line] == [
        line for line in rest if line.startswith("+0:01:03 G4 gpu_hot WARNING: GPU 0 ")
    ]
    assert rest[-1].startswith("never judged, for lack of input: ")
    assert "board_hot" in rest[-1]


def test_the_exit_code_is_that_of_the_worst_state_seen(call: Call, tmp_path: Path) -> None:
    """0 ok, 1 a warning that is over, 2 critical, 3 where nothing could be judged."""
    assert call("replay", trace(tmp_path, hot(50), hot(51))).code == 0
    assert call("replay", trace(tmp_path, *[hot(92)] * 62, *[hot(40)] * 60)).code == 1
    assert call("replay", trace(tmp_path, *[pool(0.5)] * 5, *[pool(90)] * 60)).code == 2
    assert call("replay", trace(tmp_path, {}, {}, {})).code == 3
    assert call("replay", trace(tmp_path)).code == 3


def test_a_trace_without_an_end_is_read_as_far_as_it_goes(call: Call, tmp_path: Path) -> None:
    """A last line that was cut off, or of NUL bytes: said, and everything before it counts."""
    path = trace(tmp_path, hot(50), hot(50))
    whole = path.read_bytes()
    for tail in (b'{"t": 1002, "mem', b"\0" * 512):
        path.write_bytes(whole + tail)
        report = json.loads(call("replay", path, "--json").out)
        assert report["samples"] == 2
        assert [one["line"] for one in report["skipped"]] == [4]


def test_compressed_and_plain_are_one(call: Call, tmp_path: Path) -> None:
    """The same trace through gzip gives the same report."""
    path = trace(tmp_path, hot(50), pool(0.5))
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert call("replay", packed, "--json").out == call("replay", path, "--json").out


def test_a_name_that_comes_later_is_reported(call: Call, tmp_path: Path) -> None:
    """Our own recorder learns the GPU's name after its first line; the report has it."""
    header = {key: value for key, value in HEADER.items() if key != "machine"}
    path = trace(tmp_path, {}, hot(50) | {"machine": {"gpu_name": "NVIDIA GB10"}}, header=header)
    report = json.loads(call("replay", path, "--json").out)
    assert report["trace"]["gpu_name"] == "NVIDIA GB10"
    assert report["judged"]["gpu_hot"] is True


def test_hostile_text_stays_in_its_line(call: Call, tmp_path: Path) -> None:
    """Line ends, escapes and lone surrogates in a trace cannot forge a line of the report."""
    header = HEADER | {"origin": "a\nG3 memory_low OK: \x1b[2J\ud800"}
    result = call("replay", trace(tmp_path, hot(50), header=header))
    assert result.code == 0
    assert "\x1b" not in result.out
    assert [line for line in result.out.splitlines() if line.startswith("G3")] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 65),
        (b"hello\n", 65),
        (b"\x00\xff\xfe" * 99, 65),
        (b'{"spark_watch_trace": 2, "interval_seconds": 1}\n', 65),
        (b'{"spark_watch_trace": 1, "interval_seconds": "x"}\n', 65),
        (b'{"some": "json"}\n', 65),
        (b"a,b,c\n1,2,3\n", 65),
        (b"\x1f\x8bnot really", 65),
    ],
)
def test_what_is_no_recording_is_65(content: bytes, code: int, call: Call, tmp_path: Path) -> None:
    """One line that names the file, nothing on standard output."""
    path = tmp_path / "strange"
    path.write_bytes(content)
    result = call("replay", path, "--json")
    assert (result.code, result.out) == (code, "")
    assert result.error.startswith(f"{path}: ")


def test_a_file_that_cannot_be_opened_is_74(call: Call, tmp_path: Path) -> None:
    """Missing, or a folder: one line that names it."""
    for path in (tmp_path / "nowhere", tmp_path):
        result = call("replay", path)
        assert (result.code, result.out) == (74, "")
        assert str(path) in result.error


def test_a_log_of_nvidia_smi_is_taken_for_a_gb10_and_says_so(call: Call, tmp_path: Path) -> None:
    """A CSV log without a name: said on standard error, and another name can be given."""
    path = tmp_path / "smi.csv"
    rows = [f"2026/11/30 10:00:{second:02d}.000, 50, 20.00 W" for second in range(5)]
    path.write_text("\n".join(["timestamp, temperature.gpu, power.draw [W]", *rows]) + "\n")
    result = call("replay", path, "--json")
    assert result.code == 0
    assert "GB10" in result.err
    assert json.loads(result.out)["trace"]["gpu_name"] == "NVIDIA GB10"
    other = call("replay", path, "--json", "--gpu-name", "NVIDIA H200")
    assert json.loads(other.out)["trace"]["gpu_name"] == "NVIDIA H200"
    assert json.loads(other.out)["judged"]["gpu_hot"] is False


def test_settings_reach_the_rules(call: Call, tmp_path: Path) -> None:
    """With a level of 45 C in the file the same recording is a warning."""
    path = trace(tmp_path, *[hot(50)] * 70)
    settings = tmp_path / "settings.toml"
    settings.write_text("[conditions.gpu_hot]\nwarning_celsius = 45.0\nleave_celsius = 43.0\n")
    assert call("replay", path).code == 0
    assert call("replay", path, "--config", settings).code == 1
