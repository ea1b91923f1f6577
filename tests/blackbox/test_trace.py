"""The trace format: what is written comes back, and a damaged file gives what it still holds."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch import model
from spark_watch.blackbox.lines import LINE_LIMIT, SKIPPED_LIMIT
from spark_watch.blackbox.trace import TraceHeader, TraceReader, TraceWriter, read_trace
from spark_watch.blackbox.trace.schema import LISTS, MACHINE, OBJECTS, VALUES
from spark_watch.errors import InputError, OutputError
from spark_watch.model import Failure, Gpu, KernelEvent, Machine, Memory, Process, Sample
from tests.blackbox.samples import machines, samples

HEADER = b'{"spark_watch_trace":1,"interval_seconds":1,"machine":{"gpu_name":"NVIDIA GB10"}}\n'
GB10 = Machine(gpu_name="NVIDIA GB10")


def written(header: TraceHeader, *given_samples: Sample, export: bool = False) -> bytes:
    """The bytes of a trace of the samples."""
    stream = io.BytesIO()
    writer = TraceWriter(stream, header, export=export)
    for sample in given_samples:
        writer.write(sample)
    return stream.getvalue()


def read(data: bytes) -> tuple[TraceReader, list[Sample]]:
    """The reader of the bytes, exhausted, and its samples."""
    reader = read_trace(io.BytesIO(data), "box.jsonl")
    return reader, list(reader)


def read_lines(*lines: str) -> tuple[TraceReader, list[Sample]]:
    """The same for lines of text after a good header."""
    return read(HEADER + "".join(f"{line}\n" for line in lines).encode())


class TestRoundTrip:
    """Writing and reading are inverse."""

    @given(header_machine=machines, recorded=st.lists(samples, max_size=4))
    @settings(deadline=None, derandomize=True, max_examples=150)
    def test_every_sample_comes_back_equal(
        self, header_machine: Machine, recorded: list[Sample]
    ) -> None:
        """True when no field of any record is lost, changed, or confused with its absence."""
        header = TraceHeader(
            interval_seconds=0.25, machine=header_machine, origin="a test", recorder="spark-watch"
        )
        reader, got = read(written(header, *recorded))
        assert (reader.header, got, reader.skipped) == (header, recorded, [])

    def test_every_field_of_the_model_has_a_key(self) -> None:
        """True when a field added to the model cannot be forgotten in the format."""
        lists = {
            "failed": model.Failure,
            "gpus": model.Gpu,
            "zones": model.Zone,
            "processes": model.Process,
            "kernel": model.KernelEvent,
            "progress": model.Progress,
        }
        objects = {
            "memory": model.Memory,
            "pressure": model.Pressure,
            "vm": model.Vm,
            "cpu": model.Cpu,
        }
        for key, record in (lists | objects).items():
            shape = {**LISTS, **OBJECTS}[key]
            assert set(shape.checks) == {field.name for field in dataclasses.fields(record)}
        assert set(MACHINE.checks) == {field.name for field in dataclasses.fields(Machine)}
        assert {*VALUES, *lists, *objects, "machine", "extra"} == {
            field.name for field in dataclasses.fields(Sample)
        }

    def test_lines_are_compact_and_in_the_order_of_the_table(self) -> None:
        """True when absent things are left out, whole floats short, clocks in milliseconds."""
        sample = Sample(
            t=1788070304.00049,
            monotonic_seconds=12.3456,
            boot_id="b",
            failed=(Failure(source="vmstat", reason="malformed"),),
            stopped=True,
            gpus=(Gpu(index=0, power_watts=40.1234567, sm_hertz=2.405e9, event_reasons=()),),
            kernel=(),
        )
        *_, line, end = written(TraceHeader(interval_seconds=1.0), sample).split(b"\n")
        assert line == (
            b'{"t":1788070304,"monotonic_seconds":12.346,"boot_id":"b",'
            b'"failed":[{"source":"vmstat","reason":"malformed"}],"stopped":true,'
            b'"gpus":[{"index":0,"power_watts":40.123457,"sm_hertz":2405000000,'
            b'"event_reasons":[]}],"kernel":[]}'
        )
        assert end == b""

    def test_what_is_not_finite_is_not_available(self) -> None:
        """True when a NaN that slipped into a record leaves a line that can still be read."""
        gpu = Gpu(index=0, power_watts=float("nan"), temperature_celsius=float("inf"))
        _, got = read(written(TraceHeader(interval_seconds=1.0), Sample(t=1, gpus=(gpu,))))
        assert got[0].gpus == (Gpu(index=0),)

    def test_unprintable_text_is_made_harmless(self) -> None:
        """True when a process name cannot carry line ends, escapes or lone surrogates further."""
        process = Process(pid=7, name="a\x1b[2J\nb\udc80")
        header = TraceHeader(interval_seconds=1.0)
        _, got = read(written(header, Sample(t=1, processes=(process,))))
        assert got[0].processes == (Process(pid=7, name="a?[2J?b?"),)

    def test_unknown_keys_are_kept_where_they_stood(self) -> None:
        """True when reading and writing again loses no key, on any level, nor a ``null``."""
        header = (
            '{"spark_watch_trace":1,"interval_seconds":1,"machine":{"gpu_name":"G","board":"x"},'
            '"origin":"o","note":{"by":[1,null]}}'
        )
        line = (
            '{"t":1,"gpus":[{"index":0},{"index":1,"fan_ratio":0.3}],"memory":{"free_bytes":5,'
            '"zswap_bytes":6},"finding":{"a":[1]},"machine":{"kernel":"6","board":"y"},"gone":null}'
        )
        reader, got = read(f"{header}\n{line}\n".encode())
        assert reader.header.extra == {"note": {"by": [1, None]}, "machine": {"board": "x"}}
        again = written(reader.header, *got).decode().splitlines()
        assert [json.loads(text) for text in again] == [json.loads(header), json.loads(line)]

    def test_silence_is_not_absence(self) -> None:
        """True when an empty list and a missing one stay apart: read and silent, or not read."""
        _, (silent, absent) = read_lines(
            '{"t":1,"kernel":[],"gpus":[],"processes":[],"rails":{}}', '{"t":2,"kernel":null}'
        )
        assert (silent.kernel, silent.gpus, silent.processes, silent.rails) == ((), (), (), {})
        assert (absent.kernel, absent.gpus, absent.processes, absent.rails) == (None,) * 4

    def test_the_machine_may_change_on_the_way(self) -> None:
        """True when a sample states only what changed, and every later one carries it on."""
        named = Machine(gpu_name="NVIDIA GB10", gpu_count=1)
        lost = Machine(gpu_name="NVIDIA GB10")
        recorded = [Sample(t=n, machine=m) for n, m in enumerate([Machine(), named, named, lost])]
        data = written(TraceHeader(interval_seconds=1.0), *recorded)
        assert [json.loads(line).get("machine") for line in data.splitlines()[1:]] == [
            None,
            {"gpu_name": "NVIDIA GB10", "gpu_count": 1},
            None,
            {"gpu_count": None},
        ]
        _, got = read(data)
        assert got == recorded
        assert got[1].machine is got[2].machine

    def test_export_tells_nothing_of_the_owner(self) -> None:
        """True when boot id, container names and keys of unknown meaning stay at home."""
        sample = Sample(
            t=1,
            boot_id="secret",
            processes=(Process(pid=7, name="python3", container="secret"),),
            extra={"host": "secret"},
        )
        header = TraceHeader(interval_seconds=1.0, extra={"owner": "secret"})
        data = written(header, sample, export=True)
        assert b"secret" not in data
        assert read(data)[1] == [
            Sample(t=1, processes=(Process(pid=7, name="python3"),), machine=Machine())
        ]


class TestWriter:
    """What reaches the file, and when."""

    def test_a_line_is_one_write(self) -> None:
        """True when a kill between two system calls cannot tear a line."""
        writes: list[bytes] = []

        class Raw:
            def write(self, data: bytes, /) -> int:
                writes.append(data)
                return len(data)

        writer = TraceWriter(Raw(), TraceHeader(interval_seconds=1.0))
        size = writer.write(Sample(t=1))
        assert writes == [
            b'{"spark_watch_trace":1,"interval_seconds":1,"machine":{}}\n',
            b'{"t":1}\n',
        ]
        assert size == len(b'{"t":1}\n')

    def test_unknown_keys_that_json_cannot_hold_are_left_out(self) -> None:
        """True when a number beyond every float, or a tower of brackets, costs itself alone."""
        _, got = read_lines('{"t":1,"x":1e999}')
        tower: list[object] = []
        for _ in range(3000):
            tower = [tower]
        deep = Sample(t=2, machine=GB10, extra={"x": tower})
        again = read(written(TraceHeader(interval_seconds=1.0, machine=GB10), *got, deep))[1]
        assert again == [Sample(t=1, machine=GB10), Sample(t=2, machine=GB10)]

    def test_a_torn_line_costs_no_other(self) -> None:
        """True when after a short write (disk full) the next line can be read, and says its machine
        again.
        """
        file = io.BytesIO()
        room = [10_000, 20, 10_000]

        class Full:
            def write(self, data: bytes, /) -> int:
                return file.write(data[: room.pop(0)])

        writer = TraceWriter(Full(), TraceHeader(interval_seconds=1.0))
        with pytest.raises(OutputError, match="20 of"):
            writer.write(Sample(t=1, machine=GB10, memory=Memory(free_bytes=1)))
        writer.write(Sample(t=2, machine=GB10))
        reader, got = read(file.getvalue())
        assert got == [Sample(t=2, machine=GB10)]
        assert [skipped["line"] for skipped in reader.skipped] == [2]

    def test_a_refusing_disk_is_one_clear_error(self) -> None:
        """True when the operating system's word for it is in the text and the cause is kept."""

        class Broken:
            def write(self, data: bytes, /) -> int:
                raise OSError(28, "No space left on device", data[:0])

        with pytest.raises(OutputError, match="No space left on device") as caught:
            TraceWriter(Broken(), TraceHeader(interval_seconds=1.0))
        assert isinstance(caught.value.__cause__, OSError)


