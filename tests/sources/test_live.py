"""This machine as a feed, on fixture roots and a scripted GPU."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_watch.detectors.catalogue import conditions
from spark_watch.detectors.g3_driver.driver_fault import NODE_SUFFIX
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Gpu, Machine, Sample, State
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.feed import Moment
from spark_watch.sources.live import WITH_DEVICE_NODE, LiveFeed, memory_total
from spark_watch.sources.nvml import NvmlSource
from spark_watch.sources.reading import SourceHealth
from spark_watch.sources.self_usage import PAGE_BYTES, SelfUsage
from tests.conftest import ROOT
from tests.sources.proc_tree import ProcTree
from tests.stand.nvml_stand import NvmlStand
from tests.waiting import until

FIXTURES = ROOT / "tests" / "fixtures"
DRIVER_NOT_LOADED = 9
GPU_IS_LOST = 15
LIBRARY_NOT_FOUND = 12
FAST = 0.25


class Box:
    """Roots of a GB10 that a test may change, and a feed on them."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.sys = folder / "sys"
        self.kmsg = folder / "kmsg"
        self.node = folder / "nvidia0"
        shutil.copytree(FIXTURES / "proc" / "gb10", self.proc)
        shutil.copytree(FIXTURES / "sys" / "gb10", self.sys)
        self.kmsg.touch()
        self.feed = self.new_feed()
        self.ticks = 0

    def new_feed(self) -> LiveFeed:
        """Return a feed on these roots, not yet started."""
        return LiveFeed(
            interval_seconds=FAST,
            proc_root=self.proc,
            sys_root=self.sys,
            kmsg_path=self.kmsg,
            nvml=NvmlSource(period_seconds=FAST, device_node=self.node),
        )

    def read(self) -> Sample:
        """Return a sample of now."""
        return self.feed.read(Moment.now())

    def until(self, true: Callable[[Sample], object]) -> Sample:
        """Return the first sample of which it is true."""

        def look() -> Sample | None:
            sample = self.read()
            return sample if true(sample) else None

        sample = until(look)
        assert sample is not None
        return sample

    def health(self, source: str) -> SourceHealth:
        """Return one source's record."""
        return next(one for one in self.feed.health() if one.source == source)


@pytest.fixture
def box(gb10: NvmlStand, tmp_path: Path) -> Iterator[Box]:
    """A box whose feed is closed at the end."""
    assert gb10.gpus
    box = Box(tmp_path / "box")
    yield box
    gb10.release()
    box.feed.close()


def reasons(sample: Sample, source: str) -> list[str]:
    """Return the reasons for which a source failed in this sample."""
    return [one.reason for one in sample.failed if one.source == source]


def test_everything_there_is_comes(box: Box) -> None:
    """Host parts are in the first sample, the others follow from their threads."""
    first = box.read()
    assert first.memory is not None
    assert first.memory.total_bytes == 127_562_340 * 1024
    assert first.pressure is not None
    assert first.vm is not None
    assert first.free_blocks is not None
    assert first.kernel == ()
    assert first.boot_id is not None
    assert first.gpus is None
    assert first.failed == ()
    box.feed.start()
    gpus = box.until(lambda sample: sample.gpus).gpus or ()
    assert [(gpu.index, gpu.power_watts) for gpu in gpus] == [(0, 13.5)]
    box.until(lambda sample: sample.cpu)
    box.until(lambda _: box.health("thermal").success)
    box.until(lambda _: box.health("rails").success)
    assert [one.name for one in box.feed.identities()] == ["NVIDIA GB10"]
    machine = box.read().machine
    assert machine is not None
    assert (machine.gpu_name, machine.is_gb10) == ("NVIDIA GB10", True)
    assert machine.memory_total_bytes == 127_562_340 * 1024
    assert box.read().machine is machine


def test_the_sample_has_the_moments_it_was_given(box: Box) -> None:
    """The clocks and the lateness are the loop's; a reading between two ticks has none."""
    moment = Moment(t=5.0, monotonic=6.0, boottime=7.0, late_seconds=0.5)
    sample = box.feed.read(moment)
    assert (sample.t, sample.monotonic_seconds, sample.boottime_seconds) == (5.0, 6.0, 7.0)
    assert sample.late_seconds == 0.5
    between = box.feed.read_memory(Moment(t=5.25, monotonic=6.25, boottime=7.25))
    assert between is not None
    assert between.memory is not None
    assert (between.late_seconds, between.vm, between.t) == (None, None, 5.25)


