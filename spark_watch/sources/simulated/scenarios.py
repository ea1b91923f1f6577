"""The named scenarios: what a Spark lives through in order, and in each of the ways it fails."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spark_watch.model import GIB, State
from spark_watch.sources.simulated.chip import MHZ, Work
from spark_watch.sources.simulated.machine import Spark, Steps
from spark_watch.sources.simulated.scenario import Scenario, fault, quiet
from spark_watch.sources.simulated.workloads import (
    decode,
    load_weights,
    prefill,
    resident_server,
    resident_training,
    rest,
    traffic,
    training,
)


def _healthy_decode(spark: Spark) -> Steps:
    server = resident_server(spark)
    decode(spark, server)
    spark.settle()
    spark.play(traffic(server), server.engine)
    yield 0.0


def _healthy_training(spark: Spark) -> Steps:
    job = resident_training(spark)
    spark.chip.run(job.engine.pid, Work(88.0, sag=0.06))
    spark.settle()
    spark.play(training(job), job.engine)
    yield 0.0


def _model_load(spark: Spark) -> Steps:
    spark.settle()
    yield 40.0
    server = spark.serve()
    yield from load_weights(spark, server)
    spark.play(traffic(server), server.engine)


def _idle(spark: Spark) -> Steps:
    spark.settle()
    yield 180.0
    spark.base_load = 0.11
    spark.pool.reading_bytes_per_second = 0.35 * GIB
    yield 60.0
    spark.pool.reading_bytes_per_second = 0.0
    spark.base_load = 0.02


def _collapse(spark: Spark) -> Steps:
    """The engine's profile run takes more than its share: 29 GiB are gone in eleven seconds."""
    server = resident_server(spark, gpu_gib=80.0, host_gib=4.0)
    engine = server.engine
    engine.started_seconds = spark.uptime - 150.0
    server.launcher.started_seconds = spark.uptime - 165.0
    server.feed.phase = "load"
    spark.settle()
    yield 60.0
    spark.chip.run(engine.pid, Work(82.0, sag=0.05))
    held = 80.0
    for gib_per_second, seconds in ((0.1, 2.0), (0.9, 2.0), (1.8, 2.0), (4.4, 3.0), (2.6, 9.0)):
        held += gib_per_second * seconds
        engine.grow(gpu_gib=held, gib_per_second=gib_per_second)
        yield seconds
    engine.grow(gpu_gib=held, gib_per_second=0.4)
    spark.pool.livelock_ratio = 0.7
    spark.chip.rest(engine.pid)
    yield 25.0
    spark.log.write("hung_task", "nvidia-smi")
    spark.pool.livelock_ratio = 0.9
    yield 20.0
    spark.log.write("oom_kill", "VLLM::EngineCor")
    spark.pool.oom_kills += 1
    spark.pool.livelock_ratio = 0.0
    spark.stop(server)


def _slow_leak(spark: Spark) -> Steps:
    """A fifth of a gibibyte a minute, from 11 GiB: nothing to see in any one minute."""
    server = resident_server(spark, gpu_gib=100.0, host_gib=5.0, claim_ratio=0.85)
    decode(spark, server, watts=42.0)
    spark.settle()
    spark.play(traffic(server, decode_watts=42.0, rest_ratio=0.0), server.engine)
    yield 1.0
    server.engine.grow(gpu_gib=120.0, gib_per_second=0.2 / 60)


def _thermal_throttle(spark: Spark) -> Steps:
    """The air stops: the board reaches its trip point and the firmware takes the clock away."""
    job = resident_training(spark, steps=96)
    spark.chip.run(job.engine.pid, Work(90.0, sag=0.06))
    spark.settle()
    spark.play(training(job, watts=90.0, checkpoint_every=5_000.0), job.engine)
    yield 240.0
    spark.chip.kelvin_per_watt = 0.75


def _stuck_low_power(spark: Spark) -> Steps:
    """At rest the clock reads a healthy 2.4 GHz; the moment the load comes it is 700 MHz."""
    server = resident_server(spark)
    spark.settle()
    yield 60.0
    for _ in range(16):
        spark.chip.stuck_hertz = spark.rng.uniform(660.0, 890.0) * MHZ
        decode(spark, server, watts=42.0, rate=5.0)
        yield 15.0
    spark.chip.stuck_hertz = None
    decode(spark, server, watts=42.0)
    spark.play(traffic(server, rest_ratio=0.0), server.engine)


def _co_tenant_squeeze(spark: Spark) -> Steps:
    """A training job starts beside a capped server and takes the rest of the pool and more."""
    server = resident_server(spark, gpu_gib=72.0, host_gib=9.0, claim_ratio=0.6)
    server.engine.cold_ratio = 0.2
    decode(spark, server)
    spark.settle()
    spark.play(traffic(server, rest_ratio=0.0), server.engine)
    yield 180.0
    job = spark.train()
    job.engine.grow(gpu_gib=22.0, anonymous_gib=15.0, gib_per_second=0.25)
    spark.chip.run(job.engine.pid, Work(52.0))
    spark.pool.hot_cache_bytes = 3.0 * GIB
    yield 100.0
    job.engine.grow(anonymous_gib=22.0, gib_per_second=0.03)


