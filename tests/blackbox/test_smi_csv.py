"""CSV logs: the columns of nvidia-smi and of other tools, and everything that can go wrong."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.blackbox.smi_csv import CsvReader, read_csv
from spark_watch.errors import InputError, OutputError
from spark_watch.model import Cpu, Failure, Gpu, Machine, Memory, Pressure, Sample

GB10 = Machine(gpu_name="NVIDIA GB10")
UTC_NOTE = "the times carry no zone and are read as UTC"
DATE_NOTE = "the log has no date: t counts from its own zero"
GB10_NOTE = "no GPU name in the log: taken for NVIDIA GB10"
UNITS_NOTE = "no header row: the columns are told by their units"

T0 = 1782907200.0
"""2026-07-01 12:00:00 UTC: 20,635 days of 86,400 s since 1970, and half a day."""

HEADED = """\
timestamp, index, temperature.gpu, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]
2026/07/01 12:00:00.500, 0, 41, 12.50 W, 2405 MHz, 7 %
2026/07/01 12:00:01.500, 0, 42, 13.25 W, 2411 MHz, 96 %
"""


def read(text: str | bytes, gpu_name: str | None = None) -> tuple[CsvReader, list[Sample]]:
    """The reader of the log, exhausted, and its samples."""
    data = text.encode() if isinstance(text, str) else text
    reader = read_csv(io.BytesIO(data), gpu_name)
    return reader, list(reader)


def gpu_of(title: str, cell: str, gpu_name: str | None = None) -> Gpu:
    """What one column of a log with a time gives."""
    reader, (sample,) = read(f"timestamp, {title}\n2026/07/01 12:00:00.000, {cell}\n", gpu_name)
    assert reader.skipped == []
    assert sample.gpus is not None
    return sample.gpus[0]


def refusal(text: str | bytes) -> str:
    """The error's text for a log that cannot be read, checked for being one line of ours."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.exit_code == 65
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_log_with_header_and_units() -> None:
    """True when the plainest form of nvidia-smi's log gives base units, unix time and its notes."""
    reader, got = read(HEADED)
    assert reader.header.interval_seconds == 1.0
    assert reader.header.machine == GB10
    assert reader.notes == [UTC_NOTE, GB10_NOTE]
    assert reader.skipped == []
    assert got == [
        Sample(
            t=T0 + 0.5,
            machine=GB10,
            gpus=(
                Gpu(
                    index=0,
                    power_watts=12.5,
                    temperature_celsius=41.0,
                    sm_hertz=2.405e9,
                    utilization_ratio=0.07,
                ),
            ),
        ),
        Sample(
            t=T0 + 1.5,
            machine=GB10,
            gpus=(
                Gpu(
                    index=0,
                    power_watts=13.25,
                    temperature_celsius=42.0,
                    sm_hertz=2.411e9,
                    utilization_ratio=0.96,
                ),
            ),
        ),
    ]


def test_every_way_to_print_the_same_log_gives_the_same_samples() -> None:
    """True when nounits, a bare header, another separator, quotes, CRLF, a BOM and gzip change
    nothing.
    """
    _, expected = read(HEADED)
    bare = HEADED.replace(" W", "").replace(" MHz", "").replace(" %", "")
    variants = [
        bare,
        HEADED.replace(" [W]", "").replace(" [MHz]", "").replace(" [%]", ""),
        HEADED.replace(", ", ";").replace("12.50", "12,50").replace("13.25", "13,25"),
        HEADED.replace(", ", "\t"),
        "\n".join('"' + line.replace(", ", '","') + '"' for line in HEADED.splitlines()) + "\n",
        HEADED.replace("\n", "\r\n"),
        "\ufeff" + HEADED,
        "\n" + HEADED.replace("\n", "\n\n"),
    ]
    for variant in variants:
        reader, got = read(variant)
        assert got == expected, variant
        assert reader.skipped == []
    assert read(gzip.compress(HEADED.encode()))[1] == expected


