"""The daemon is killed at random moments; whatever it had shown is on disk, every time."""

from __future__ import annotations

import random
import signal
import threading

import pytest

from spark_watch.blackbox.ring import FOLDER, runs_of
from spark_watch.model import Sample
from tests.faults.box import FaultBox
from tests.waiting import until

pytestmark = pytest.mark.integration


def kills(box: FaultBox, times: int) -> None:
    """Kill a daemon that records into a small, busy ring so many times, and verify it each time."""
    chance = random.Random(times)  # noqa: S311 - moments, not secrets
    pause = threading.Event()
    box.interval_seconds = 0.25
    box.settings["SPARK_WATCH_BLACKBOX__MAX_BYTES"] = str(1024 * 1024)
    shown: list[float] = []
    for turn in range(1, times + 1):
        with box.daemon() as daemon:
            until(lambda: (daemon.metric("recording_samples_total") or 0.0) > 0.0)
            pause.wait(chance.uniform(0.0, 1.0))
            seen = daemon.metric("last_sample_timestamp_seconds")
            daemon.signal(signal.SIGKILL)
            assert daemon.end() == -signal.SIGKILL
            if turn > 1:
                assert daemon.event("daemon_was_killed")["by"] == "unknown"
        assert seen is not None
        shown.append(seen)
        runs = runs_of(box.state / FOLDER)
        last = runs[-1].last()
        assert last is not None
        # what the page had shown may have been on its way for as long as a thread takes to run
        assert last.t >= seen - box.interval_seconds
        assert not last.stopped
        assert runs[-1].damages == []
    samples = box.samples()
    by_boot = {one.boot_id for one in samples}
    assert len(by_boot) == 1
    assert len(runs_of(box.state / FOLDER)) == times
    for seen in shown:
        assert nearest(samples, seen) <= box.interval_seconds
    with box.daemon() as daemon:
        until(lambda: daemon.metric("recording_active"))
        restart = 'condition_state{condition="unclean_reboot",gotcha="G4",state="%s"}'
        assert daemon.metric(restart % "warning") == 0.0
        assert daemon.metric(restart % "critical") == 0.0


def nearest(samples: list[Sample], t: float) -> float:
    """Return how far the nearest sample is from a moment."""
    return min(abs(one.t - t) for one in samples)


def test_ten_kills(box: FaultBox) -> None:
    """Ten kills, ten runs, nothing lost, and none of them is taken for a restart of the machine."""
    kills(box, 10)


@pytest.mark.long
def test_two_hundred_kills(box: FaultBox) -> None:
    """The same two hundred times."""
    kills(box, 200)


def test_a_kill_and_a_new_boot_is_an_unclean_restart(box: FaultBox) -> None:
    """With another boot id the next run says so at its first sample, on the page and in the log."""
    boot = box.proc / "sys" / "kernel" / "random" / "boot_id"
    with box.daemon() as daemon:
        until(lambda: (daemon.metric("recording_samples_total") or 0.0) >= 3.0)
        daemon.signal(signal.SIGKILL)
        daemon.end()
    boot.write_text("99999999-9999-4999-8999-999999999999\n")
    with box.daemon() as daemon:
        restart = 'condition_state{condition="unclean_reboot",gotcha="G4",state="warning"}'
        until(lambda: daemon.metric("ticks_total"))
        assert daemon.metric(restart) == 1.0
        changes = [line for line in daemon.lines if line["event"] == "condition_changed"]
        (change,) = [line for line in changes if line["condition"] == "unclean_reboot"]
        assert "no precursor recorded" in change["sentence"]