def _nvml_stall(spark: Spark) -> Steps:
    """An allocating thread sits on the driver's lock: no NVML call returns for three minutes."""
    server = resident_server(spark)
    decode(spark, server)
    spark.settle()
    spark.play(traffic(server, rest_ratio=0.0), server.engine)
    yield 120.0
    spark.nvml_blocked_since = spark.elapsed
    yield 130.0
    spark.log.write("hung_task", "nvidia-smi")
    yield 50.0
    spark.nvml_blocked_since = None


def _power_loss(spark: Spark) -> Steps:
    """The box goes dark in mid run, with nothing wrong in any signal, and is switched on again."""
    job = resident_training(spark, steps=733)
    spark.chip.run(job.engine.pid, Work(86.0, sag=0.06))
    spark.settle()
    spark.play(training(job, watts=86.0), job.engine)
    yield 240.0
    spark.lose_power(90.0)
    yield 200.0
    server = spark.serve()
    yield from load_weights(spark, server, weights_gib=30.0, cache_gib=20.0)
    prefill(spark, server)
    yield 3.0
    decode(spark, server)
    yield 60.0
    rest(spark, server)


_ALL: Final = (
    Scenario(
        name="healthy-decode",
        description="an inference server answers requests: 40 W, 2.5 GHz, memory flat",
        seconds=600.0,
        script=_healthy_decode,
        spans=(quiet(0.0, 600.0, "steady serving with room to spare"),),
    ),
    Scenario(
        name="healthy-training",
        description="a training loop at 88 W with a checkpoint every five minutes",
        seconds=600.0,
        script=_healthy_training,
        spans=(quiet(0.0, 600.0, "constant work at constant speed"),),
    ),
    Scenario(
        name="model-load",
        description="a server starts: page cache fills, memory falls by 85 GiB and there is room",
        seconds=480.0,
        script=_model_load,
        spans=(quiet(0.0, 480.0, "a load that ends with more than 20 GiB available"),),
    ),
    Scenario(
        name="idle",
        description="nothing runs: 208 MHz, 4 W; a nightly job reads files",
        seconds=600.0,
        script=_idle,
        spans=(quiet(0.0, 600.0, "deep idle"),),
    ),
    Scenario(
        name="collapse",
        description="a profile run takes 29 GiB in eleven seconds; the box thrashes until a kill",
        seconds=240.0,
        script=_collapse,
        spans=(
            quiet(0.0, 60.0, "a server between loading and its profile run"),
            fault("G3", "memory_collapse", 62.0, 80.0, "29 GiB to nothing", deadline=6.0),
            fault(
                "G3",
                "memory_collapse",
                62.0,
                80.0,
                "under 5 s left",
                deadline=9.0,
                at_least=State.CRITICAL,
            ),
        ),
        closeups=((55.0, 85.0),),
    ),
    Scenario(
        name="slow-leak",
        description="a server loses 0.2 GiB a minute: hours of warning for who looks at the slope",
        seconds=2_700.0,
        script=_slow_leak,
        spans=(
            quiet(0.0, 850.0, "more than 8 GiB available"),
            fault(
                "G3", "memory_low", 1_200.0, 2_700.0, "2 GiB within half an hour", deadline=240.0
            ),
        ),
    ),
    Scenario(
        name="thermal-throttle",
        description="the air flow fails under a training load: the firmware takes the clock away",
        seconds=1_200.0,
        script=_thermal_throttle,
        spans=(
            quiet(0.0, 240.0, "hot work within its limits"),
            fault(
                "G4", "thermal_slowdown", 240.0, 1_200.0, "slowdown counters run", deadline=600.0
            ),
        ),
    ),
    Scenario(
        name="stuck-low-power",
        description="healthy at rest, 700 MHz and 18 W under load, no flag set; recovers by itself",
        seconds=480.0,
        script=_stuck_low_power,
        spans=(
            quiet(0.0, 58.0, "a resident server at rest"),
            fault(
                "G4",
                "low_power_state",
                60.0,
                300.0,
                "busy at 700 MHz",
                deadline=30.0,
                at_least=State.CRITICAL,
            ),
            quiet(400.0, 480.0, "full clock under load again"),
        ),
        closeups=((55.0, 90.0),),
    ),
    Scenario(
        name="co-tenant-squeeze",
        description="a training job starts beside a server and pushes its memory into swap",
        seconds=480.0,
        script=_co_tenant_squeeze,
        spans=(
            quiet(0.0, 180.0, "one server, capped at 0.6"),
            fault("G6", "squeezed", 180.0, 480.0, "the server is paged out", deadline=180.0),
        ),
    ),
    Scenario(
        name="nvml-stall",
        description="the GPU driver holds its lock: no NVML call returns for three minutes",
        seconds=420.0,
        script=_nvml_stall,
        spans=(
            quiet(0.0, 118.0, "steady serving"),
            fault("G3", "driver_stalled", 120.0, 300.0, "a call is outstanding", deadline=20.0),
            fault(
                "G3",
                "driver_stalled",
                120.0,
                300.0,
                "for more than a minute",
                deadline=70.0,
                at_least=State.CRITICAL,
            ),
        ),
        closeups=((115.0, 140.0),),
    ),
    Scenario(
        name="power-loss",
        description="the power goes in mid run, nothing announced it; the box comes up again",
        seconds=600.0,
        script=_power_loss,
        spans=(
            quiet(0.0, 239.0, "training in order"),
            fault("G4", "unclean_reboot", 355.0, 600.0, "a new boot, no clean stop", deadline=20.0),
        ),
    ),
)

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {scenario.name: scenario for scenario in _ALL}
)
"""Every named scenario, in the order in which a demonstration shows them."""