class TestColumns:
    """What a title says, and in which unit."""

    @pytest.mark.parametrize(
        ("title", "cell", "gpu"),
        [
            ("power.draw [W]", "12.50 W", Gpu(index=0, power_watts=12.5)),
            ("power.draw.instant [W]", "12.50", Gpu(index=0, power_watts=12.5)),
            ("power_mw", "12500", Gpu(index=0, power_watts=12.5)),
            ("power_w", "12500 mW", Gpu(index=0, power_watts=12.5)),
            ("temperature.gpu", "41", Gpu(index=0, temperature_celsius=41.0)),
            ("GPU Temp (°C)", "41", Gpu(index=0, temperature_celsius=41.0)),
            ("temp_c", "41 C", Gpu(index=0, temperature_celsius=41.0)),
            ("clocks.sm [MHz]", "2405 MHz", Gpu(index=0, sm_hertz=2.405e9)),
            ("clocks.gr [MHz]", "2405 MHz", Gpu(index=0, sm_hertz=2.405e9)),
            ("sm_ghz", "2.405", Gpu(index=0, sm_hertz=2.405e9)),
            ("utilization.gpu [%]", "57 %", Gpu(index=0, utilization_ratio=0.57)),
            ("gpu_util", "57", Gpu(index=0, utilization_ratio=0.57)),
            ("util_ratio", "0.57", Gpu(index=0, utilization_ratio=0.57)),
            ("util", "0.5 %", Gpu(index=0, utilization_ratio=0.005)),
            ("pstate", "P8", Gpu(index=0, performance_state=8)),
            (
                "clocks_event_reasons.active",
                "0x0000000000000024",
                Gpu(index=0, event_reasons=("sw_power_cap", "sw_thermal_slowdown")),
            ),
            (
                "clocks_throttle_reasons.active",
                "0x0000000000001001",
                Gpu(index=0, event_reasons=("gpu_idle", "bit_12")),
            ),
            ("clocks_event_reasons.active", "0x0000000000000000", Gpu(index=0, event_reasons=())),
            (
                "clocks_event_reasons.hw_thermal_slowdown",
                "Active",
                Gpu(index=0, event_reasons=("hw_thermal_slowdown",)),
            ),
            ("clocks_throttle_reasons.sw_power_cap", "Not Active", Gpu(index=0)),
            (
                "clocks_event_reasons_counters.sw_thermal_slowdown [us]",
                "173453251 us",
                Gpu(index=0, event_seconds={"sw_thermal_slowdown": 173.453251}),
            ),
        ],
    )
    def test_a_column_in_its_base_unit(self, title: str, cell: str, gpu: Gpu) -> None:
        """True when the name is known, and cell, title or habit give the unit, in that order."""
        assert gpu_of(title, cell) == gpu

    def test_no_reason_is_active_only_where_every_slowdown_was_asked_for(self) -> None:
        """True when five columns of "Not Active" say that none stood, and four say nothing."""
        names = [
            "sw_power_cap",
            "hw_slowdown",
            "hw_thermal_slowdown",
            "hw_power_brake_slowdown",
            "sw_thermal_slowdown",
        ]
        titles = [f"clocks_event_reasons.{name}" for name in names]
        assert gpu_of(", ".join(titles), ", ".join(["Not Active"] * 5)).event_reasons == ()
        assert gpu_of(", ".join(titles[1:]), ", ".join(["Not Active"] * 4)).event_reasons is None

    def test_the_mean_power_goes_before_the_instant_one(self) -> None:
        """True when several columns for one field are ranked and the rest is named."""
        reader, (sample,) = read(
            "timestamp, power.draw.instant [W], power.draw.average [W], power.draw [W], clocks.gr, "
            "clocks.sm\n2026/07/01 12:00:00, 1 W, 2 W, 3 W, 4 MHz, 5 MHz\n"
        )
        assert sample.gpus == (Gpu(index=0, power_watts=3.0, sm_hertz=5e6),)
        assert reader.notes[0] == (
            "columns not read: power.draw.instant [W], power.draw.average [W], clocks.gr"
        )

    def test_what_is_not_certain_is_not_read_and_named(self) -> None:
        """True when memory of nobody knows whom, in megabytes of nobody knows which size, and the
        clock of the memory are left out with a note.
        """
        reader, (sample,) = read(
            "ts,power_w,mem_used_mb,clocks.mem [MHz],mem_available_gb\n"
            "2026-07-01T12:00:00Z,5,121000,8000,60\n"
        )
        assert sample == Sample(t=T0, machine=GB10, gpus=(Gpu(index=0, power_watts=5.0),))
        assert reader.notes[:2] == [
            "columns not read: mem_used_mb, clocks.mem [MHz], mem_available_gb",
            (
                "mem_available_gb: MB and GB may mean 10^6 and 10^9 bytes or 2^20 and 2^30;"
                " a name ending in _mib or _gib says which"
            ),
        ]

    def test_host_columns(self) -> None:
        """True when a log of the host's memory is a recording too, without an invented GPU."""
        reader, (sample,) = read(
            "hh:mm:ss,mem_total,mem_available_gib,mem_free,psi_mem_full_avg10,load1\n"
            "12:00:01,119Gi,28.5,512Mi,6.09,4.8\n"
        )
        assert sample == Sample(
            t=43201.0,
            machine=Machine(gpu_name="NVIDIA GB10", memory_total_bytes=119 * 2**30),
            memory=Memory(
                total_bytes=119 * 2**30,
                available_bytes=57 * 2**29,
                free_bytes=2**29,
            ),
            pressure=Pressure(full_avg10_ratio=0.0609),
            cpu=Cpu(load1=4.8),
        )
        assert reader.skipped == []

    def test_device_memory_is_believed_on_a_discrete_card_alone(self) -> None:
        """True when a GB10 never shows memory under a GPU's name, whatever the log says."""
        titles = "name, driver_version, memory.total [MiB], memory.used [MiB]"
        h200 = "NVIDIA H200, 580.126.09, 143771 MiB, 512 MiB"
        gb10 = "NVIDIA GB10, 580.142, 124546 MiB, 512 MiB"
        assert gpu_of(titles, h200) == Gpu(
            index=0, memory_total_bytes=143771 * 2**20, memory_used_bytes=2**29
        )
        assert gpu_of(titles, gb10) == Gpu(index=0)
        assert gpu_of(titles, h200, "NVIDIA GB10") == Gpu(index=0)
        reader, (sample,) = read(f"timestamp, {titles}\n2026/07/01 12:00:00, {gb10}\n")
        assert sample.machine == Machine(gpu_name="NVIDIA GB10", driver_version="580.142")
        assert "memory.used is not read: a GB10 has no memory of its own" in reader.notes
        assert GB10_NOTE not in reader.notes

    def test_the_name_is_a_gpus_or_none(self) -> None:
        """True when another tool's ``name`` is not taken for a GPU, and a given name beats all."""
        log = "timestamp,name,mig.mode.current,power_w\n2026-07-01 12:00:00,run one,Enabled,5\n"
        assert read(log)[0].header.machine == Machine(gpu_name="NVIDIA GB10", partitioned=True)
        assert read(log, "NVIDIA H200")[0].header.machine.gpu_name == "NVIDIA H200"