def test_danger_takes_nothing_from_the_ticks(box: Box) -> None:
    """However often the pool alone is read, each tick has its own reading of it."""
    for _ in range(5):
        between = box.feed.read_memory(Moment.now())
        assert between is not None
        assert between.memory is not None
        assert box.read().memory is not None


def test_each_missing_source_is_named(box: Box, gb10: NvmlStand) -> None:
    """With empty roots and no driver every source says why, and nothing is a value."""
    gb10.fail("nvmlInitWithFlags", DRIVER_NOT_LOADED)
    shutil.rmtree(box.proc)
    shutil.rmtree(box.sys)
    box.kmsg.unlink()
    box.feed = box.new_feed()
    sample = box.read()
    parts = ("memory", "vm", "pressure", "kernel", "free_blocks", "zones", "rails", "cpu",
             "processes", "gpus", "boot_id")  # fmt: skip
    assert [part for part in parts if getattr(sample, part) is not None] == []
    assert {one.source for one in sample.failed} == {
        "meminfo", "vmstat", "pressure", "kernel_log", "buddyinfo", "boot",
    }  # fmt: skip
    box.feed.start()
    sources = {one.source for one in box.feed.health()} - {"progress"}
    box.until(lambda _: {box.health(source).success for source in sources} == {False})
    assert all(box.health(source).reason for source in sources)
    assert box.health("nvml").reason == "driver_not_loaded"
    assert box.health("processes").reason == "no_list_from_nvml"
    assert box.health("progress").success is None, "there was nobody to ask"


def test_a_driver_that_cannot_start_beside_its_device_file(box: Box, gb10: NvmlStand) -> None:
    """With the file there the reason says so, without it there may be no GPU at all."""
    assert WITH_DEVICE_NODE == NODE_SUFFIX
    gb10.fail("nvmlInitWithFlags", DRIVER_NOT_LOADED)
    box.feed.start()
    alone = box.until(lambda sample: reasons(sample, "nvml"))
    assert reasons(alone, "nvml") == ["driver_not_loaded"]
    assert fault(alone) is State.UNKNOWN
    box.node.touch()
    told = box.until(lambda sample: reasons(sample, "nvml") not in ([], ["driver_not_loaded"]))
    assert reasons(told, "nvml") == ["driver_not_loaded_with_device_node"]
    assert fault(told) is State.CRITICAL
    gb10.fail("nvmlInitWithFlags", 0)
    box.until(lambda sample: sample.gpus)


def fault(sample: Sample) -> State:
    """Return how ``driver_fault`` stands after this sample."""
    judge = Judge(conditions(ConditionSettings()), Timeline())
    judge.update(sample)
    return judge.states()["driver_fault"]


def test_a_library_that_is_missing_is_no_fault_of_the_driver(box: Box, gb10: NvmlStand) -> None:
    """In a container without the library the device file proves nothing."""
    gb10.fail("nvmlInitWithFlags", LIBRARY_NOT_FOUND)
    box.node.touch()
    box.feed.start()
    sample = box.until(lambda sample: reasons(sample, "nvml"))
    assert reasons(sample, "nvml") == ["library_not_found"]
    assert fault(sample) is State.UNKNOWN


def test_a_lost_gpu_keeps_its_name(box: Box, gb10: NvmlStand) -> None:
    """What is known of the machine stays known, the reading is lost, and the reason is told."""
    box.feed.start()
    box.until(lambda sample: sample.gpus)
    box.node.touch()
    gb10.fail_all(GPU_IS_LOST)
    sample = box.until(lambda sample: reasons(sample, "nvml"))
    assert reasons(sample, "nvml") == ["gpu_is_lost"]
    assert sample.gpus is None
    assert sample.machine is not None
    assert sample.machine.gpu_name == "NVIDIA GB10"
    assert fault(sample) is State.CRITICAL
    health = box.health("nvml")
    assert (health.success, health.reason) == (False, "gpu_is_lost")
    assert health.last_success_seconds is not None


def test_a_call_that_does_not_come_back_is_pending(box: Box, gb10: NvmlStand) -> None:
    """The host is read on, the GPU is absent, how long it is out grows, its record says late."""
    box.feed.start()
    box.until(lambda sample: sample.gpus)
    gb10.stall("nvmlDeviceGetPowerUsage", 3600.0)
    first = box.until(lambda sample: sample.pending.get("nvml"))
    assert first.memory is not None
    assert first.gpus is None
    assert first.pending["nvml"] >= 1.0
    later = box.until(lambda sample: sample.pending.get("nvml", 0.0) > first.pending["nvml"])
    assert later.gpus is None
    health = box.health("nvml")
    assert (health.success, health.reason) == (False, "late")
    assert health.pending_seconds is not None
    gb10.release()
    box.until(lambda sample: sample.gpus and not sample.pending)
    assert box.health("nvml").success is True


