"""NVML lost and found again, turn by turn on a clock of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_watch.sources.nvml_gate import Gate
from spark_watch.sources.nvml_session import NvmlReading, NvmlSession, Pace
from tests.stand import nvml_stand
from tests.stand.nvml_stand import NvmlStand

GIB = 2**30


class Turns:
    """A session read once a second by a clock that only the test moves."""

    def __init__(self, *, device_node: Path = Path("/nonexistent")) -> None:
        self.now = 100.0
        self.gate = Gate(clock=lambda: self.now)
        self.session = NvmlSession(
            self.gate,
            memory_total_bytes=2048 * GIB,
            device_node=device_node,
            clock=lambda: self.now,
        )

    def read(self) -> NvmlReading:
        """Read now and let a second pass."""
        reading = self.session.read()
        self.now += 1.0
        return reading

    def run(self, seconds: int) -> list[NvmlReading]:
        """Read once a second for this long."""
        return [self.read() for _ in range(seconds)]


@pytest.fixture
def turns() -> Iterator[Turns]:
    """Turns that begin at second 100, and NVML given back at the end."""
    turns = Turns()
    yield turns
    turns.session.close()


def reasons(reading: NvmlReading) -> list[str]:
    """Return why the reading says that something failed."""
    assert all(failure.source == "nvml" for failure in reading.failures)
    return [failure.reason for failure in reading.failures]


def test_the_first_turn_has_it_all(gb10: NvmlStand, turns: Turns) -> None:
    """Values, processes, energy, identity and machine stand in the first reading; none failed."""
    gb10.gpus[0].set_processes(compute=[(1234, 90 * GIB)])
    reading = turns.read()
    assert reading.at_monotonic == 100.0
    assert reading.gpus is not None
    assert (reading.gpus[0].power_watts, reading.gpus[0].energy_joules) == (13.5, 10_024.0)
    assert reading.processes is not None
    assert [(one.pid, one.gpu_bytes) for one in reading.processes] == [(1234, 90 * GIB)]
    assert (reading.gpu_name, reading.driver_version) == ("NVIDIA GB10", "580.173.02")
    assert (reading.gpu_count, reading.partitioned) == (1, False)
    assert reading.identities[0].name == "NVIDIA GB10"
    assert reading.failures == ()


def test_dear_calls_are_made_seldom(gb10: NvmlStand, turns: Turns) -> None:
    """In a minute: counters every 5 s, energy every 10 s, the rest once a second or once."""
    turns.run(60)
    assert gb10.calls("nvmlDeviceGetFieldValues") == 12
    assert gb10.calls("nvmlDeviceGetTotalEnergyConsumption") == 6
    assert gb10.calls("nvmlDeviceGetPowerUsage") == 60
    assert gb10.calls("nvmlDeviceGetComputeRunningProcesses") == 60
    assert gb10.calls("nvmlDeviceGetMaxClockInfo") == 1
    assert gb10.calls("nvmlInitWithFlags") == 1


def test_what_a_gb10_does_not_support_is_asked_once(gb10: NvmlStand, turns: Turns) -> None:
    """MIG and utilisation are refused once each, and no failure is ever told."""
    gb10.fail("nvmlDeviceGetUtilizationRates", 3)
    readings = turns.run(30)
    assert gb10.calls("nvmlDeviceGetMigMode") == 1
    assert gb10.calls("nvmlDeviceGetUtilizationRates") == 1
    assert all(reading.failures == () for reading in readings)


def test_energy_and_counters_are_absent_between_their_turns(gb10: NvmlStand, turns: Turns) -> None:
    """Counters stand in seconds 5 and 10, once growth settled their unit; energy in 0 and 10."""
    counted, energised = [], []
    for second in range(11):
        gb10.gpus[0].set_field("sw_power_cap", second * 10**9)
        reading = turns.read()
        assert reading.gpus is not None
        counted.append(reading.gpus[0].event_seconds is not None)
        energised.append(reading.gpus[0].energy_joules is not None)
    assert [second for second, there in enumerate(counted) if there] == [5, 10]
    assert [second for second, there in enumerate(energised) if there] == [0, 10]


def test_a_lost_gpu_is_looked_for_with_growing_patience(gb10: NvmlStand, turns: Turns) -> None:
    """Lost at 105: begun anew after 1, 2, 4, 8, 16, 32 and then every 60 s, failing each turn."""
    turns.run(5)
    gb10.fail_all(15)
    begins = []
    for _ in range(250):
        before = gb10.calls("nvmlInitWithFlags")
        at = turns.now
        reading = turns.read()
        assert reasons(reading) == ["gpu_is_lost"]
        assert (reading.gpus, reading.processes) == (None, None)
        assert reading.gpu_name == "NVIDIA GB10"
        begins += [at] * (gb10.calls("nvmlInitWithFlags") - before)
    assert begins == [106, 108, 112, 120, 136, 168, 228, 288, 348]


def test_a_gpu_that_comes_back_is_read_again(gb10: NvmlStand, turns: Turns) -> None:
    """After the next begin values stand, and the patience is short again."""
    turns.run(2)
    gb10.fail_all(15)
    turns.run(8)
    gb10.fail_all(0)
    recovered = turns.run(8)
    assert [reading.gpus is not None for reading in recovered].index(True) == 7  # lost at 102
    gb10.fail_all(15)
    turns.read()
    before = gb10.calls("nvmlInitWithFlags")
    turns.read()
    assert gb10.calls("nvmlInitWithFlags") == before + 1


def test_a_restarted_driver_is_asked_everything_anew(gb10: NvmlStand, turns: Turns) -> None:
    """Another version: the session is lost for a second, and what was unsupported now answers."""
    gb10.fail("nvmlDeviceGetUtilizationRates", 3)
    assert turns.run(3)[-1].gpus is not None
    gb10.fail("nvmlDeviceGetUtilizationRates", 0)
    gb10.restart_driver("595.45.04")
    lost, found = turns.run(2)
    assert (reasons(lost), lost.gpus, lost.driver_version) == (
        ["uninitialized"],
        None,
        "580.173.02",
    )
    assert found.gpus is not None
    assert (found.driver_version, found.gpus[0].utilization_ratio) == ("595.45.04", 0.03)
    assert found.identities[0].driver_version == "595.45.04"


def test_the_same_driver_is_not_asked_again(gb10: NvmlStand, turns: Turns) -> None:
    """A session that was only lost keeps what is known of its driver, as the counters' unit."""
    gb10.fail("nvmlDeviceGetUtilizationRates", 3)
    turns.run(3)
    gb10.gpus[0].set_field("sw_power_cap", 10_805 * 10**9)
    turns.run(3)
    gb10.restart_driver("580.173.02")
    readings = turns.run(10)
    assert gb10.calls("nvmlDeviceGetUtilizationRates") == 1
    seconds = [gpu.event_seconds for reading in readings for gpu in reading.gpus or ()]
    assert [one["sw_power_cap"] for one in seconds if one] == [10_805.0, 10_805.0]


