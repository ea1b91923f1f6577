"""Measures what the GPU's memory moves: the one thing in spark-watch that uses the GPU itself.

Counted are the bytes a kernel or a copy asks for: a read of N bytes counts N, a write of N counts
N, a copy of N counts 2 N, because it reads and writes each. The driver's own compiler turns the
kernel below into code for whatever GPU is there, so that no toolkit is needed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

from spark_watch.errors import Unavailable, Unsupported

MIB: Final = 1024**2
SIZES_BYTES: Final = (256 * MIB, 1024 * MIB, 4096 * MIB)
"""Many times the GPU's cache, and each a whole number of the kernel's rounds of 64 MiB."""

REPEATS: Final = 20
WARM_UPS: Final = 3
"""The first runs of a size raise the clock and fill the page tables."""

BLOCKS: Final = 4096
THREADS: Final = 256

READ_KERNEL: Final = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spark_watch_read(.param .u64 data, .param .u64 rounds, .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<24>;
  .reg .b64 %d<16>;
  ld.param.u64 %d1, [data];
  ld.param.u64 %d2, [rounds];
  ld.param.u64 %d3, [out];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  cvt.u64.u32 %d4, %r3;
  mad.wide.u32 %d4, %r1, %r2, %d4;
  shl.b64 %d4, %d4, 4;
  add.s64 %d5, %d1, %d4;
  mul.wide.u32 %d6, %r4, %r2;
  shl.b64 %d6, %d6, 4;
  mov.u32 %r5, 0;
LOOP:
  setp.eq.u64 %p1, %d2, 0;
  @%p1 bra DONE;
  ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d5];
  add.s64 %d7, %d5, %d6;
  ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d7];
  add.s64 %d8, %d7, %d6;
  ld.global.v4.u32 {%r14, %r15, %r16, %r17}, [%d8];
  add.s64 %d9, %d8, %d6;
  ld.global.v4.u32 {%r18, %r19, %r20, %r21}, [%d9];
  add.s64 %d5, %d9, %d6;
  add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r7;
  add.u32 %r5, %r5, %r8;
  add.u32 %r5, %r5, %r9;
  add.u32 %r5, %r5, %r10;
  add.u32 %r5, %r5, %r11;
  add.u32 %r5, %r5, %r12;
  add.u32 %r5, %r5, %r13;
  add.u32 %r5, %r5, %r14;
  add.u32 %r5, %r5, %r15;
  add.u32 %r5, %r5, %r16;
  add.u32 %r5, %r5, %r17;
  add.u32 %r5, %r5, %r18;
  add.u32 %r5, %r5, %r19;
  add.u32 %r5, %r5, %r20;
  add.u32 %r5, %r5, %r21;
  sub.u64 %d2, %d2, 1;
  bra.uni LOOP;
DONE:
  setp.ne.u32 %p2, %r5, 0x5A17C0DE;
  @%p2 bra END;
  st.global.u32 [%d3], %r5;
END:
  ret;
}
\0"""
"""Every thread adds up what it reads, four pieces of 16 bytes a round; the sum is stored only where
it has one value, so that no compiler may leave the reads out."""

ROUND_BYTES: Final = BLOCKS * THREADS * 4 * 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One kind of traffic at one size: bytes a second over the repeats."""

    kind: str
    size_bytes: int
    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a probe found. The clock is the SM's in the middle of it, ``None`` where unread."""

    gpu_name: str
    driver_version: str | None
    clock_hertz: float | None
    rows: tuple[Measured, ...]

    @property
    def read_bytes_per_second(self) -> float:
        """The median of the best size's reads: the machine's own ceiling."""
        return max(row.median for row in self.rows if row.kind == "read")


def probe(progress: Callable[[str, float], None]) -> Probed:
    """Measure reads, writes and copies on the first GPU.

    At most 4 GiB and a copy of it are held, one size after another, and given back at once.

    Args:
        progress: told what is measured and which share of all is done, 0 to 1.

    Raises:
        Unsupported: the binding is not installed, or there is no GPU.
        Unavailable: a call failed; the detail names it.
    """
    cuda = _binding()
    with _context(cuda) as name:
        module = _call(cuda, "cuModuleLoadData", READ_KERNEL)
        kernel = _call(cuda, "cuModuleGetFunction", module, b"spark_watch_read")
        rows: list[Measured] = []
        clock = None
        steps = 3 * len(SIZES_BYTES)
        for size in SIZES_BYTES:
            with _memory(cuda, size) as source, _memory(cuda, size) as target:
                runs = _runs(cuda, kernel, source, target, size)
                for kind, counted, run in runs:
                    progress(f"{kind} of {size // MIB} MiB", len(rows) / steps)
                    seconds, seen = _timed(cuda, run)
                    clock = seen or clock
                    rates = [counted / one for one in seconds]
                    rows.append(
                        Measured(
                            kind=kind,
                            size_bytes=size,
                            median=median(rates),
                            lowest=min(rates),
                            highest=max(rates),
                        )
                    )
        _call(cuda, "cuModuleUnload", module)
    progress("done", 1.0)
    return Probed(
        gpu_name=name, driver_version=_driver_version(), clock_hertz=clock, rows=tuple(rows)
    )