WRONG = [
    ("no-t", '{"monotonic_seconds":1}', "t is missing"),
    ("t-null", '{"t":null}', "t is missing"),
    ("t-text", '{"t":"1"}', "t: '1' is no number"),
    ("t-bool", '{"t":true}', "t: True is no number"),
    ("t-milliseconds", '{"t":1788070304000}', "t: 1788070304000 is not within 0 to 1e+11"),
    ("nan", '{"t":NaN}', "NaN is no number"),
    ("infinity", '{"t":1,"late_seconds":-Infinity}', "-Infinity is no number"),
    ("overflow", '{"t":1e999}', "t: inf is not within"),
    ("huge", '{"t":' + "9" * 5000 + "}", "not JSON"),
    ("deep", '{"t":' + "[" * 100_000, "not JSON"),
    ("array", "[1]", "not a JSON object"),
    ("text", "hello", "not JSON"),
    (
        "watts",
        '{"t":1,"gpus":[{"index":0},{"index":1,"power_watts":"a"}]}',
        "gpus: [1] power_watts",
    ),
    ("negative", '{"t":1,"memory":{"free_bytes":-1}}', "memory: free_bytes: -1 is not within"),
    ("fraction", '{"t":1,"memory":{"free_bytes":1.5}}', "memory: free_bytes: 1.5 is no whole"),
    ("per-cent", '{"t":1,"gpus":[{"index":0,"utilization_ratio":96}]}', "utilization_ratio: 96"),
    (
        "millidegrees",
        '{"t":1,"zones":[{"zone":0,"type":"a","temperature_celsius":45000}]}',
        "zones",
    ),
    ("no-index", '{"t":1,"gpus":[{"power_watts":1}]}', "gpus: [0] index is missing"),
    ("not-a-list", '{"t":1,"gpus":{"index":0}}', "gpus: {'index': 0} is no list"),
    ("not-an-object", '{"t":1,"memory":[]}', "memory: [] is no object"),
    ("item", '{"t":1,"gpus":[0]}', "gpus: [0] 0 is no object"),
    ("flag", '{"t":1,"stopped":1}', "stopped: 1 is neither true nor false"),
    ("name", '{"t":1,"boot_id":1}', "boot_id: 1 is no text"),
    (
        "reasons",
        '{"t":1,"gpus":[{"index":0,"event_reasons":"a"}]}',
        "event_reasons: 'a' is no list",
    ),
    ("seconds", '{"t":1,"pending":{"nvml":"12"}}', "pending: '12' is no number"),
    ("rails", '{"t":1,"rails":[1]}', "rails: [1] is no object"),
    ("blocks", '{"t":1,"free_blocks":{"4k":1}}', "free_blocks: a block size"),
    ("block-size", '{"t":1,"free_blocks":{"1_0":1}}', "free_blocks: a block size"),
    ("block-count", '{"t":1,"free_blocks":{"4096":-1}}', "free_blocks: -1 is not within"),
    ("blocks-list", '{"t":1,"free_blocks":[]}', "free_blocks: [] is no object"),
    ("code", '{"t":1,"kernel":[{"kind":"xid","code":1.5}]}', "kernel: [0] code: 1.5"),
    ("machine", '{"t":1,"machine":{"gpu_name":1}}', "machine: gpu_name: 1 is no text"),
]


