"""What all sources of the host have in common: their names, their descriptors, their errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_watch.errors import SourceError
from spark_watch.model import SOURCE_PARTS
from spark_watch.sources.boot import BootSource
from spark_watch.sources.buddyinfo import BuddyinfoSource
from spark_watch.sources.cpu import CpuSource
from spark_watch.sources.kernel_log import KernelLogSource
from spark_watch.sources.meminfo import MeminfoSource
from spark_watch.sources.pressure import PressureSource
from spark_watch.sources.rails import RailsSource
from spark_watch.sources.thermal import ThermalSource
from spark_watch.sources.vmstat import VmstatSource

FIXTURES = Path(__file__).parents[1] / "fixtures"
MAKERS: dict[str, Callable[[Path, Path], Any]] = {
    "boot": lambda proc, _: BootSource(proc_root=proc),
    "buddyinfo": lambda proc, _: BuddyinfoSource(proc_root=proc),
    "cpu": lambda proc, sys: CpuSource(proc_root=proc, sys_root=sys),
    "kernel_log": lambda proc, _: KernelLogSource(path=proc / "meminfo"),
    "meminfo": lambda proc, _: MeminfoSource(proc_root=proc),
    "pressure": lambda proc, _: PressureSource(proc_root=proc),
    "rails": lambda _, sys: RailsSource(sys_root=sys),
    "thermal": lambda _, sys: ThermalSource(sys_root=sys),
    "vmstat": lambda proc, _: VmstatSource(proc_root=proc),
}


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted, not paths


@pytest.mark.parametrize("name", MAKERS)
def test_a_source_reads_closes_and_reads_again(name: str) -> None:
    """It bears the name of its part, opens nothing anew from reading to reading, leaks nothing."""
    before = _descriptors()
    source = MAKERS[name](FIXTURES / "proc" / "gb10", FIXTURES / "sys" / "gb10")
    assert source.name == name
    assert name in SOURCE_PARTS
    source.read()
    opened = _descriptors()
    source.read()
    assert _descriptors() == opened
    for _ in range(2):
        source.close()
        assert _descriptors() == before
    source.read()
    source.close()


@pytest.mark.parametrize("name", MAKERS)
def test_a_machine_without_it_is_an_error_with_a_reason(name: str, tmp_path: Path) -> None:
    """On empty roots every source says ``not_found``, again and again, and keeps nothing open."""
    before = _descriptors()
    source = MAKERS[name](tmp_path, tmp_path)
    for _ in range(3):
        with pytest.raises(SourceError) as caught:
            source.read()
        assert caught.value.reason == "not_found"
    assert _descriptors() == before


def test_the_files_of_this_very_machine_are_understood() -> None:
    """What every Linux prints is read from the real ``/proc``: memory, counters, cores, boot id."""
    memory, vm, cpu, boot = MeminfoSource(), VmstatSource(), CpuSource(), BootSource()
    pool, counters = memory.read(), vm.read()
    assert pool.total_bytes is not None
    assert pool.available_bytes is not None
    assert 0 < pool.available_bytes <= pool.total_bytes
    assert counters.major_faults is not None
    assert counters.refaults is not None
    assert cpu.read().load1 is not None
    assert len(boot.read()) == 36
    for source in (memory, vm, cpu, boot):
        source.close()
