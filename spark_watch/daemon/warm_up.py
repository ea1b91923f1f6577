"""Walking the danger path once, so that none of it has to be read from disk when it counts."""

from __future__ import annotations

import io
import zlib
from typing import Final

from spark_watch.blackbox.trace import TraceHeader, TraceWriter
from spark_watch.daemon.replay import OWN_RECORDER, judge_for
from spark_watch.model import GIB, Gpu, Machine, Memory, Pressure, Sample, Vm
from spark_watch.settings.conditions import ConditionSettings

STEPS: Final = 48
INTERVAL_SECONDS: Final = 0.25


def warm_up(settings: ConditionSettings) -> list[str]:
    """Judge, word and encode a pool that collapses, in memory alone.

    Returns:
        What the conditions say at its end, in the catalogue's order.
    """
    machine = Machine(gpu_name="NVIDIA GB10", memory_total_bytes=122 * GIB)
    header = TraceHeader(interval_seconds=INTERVAL_SECONDS, machine=machine, recorder=OWN_RECORDER)
    judge = judge_for(header, settings)
    stream = io.BytesIO()
    writer = TraceWriter(stream, header)
    for step in range(STEPS):
        sample = _collapsing(step, machine)
        judge.update(sample)
        writer.write(sample)
    zlib.compress(stream.getvalue())
    return [standing.finding.sentence for standing in judge.standing(sample.t)]


def _collapsing(step: int, machine: Machine) -> Sample:
    """A pool that falls from 24 GiB at 2 GiB/s, with a GPU under load beside it."""
    now = step * INTERVAL_SECONDS
    available = int(max(0.5, 24.0 - 2.0 * now) * GIB)
    return Sample(
        t=1e9 + now,
        monotonic_seconds=1.0 + now,
        boottime_seconds=1.0 + now,
        memory=Memory(
            total_bytes=122 * GIB,
            free_bytes=available // 2,
            available_bytes=available,
            cached_bytes=available // 2,
            buffers_bytes=0,
            anonymous_bytes=8 * GIB,
        ),
        pressure=Pressure(full_avg10_ratio=0.6, full_seconds=now),
        vm=Vm(swapped_in_bytes=step << 24, swapped_out_bytes=step << 24, major_faults=step * 100),
        gpus=(Gpu(index=0, power_watts=40.0, sm_hertz=2.4e9, utilization_ratio=0.96),),
        kernel=(),
        processes=(),
        machine=machine,
    )
