"""Recordings of both forms behind one object, and the way from a log to a trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.blackbox.trace import TraceHeader, read_trace
from spark_watch.errors import InputError, OutputError, UsageError
from spark_watch.model import Gpu, Machine, Memory, Pressure, Sample
from spark_watch.sources import recorded
from spark_watch.sources.recorded import convert, open_recording

GB10 = Machine(gpu_name="NVIDIA GB10")
H200 = Machine(gpu_name="NVIDIA H200")

TRACE = """\
{"spark_watch_trace":1,"interval_seconds":2,"machine":{"gpu_name":"NVIDIA GB10"},"origin":"a box"}
{"t":100,"boot_id":"b","gpus":[{"index":0,"power_watts":5.5}]}
{"t":"broken"}
{"t":104,"gpus":[{"index":0}],"machine":{"kernel":"6.17"}}
"""

LOG = """\
timestamp, name, power.draw [W]
2026/07/01 12:00:00.000, NVIDIA H200, 70.50 W
2026/07/01 12:00:00.250, NVIDIA H200
2026/07/01 12:00:00.500, NVIDIA H200, 71.00 W
"""


def put(path: Path, text: str) -> Path:
    """The path, holding the text."""
    path.write_text(text)
    return path


def test_a_trace_is_told_by_its_content(tmp_path: Path) -> None:
    """True when a trace named like a log gives header, samples with machine, and bad lines."""
    with open_recording(put(tmp_path / "box.csv", TRACE)) as recording:
        assert recording.header == TraceHeader(interval_seconds=2.0, machine=GB10, origin="a box")
        assert list(recording) == [
            Sample(t=100.0, boot_id="b", gpus=(Gpu(index=0, power_watts=5.5),), machine=GB10),
            Sample(
                t=104.0,
                gpus=(Gpu(index=0),),
                machine=Machine(gpu_name="NVIDIA GB10", kernel="6.17"),
            ),
        ]
        assert recording.skipped == [{"line": 3, "why": "t: 'broken' is no number"}]
        assert recording.notes == []


def test_a_log_is_told_by_its_content(tmp_path: Path) -> None:
    """True when a gzipped log named like a trace gives an object of the same shape."""
    path = tmp_path / "box.jsonl"
    path.write_bytes(gzip.compress(LOG.encode()))
    with open_recording(path) as recording:
        assert recording.header == TraceHeader(
            interval_seconds=0.5, machine=H200, origin="converted from a CSV log"
        )
        assert [(sample.t, sample.machine) for sample in recording] == [
            (1782907200.0, H200),
            (1782907200.5, H200),
        ]
        assert recording.skipped == [{"line": 3, "why": "cut off: 2 of 3 values"}]
        assert recording.notes == ["the times carry no zone and are read as UTC"]


@pytest.mark.parametrize("text", [TRACE, LOG], ids=["trace", "log"])
def test_a_given_gpu_name_beats_the_recorded_one(tmp_path: Path, text: str) -> None:
    """True when header and every sample carry it, and what changes beside it is kept."""
    with open_recording(put(tmp_path / "box", text), "NVIDIA X") as recording:
        assert recording.header.machine.gpu_name == "NVIDIA X"
        machines = [sample.machine for sample in recording]
    assert [machine.gpu_name for machine in machines if machine] == ["NVIDIA X", "NVIDIA X"]
    assert machines[-1] is not None
    assert machines[-1].kernel == ("6.17" if text is TRACE else None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("{}\n", "no trace header"),
        ('{"spark_watch_trace":7}\n', "trace version 7 is not known"),
        ("[1]\n", "no table of values separated by commas"),
        ("\0\0\0", "nothing but NULs"),
    ],
)
def test_what_is_neither_is_bad_input(tmp_path: Path, text: str, why: str) -> None:
    """True when the one line names the file and the reason."""
    path = put(tmp_path / "box", text)
    with pytest.raises(InputError, match=why) as caught:
        open_recording(path)
    assert str(path) in str(caught.value)


def test_what_cannot_be_opened_is_an_io_error(tmp_path: Path) -> None:
    """True when a missing file and a directory end with one line that names them."""
    for path in (tmp_path / "gone", tmp_path):
        with pytest.raises(OutputError, match=path.name):
            open_recording(path)


class TestConvert:
    """From whatever was recorded to a trace."""

    @pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
    def test_a_log_becomes_a_trace_that_reads_the_same(self, tmp_path: Path, name: str) -> None:
        """True when samples, header and report are those of the log, and ``.gz`` is compressed."""
        log = put(tmp_path / "box.csv", LOG)
        out = tmp_path / name
        conversion = convert(log, out)
        with open_recording(log) as recording, read_trace(out) as trace:
            assert trace.header == recording.header
            assert list(trace) == list(recording)
            assert conversion.samples == 2
            assert list(conversion.skipped) == recording.skipped
            assert list(conversion.notes) == recording.notes
        assert out.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")

    def test_a_trace_loses_what_identifies_it_on_export(self, tmp_path: Path) -> None:
        """True when the boot id is gone and the rest stands."""
        trace = put(tmp_path / "box.jsonl", TRACE)
        out = tmp_path / "out.jsonl"
        convert(trace, out, export=True)
        assert [json.loads(line) for line in out.read_text().splitlines()[1:]] == [
            {"t": 100, "gpus": [{"index": 0, "power_watts": 5.5}]},
            {"t": 104, "gpus": [{"index": 0}], "machine": {"kernel": "6.17"}},
        ]

    def test_a_recording_is_not_overwritten_by_itself(self, tmp_path: Path) -> None:
        """True when naming one file twice is refused and the file is as it was."""
        trace = put(tmp_path / "box.jsonl", TRACE)
        with pytest.raises(UsageError, match="overwrite"):
            convert(trace, tmp_path / "." / "box.jsonl")
        assert trace.read_text() == TRACE

    def test_what_is_no_recording_overwrites_nothing(self, tmp_path: Path) -> None:
        """True when the error comes before the target is touched."""
        out = put(tmp_path / "out.jsonl", "precious")
        with pytest.raises(InputError):
            convert(put(tmp_path / "box", "hello"), out)
        assert out.read_text() == "precious"

    @pytest.mark.parametrize("name", ["out", "out.gz"])
    def test_a_full_disk_is_one_clear_error(self, tmp_path: Path, name: str) -> None:
        """True when the failure of the last flush is told as well as that of a write."""
        out = tmp_path / name
        out.symlink_to("/dev/full")
        with pytest.raises(OutputError, match="No space left on device"):
            convert(put(tmp_path / "box.csv", LOG), out)

    def test_a_folder_that_is_not_there_is_one_clear_error(self, tmp_path: Path) -> None:
        """True when the target's name is in the line."""
        out = tmp_path / "no" / "out.jsonl"
        with pytest.raises(OutputError, match=r"no/out\.jsonl: No such file"):
            convert(put(tmp_path / "box.csv", LOG), out)