class TestAbsence:
    """What is not available is absent; what failed is a lost reading."""

    @pytest.mark.parametrize(
        "cell",
        [
            "[N/A]",
            "N/A",
            "[Not Supported]",
            "Not Supported",
            "",
            "[Insufficient Permissions]",
            "nan",
        ],
    )
    def test_a_value_that_is_not_there_is_absent(self, cell: str) -> None:
        """True when nvidia-smi's words for no value are neither 0 nor an error."""
        assert gpu_of("power.draw [W], temperature.gpu", f"{cell}, 41") == Gpu(
            index=0, temperature_celsius=41.0
        )

    def test_one_unknown_error_is_absent_too(self) -> None:
        """True when a single failed value does not make the whole GPU a lost reading."""
        reader, (sample,) = read(
            "timestamp, power.draw, temperature.gpu\n2026/07/01 12:00:00, [Unknown Error], 41\n"
        )
        assert sample.gpus == (Gpu(index=0, temperature_celsius=41.0),)
        assert (sample.failed, reader.skipped) == ((), [])

    @pytest.mark.parametrize(
        ("cell", "reason"),
        [
            ("[GPU is lost]", "gpu_is_lost"),
            ("[Unknown Error]", "unknown_error"),
            ("ERR!", "unknown_error"),
            ("[GPU requires reset]", "reset_required"),
        ],
    )
    def test_a_row_of_nothing_but_errors_is_a_lost_reading(self, cell: str, reason: str) -> None:
        """True when the source stands in ``failed`` with its reason and no GPU is made up."""
        _, (sample,) = read(
            f"timestamp, power.draw, temperature.gpu\n2026/07/01 12:00:00, {cell}, {cell}\n"
        )
        assert sample == Sample(t=T0, machine=GB10, failed=(Failure(source="nvml", reason=reason),))