def _runs(
    cuda: Any, kernel: Any, source: Any, target: Any, size: int
) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """Yield each kind of traffic, the bytes it counts, and what starts it."""
    _call(cuda, "cuMemsetD32", source, 1, size // 4)

    def read() -> None:
        values = (int(source), size // ROUND_BYTES, int(target))
        types = (ctypes.c_uint64,) * 3
        grid = (BLOCKS, 1, 1, THREADS, 1, 1)
        _call(cuda, "cuLaunchKernel", kernel, *grid, 0, 0, (values, types), 0)

    def write() -> None:
        _call(cuda, "cuMemsetD32Async", target, 2, size // 4, 0)

    def copy() -> None:
        _call(cuda, "cuMemcpyDtoDAsync", target, source, size, 0)

    yield "read", size, read
    yield "write", size, write
    yield "copy", 2 * size, copy


def _timed(cuda: Any, run: Callable[[], None]) -> tuple[list[float], float | None]:
    """Return the seconds of each repeat by the GPU's own clock, and its SM clock meanwhile."""
    for _ in range(WARM_UPS):
        run()
    _call(cuda, "cuCtxSynchronize")
    events = [_call(cuda, "cuEventCreate", 0) for _ in range(REPEATS + 1)]
    try:
        _call(cuda, "cuEventRecord", events[0], 0)
        for event in events[1:]:
            run()
            _call(cuda, "cuEventRecord", event, 0)
        clock = _sm_clock()
        _call(cuda, "cuEventSynchronize", events[-1])
        seconds = [
            _call(cuda, "cuEventElapsedTime", first, second) / 1e3
            for first, second in pairwise(events)
        ]
    finally:
        for event in events:
            _call(cuda, "cuEventDestroy", event)
    return seconds, clock


def _binding() -> Any:
    try:
        from cuda.bindings import driver  # noqa: PLC0415 - an extra, for this command alone
    except ImportError as error:
        raise Unsupported(
            "no_binding",
            "the probe needs cuda-bindings, which is not installed: "
            "pip install 'spark-watch[probe]'",
        ) from error
    return driver


@contextmanager
def _context(cuda: Any) -> Iterator[str]:
    """Make the first GPU current and yield its name; it is given back afterwards."""
    try:
        _call(cuda, "cuInit", 0)
        device = _call(cuda, "cuDeviceGet", 0)
    except Unavailable as error:
        raise Unsupported("no_gpu", f"CUDA cannot start: {error}") from error
    except RuntimeError as error:  # what the binding raises where there is no libcuda
        raise Unsupported("no_gpu", f"CUDA cannot start: {error}") from error
    name: bytes = _call(cuda, "cuDeviceGetName", 128, device)
    context = _call(cuda, "cuDevicePrimaryCtxRetain", device)
    try:
        _call(cuda, "cuCtxSetCurrent", context)
        yield name.split(b"\0")[0].decode("utf-8", "replace")
    finally:
        _call(cuda, "cuDevicePrimaryCtxRelease", device)


@contextmanager
def _memory(cuda: Any, size: int) -> Iterator[Any]:
    pointer = _call(cuda, "cuMemAlloc", size)
    try:
        yield pointer
    finally:
        _call(cuda, "cuMemFree", pointer)


def _call(cuda: Any, name: str, *arguments: Any) -> Any:
    """Call the driver and return its answer without the status.

    Raises:
        Unavailable: the status is not success; the text names the call and the status.
    """
    status, *answer = getattr(cuda, name)(*arguments)
    if int(status) != 0:
        raise Unavailable(
            "cuda_failed", f"{name}: {getattr(status, 'name', status)} ({int(status)})"
        )
    return answer[0] if answer else None


def _sm_clock() -> float | None:
    import pynvml  # noqa: PLC0415 - loaded where it is used

    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(0)
            return float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)) * 1e6
        finally:
            pynvml.nvmlShutdown()
    return None


def _driver_version() -> str | None:
    import pynvml  # noqa: PLC0415 - loaded where it is used

    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        try:
            return str(pynvml.nvmlSystemGetDriverVersion())
        finally:
            pynvml.nvmlShutdown()
    return None