class TestStrictness:
    """A value is what its key holds, or the line is left out and says why."""

    @pytest.mark.parametrize(("line", "why"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG])
    def test_a_wrong_line_is_skipped_with_its_reason(self, line: str, why: str) -> None:
        """True when the bad line is named by number and key, and its neighbours are read."""
        reader, got = read_lines('{"t":1}', line, '{"t":3}')
        assert [sample.t for sample in got] == [1, 3]
        assert [skipped["line"] for skipped in reader.skipped] == [3]
        assert why in reader.skipped[0]["why"]
        assert len(reader.skipped[0]["why"]) < 120

    def test_a_whole_number_may_be_written_as_a_float(self) -> None:
        """True when ``5.0`` bytes of a writer that knows only floats are 5 bytes."""
        _, got = read_lines('{"t":1,"memory":{"free_bytes":5.0}}')
        assert got[0].memory == Memory(free_bytes=5)
        assert type(got[0].memory.free_bytes) is int

    def test_a_refused_line_changes_no_machine(self) -> None:
        """True when the machine of a line that was not read does not leak into the next one."""
        _, got = read_lines('{"machine":{"gpu_name":"other"},"t":"x"}', '{"t":2,"machine":null}')
        assert got == [Sample(t=2, machine=GB10)]

    def test_not_utf8_is_skipped(self) -> None:
        """True when a line of another encoding is reported as such."""
        reader, got = read(HEADER + b'{"t":1,"boot_id":"\xff"}\n{"t":2}\n')
        assert [sample.t for sample in got] == [2]
        assert reader.skipped == [{"line": 2, "why": "not UTF-8 text"}]

    def test_the_report_of_skipped_lines_is_bounded(self) -> None:
        """True when a file of nothing but rubbish costs no memory and its extent is still told."""
        reader, got = read(HEADER + b"x\n" * (SKIPPED_LIMIT + 25))
        assert got == []
        assert len(reader.skipped) == SKIPPED_LIMIT
        assert reader.skipped[0] == {"line": 2, "why": "not JSON"}
        assert reader.skipped[-1] == {
            "line": SKIPPED_LIMIT + 26,
            "why": "and 25 more before it, not listed",
        }