class TestTime:
    """Every kind of time column, and the interval out of it."""

    @pytest.mark.parametrize(
        ("title", "cell", "seconds"),
        [
            ("timestamp", "2026/07/01 12:00:00.125", T0 + 0.125),
            ("timestamp", "2026-07-01 12:00", T0),
            ("time", "2026-07-01T12:00:00,5", T0 + 0.5),
            ("ts", "2026-07-01T14:00:00+02:00", T0),
            ("ts", "2026-07-01T09:30:00-0230", T0),
            ("when", "20260701T120000Z", T0),
            ("datetime", "2026-07-01 12:00:00 UTC", T0),
            ("timestamp", "1782907200", T0),
            ("unix", "1782907200.25", T0 + 0.25),
            ("timestamp_ms", "1782907200250", T0 + 0.25),
            ("t", "1.7829072e9", T0),
            ("t_epoch_s", "1782907200", T0),
            ("elapsed_s", "10", 10.0),
            ("elapsed_ms", "1500", 1.5),
            ("elapsed", "2.5", 2.5),
            ("time_s", "2.5", 2.5),
            ("time", "00:01:02.5", 62.5),
        ],
    )
    def test_a_moment_in_seconds(self, title: str, cell: str, seconds: float) -> None:
        """True when date, zone, fraction, unix units, elapsed time and time of day are read."""
        _, (sample,) = read(f'{title},power_w\n"{cell}",5\n')
        assert sample.t == seconds

    def test_what_has_no_zone_or_no_date_says_so(self) -> None:
        """True when the two assumptions about time stand in the notes, and only where made."""
        assert UTC_NOTE in read("timestamp,power_w\n2026-07-01 12:00:00,5\n")[0].notes
        assert UTC_NOTE not in read("timestamp,power_w\n2026-07-01 12:00:00Z,5\n")[0].notes
        assert DATE_NOTE in read("elapsed_s,power_w\n1,5\n")[0].notes

    @pytest.mark.parametrize(
        ("cell", "why"),
        [
            ("12", "'12' may be seconds, milliseconds or a count"),
            ("yesterday", "'yesterday' is no time"),
            ("2026/13/01 12:00:00", "month must be in 1..12"),
            ("07-01 12:00:00", "is no time"),
        ],
    )
    def test_a_time_that_may_be_several_things_is_refused(self, cell: str, why: str) -> None:
        """True when a log without one certain time is bad input that names the cell."""
        assert why in refusal(f"timestamp,power_w\n{cell},5\n")

    def test_a_line_of_another_kind_of_time_is_skipped(self) -> None:
        """True when the first row decides and a stray one is reported, not mixed in."""
        reader, got = read("timestamp,power_w\n2026-07-01 12:00:00,5\n1782907201,5\n")
        assert [sample.t for sample in got] == [T0]
        assert reader.skipped == [{"line": 3, "why": "'1782907201' is no date with a time"}]

    def test_midnight_is_passed_without_a_date(self) -> None:
        """True when 00:00:01 after 23:59:59 is two seconds later."""
        reader, got = read("time,power_w\n23:59:59,5\n00:00:01,5\n00:00:03,5\n")
        assert [sample.t for sample in got] == [86399.0, 86401.0, 86403.0]
        assert reader.header.interval_seconds == 2.0

    def test_the_interval_is_the_median(self) -> None:
        """True when one gap of an hour and a step back do not move it."""
        rows = "".join(f"{n},5\n" for n in [0, 10, 20, 3620, 3630, 3620, 3630, 3640])
        assert read("elapsed_s,power_w\n" + rows)[0].header.interval_seconds == 10.0

    def test_a_time_that_stands_still_is_refused(self) -> None:
        """True when rows of GPUs that nothing tells apart are not read as one GPU."""
        row = "2026/07/01 12:00:00.000, 5 W\n"
        assert "does not advance" in refusal("timestamp, power.draw\n" + row * 4)

    def test_one_row_is_enough(self) -> None:
        """True when a single shot is a recording of one sample that says so."""
        reader, got = read("\n".join(HEADED.splitlines()[:2]) + "\n")
        assert len(got) == 1
        assert "a single row: the interval is taken for 1 s" in reader.notes


