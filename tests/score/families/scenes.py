"""Pieces of stories that several families use."""

from __future__ import annotations

from spark_watch.model import GIB
from spark_watch.sources.simulated.machine import Server, Spark
from spark_watch.sources.simulated.processes import SimulatedProcess
from spark_watch.sources.simulated.workloads import decode, resident_server, traffic
from tests.score.family import Plan

MEMORY = ("memory.total_bytes", "memory.available_bytes", "memory.free_bytes")
"""What any rule about the pool's level needs."""

LOAD = ("gpus.utilization_ratio", "gpus.sm_hertz", "gpus.power_watts", "gpus.temperature_celsius")

ALWAYS_JUDGED = (
    "memory_collapse",
    "memory_low",
    "memory_stalled",
    "page_cache_squeeze",
    "driver_allocation_failures",
    "driver_fault",
    "swap_thrash",
    "driver_stalled",
    "telemetry_gap",
    "gpu_hot",
    "board_hot",
    "pool_overcommitted",
    "squeezed",
    "orphaned_memory",
    "unattributed_memory",
)
"""Conditions whose every input is in a whole sample, whatever the box does."""

JUDGED_UNDER_LOAD = (
    *ALWAYS_JUDGED,
    "low_power_state",
    "thermal_slowdown",
    "busy_without_progress",
)
"""Those that a busy GPU lets one judge as well."""


def unit(spark: Spark, plan: Plan) -> None:
    """Make this box another copy of the same product: clock, cooling, air, kernel."""
    rng, chip = plan.rng, spark.chip
    chip.best_hertz += rng.uniform(-20.0e6, 8.0e6)
    chip.ambient_celsius = rng.uniform(35.0, 41.0)
    chip.kelvin_per_watt = rng.uniform(0.37, 0.43)
    chip.board_gap_celsius = rng.uniform(6.0, 8.5)
    chip.idle_watts = rng.uniform(10.2, 13.0)
    chip.deep_idle_watts = rng.uniform(3.3, 5.6)
    spark.pool.max_block_bytes = rng.choice((4, 32)) * 1024**2
    spark.pool.jitter_bytes = rng.uniform(0.02, 0.07) * GIB
    spark.pool.cache_bytes = rng.uniform(2.5, 9.0) * GIB


def leave_available(spark: Spark, process: SimulatedProcess, available_gib: float) -> None:
    """Let the process hold what leaves that much MemAvailable, without the time to get there.

    The page cache is what such a box has kept: never so much that free memory would be below the
    kernel's own reserve.
    """
    pool = spark.pool
    pool.cache_bytes = min(pool.cache_bytes, max(0.5, available_gib - 1.6) * GIB)
    pool.hot_cache_bytes = min(pool.hot_cache_bytes, 0.7 * pool.cache_bytes)
    process.hold(gpu_gib=(process.gpu_bytes + pool.available_bytes) / GIB - available_gib)


def serving(
    spark: Spark,
    plan: Plan,
    *,
    available_gib: float,
    claim_ratio: float | None = None,
    decode_watts: float | None = None,
    rest_ratio: float = 0.1,
    busy: bool = True,
) -> Server:
    """A server that was there before and leaves that much; it answers requests from now on."""
    rng = plan.rng
    host_gib = rng.uniform(3.0, 7.0)
    server = resident_server(spark, gpu_gib=1.0, claim_ratio=claim_ratio, host_gib=host_gib)
    leave_available(spark, server.engine, available_gib)
    if claim_ratio is None:
        held = server.engine.gpu_bytes / spark.pool.total_bytes
        server.engine.claim_ratio = server.launcher.claim_ratio = round(min(0.92, held + 0.02), 2)
    if busy:
        watts = rng.uniform(31.0, 50.0) if decode_watts is None else decode_watts
        decode(spark, server, watts=watts)
        spark.play(
            traffic(server, decode_watts=watts, rest_ratio=rest_ratio, streams=(2, 16)),
            server.engine,
        )
    spark.settle()
    return server