HEADERS = [
    ("empty", b"", "empty"),
    ("blank", b"\n \n", "nothing but NULs or blanks"),
    ("nuls", b"\0" * 5000, "nothing but NULs or blanks"),
    ("sample", b'{"t":1}\n', "line 1: no trace header (spark_watch_trace is missing)"),
    ("version", b'{"spark_watch_trace":2,"interval_seconds":1}\n', "trace version 2 is not known"),
    ("bool", b'{"spark_watch_trace":true,"interval_seconds":1}\n', "trace version True"),
    ("text", b'{"spark_watch_trace":"1","interval_seconds":1}\n', "trace version '1'"),
    ("interval", b'{"spark_watch_trace":1}\n', "interval_seconds: None is no number"),
    ("zero", b'{"spark_watch_trace":1,"interval_seconds":0}\n', "interval_seconds: 0 is not"),
    ("machine", b'{"spark_watch_trace":1,"interval_seconds":1,"machine":[]}\n', "machine: []"),
    (
        "origin",
        b'{"spark_watch_trace":1,"interval_seconds":1,"origin":5}\n',
        "origin: 5 is no text",
    ),
    ("cut", b'{"spark_watch_trace":1,"inter', "line 1: not JSON"),
    ("long", b'{"a":"' + b"x" * LINE_LIMIT, "line 1: longer than 1048576 bytes"),
    ("gzip", b"\x1f\x8b", "the gzip data is damaged from its start"),
]