class TestSeveralGpus:
    """Rows of one round make one sample."""

    def test_rows_are_grouped_by_index(self) -> None:
        """True when milliseconds between the rows of a round, a lost row and a swapped order still
        give one sample a round, with the GPUs in order.
        """
        reader, got = read(
            "timestamp, index, power.draw\n"
            "2026/07/01 12:00:00.000, 0, 10 W\n"
            "2026/07/01 12:00:00.003, 1, 11 W\n"
            "2026/07/01 12:00:01.004, 1, 13 W\n"
            "2026/07/01 12:00:01.007, 0, 12 W\n"
            "2026/07/01 12:00:02.003, 1, 15 W\n"
            "2026/07/01 12:00:03.000, 0, 16 W\n"
            "2026/07/01 12:00:03.003, 1, 17 W\n"
        )
        powers = [[(gpu.index, gpu.power_watts) for gpu in sample.gpus or ()] for sample in got]
        assert powers == [[(0, 10), (1, 11)], [(0, 12), (1, 13)], [(1, 15)], [(0, 16), (1, 17)]]
        assert [round(sample.t - T0, 3) for sample in got] == [0, 1.004, 2.003, 3.0]
        assert reader.header.interval_seconds == 1.5

    def test_identifiers_are_counted_and_never_kept(self) -> None:
        """True when UUIDs and bus ids tell GPUs apart but are nowhere in the samples."""
        for title, ids in {
            "uuid": ("GPU-5d1c5d9c-aaaa", "GPU-5d1c5d9c-bbbb"),
            "pci.bus_id": ("00000000:01:00.0", "0000000F:01:00.0"),
        }.items():
            rows = "".join(
                f"2026/07/01 12:00:0{second}.000, {identity}, {second} W\n"
                for second in range(3)
                for identity in ids
            )
            reader, got = read(f"timestamp, {title}, power.draw\n" + rows)
            assert [[gpu.index for gpu in sample.gpus or ()] for sample in got] == [[0, 1]] * 3
            assert all(identity not in repr((reader.header, got)) for identity in ids)

    def test_a_row_without_its_gpu_is_skipped(self) -> None:
        """True when the index column is there and its cell is not."""
        reader, got = read(HEADED.replace("12:00:01.500, 0", "12:00:01.500, [N/A]"))
        assert len(got) == 1
        assert reader.skipped == [{"line": 3, "why": "the GPU's index is missing"}]

    def test_a_row_counter_is_no_index(self) -> None:
        """True when ``index`` of another tool does not become a box of 40 GPUs."""
        rows = "".join(f"{n},2026-07-01 12:00:{n:02},5\n" for n in range(40))
        assert "counts rows, not GPUs" in refusal("index,timestamp,power_w\n" + rows)


class TestHeaderless:
    """Without a header row only what can be nothing else is read."""

    def test_units_tell_the_columns(self) -> None:
        """True when clock, power, bare temperature, mask, utilization and an empty column are
        recognised.
        """
        reader, (sample, _) = read(
            "2026/07/01 12:00:00.000, 2405 MHz, [N/A], 10.92 W, 40, 0x0000000000000004, 7 %, P0\n"
            "2026/07/01 12:00:00.250, [N/A], [N/A], 10.92 W, 41, 0x0000000000000004, 7 %, P0\n"
        )
        assert sample.gpus == (
            Gpu(
                index=0,
                power_watts=10.92,
                temperature_celsius=40.0,
                sm_hertz=2.405e9,
                utilization_ratio=0.07,
                event_reasons=("sw_power_cap",),
                performance_state=0,
            ),
        )
        assert reader.header.interval_seconds == 0.25
        assert reader.notes == [UNITS_NOTE, UTC_NOTE, GB10_NOTE]

    def test_a_column_is_told_by_later_rows_too(self) -> None:
        """True when the first value of a column is missing and it is known all the same."""
        _, got = read(
            "2026/07/01 12:00:00, [N/A], NVIDIA GB10, GPU-5d1c5d9c\n"
            "2026/07/01 12:00:01, 5 W, NVIDIA GB10, GPU-5d1c5d9c\n"
        )
        assert [sample.gpus for sample in got] == [
            (Gpu(index=0),),
            (Gpu(index=0, power_watts=5.0),),
        ]

    @pytest.mark.parametrize(
        ("rest", "why"),
        [
            ("40, 96", "column 2 and column 3 are for the same thing"),
            ("10.92", "column 2 is not clear"),
            ("0", "column 2 is no temperature"),
            ("5 W, 100 W", "column 2 and column 3 are for the same thing"),
            ("5 %, 7 %", "column 2 and column 3 are for the same thing"),
            ("512 MiB", "column 2 is not clear"),
            ("Not Active", "column 2 is not clear"),
            ("[N/A]", "no column but the time is known"),
        ],
    )
    def test_what_may_be_two_things_is_refused(self, rest: str, why: str) -> None:
        """True when nothing is guessed and the error says what line to put on top."""
        text = refusal(f"2026/07/01 12:00:00.000, {rest}\n")
        assert why in text
        assert "--query-gpu" in text

    def test_without_a_time_it_is_refused(self) -> None:
        """True when values alone are no recording."""
        assert "no column that is the time" in refusal("5 W, 40\n6 W, 41\n")


