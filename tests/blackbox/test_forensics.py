"""What is told of runs that ended: how, and what stood before, with nothing added."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from spark_watch.blackbox.forensics import Account, accounts_of, chart, passages_of, ring_in, table
from spark_watch.blackbox.trace import TraceHeader, TraceWriter
from spark_watch.daemon.replay import judge_for
from spark_watch.errors import InputError, OutputError
from spark_watch.model import (
    GIB,
    Gpu,
    KernelEvent,
    Memory,
    Pressure,
    Sample,
    State,
    Zone,
)
from spark_watch.settings.conditions import ConditionSettings
from tests.blackbox.ring.boxes import BOOT, MACHINE, OTHER_BOOT, START, Box, sample

HEADER = TraceHeader(interval_seconds=1.0, machine=MACHINE, recorder="spark-watch")


def told(
    path: Path, *, now: float = 10_000.0, boot_id: str | None = None, steps: list[Any] | None = None
) -> list[Account]:
    """Return the accounts of what lies at a path, at a second after the start."""
    noted: list[Any] = [] if steps is None else steps
    return accounts_of(
        passages_of(path, lambda done, of: noted.append((done, of))),
        now=START + now,
        boot_id=boot_id,
        judging=lambda header: judge_for(header, ConditionSettings()),
        progress=lambda done, of: noted.append((done, of)),
    )


def ring(folder: Path, *samples: Sample, **header: Any) -> None:
    """Add a run to a ring."""
    box = Box(folder)
    if header:
        box.writer._header = dataclasses.replace(box.writer._header, extra=header)
    for one in samples:
        box.put(one)
    box.kill()


def standing(second: float, *, boot: str = BOOT, **states: str) -> Sample:
    """Return a sample with which the recorder wrote down what stood."""
    return sample(second, boot=boot, extra={"standing": states} if states else {})


def test_a_row_for_each_run(tmp_path: Path) -> None:
    """Clean and killed runs, with and without a restart of the machine after them, each told so."""
    stop = dataclasses.replace(sample(9), stopped=True, memory=None)
    ring(tmp_path, *(sample(second) for second in range(9)), stop)
    ring(tmp_path, sample(20), sample(21))
    ring(tmp_path, sample(100), sample(101))
    ring(tmp_path, sample(200, boot=OTHER_BOOT))
    accounts = told(tmp_path, now=260.0)
    assert [
        (
            one.started - START,
            one.ended and one.ended - START,
            one.clean,
            one.machine_restarted,
            one.last_sample_age_seconds,
        )
        for one in accounts
    ] == [
        (0.0, 9.0, True, False, 11.0),
        (20.0, 21.0, False, False, 79.0),
        (100.0, 101.0, False, True, 99.0),
        (200.0, 200.0, False, False, 60.0),
    ]
    assert [one.sentence for one in accounts] == [
        "The daemon was stopped cleanly.",
        (
            "The daemon was killed, by whom is not recorded, while the machine stayed up; "
            "no precursor recorded."
        ),
        "The machine restarted without a clean stop; no precursor recorded.",
        (
            "The recording ends without a clean stop, and what came after it is not recorded; "
            "no precursor recorded."
        ),
    ]


def test_a_clean_stop_before_a_restart_is_no_accident(tmp_path: Path) -> None:
    """A machine that was shut down in order is told as that."""
    ring(tmp_path, sample(0), dataclasses.replace(sample(1), stopped=True))
    ring(tmp_path, sample(60, boot=OTHER_BOOT))
    assert told(tmp_path)[0].sentence == (
        "The daemon was stopped cleanly, and the machine was restarted after it."
    )


def test_who_killed_it_is_told_where_it_was_recorded(tmp_path: Path) -> None:
    """What the next run read in the kernel log stands in its header."""
    ring(tmp_path, sample(0))
    ring(tmp_path, sample(60), before_killed_by="oom_killer")
    assert told(tmp_path)[0].sentence.startswith(
        "The kernel's OOM killer ended the daemon while the machine stayed up; "
    )


@pytest.mark.parametrize(
    ("boot_id", "restarted", "words"),
    [
        (OTHER_BOOT, True, "The machine restarted without a clean stop"),
        (BOOT, False, "The daemon was killed"),
        (None, False, "The recording ends"),
    ],
)
def test_the_last_run_is_held_against_the_machine_as_it_is_now(
    tmp_path: Path, boot_id: str | None, restarted: bool, words: str
) -> None:
    """Where the recording is this machine's own, its boot now says what came after the last run."""
    ring(tmp_path, sample(0))
    (account,) = told(tmp_path, boot_id=boot_id)
    assert account.machine_restarted is restarted
    assert account.sentence.startswith(words)


def test_a_run_that_goes_on_is_running(tmp_path: Path) -> None:
    """While its daemon holds the ring the last run has no end and is no accident."""
    box = Box(tmp_path)
    box.put(sample(0))
    box.put(sample(1))
    (account,) = told(tmp_path, now=3.0, boot_id=OTHER_BOOT)
    assert (account.running, account.ended, account.clean) == (True, None, False)
    assert account.sentence == "The daemon is running; its last sample is 2 s old."
    assert account.samples == ()
    box.kill()


