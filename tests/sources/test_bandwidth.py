"""The bandwidth probe against a driver that keeps time and counts what is asked of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.sources import bandwidth
from spark_watch.sources.bandwidth import MIB, READ_KERNEL, ROUND_BYTES, SIZES_BYTES, probe

RATES = {"read": 200e9, "write": 100e9, "copy": 90e9}
"""Bytes a second that this driver moves; of a copy those of one direction."""


class Driver:
    """As much of the CUDA driver API as the probe calls; time passes as bytes are moved."""

    def __init__(self) -> None:
        self.fails = ""
        self.now = 0.0
        self.held: dict[int, int] = {}
        self.most = 0
        self.retained = 0
        self.events = 0
        self._answers: dict[str, Callable[..., tuple[Any, ...]]] = {
            "cuDeviceGet": lambda number: (number,),
            "cuDeviceGetName": lambda length, _: (b"NVIDIA GB10\0".ljust(length, b"\0"),),
            "cuDevicePrimaryCtxRetain": lambda _: (self._count("retained", 1),),
            "cuDevicePrimaryCtxRelease": lambda _: (self._count("retained", -1),),
            "cuModuleLoadData": lambda text: (text,),
            "cuModuleGetFunction": lambda *_: (2,),
            "cuMemAlloc": self._allocate,
            "cuMemFree": lambda pointer: (self.held.pop(pointer),),
            "cuLaunchKernel": lambda *given: self._move(
                given[9][0][1] * ROUND_BYTES / RATES["read"]
            ),
            "cuMemsetD32Async": lambda *given: self._move(4 * given[2] / RATES["write"]),
            "cuMemcpyDtoDAsync": lambda *given: self._move(given[2] / RATES["copy"]),
            "cuEventCreate": lambda _: (SimpleNamespace(at=self._count("events", 1)),),
            "cuEventRecord": lambda event, _: self._stamp(event),
            "cuEventElapsedTime": lambda first, second: ((second.at - first.at) * 1e3,),
            "cuEventDestroy": lambda _: (self._count("events", -1),),
        }

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        """Return the driver's call of that name."""

        def call(*arguments: Any) -> tuple[Any, ...]:
            if name == self.fails:
                return (2, None)
            answer = self._answers.get(name)
            return (0,) if answer is None else (0, *answer(*arguments))

        return call

    def _count(self, what: str, step: int) -> int:
        setattr(self, what, getattr(self, what) + step)
        return 7

    def _allocate(self, size: int) -> tuple[int]:
        pointer = (len(self.held) + 1) << 40
        self.held[pointer] = size
        self.most = max(self.most, sum(self.held.values()))
        return (pointer,)

    def _stamp(self, event: SimpleNamespace) -> tuple[()]:
        event.at = self.now
        return ()

    def _move(self, seconds: float) -> tuple[()]:
        self.now += seconds
        return ()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A driver in place of the binding, and no NVML."""
    made = Driver()
    monkeypatch.setattr(bandwidth, "_binding", lambda: made)
    monkeypatch.setattr(bandwidth, "_sm_clock", lambda: 2.4e9)
    monkeypatch.setattr(bandwidth, "_driver_version", lambda: "580.0")
    return made


@pytest.mark.usefixtures("driver")
def test_rates_by_the_counting_rule() -> None:
    """A read and a write count each byte once, a copy twice."""
    told: list[tuple[str, float]] = []
    found = probe(lambda what, share: told.append((what, share)))
    rates = {(row.kind, row.size_bytes): row.median for row in found.rows}
    assert len(rates) == 9
    for size in SIZES_BYTES:
        assert rates["read", size] == pytest.approx(200e9)
        assert rates["write", size] == pytest.approx(100e9)
        assert rates["copy", size] == pytest.approx(180e9)
    assert found.read_bytes_per_second == pytest.approx(200e9)
    assert (found.gpu_name, found.driver_version, found.clock_hertz) == (
        "NVIDIA GB10",
        "580.0",
        2.4e9,
    )
    assert told[0] == ("read of 256 MiB", 0.0)
    assert told[-1] == ("done", 1.0)


def test_everything_is_given_back(driver: Driver) -> None:
    """Never more than 4 GiB and a copy of it are held, and nothing afterwards."""
    probe(lambda *_: None)
    assert driver.most == 2 * 4096 * MIB
    assert (driver.held, driver.retained, driver.events) == ({}, 0, 0)


@pytest.mark.parametrize(
    "call",
    ["cuModuleLoadData", "cuMemAlloc", "cuLaunchKernel", "cuMemsetD32Async", "cuEventSynchronize"],
)
def test_a_call_that_fails_is_named_and_leaves_nothing(driver: Driver, call: str) -> None:
    """Out of memory in the middle: the call is named, all that was held is given back."""
    driver.fails = call
    with pytest.raises(Unavailable, match=rf"{call}: 2 \(2\)"):
        probe(lambda *_: None)
    assert (driver.held, driver.retained, driver.events) == ({}, 0, 0)


def test_no_gpu(driver: Driver) -> None:
    """CUDA that cannot start says so."""
    driver.fails = "cuInit"
    with pytest.raises(Unsupported, match="CUDA cannot start"):
        probe(lambda *_: None)


def test_no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the message says what to install."""
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(Unsupported, match=r"pip install 'spark-watch\[probe\]'"):
        probe(lambda *_: None)


def test_sizes_are_whole_rounds() -> None:
    """No byte of a size is left unread, and the kernel's text ends as C text does."""
    assert all(size % ROUND_BYTES == 0 for size in SIZES_BYTES)
    assert READ_KERNEL.endswith(b"}\n\0")
    assert READ_KERNEL.count(b"ld.global.v4.u32") == 4
