"""The black box and the judge: what is kept of a run, and what a new run is told of it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from spark_watch.blackbox.ring import FOLDER, RingFolder
from spark_watch.blackbox.trace import TraceHeader, read_trace
from spark_watch.daemon.recorder import ACKNOWLEDGED, BlackBox
from spark_watch.daemon.replay import OWN_RECORDER, judge_for
from spark_watch.daemon.warm_up import warm_up
from spark_watch.detectors.catalogue import conditions
from spark_watch.detectors.judge import Judge
from spark_watch.model import GIB, Event, Memory, Sample, State
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.settings.g4_boot import UncleanRebootSettings
from spark_watch.sources.feed import Moment
from tests.blackbox.ring.boxes import MIB, OTHER_BOOT, START, Box, sample

THIRD_BOOT = "33333333-3333-4333-8333-333333333333"
HEADER = TraceHeader(interval_seconds=1.0, recorder=OWN_RECORDER)


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **values: Any) -> None:
        """Keep one line."""
        self.lines.append((event, values))

    warning = info

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the data of every line with that event."""
        return [values for name, values in self.lines if name == event]


class Start:
    """A new run of the daemon over a state directory, so many seconds after the start."""

    def __init__(
        self, state_dir: Path, second: float, *, kmsg: Path = Path("/nonexistent")
    ) -> None:
        self.log = Log()
        self.judge: Judge = judge_for(HEADER, ConditionSettings())
        self.box = BlackBox(
            state_dir,
            HEADER,
            max_bytes=64 * MIB,
            log=self.log,
            judge=lambda: self.judge,
            kmsg_path=kmsg,
            tail_seconds=600.0,
            back_seconds=86400.0,
        )
        self.box.recall(self.judge, moment(second))

    def live(self, one: Sample) -> list[Event]:
        """Judge and record one live sample; return what changed."""
        events = self.judge.update(one)
        assert self.judge.errors == []
        self.box.write(one, events)
        return events

    def state(self, name: str = "unclean_reboot") -> State:
        """Return how a condition stands."""
        return self.judge.states()[name]

    def sentence(self, name: str = "unclean_reboot") -> str:
        """Return what a condition says."""
        standings = self.judge.standing(START)
        return next(one.finding.sentence for one in standings if one.finding.condition == name)

    def stop(self, second: float, *, clean: bool = True) -> None:
        """Stop, cleanly or by an error of our own."""
        self.box.close(moment(second), clean=clean)


def moment(second: float) -> Moment:
    """Return the clocks so many seconds after the start."""
    return Moment(START + second, 1_000_000.0 + second, 1_000_000.0 + second)


def killed_run(state_dir: Path, *, first: int = 0, count: int = 60, **parts: Any) -> None:
    """Leave the recording of a run that ended without a mark."""
    box = Box(state_dir / FOLDER)
    for second in range(first, first + count):
        box.put(sample(second, **parts))
    box.kill()


def collapse(state_dir: Path) -> None:
    """Leave the recording of a run whose pool fell from 40 to 1 GiB before it ended."""
    start = Start(state_dir, 0)
    for second in range(60):
        available = int(max(1.0, min(40.0, 40.0 - 3.0 * (second - 46))) * GIB)
        start.live(sample(second, memory=Memory(available_bytes=available)))
    assert start.state("memory_collapse") is State.CRITICAL
    assert start.box._writer is not None
    start.box._writer.close()


def test_a_new_boot_without_a_mark_is_an_unclean_restart(tmp_path: Path) -> None:
    """The first live sample raises it, as the one new event, and says what stood before."""
    collapse(tmp_path)
    start = Start(tmp_path, 100)
    assert start.state() is not State.WARNING
    events = start.live(sample(100, boot=OTHER_BOOT))
    (event,) = [event for event in events if event.condition == "unclean_reboot"]
    assert event.to_state is State.WARNING
    assert "memory_collapse (critical)" in event.sentence
    assert start.log.said("daemon_was_killed") == []
    start.stop(101)


def test_without_a_precursor_none_is_invented(tmp_path: Path) -> None:
    """A box that ran quietly until it was gone gets exactly that said."""
    killed_run(tmp_path)
    start = Start(tmp_path, 100)
    start.live(sample(100, boot=OTHER_BOOT))
    assert start.state() is State.WARNING
    assert "no precursor recorded" in start.sentence()
    start.stop(101)


def test_a_daemon_killed_in_the_same_boot_is_no_restart_of_the_machine(tmp_path: Path) -> None:
    """It is said in the log, by whom is not known, and no condition stands for it."""
    killed_run(tmp_path)
    start = Start(tmp_path, 62)
    start.live(sample(62))
    assert start.log.said("daemon_was_killed") == [
        {"by": "unknown", "last_sample_age_seconds": 3.0}
    ]
    assert start.state() not in {State.WARNING, State.CRITICAL}
    assert start.state("telemetry_gap") is State.OK
    start.stop(63)