def test_precursors_come_in_order_of_appearance(tmp_path: Path) -> None:
    """What the recorder said in the last ten minutes is told, oldest first, at its worst."""
    samples = [standing(0, swap_thrash="critical")]
    samples += [standing(second) for second in range(1, 1_000)]
    samples += [
        standing(1_000, memory_low="warning"),
        standing(1_001, memory_low="warning", memory_collapse="warning"),
        dataclasses.replace(
            standing(1_002, memory_collapse="critical", unclean_reboot="warning"),
            extra={
                "standing": {"memory_collapse": "critical", "unclean_reboot": "warning"},
                "events": [
                    {"condition": "memory_collapse", "to": "critical", "sentence": "It falls."}
                ],
            },
        ),
    ]
    ring(tmp_path, *samples)
    ring(tmp_path, sample(1_100, boot=OTHER_BOOT))
    account = told(tmp_path)[0]
    assert [(one.condition, one.since - START, one.worst) for one in account.appearances] == [
        ("memory_low", 1_000.0, State.WARNING),
        ("memory_collapse", 1_001.0, State.CRITICAL),
    ]
    assert account.appearances[1].sentence == "It falls."
    assert account.as_json()["precursors"] == ["memory_low", "memory_collapse"]
    assert account.sentence == (
        "The machine restarted without a clean stop; before it stood memory_low (warning), "
        "memory_collapse (critical)."
    )


def test_what_was_over_before_the_end_is_told_as_over(tmp_path: Path) -> None:
    """A condition that had left is named with how long it was over, and since when it stood."""
    samples = [standing(second, swap_thrash="warning") for second in range(700)]
    samples += [standing(second) for second in range(700, 1_000)]
    ring(tmp_path, *samples)
    (account,) = told(tmp_path, boot_id=OTHER_BOOT)
    (one,) = account.appearances
    assert (one.since, one.until) == (START, START + 699)
    assert account.sentence.endswith("; before it stood swap_thrash (warning, over for 300 s).")


def test_verdicts_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    """A damaged or foreign note in a sample is no precursor and no crash."""
    extra: dict[str, Any] = {
        "standing": {"memory_low": "dreadful", "gpu_hot": 3},
        "events": [None, {"condition": ["x"]}, 7],
    }
    ring(tmp_path, sample(0, extra=extra), sample(1, extra={"standing": 5, "events": "none"}))
    assert told(tmp_path)[0].appearances == ()


def test_gaps_kernel_lines_and_open_calls_are_told(tmp_path: Path) -> None:
    """A hole in the samples, what the kernel logged and a call without answer are all there."""
    ring(
        tmp_path,
        sample(0),
        sample(1, kernel=(KernelEvent(kind="xid", code=119),)),
        sample(31, pending={"nvml": 29.0}),
    )
    account = told(tmp_path, boot_id=OTHER_BOOT)[0]
    assert [(at - START, gap) for at, gap in account.gaps] == [(1.0, 30.0)]
    assert [(at - START, event.code) for at, event in account.kernel] == [(1.0, 119)]
    assert account.sentence.endswith("; a call to nvml was out for 29 s.")


def test_the_last_two_minutes_are_kept(tmp_path: Path) -> None:
    """Of a long run the end is shown, and JSON carries it as a trace does."""
    ring(tmp_path, *(sample(second) for second in range(300)))
    account = told(tmp_path)[0]
    assert [one.t - START for one in account.samples] == [float(at) for at in range(179, 300)]
    line = account.as_json()["samples"][-1]
    assert (line["t"], line["memory"]["available_bytes"]) == (START + 299, 40 * GIB)


def trace(path: Path, *samples: Sample) -> Path:
    """Write a plain trace."""
    with path.open("wb") as stream:
        writer = TraceWriter(stream, HEADER)
        for one in samples:
            writer.write(one)
    return path


def test_a_trace_without_verdicts_is_judged(tmp_path: Path) -> None:
    """A shared trace is split at restarts and stops, and its precursors are found by the rules."""
    falling = [
        sample(second, memory=Memory(available_bytes=int(max(1.0, 40 - 3.0 * second) * GIB)))
        for second in range(14)
    ]
    stop = dataclasses.replace(sample(62, boot=OTHER_BOOT), stopped=True)
    path = trace(tmp_path / "one.jsonl", *falling, sample(60, boot=OTHER_BOOT), stop, sample(70))
    first, second, third = told(path)
    assert (first.clean, first.machine_restarted) == (False, True)
    assert first.appearances[0].condition == "memory_collapse"
    assert "GiB" in first.appearances[0].sentence
    assert (second.clean, second.machine_restarted) == (True, True)
    assert third.sentence.startswith("The recording ends without a clean stop")