def test_the_unit_of_the_counters_is_the_drivers(gb10: NvmlStand, turns: Turns) -> None:
    """Known after growth under one driver, and unknown under the next until it grows again."""
    known = []
    for second in range(30):
        if second == 12:
            gb10.restart_driver("595.45.04")
        total = min(second, 12) if second < 20 else second
        gb10.gpus[0].set_field("sw_power_cap", total * 10**9)
        gpus = turns.read().gpus
        if gpus and gpus[0].event_seconds:
            known.append(second)
    assert known == [5, 10, 20, 25]


@pytest.mark.parametrize(
    ("code", "reason"),
    [(9, "driver_not_loaded"), (18, "lib_rm_version_mismatch"), (999, "unknown")],
)
def test_nvml_that_does_not_start_is_a_failure_each_turn(
    gb10: NvmlStand, turns: Turns, code: int, reason: str
) -> None:
    """It is tried at 0, 1 and 3 s; nothing is known of the machine, and nothing is made up."""
    gb10.fail("nvmlInitWithFlags", code)
    for reading in turns.run(4):
        assert reasons(reading) == [reason]
        assert (reading.gpus, reading.processes, reading.gpu_name) == (None, None, None)
        assert (reading.gpu_count, reading.partitioned) == (None, None)
    assert gb10.calls("nvmlInitWithFlags") == 3
    gb10.fail("nvmlInitWithFlags", 0)
    assert turns.run(5)[-1].gpus is not None


def test_a_session_that_ends_in_its_beginning_is_lost(gb10: NvmlStand, turns: Turns) -> None:
    """NVML starts and is gone before the GPU has told its name: tried anew, never silent."""
    gb10.fail("nvmlDeviceGetName", 1)
    for reading in turns.run(2):
        assert (reasons(reading), reading.gpus) == (["uninitialized"], None)
    gb10.fail("nvmlDeviceGetName", 0)
    assert turns.run(3)[-1].failures == ()


def test_a_gpu_that_was_lost_from_the_start_describes_nothing(
    gb10: NvmlStand, turns: Turns
) -> None:
    """The driver runs, the GPU does not: one GPU is counted, and nothing is said about it."""
    gb10.fail_all(15)
    reading = turns.read()
    assert (reasons(reading), reading.gpu_count) == (["gpu_is_lost"], 1)
    assert (reading.gpu_name, reading.identities, reading.partitioned) == (None, (), None)


@pytest.mark.parametrize("present", [True, False])
def test_the_device_file_is_told_beside_the_failure(
    gb10: NvmlStand, tmp_path: Path, present: bool
) -> None:
    """NVML that cannot start is a fault only where the driver has made its device file."""
    node = tmp_path / "nvidia0"
    if present:
        node.touch()
    gb10.fail("nvmlInitWithFlags", 9)
    assert Turns(device_node=node).read().device_node_present is present