def test_the_kernel_log_says_who_killed_it(tmp_path: Path) -> None:
    """A line of the OOM killer with the daemon's own pid names it, in the log and in the ring."""
    kmsg = tmp_path / "kmsg"
    start = Start(tmp_path, 0)
    start.live(sample(0))
    assert start.box._writer is not None
    start.box._writer.close()
    kmsg.write_text(
        "<6>[  100.000001] something else\n"
        f"<3>[  101.000001] Out of memory: Killed process {os.getpid()} (python3) total-vm:1kB\n"
    )
    after = Start(tmp_path, 5, kmsg=kmsg)
    after.live(sample(5))
    assert after.log.said("daemon_was_killed")[0]["by"] == "oom_killer"
    after.stop(6)
    newest = RingFolder(tmp_path / FOLDER).segments()[-1]
    with read_trace(newest.path) as reader:
        assert reader.header.extra["before_killed_by"] == "oom_killer"


def test_after_a_clean_stop_a_new_boot_is_fine(tmp_path: Path) -> None:
    """The mark is the last line, so nothing is said of a machine that was shut down."""
    start = Start(tmp_path, 0)
    start.live(sample(0))
    start.stop(1)
    segment = RingFolder(tmp_path / FOLDER).segments()[-1]
    with read_trace(segment.path) as reader:
        *_, last = reader
    assert (last.stopped, last.t, last.boot_id) == (True, START, sample(0).boot_id)
    after = Start(tmp_path, 1_000)
    after.live(sample(1_000, boot=OTHER_BOOT))
    assert after.state() is State.OK
    assert after.log.said("daemon_was_killed") == []
    after.stop(1_001)


def test_an_error_of_our_own_is_no_clean_stop(tmp_path: Path) -> None:
    """A daemon that fails and a machine that comes up anew: nobody stopped it, so it is said."""
    start = Start(tmp_path, 0)
    start.live(sample(0))
    start.stop(1, clean=False)
    after = Start(tmp_path, 1_000)
    after.live(sample(1_000, boot=OTHER_BOOT))
    assert after.state() is State.WARNING
    after.stop(1_001)


def test_two_within_a_day_are_critical_however_often_the_daemon_started(tmp_path: Path) -> None:
    """The count comes from the ring: a restart of the daemon between them forgets neither."""
    killed_run(tmp_path)
    killed_run(tmp_path, first=1_000, boot=OTHER_BOOT)
    killed_run(tmp_path, first=2_000, boot=OTHER_BOOT)
    start = Start(tmp_path, 3_000)
    assert start.state() is State.WARNING
    start.live(sample(3_000, boot=THIRD_BOOT))
    assert start.state() is State.CRITICAL
    start.stop(3_001)


def test_a_restart_of_the_daemon_keeps_what_stood_before_the_machines(tmp_path: Path) -> None:
    """The sentence of the last restart is the same after the daemon was started anew."""
    collapse(tmp_path)
    killed_run(tmp_path, first=100, count=700, boot=OTHER_BOOT)
    start = Start(tmp_path, 900)
    assert start.state() is State.WARNING
    assert "memory_collapse (critical)" in start.sentence()
    stands = start.log.said("condition_stands")
    assert [line["condition"] for line in stands] == ["unclean_reboot"]
    assert start.state("telemetry_gap") is State.OK


def test_what_was_replayed_counts_for_nothing_new(tmp_path: Path) -> None:
    """No change of a condition is counted before the first live sample."""
    collapse(tmp_path)
    start = Start(tmp_path, 62)
    assert start.state("memory_collapse") is State.CRITICAL
    for standing in start.judge.standing(START):
        assert set(standing.changes.values()) == {0}


def test_an_acknowledgement_ends_it_at_once(tmp_path: Path) -> None:
    """The mark that the command leaves is seen while the daemon runs, within its next sync."""
    killed_run(tmp_path)
    start = Start(tmp_path, 100)
    start.live(sample(100, boot=OTHER_BOOT))
    assert start.state() is State.WARNING
    assert start.box._writer is not None
    start.box._writer.acknowledged_seconds = START + 101  # as its thread sets it
    start.live(sample(102, boot=OTHER_BOOT))
    start.live(sample(103, boot=OTHER_BOOT))
    assert start.state() is State.OK
    assert start.log.said("acknowledged") == [{"condition": "unclean_reboot"}]
    start.stop(104)


def test_other_rules_do_not_forget_a_restart(tmp_path: Path) -> None:
    """After a reload with other levels the restart stands as it did, by the new settings."""
    collapse(tmp_path)
    start = Start(tmp_path, 100)
    start.live(sample(100, boot=OTHER_BOOT))
    said = start.sentence()
    other = ConditionSettings(unclean_reboot=UncleanRebootSettings(stand_seconds=3600.0))
    start.judge = start.judge.renewed(conditions(other))
    start.live(sample(101, boot=OTHER_BOOT))
    assert start.state() is State.WARNING
    assert start.sentence() == said.replace("seen 0 s ago", "seen 1 s ago")
    start.live(sample(3_701, boot=OTHER_BOOT))
    assert start.state() is State.OK
    start.stop(3_702)