def test_what_passed_long_before_the_end_is_no_precursor(tmp_path: Path) -> None:
    """A fall that ended twenty minutes before the last sample did not lead to it."""
    falling = [
        sample(second, memory=Memory(available_bytes=int(max(1.0, 40 - 3.0 * second) * GIB)))
        for second in range(14)
    ]
    calm = [sample(second) for second in range(14, 1_300)]
    path = trace(tmp_path / "one.jsonl", *falling, *calm, sample(1_400, boot=OTHER_BOOT))
    assert told(path)[0].sentence == (
        "The machine restarted without a clean stop; no precursor recorded."
    )


def test_an_exported_trace_is_split_by_its_clock(tmp_path: Path) -> None:
    """Without boot ids a monotonic clock that goes back is the restart."""
    again = dataclasses.replace(sample(60), monotonic_seconds=12.0, boot_id=None)
    path = trace(tmp_path / "one.jsonl", dataclasses.replace(sample(0), boot_id=None), again)
    assert [one.machine_restarted for one in told(path)] == [True, False]


def test_a_folder_of_traces_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    """Each trace is one run or more, and what is no trace by its name is let alone."""
    trace(tmp_path / "b.jsonl", sample(50, boot=OTHER_BOOT))
    trace(tmp_path / "a.jsonl", sample(0))
    (tmp_path / "notes.txt").write_text("mine")
    steps: list[tuple[int, int]] = []
    assert [one.started - START for one in told(tmp_path, steps=steps)] == [0.0, 50.0]
    assert steps == [(1, 2), (2, 2), (1, 2), (2, 2)]
    assert told(tmp_path)[0].machine_restarted


def test_the_ring_is_found_from_its_state_directory(tmp_path: Path) -> None:
    """Both the folder and the one that holds it will do; an empty one is no ring."""
    assert ring_in(tmp_path) is None
    assert told(tmp_path) == []
    ring(tmp_path / "blackbox", sample(0))
    assert ring_in(tmp_path) == ring_in(tmp_path / "blackbox") == tmp_path / "blackbox"
    assert len(told(tmp_path)) == len(told(tmp_path / "blackbox")) == 1


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    """A missing file and a trace without a sample each have their own error."""
    with pytest.raises(OutputError, match="No such file"):
        told(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no sample in it"):
        told(trace(tmp_path / "empty.jsonl"))


def seen(second: float) -> Sample:
    """Return a sample with every quantity that is drawn."""
    return sample(
        second,
        memory=Memory(available_bytes=int((40.0 - second / 4.0) * GIB)),
        gpus=(Gpu(index=0, power_watts=40.0, sm_hertz=2.4e9),),
        zones=(
            Zone(zone=0, type="acpitz", temperature_celsius=61.0),
            Zone(zone=1, type="acpitz", temperature_celsius=70.5),
        ),
        pressure=Pressure(full_avg10_ratio=0.25),
    )


def test_the_table_has_ten_second_rows_and_then_every_sample() -> None:
    """Each row shows the newest reading of its time, and a dash where nothing was read."""
    samples = [seen(second) for second in range(120)]
    samples[-1] = sample(119, memory=None, pending={"nvml": 12.0})
    head, *rows = table(samples)
    assert head.split() == [
        "seconds", "pool", "GiB", "power", "W", "zone", "C", "clock", "MHz", "pressure", "%",
    ]  # fmt: skip
    assert len(rows) == 11 + 10
    assert rows[0].split() == ["-110.0", "37.8", "40.0", "70.5", "2400.0", "25.0"]
    assert rows[-2].split() == ["-1.0", "10.5", "40.0", "70.5", "2400.0", "25.0"]
    assert rows[-1].split() == [
        "0.0", "-", "-", "-", "-", "-", "no", "answer:", "nvml", "12", "s",
    ]  # fmt: skip


def test_the_table_of_a_fast_end_stays_short() -> None:
    """At four samples a second the last ten seconds show the newest twenty."""
    _, *rows = table([seen(step / 4.0) for step in range(400)])
    assert len(rows) == 9 + 20


def test_the_chart_falls_where_the_pool_falls() -> None:
    """A curve goes from its highest to its lowest block; what hardly moves is drawn flat."""
    lines = list(chart([seen(second) for second in range(120)]))
    names = [line.split("|")[0].strip() for line in lines]
    assert names == ["pool", "power", "zone", "clock", "pressure"]
    pool = lines[0].split("|")[1]
    assert (pool[0], pool[-1], len(pool)) == ("█", "▁", 60)
    assert len(set(lines[1].split("|")[1])) == 1
    assert lines[0].endswith("| 10.2 to 40.0 GiB")


def test_the_chart_does_without_blocks_and_without_readings() -> None:
    """Digits stand in for blocks, and a quantity that was never read has no line."""
    (line,) = chart([sample(0), sample(60)], blocks=False)
    assert line.startswith("    pool |")
    assert set(line.split("|")[1]) <= set(" 01234567")
    assert list(chart([])) == []
    assert len(list(table([]))) == 1