def test_a_late_call_is_a_lost_reading_for_the_rules() -> None:
    """With the call out for 31 s what is said of the GPU turns unknown; the host is judged on."""
    samples = [live(float(t), {} if t < 5 else {"nvml": float(t - 4)}) for t in range(45)]
    judge = Judge(conditions(ConditionSettings()), Timeline())
    states = []
    for sample in samples:
        judge.update(sample)
        states.append(judge.states()["gpu_hot"])
    assert states[4] is State.OK
    assert states[34] is State.OK
    assert states[35] is State.UNKNOWN


def live(t: float, pending: dict[str, float]) -> Sample:
    """Return a sample of a GB10 at rest, its GPU absent while a call is out."""
    return Sample(
        t=t,
        monotonic_seconds=t,
        machine=Machine(gpu_name="NVIDIA GB10"),
        gpus=None if pending else (Gpu(index=0, temperature_celsius=40.0),),
        pending=pending,
    )


def test_processes_are_those_of_nvml(box: Box, gb10: NvmlStand) -> None:
    """A listed process is described from its files; an empty list is a list."""
    box.feed.start()
    box.until(lambda sample: sample.processes == ())
    ProcTree(box.proc).spawn(812, "/usr/bin/python3", "train.py", resident_kib=2048)
    gb10.gpus[0].set_processes(compute=[(812, 4096)])
    (process,) = box.until(lambda sample: sample.processes).processes or ()
    assert (process.pid, process.gpu_bytes, process.resident_bytes) == (812, 4096, 2048 * 1024)


def test_an_old_list_says_nothing_of_now(
    box: Box, gb10: NvmlStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While NVML is out for longer than the list is good for, processes are a lost reading."""
    box.feed.start()
    box.until(lambda sample: sample.processes == ())
    monkeypatch.setattr("spark_watch.sources.live.LIST_SECONDS", 0.5)
    gb10.stall("nvmlDeviceGetPowerUsage", 3600.0)
    sample = box.until(lambda sample: reasons(sample, "processes"))
    assert reasons(sample, "processes") == ["no_list_from_nvml"]
    assert sample.processes is None


def test_a_file_that_blocks_holds_nobody_up(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thermal zone that waits for its firmware: the host is read on and it is told as pending."""
    gate, entered = threading.Event(), threading.Event()
    source = next(one for one in box.feed._background.meters if one.name == "thermal").source

    def wait() -> Any:
        entered.set()
        gate.wait(30)

    monkeypatch.setattr(source, "read", wait)
    monkeypatch.setattr("spark_watch.sources.live.PENDING_SECONDS", 0.05)
    box.feed.start()
    until(entered.is_set)
    sample = box.until(lambda sample: sample.pending.get("thermal"))
    assert sample.memory is not None
    assert box.health("thermal").pending_seconds is not None
    gate.set()


def test_close_does_not_wait_for_a_driver(box: Box, gb10: NvmlStand) -> None:
    """With a call out for an hour close comes back."""
    gb10.stall("nvmlInitWithFlags", 3600.0)
    box.feed.start()
    until(lambda: gb10.stalled)
    box.feed.close()
    assert gb10.stalled == 1


def test_threads_of_the_feed_are_few(box: Box) -> None:
    """NVML has one, all that may block shares one, reports and engines have one each."""
    before = threading.active_count()
    box.feed.start()
    assert threading.active_count() == before + 4


def test_the_pool_s_size_is_known_before_anything_runs(box: Box, tmp_path: Path) -> None:
    """``MemTotal`` in bytes, ``None`` where it cannot be read."""
    assert memory_total(box.proc) == 127_562_340 * 1024
    assert memory_total(tmp_path / "nowhere") is None


def test_its_own_memory(tmp_path: Path) -> None:
    """The second word of ``statm`` in pages; ``None`` where it is missing or no number."""
    assert (SelfUsage().resident_bytes() or 0) > 10 * 2**20
    folder = tmp_path / "self"
    folder.mkdir()
    for text, size in (("9 5 1 1 0 1 0", 5 * PAGE_BYTES), ("", None), ("9", None), ("9 -5", None)):
        (folder / "statm").write_text(text)
        assert SelfUsage(proc_root=tmp_path).resident_bytes() == size
    assert SelfUsage(proc_root=tmp_path / "nowhere").resident_bytes() is None