@pytest.mark.parametrize(
    ("second", "state"), [(50.0, State.WARNING), (1_030.0, State.OK)], ids=["before", "after"]
)
def test_an_acknowledgement_holds_for_what_came_before_it(
    tmp_path: Path, second: float, state: State
) -> None:
    """After a start it counts for restarts it is younger than, and for no later one."""
    killed_run(tmp_path)
    killed_run(tmp_path, first=1_000, boot=OTHER_BOOT)
    mark = tmp_path / ACKNOWLEDGED
    mark.touch()
    os.utime(mark, (START + second, START + second))
    start = Start(tmp_path, 1_100)
    start.live(sample(1_100, boot=OTHER_BOOT))
    assert start.state() is state
    start.live(sample(1_101, boot=THIRD_BOOT))
    assert start.state() is State.CRITICAL
    start.stop(1_102)


def test_samples_carry_their_events_and_what_stands(tmp_path: Path) -> None:
    """Whoever reads the ring knows what was said at the time, without judging again."""
    collapse(tmp_path)
    with read_trace(RingFolder(tmp_path / FOLDER).segments()[0].path) as reader:
        samples = list(reader)
    assert "standing" not in samples[10].extra
    assert samples[-1].extra["standing"]["memory_collapse"] == "critical"
    events = [event for one in samples for event in one.extra.get("events", [])]
    raised = [event for event in events if event["condition"] == "memory_collapse"]
    assert [event["to"] for event in raised][-1] == "critical"
    assert set(raised[0]) == {"t", "gotcha", "condition", "subject", "from", "to", "sentence"}


def test_the_status_is_said_when_it_changes(tmp_path: Path) -> None:
    """Recording that begins is one line; a folder that cannot be made is another."""
    (tmp_path / "file").write_text("")
    start = Start(tmp_path / "file", 0)
    start.live(sample(0))
    assert start.box._writer is not None
    start.box._writer.close()
    start.box._say(start.box.status)
    start.box._say(start.box.status)
    (line,) = start.log.said("recording_off")
    assert line["reason"] in {"not_a_directory", "exists"}
    assert not start.box.status.active
    start.box._say(dataclasses.replace(start.box.status, active=True, reason=None))
    assert len(start.log.said("recording_on")) == 1


def test_a_ring_that_another_daemon_writes_is_none_of_our_past(tmp_path: Path) -> None:
    """It is said, and the judge starts with nothing."""
    other = Box(tmp_path / FOLDER)
    other.put(sample(0))
    start = Start(tmp_path, 5)
    assert len(start.log.said("recording_in_use")) == 1
    assert start.log.said("recalled") == []
    other.kill()


def test_a_damaged_ring_is_reported_and_the_rest_is_used(tmp_path: Path) -> None:
    """The line that a power loss cut is named, with its segment, once."""
    killed_run(tmp_path)
    segment = RingFolder(tmp_path / FOLDER).segments()[0]
    segment.path.write_bytes(segment.path.read_bytes()[:-40])
    start = Start(tmp_path, 100)
    (damage,) = start.log.said("recording_damaged")
    assert damage["segment"] == segment.path.name
    assert damage["why"].startswith("cut off")
    (recalled,) = start.log.said("recalled")
    assert recalled["last_sample_age_seconds"] == 42.0


def test_an_unreadable_folder_does_not_stop_the_start(tmp_path: Path) -> None:
    """A file in the ring's place is logged, and that is all."""
    (tmp_path / FOLDER).write_text("")
    start = Start(tmp_path, 0)
    assert len(start.log.said("recording_unreadable")) == 1


def test_runs_of_another_origin_are_none_of_our_past(tmp_path: Path) -> None:
    """What a simulation left in the folder says nothing of this machine."""
    box = Box(tmp_path / FOLDER)
    box.writer._header = dataclasses.replace(box.writer._header, origin="simulated: throttle")
    box.put(sample(0))
    box.kill()
    start = Start(tmp_path, 100)
    start.live(sample(100, boot=OTHER_BOOT))
    assert start.state() is State.UNKNOWN
    start.stop(101)


def test_closing_before_the_first_sample_leaves_nothing(tmp_path: Path) -> None:
    """A daemon that never took a sample marks no stop."""
    start = Start(tmp_path, 0)
    start.stop(1)
    assert not (tmp_path / FOLDER).exists()
    assert not start.box.status.active


def test_the_danger_path_can_be_walked_at_a_start() -> None:
    """The warm-up really goes through a collapse: the sentence of the critical state is worded."""
    said = warm_up(ConditionSettings())
    assert said[0].startswith("The host has 0.50 GiB available: nothing is left")
    assert len(said) == len(ConditionSettings.model_fields)