def test_a_sampling_loop_with_a_short_header() -> None:
    """True when a hand-written first line and rows of ``--format=csv,noheader`` go together."""
    reader, got = read(
        "timestamp,temperature.gpu,power.draw\n"
        "2026/07/01 12:00:00.000, 41, 12.50 W\n"
        "2026/07/01 12:00:10.000, 42, [N/A]\n"
    )
    assert [sample.gpus for sample in got] == [
        (Gpu(index=0, power_watts=12.5, temperature_celsius=41.0),),
        (Gpu(index=0, temperature_celsius=42.0),),
    ]
    assert reader.header.interval_seconds == 10.0


class TestDamage:
    """A line that cannot be read costs that line."""

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("2026/07/01 12:00:01.000, 0, 41", "cut off: 3 of 6 values"),
            ("2026/07/01 12:00:01, 0, 41, 1, 2, 3, 4", "7 values in 6 columns"),
            ("2026/07/01 12:00:01, 0, 41, 12 MHz, 2405 MHz, 7 %", "'mhz' is no unit of a power"),
            ("2026/07/01 12:00:01, 0, hot, 1, 2, 3", "temperature.gpu: 'hot' is no number"),
            ("2026/07/01 12:00:01, 0, 41, -5 W, 2, 3", "power.draw [W]: -5.0 is not within"),
            ("2026/07/01 12:00:01, 0, 41, 5, 2, 960", "9.6 is not within 0 to 1.05"),
            ("2026/07/01 12:00:01, -1, 41, 5, 2, 3", "index: '-1' is no GPU's index"),
            ("[N/A], 0, 41, 5, 2, 3", "the time is missing"),
            ("12:00:01, 0, 41, 5, 2, 3", "'12:00:01' is no date with a time"),
            ("Unable to determine the device handle", "not a row of the table: 'Unable to"),
            ("Failed to initialize NVML, retrying", "not a row of the table: 'Failed to"),
        ],
    )
    def test_a_wrong_row_is_skipped_with_its_reason(self, line: str, why: str) -> None:
        """True when number and reason are reported and the rows around it are read."""
        first, second, third = HEADED.splitlines()
        reader, got = read(f"{first}\n{second}\n{line}\n{third}\n")
        assert [sample.t for sample in got] == [T0 + 0.5, T0 + 1.5]
        assert [skipped["line"] for skipped in reader.skipped] == [3]
        assert why in reader.skipped[0]["why"]

    @pytest.mark.parametrize(
        ("title", "cell", "why"),
        [
            ("pstate", "8", "pstate: '8' is no performance state"),
            ("clocks_event_reasons.active", "4", "'4' is no mask of event reasons"),
            ("clocks_event_reasons.sw_power_cap", "Yes", "'Yes' is none of active, not active"),
            ("load1", "4 W", "load1: '4 W' is no plain number"),
            ("mem_available", "512", "mem_available: '512' has no unit"),
        ],
    )
    def test_a_wrong_word_is_refused(self, title: str, cell: str, why: str) -> None:
        """True when a cell that is none of its column's words costs the line."""
        assert why in refusal(f"elapsed_s,{title}\n1,{cell}\n")

    def test_a_row_without_its_uuid_is_skipped(self) -> None:
        """True when a GPU that nothing names is not taken for the first one."""
        reader, _ = read("elapsed_s,uuid,power_w\n1,GPU-5d1c5d9c,5\n2,[N/A],5\n")
        assert reader.skipped == [{"line": 3, "why": "which GPU this is about is missing"}]

    def test_decimal_commas_between_commas_are_refused(self) -> None:
        """True when ``12,5`` in a log separated by commas is neither 12 nor 125."""
        reader, got = read(
            "timestamp,power_w\n2026-07-01 12:00:00,12\n2026-07-01 12:00:01,12,5\n"
            '2026-07-01 12:00:02,"1,250"\n2026-07-01 12:00:03,"12,5"\n'
        )
        assert [sample.gpus for sample in got] == [
            (Gpu(index=0, power_watts=12.0),),
            (Gpu(index=0, power_watts=12.5),),
        ]
        assert [skipped["why"] for skipped in reader.skipped] == [
            "3 values in 2 columns",
            "power_w: '1,250' is no number",
        ]

    def test_a_share_that_may_be_per_cent_is_refused(self) -> None:
        """True when 0.5 without a unit is not read as half a per cent."""
        assert "may be a share or per cent" in refusal("elapsed_s,gpu_util\n1,0.5\n")

    def test_a_bare_sm_column_is_refused(self) -> None:
        """True when ``sm`` without a unit, a utilization in other tools, is not read as a clock."""
        assert "'96' has no unit" in refusal("elapsed_s,sm\n1,96\n")

    def test_a_log_that_was_started_again_reads_on(self) -> None:
        """True when the same header row is passed over and a different one is obeyed."""
        reader, got = read(
            HEADED + HEADED.splitlines()[0] + "\n"
            "timestamp, power.draw [W]\n2026/07/01 12:00:02.500, 9 W\n"
        )
        assert [(sample.gpus or ())[0].power_watts for sample in got] == [12.5, 13.25, 9.0]
        assert reader.skipped == []

    def test_words_before_the_table_are_skipped(self) -> None:
        """True when a monitor's own lines on top do not hide the header row."""
        reader, got = read("starting, please wait\nready\n" + HEADED)
        assert len(got) == 2
        assert [skipped["line"] for skipped in reader.skipped] == [1, 2]

    @pytest.mark.parametrize("fill", [b"", b"\0" * 300], ids=["cut", "nul"])
    def test_everything_before_a_cut_is_recovered(self, fill: bytes) -> None:
        """True when for a cut at every byte whole rows come back, nothing is read from a half
        value, and the loss is reported.
        """
        rows = HEADED + "2026/07/01 12:00:02.500, 0, 43, 14.00 W, 2411 MHz, 95 %\n"
        data = rows.encode()
        _, whole = read(data)
        end = len(data) - len(rows.splitlines()[-1]) - 1
        for cut in range(end, len(data)):
            reader, got = read(data[:cut] + fill)
            assert got[:2] == whole[:2]
            assert bool(reader.skipped) == (cut > end or bool(fill))
            if len(got) == 3:
                (gpu,), (last,) = got[2].gpus or (), whole[2].gpus or ()
                assert gpu.utilization_ratio is None
                assert (gpu.power_watts, gpu.sm_hertz) == (last.power_watts, last.sm_hertz)

    def test_a_cut_gzip_is_read_as_far_as_it_goes(self) -> None:
        """True when the second pass sees the same rows as the first, and the loss is reported."""
        rows = "".join(f"{n},{n % 97}.{n * 7919 % 100:02}\n" for n in range(5000))
        data = gzip.compress(("elapsed_s,power_w\n" + rows).encode())
        reader, got = read(data[: len(data) // 2])
        assert 1000 < len(got) < 5000
        assert [sample.t for sample in got] == list(range(len(got)))
        assert reader.skipped[-1]["why"].startswith("the gzip data ends here")

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"", "empty"),
            (b"\0" * 100, "nothing but NULs"),
            (b"hello\nworld\n", "no table of values separated by commas"),
            (b"No devices were found\n", "no table"),
            (b"a,b\n1,2\n", "no column is known to be the time"),
            (b"timestamp,loss\n2026-07-01 12:00:00,2.5\n", "no column but the time is known"),
            (b"timestamp,power_w\n", "no row can be read"),
            (b"timestamp,temp_c,gpu_temp\n", "temp_c and gpu_temp are for the same thing"),
            (b"\xff\xfe\x00,\x01\n", "cannot be told"),
        ],
    )
    def test_what_is_no_log_is_bad_input(self, data: bytes, why: str) -> None:
        """True when one line says what is missing."""
        text = refusal(data)
        if why != "cannot be told":
            assert why in text

    @given(data=st.binary(max_size=200))
    @settings(deadline=None, derandomize=True, max_examples=300)
    def test_no_bytes_raise_anything_of_python(self, data: bytes) -> None:
        """True when any bytes, alone or below a header row, end in our errors alone."""
        read(HEADED.encode() + data)
        for log in (data, b"timestamp,power_w\n" + data):
            try:
                read(log)
            except (InputError, OutputError) as error:
                assert "\n" not in str(error)  # noqa: PT017 - either outcome is right

    @given(
        cells=st.lists(
            st.lists(
                st.sampled_from(
                    [
                        *("timestamp", "2026/07/01 12:00:00", "1782907200", "5 W", "0x10", "40"),
                        *("P0", "[N/A]", "", '"', "9" * 5000, "1e308 MHz", "-1", "\u0661", "time"),
                        *("elapsed_s", "index", "uuid", "mem_total", "9e307 Gi", "power_w", "mem_"),
                    ]
                ),
                max_size=4,
            ),
            max_size=6,
        ),
        separator=st.sampled_from([",", ";", "\t"]),
    )
    @settings(deadline=None, derandomize=True, max_examples=400)
    def test_no_table_raises_anything_of_python(
        self, cells: list[list[str]], separator: str
    ) -> None:
        """True when tables put together from likely and unlikely cells do the same."""
        try:
            read("\n".join(separator.join(row) for row in cells))
        except (InputError, OutputError) as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("title", "good"),
    [
        ("elapsed_s", "7"),
        ("timestamp", "1782907200"),
        ("index", "0"),
        ("mem_total", "5Gi"),
        ("pstate", "P0"),
    ],
)
@pytest.mark.parametrize("cell", ["9" * 5000, "9" * 400, "9e307 Gi", "1e999"])
def test_no_number_is_too_large_to_be_refused(title: str, good: str, cell: str) -> None:
    """True when a number beyond every float or int costs its line, whatever column it is in."""
    other = "power_w" if title in {"elapsed_s", "timestamp"} else "elapsed_s"
    reader, got = read(f"{title},{other},temp_c\n{cell},1,40\n{good},2,41\n")
    assert len(got) == 1
    assert [skipped["line"] for skipped in reader.skipped] == [2]