class TestHeader:
    """Without a header of a known version nothing can be read."""

    @pytest.mark.parametrize(("data", "why"), [r[1:] for r in HEADERS], ids=[r[0] for r in HEADERS])
    def test_a_wrong_header_is_bad_input(self, data: bytes, why: str) -> None:
        """True when the error is one line that names file, line and reason, and exits with 65."""
        with pytest.raises(InputError) as caught:
            read(data)
        assert str(caught.value).startswith("box.jsonl: ")
        assert why in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 65

    def test_a_bom_and_line_ends_of_windows_do_no_harm(self) -> None:
        """True when a trace that went through a foreign editor reads the same."""
        reader, got = read(b"\xef\xbb\xbf" + HEADER[:-1] + b'\r\n{"t":1}\r\n\r\n')
        assert (got, reader.skipped) == ([Sample(t=1, machine=GB10)], [])

    def test_a_missing_file_is_an_io_error(self, tmp_path: Path) -> None:
        """True when a path that is not there ends with 74 and names the path."""
        with pytest.raises(OutputError, match=r"gone\.jsonl: No such file") as caught:
            read_trace(tmp_path / "gone.jsonl")
        assert caught.value.exit_code == 74

    @pytest.mark.parametrize("path", [".", "a\0b"])
    def test_what_is_no_file_is_an_io_error(self, path: str) -> None:
        """True when a directory or an impossible name gives one clear line."""
        with pytest.raises(OutputError, match="cannot read"):
            read_trace(path)