def test_a_driver_without_a_gpu_is_a_failure(gb10: NvmlStand, turns: Turns) -> None:
    """A count of 0 is told as NVML's own "GPU not found", and tried again."""
    empty = NvmlStand(gb10.path, driver_version="580.173.02", gpu_count=0)
    reading = turns.read()
    assert (reasons(reading), reading.gpu_count, reading.gpus) == (["gpu_not_found"], 0, None)
    assert empty.calls("nvmlInitWithFlags") == 1


def test_many_gpus_and_one_that_is_lost(
    nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: Turns
) -> None:
    """The others are read on; processes are unknown, as those on the lost one cannot be seen."""
    assert nvml_library.exists()
    stand = nvml_stand.h200(tmp_path / "four.box", gpu_count=4)
    monkeypatch.setenv(nvml_stand.VARIABLE, str(stand.path))
    reading = turns.read()
    assert [gpu.index for gpu in reading.gpus or ()] == [0, 1, 2, 3]
    assert (reading.gpu_count, len({known.uuid for known in reading.identities})) == (4, 4)
    assert reading.processes == ()
    stand.fail_all(15, gpu=2)
    for reading in turns.run(20):
        assert [gpu.index for gpu in reading.gpus or ()] == [0, 1, 3]
        assert (reasons(reading), reading.processes) == (["gpu_is_lost"], None)
        assert [known.index for known in reading.identities] == [0, 1, 2, 3]
    stand.fail_all(0, gpu=2)
    reading = turns.run(15)[-1]
    assert [gpu.index for gpu in reading.gpus or ()] == [0, 1, 2, 3]
    assert reading.failures == ()


def test_gpus_lost_one_after_another_share_one_wait(
    nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: Turns
) -> None:
    """Lost at 101 and 103: begun anew at 102 for the first, at 104 for both and then at 108."""
    assert nvml_library.exists()
    stand = nvml_stand.h200(tmp_path / "two.box", gpu_count=2)
    monkeypatch.setenv(nvml_stand.VARIABLE, str(stand.path))
    begins = []
    for second in range(100, 112):
        if second in (101, 103):
            stand.fail_all(15, gpu=(second - 101) // 2)
        before = stand.calls("nvmlInitWithFlags")
        reading = turns.read()
        begins += [second] * (stand.calls("nvmlInitWithFlags") - before)
        if second >= 103:
            assert (reading.gpus, reasons(reading)) == (None, ["gpu_is_lost"])
    assert begins == [100, 102, 104, 108]


def test_a_split_gpu_makes_the_machine_partitioned(h200: NvmlStand, turns: Turns) -> None:
    """MIG on one GPU is enough for totals not to be one device's."""
    h200.gpus[0].mig_mode = 1
    assert turns.read().partitioned is True


def test_partial_failures_keep_the_rest(gb10: NvmlStand, turns: Turns) -> None:
    """Each reason is told once a turn, however many calls had it, and nothing is begun anew."""
    gb10.fail("nvmlDeviceGetPowerUsage", 999)
    gb10.fail("nvmlDeviceGetClockInfo", 999)
    gb10.fail("nvmlDeviceGetPerformanceState", 10)
    for reading in turns.run(5):
        assert reasons(reading) == ["unknown", "timeout"]
        assert reading.gpus is not None
        assert (reading.gpus[0].power_watts, reading.gpus[0].temperature_celsius) == (None, 48.0)
    assert gb10.calls("nvmlInitWithFlags") == 1


def test_closing_gives_nvml_back(gb10: NvmlStand, turns: Turns) -> None:
    """One shutdown for one start, and none where nothing was started."""
    turns.session.close()
    assert gb10.calls("nvmlShutdown") == 0
    turns.read()
    turns.session.close()
    turns.session.close()
    assert gb10.calls("nvmlShutdown") == 1


def test_a_missing_library_is_looked_for_once_a_minute(tmp_path: Path) -> None:
    """Without ``libnvidia-ml.so.1`` the reason is ``library_not_found``; tried at 0 and 60 s."""
    script = (
        "from tests.sources.test_nvml_session import Turns, reasons\n"
        "turns = Turns()\n"
        "told = {tuple(reasons(reading)) for reading in turns.run(100)}\n"
        "print(told, turns.gate.calls, turns.gate.errors)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": "."},
        check=True,
        capture_output=True,
        text=True,
    )
    if "library_not_found" not in done.stdout:
        pytest.skip("this machine has a real NVML, which cannot be taken away from a test")
    assert done.stdout.strip() == "{('library_not_found',)} 2 {'library_not_found': 2}"


def test_a_pace_keeps_its_seconds_through_jitter() -> None:
    """Due every five seconds although turns jitter by 0.3 s, and at every turn of a long period."""
    pace = Pace(5.0, slack_seconds=0.5)
    turns = [0.0, 1.3, 2.0, 2.7, 4.0, 4.7, 6.3, 7.0, 8.0, 9.3, 10.0]
    assert [turn for turn in turns if pace.due(turn)] == [0.0, 4.7, 9.3]
    slow = Pace(5.0, slack_seconds=30.0)
    assert all(slow.due(turn) for turn in (0.0, 60.0, 119.0))
