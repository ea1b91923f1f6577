"""What is found in a ring after a kill or a power loss, and what the judge is told of it."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from spark_watch.blackbox.ring import RingFolder, history, runs_of
from spark_watch.model import Sample
from tests.blackbox.ring.boxes import MIB, OTHER_BOOT, START, sample, times
from tests.blackbox.ring.conftest import Make

THIRD_BOOT = "33333333-3333-4333-8333-333333333333"


def seconds(samples: list[Sample]) -> list[float]:
    """Return the samples' seconds since the start."""
    return [one.t - START for one in samples]


def test_each_start_of_the_daemon_is_a_run(tmp_path: Path, make: Make) -> None:
    """Segments of one run belong together, whatever the wall clock says of their order."""
    first = make(tmp_path / "ring", max_bytes=MIB)
    first.fill(200)
    first.kill()
    second = make(tmp_path / "ring", max_bytes=MIB)
    set_back = dataclasses.replace(sample(300), t=START - 5_000)
    second.put(set_back)
    one, two = runs_of(tmp_path / "ring")
    assert len(one.segments) > 1
    assert (one.number, two.number) == (1, len(one.segments) + 1)
    opened, last = one.first(), one.last()
    assert opened is not None
    assert last is not None
    assert (opened[1].t, last.t) == (START, START + 199)
    assert [one.t for one in two.tail(600.0)] == [START - 5_000]


def test_the_tail_spans_segments(tmp_path: Path, make: Make) -> None:
    """The last minute of a run is found although it lies in several segments, packed or not."""
    box = make(tmp_path / "ring", max_bytes=MIB)
    box.fill(500)
    (run,) = runs_of(tmp_path / "ring")
    assert len(run.segments) > 4
    assert seconds(list(run.tail(60.0))) == [float(second) for second in range(439, 500)]
    assert seconds(list(run.tail(0.0))) == [499.0]
    assert run.damages == []


@pytest.mark.parametrize("tail", [b"", b"\0" * 4096], ids=["cut", "NULs"])
def test_every_whole_line_survives_a_power_loss_at_any_byte(
    tmp_path: Path, make: Make, tail: bytes
) -> None:
    """Wherever the file ends, all lines before are read, and a torn one is reported."""
    box = make(tmp_path / "ring")
    box.fill(2)
    box.kill()
    path = RingFolder(tmp_path / "ring").segments()[0].path
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut] + tail)
        (run,) = runs_of(tmp_path / "ring")
        # a line that lacks nothing but its end is whole
        lines = sum(1 for end in ends if end - 1 <= cut)
        kept = [sample.t - START for _, sample in run.samples()]
        assert kept == [float(second) for second in range(max(0, lines - 1))]
        torn = cut not in ends and cut + 1 not in ends and cut > 0
        assert bool(run.damages) == (torn or bool(tail) or cut == 0 or not lines)


def test_a_damaged_pack_gives_what_lies_before_the_damage(tmp_path: Path, make: Make) -> None:
    """A flipped byte in a packed segment costs its rest, not the run, and is reported."""
    box = make(tmp_path / "ring", max_bytes=MIB)
    box.fill(300)
    box.kill()
    victim = RingFolder(tmp_path / "ring").segments()[1].path
    data = bytearray(victim.read_bytes())
    flipped = random.Random(3).randrange(len(data) // 2, len(data) - 10)  # noqa: S311 - a place
    data[flipped] ^= 0xFF
    victim.write_bytes(data)
    (run,) = runs_of(tmp_path / "ring")
    kept = seconds([sample for _, sample in run.samples()])
    assert kept[0] == 0.0
    assert kept[-1] == 299.0
    assert len(kept) > 150
    assert {name for name, _ in run.damages} == {victim.name}


def test_a_run_without_a_readable_line_is_passed_over(tmp_path: Path, make: Make) -> None:
    """A segment of NULs alone has neither first nor last sample, and tells the judge nothing."""
    box = make(tmp_path / "ring")
    box.fill(1)
    box.kill()
    RingFolder(tmp_path / "ring").segments()[0].path.write_bytes(b"\0" * 8192)
    (run,) = runs_of(tmp_path / "ring")
    assert run.first() is None
    assert run.last() is None
    assert list(run.tail(600.0)) == []
    assert list(history([run], now=START, tail_seconds=600.0, back_seconds=86400.0)) == []
    assert len(run.damages) == 1


def test_the_judge_is_told_the_end_of_the_last_run_and_the_ends_before(
    tmp_path: Path, make: Make
) -> None:
    """The run before a restart of the machine and the last run come with their ends.

    Of what is more than a day old nothing comes. What is left out between two samples is marked,
    so that nobody takes it for a hole.
    """
    for begin, boot in ((-200_000, "old"), (0, THIRD_BOOT), (5_000, OTHER_BOOT)):
        box = make(tmp_path / "ring")
        box.fill(900, first=begin, boot=boot)
        box.kill()
    told = list(
        history(
            runs_of(tmp_path / "ring"), now=START + 6_000, tail_seconds=600.0, back_seconds=86400.0
        )
    )
    ends = [*map(float, range(299, 900))], [*map(float, range(5_299, 5_900))]
    assert seconds(told) == [0.0, *ends[0], 5_000.0, *ends[1]]
    assert [one.t - START for one in told if one.stopped] == [0.0, 5_000.0]
    assert {one.boot_id for one in told} == {THIRD_BOOT, OTHER_BOOT}


def test_of_runs_that_nothing_hangs_on_two_samples_are_told(tmp_path: Path, make: Make) -> None:
    """Where the machine stayed up between two runs the earlier one comes as first and last."""
    for begin in (0, 2_000):
        box = make(tmp_path / "ring")
        box.fill(900, first=begin)
        box.kill()
    told = history(
        runs_of(tmp_path / "ring"), now=START + 3_000, tail_seconds=60.0, back_seconds=86400.0
    )
    assert seconds(list(told)) == [0.0, 899.0, 2_000.0, *map(float, range(2_839, 2_900))]


def test_a_short_run_is_told_whole_and_once(tmp_path: Path, make: Make) -> None:
    """A run that is shorter than the wanted end comes as it was, without a mark."""
    box = make(tmp_path / "ring")
    box.fill(5)
    told = list(
        history(runs_of(tmp_path / "ring"), now=START, tail_seconds=600.0, back_seconds=86400.0)
    )
    assert seconds(told) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert not any(one.stopped for one in told)


def test_a_segment_packed_while_it_is_read_is_found(tmp_path: Path, make: Make) -> None:
    """A reader that listed the plain form reads the packed one, which took its place meanwhile."""
    box = make(tmp_path / "ring", max_bytes=MIB)
    box.fill(100)
    (run,) = runs_of(tmp_path / "ring")
    assert not run.segments[-1].packed
    box.fill(200, first=100)
    assert seconds([sample for _, sample in run.samples()])[-1] >= 99.0
    assert times(tmp_path / "ring")[-1] == 299.0