def test_a_device_that_fails_is_an_io_error() -> None:
    """True when the operating system's error, at the start or later, is one line of ours."""

    class Failing(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._data = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def seek(self, offset: int, whence: int = 0) -> int:
            return self._data.seek(offset, whence)

        def readinto(self, buffer: Any) -> int:
            data = self._data.read(len(buffer))
            if not data:
                raise OSError(5, "Input/output error")
            buffer[: len(data)] = data
            return len(data)

    for data in (b"", HEADED.encode()):
        with pytest.raises(OutputError, match="cannot read the input: Input/output error"):
            read_csv(io.BufferedReader(Failing(data)))


def test_a_log_from_a_pipe(tmp_path: Path) -> None:
    """True when a log that can be read only once, compressed or not, is read twice all the same."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for data in (HEADED.encode(), gzip.compress(HEADED.encode())):
        feeder = threading.Thread(target=pipe.write_bytes, args=(data,))
        feeder.start()
        with read_csv(pipe) as reader:
            assert len(list(reader)) == 2
        feeder.join()


def test_a_day_at_one_hertz_is_read_in_ten_seconds() -> None:
    """True when 86,400 rows take at most 10 s of CPU for both passes, judged by 2,000 of them."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work, whose time would be measured too")
    header, row, _ = HEADED.splitlines()
    rows = "".join(
        f"{row.replace('12:00:00.500', f'12:{n // 60:02}:{n % 60:02}.500')}\n" for n in range(2000)
    )
    start = time.process_time()
    _, got = read(f"{header}\n{rows}")
    spent = time.process_time() - start
    assert len(got) == 2000
    assert spent * 86_400 / 2000 < 10