class TestDamage:
    """A power loss costs the tail and nothing else."""

    RECORDED = (
        Sample(t=1, machine=GB10, memory=Memory(free_bytes=10)),
        Sample(t=2, machine=GB10, kernel=(KernelEvent(kind="xid", code=79),)),
        Sample(t=3, machine=GB10, gpus=(Gpu(index=0, power_watts=12.5),)),
    )

    def data(self) -> bytes:
        """The trace of the three samples."""
        return written(TraceHeader(interval_seconds=1.0, machine=GB10), *self.RECORDED)

    @pytest.mark.parametrize("fill", [b"", b"\0", b"\0" * 4096], ids=["cut", "nul", "nul-page"])
    def test_everything_before_a_cut_is_recovered(self, fill: bytes) -> None:
        """True when for a cut at every byte the whole lines before it come back, and the torn one
        is reported.
        """
        data = self.data()
        ends = [n for n, byte in enumerate(data) if byte == ord("\n")]
        for cut in range(ends[0], len(data) + 1):
            whole = sum(cut >= end for end in ends[1:])
            reader, got = read(data[:cut] + fill)
            assert got == list(self.RECORDED[:whole]), cut
            torn = cut - 1 not in ends and cut not in ends
            assert bool(reader.skipped) == (torn or bool(fill)), cut

    def test_what_was_appended_after_the_nuls_is_recovered(self) -> None:
        """True when a recorder that goes on in a damaged file loses only the torn line."""
        data = self.data()
        reader, got = read(data[:-20] + b"\0" * 100 + b'{"t":9}\n{"t":10}\n')
        assert [sample.t for sample in got] == [1, 2, 9, 10]
        assert [skipped["why"][:12] for skipped in reader.skipped] == [
            "cut off: not",
            "100 NUL byte",
        ]

    def test_gzip_is_known_by_its_first_bytes(self, tmp_path: Path) -> None:
        """True when the name of the file plays no part, and appended members read on."""
        path = tmp_path / "box.jsonl"
        path.write_bytes(gzip.compress(self.data()) + gzip.compress(b'{"t":4}\n'))
        with read_trace(path) as reader:
            assert [sample.t for sample in reader] == [1, 2, 3, 4]

    def test_a_cut_gzip_gives_what_it_still_holds(self) -> None:
        """True when for a cut at every byte only errors of ours come, the samples are a prefix, and
        the loss is reported; a zero page after the end is no loss.
        """
        lines = [Sample(t=n, machine=GB10, boot_id=f"{n * 7919:x}") for n in range(200)]
        whole = gzip.compress(written(TraceHeader(interval_seconds=1.0, machine=GB10), *lines))
        most = 0
        for cut in range(len(whole)):
            try:
                reader, got = read(whole[:cut])
            except InputError:
                continue
            assert got == lines[: len(got)]
            assert reader.skipped[-1]["why"].startswith("the gzip data ends here")
            most = max(most, len(got))
        assert most >= 199
        reader, got = read(whole + b"\0" * 4096)
        assert (got, reader.skipped) == (lines, [])

    def test_a_gzip_bomb_is_skipped_in_little_memory(self) -> None:
        """True when a line of 64 MiB is reported and the line after it is read."""
        bomb = HEADER + b'{"t":1,"x":"' + b"a" * (64 * LINE_LIMIT) + b'"}\n{"t":2}\n'
        reader, got = read(gzip.compress(bomb, 1))
        assert [sample.t for sample in got] == [2]
        assert reader.skipped == [{"line": 2, "why": "longer than 1048576 bytes"}]

    @given(data=st.binary(max_size=300))
    @settings(deadline=None, derandomize=True, max_examples=300)
    def test_no_bytes_raise_anything_of_python(self, data: bytes) -> None:
        """True when whatever follows a header, or stands in its place, ends in our errors alone."""
        read(HEADER + data)
        for start in (b"", b"\x1f\x8b\x08\x00", b"{"):
            try:
                read(start + data)
            except (InputError, OutputError) as error:
                assert "\n" not in str(error)  # noqa: PT017 - either outcome is right

    @given(
        raw=st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from([*VALUES, *LISTS, *OBJECTS, "machine", "index", "pid", "x"]),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=8,
        )
    )
    @settings(deadline=None, derandomize=True, max_examples=300)
    def test_no_json_raises_anything_of_python(self, raw: Any) -> None:
        """True when any shape of JSON under any key is a sample or a skipped line."""
        reader, got = read(HEADER + json.dumps(raw).encode() + b"\n")
        assert len(got) + len(reader.skipped) == 1


def test_a_day_at_one_hertz_is_read_in_ten_seconds() -> None:
    """True when 86,400 lines of 1.5 KB take at most 10 s of CPU, judged by 2,000 of them."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work, whose time would be measured too")
    line = {
        "t": 1788070304.5,
        "gpus": [
            {
                "index": 0,
                "power_watts": 40.25,
                "temperature_celsius": 61,
                "sm_hertz": 2405000000,
                "utilization_ratio": 0.96,
                "event_reasons": ["sw_power_cap"],
                "event_seconds": {"sw_power_cap": 812.25, "hw_thermal_slowdown": 0},
            }
        ],
        "memory": dict.fromkeys(OBJECTS["memory"].checks, 123456789012),
        "vm": dict.fromkeys(OBJECTS["vm"].checks, 123456),
        "processes": [{"pid": n, "name": "python3", "gpu_bytes": 2**36} for n in range(8)],
    }
    text = json.dumps(line).encode() + b"\n"
    assert 1400 < len(text) < 2000
    data = HEADER + text * 2000
    start = time.process_time()
    _, got = read(data)
    spent = time.process_time() - start
    assert len(got) == 2000
    assert spent * 86_400 / 2000 < 10