@given(data=st.binary(max_size=200))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_no_file_raises_anything_of_python(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """True when any bytes on disk end in our errors alone."""
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(data)
    try:
        with open_recording(path) as recording:
            list(recording)
    except (InputError, OutputError) as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right


def readings(sample: Sample) -> dict[str, object]:
    """What both forms of one recording hold, in whole units of what the log can show."""
    (gpu,) = sample.gpus or (Gpu(index=0),)
    memory = sample.memory or Memory()
    pressure = sample.pressure or Pressure()
    return {
        "power": gpu.power_watts,
        "temperature": gpu.temperature_celsius,
        "clock": gpu.sm_hertz,
        "utilization": gpu.utilization_ratio,
        "reasons": gpu.event_reasons,
        "pstate": gpu.performance_state,
        "available": memory.available_bytes,
        "free": memory.free_bytes,
        "pressure": pressure.full_avg10_ratio,
        "load": sample.cpu.load1 if sample.cpu else None,
    }


def trace_beside(log: Path) -> tuple[float, list[Sample]] | None:
    """Interval and samples of the hand-made trace of a table, where there is one of the machine.

    Tables of training steps and of tokens a second have traces that say nothing of the machine.
    """
    path = log.parents[2] / f"{log.parent.name}--{log.stem}.jsonl"
    if not path.exists():
        return None
    with open_recording(path) as recording:
        samples = list(recording)
    machine = any(sample.gpus or sample.memory or sample.pressure for sample in samples)
    return (recording.header.interval_seconds, samples) if machine else None


def test_recorded_logs_give_the_readings_of_their_traces(recorded_traces: Path) -> None:
    """True when every value that a recorded log says for certain is the one in the hand-made trace
    beside it, at the same time since the start, and only tables without such a trace are bad input.
    """
    compared = 0
    for log in sorted(recorded_traces.glob("raw/*/*.csv")):
        beside = trace_beside(log)
        try:
            recording = open_recording(log)
        except InputError:
            assert beside is None, log
            continue
        with recording:
            got = list(recording)
            assert recording.skipped == [], log
        if beside is not None:
            interval, wanted = beside
            assert abs(recording.header.interval_seconds / interval - 1) < 0.05, log
            assert_same_readings(log, got, wanted)
            compared += 1
    assert compared >= 10


def assert_same_readings(log: Path, got: list[Sample], wanted: list[Sample]) -> None:
    """Fail where a reading or a time of the log is not that of the trace."""
    assert len(got) == len(wanted), log
    for ours, theirs in zip(got, wanted, strict=True):
        assert abs((ours.t - got[0].t) - (theirs.t - wanted[0].t)) < 0.002, log
        stated = {key: value for key, value in readings(ours).items() if value is not None}
        assert stated, log
        assert stated == {
            key: pytest.approx(value, rel=1e-6)
            for key, value in readings(theirs).items()
            if key in stated
        }, log


def test_the_source_has_the_name_of_its_kind() -> None:
    """True when a failure of the recording would be told from one of a live source."""
    assert recorded.RecordedSource.name == "recorded"
