"""Healthy days of the box around them: crashes of software, desktops, stops, sleeps, slow calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from spark_watch.model import GIB, Gpu, Machine
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.chip import Work
from spark_watch.sources.simulated.machine import Script, Spark, Steps
from spark_watch.sources.simulated.workloads import resident_server, traffic
from tests.score.families.scenes import serving, unit
from tests.score.family import Plan, Timed, Told, healthy, story

TIME = ("monotonic_seconds", "boottime_seconds", "boot_id")


@healthy(shortest=900.0)
def engine_crash(plan: Plan) -> Script:
    """An engine dies of its own fault with all its processes: memory comes back, the GPU idles."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=plan.rng.uniform(8.6, 30.0))
        yield plan.rng.uniform(300.0, 700.0)
        spark.kill(server.engine)
        yield plan.rng.uniform(0.5, 60.0)
        spark.stop(server)

    return script


@healthy()
def daemonised_engine(plan: Plan) -> Script:
    """An engine that never had a launcher to be seen: daemonised, or started in a container."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0))
        spark.kill(server.launcher)
        yield 0.0

    return script


@healthy()
def driver_keeps_some(plan: Plan) -> Script:
    """The driver holds 1 to 9 GiB more than its processes add up to."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.pool.driver_base_bytes = plan.rng.uniform(1.0, 9.0) * GIB
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0))
        yield 0.0

    return script


@healthy()
def gives_way_by_itself(plan: Plan) -> Script:
    """A server frees 10 to 25 GiB of its own cache as another starts: given, not squeezed out."""
    given = plan.rng.uniform(10.0, 25.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        first = resident_server(spark, gpu_gib=60.0, claim_ratio=0.52)
        spark.play(traffic(first), first.engine)
        spark.settle()
        while True:
            yield rng.uniform(200.0, 900.0)
            first.engine.hold(gpu_gib=60.0 - given)
            second = spark.serve(engine="llama.cpp", claim_ratio=0.3)
            second.engine.grow(gpu_gib=given, anonymous_gib=1.0, gib_per_second=0.7)
            spark.play(traffic(second, streams=(1, 4)), second.engine)
            yield rng.uniform(900.0, 3_600.0)
            spark.stop(second)
            yield 60.0
            first.engine.grow(gpu_gib=60.0, gib_per_second=0.3)

    return script


@healthy()
def two_small_servers(plan: Plan) -> Script:
    """Two capped servers whose claims add to at most 0.85, each busy in turn."""
    claim = plan.rng.uniform(0.25, 0.42)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        for engine in ("vllm", "sglang"):
            server = resident_server(
                spark,
                gpu_gib=121.0 * claim - 3.0,
                claim_ratio=round(claim, 2),
                engine=engine,
                host_gib=2.5,
            )
            spark.play(traffic(server, rest_ratio=0.5), server.engine)
        spark.settle()
        yield 0.0

    return script


@healthy()
def small_job_beside(plan: Plan) -> Script:
    """A bounded job of less than 4 GB runs beside a server capped at a half."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = resident_server(spark, gpu_gib=55.0, claim_ratio=0.48)
        spark.play(traffic(server), server.engine)
        spark.settle()
        while True:
            yield plan.rng.uniform(100.0, 900.0)
            job = spark.spawn("python3", anonymous_gib=1.2)
            job.grow(gpu_gib=plan.rng.uniform(0.5, 3.2), gib_per_second=0.5)
            yield plan.rng.uniform(300.0, 1_800.0)
            spark.kill(job)

    return script


@healthy()
def desktop(plan: Plan) -> Script:
    """A screen is attached: Xorg and the shell hold a little, beside a server of any size."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        for name, gib in (("Xorg", 0.04), ("gnome-shell", 0.02)):
            shown = spark.spawn(name, kind="graphics", anonymous_gib=0.2)
            shown.hold(gpu_gib=gib)
        serving(spark, plan, available_gib=plan.rng.uniform(9.0, 30.0))
        yield 0.0

    return script


@healthy()
def engine_with_workers(plan: Plan) -> Script:
    """One engine runs two processes of its own under one launcher: that is one tenant."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=24.0)
        worker = spark.spawn(
            "VLLM::Worker_TP1",
            engine="vllm",
            launcher=server.launcher,
            claim_ratio=server.launcher.claim_ratio,
            anonymous_gib=2.0,
        )
        worker.started_seconds = server.engine.started_seconds
        worker.hold(gpu_gib=8.0)
        yield 0.0

    return script


@healthy(needs=TIME)
def slow_driver_calls(plan: Plan) -> Script:
    """Some calls of the driver take two to eight seconds: slow is not stuck."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0))
        while True:
            yield plan.rng.uniform(60.0, 600.0)
            spark.nvml_blocked_since = spark.elapsed
            yield plan.rng.uniform(2.0, 8.0)
            spark.nvml_blocked_since = None

    return script


@story()
def bytes_not_told(plan: Plan) -> Told:
    """NVML lists its processes but not what each holds: that is not known, and not nothing."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0))
        yield 0.0

    def hide(samples: Iterable[Timed]) -> Iterator[Timed]:
        for elapsed, sample in samples:
            listed = tuple(replace(one, gpu_bytes=None) for one in sample.processes or ())
            yield elapsed, replace(sample, processes=listed)

    return Told(
        script=script,
        seconds=plan.seconds,
        spans=(Span(start=0.0, end=plan.seconds, why="serving"),),
        edit=hide,
    )


@story(needs=(*TIME, "stopped"))
def clean_reboot(plan: Plan) -> Told:
    """The box is shut down and started again in order: a new boot with a stop marker before it."""
    at = plan.rng.uniform(400.0, 800.0)
    off = plan.rng.uniform(60.0, 900.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0))
        yield at
        spark.lose_power(off)

    seconds = at + off + 900.0 + 60 * plan.interval
    return Told(
        script=script,
        seconds=seconds,
        spans=(Span(start=0.0, end=seconds, why="a reboot in order"),),
        edit=_mark_stop,
    )


@story(needs=TIME, intervals=(1.0, 2.0, 0.5, 5.0))
def daemon_restarts(plan: Plan) -> Told:
    """The daemon is killed and is back within fifty seconds, in the same boot."""
    at = plan.rng.uniform(400.0, 800.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0))
        yield at
        spark.silence(plan.rng.uniform(15.0, 50.0))

    seconds = at + 900.0
    return Told(
        script=script,
        seconds=seconds,
        spans=(Span(start=0.0, end=seconds, why="the daemon was away for less than a minute"),),
    )


@story(needs=TIME)
def suspend(plan: Plan) -> Told:
    """The box sleeps for ten minutes to two hours: CLOCK_MONOTONIC stands still."""
    at = plan.rng.uniform(400.0, 800.0)
    asleep = plan.rng.uniform(600.0, 2 * 3_600.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0), busy=False)
        yield at
        spark.silence(asleep)

    seconds = at + asleep + 900.0 + 60 * plan.interval

    def sleep(samples: Iterable[Timed]) -> Iterator[Timed]:
        for elapsed, sample in samples:
            if elapsed < at + asleep:
                yield elapsed, sample
            else:
                uptime = sample.monotonic_seconds or 0.0
                yield elapsed, replace(sample, monotonic_seconds=uptime - asleep)

    return Told(
        script=script,
        seconds=seconds,
        spans=(Span(start=0.0, end=seconds, why="the box slept"),),
        edit=sleep,
    )


def _mark_stop(samples: Iterable[Timed]) -> Iterator[Timed]:
    """Set the marker of a clean stop on the last sample of each boot but the last."""
    before: Timed | None = None
    for elapsed, sample in samples:
        if before is not None:
            stopped = before[1].boot_id != sample.boot_id
            yield before[0], replace(before[1], stopped=stopped)
        before = elapsed, sample
    if before is not None:
        yield before


@healthy(shortest=900.0)
def pages_leave_at_a_start(plan: Plan) -> Script:
    """A start through the page cache parks gigabytes of cold pages in swap; none comes back."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        parked = spark.spawn("java", kind="system", anonymous_gib=9.0, cold_ratio=0.95)
        spark.settle()
        yield 200.0
        server = spark.serve()
        server.engine.grow(gpu_gib=70.0, anonymous_gib=3.0, gib_per_second=0.7)
        spark.pool.reading_bytes_per_second = 0.7 * GIB
        yield 105.0
        spark.pool.reading_bytes_per_second = 0.0
        spark.play(traffic(server), server.engine)
        parked.cold_ratio = 0.97

    return script


@story()
def discrete_card(plan: Plan) -> Told:
    """Not a GB10: a large card at its 700 W cap all day, 1440 of 1980 MHz, in a host of 2 TiB."""
    machine = Machine(
        gpu_name="NVIDIA H200",
        driver_version="580.159.04",
        kernel="6.18.0",
        memory_total_bytes=2048 * GIB,
        gpu_count=1,
        partitioned=False,
    )

    def script(spark: Spark) -> Steps:
        spark.pool.total_bytes = 2048 * GIB
        rng = plan.rng
        job = spark.train(step_seconds=3.0)
        job.engine.hold(gpu_gib=0.0, anonymous_gib=30.0)
        while True:
            spark.chip.run(job.engine.pid, Work(90.0))
            yield rng.uniform(300.0, 3_000.0)
            spark.chip.rest(job.engine.pid)
            yield rng.uniform(5.0, 300.0)

    def swap_card(samples: Iterable[Timed]) -> Iterator[Timed]:
        rng = plan.rng
        capped = 0.0
        for elapsed, sample in samples:
            busy = any((gpu.utilization_ratio or 0.0) > 0.5 for gpu in sample.gpus or ())
            capped += plan.interval if busy else 0.0
            card = Gpu(
                index=0,
                power_watts=rng.uniform(691.0, 694.0) if busy else rng.uniform(78.0, 79.0),
                temperature_celsius=57.0 if busy else 31.0,
                sm_hertz=rng.uniform(1.440e9, 1.485e9) if busy else 3.45e8,
                utilization_ratio=rng.uniform(0.99, 1.0) if busy else 0.0,
                event_reasons=("sw_power_cap",) if busy else ("gpu_idle",),
                event_seconds={"sw_power_cap": capped, "sw_thermal_slowdown": 0.0},
                energy_joules=1.0e6 + 300.0 * elapsed,
                performance_state=0,
                memory_total_bytes=141 * GIB,
                memory_used_bytes=(96 if busy else 95) * GIB,
            )
            listed = tuple(
                replace(one, gpu_bytes=95 * GIB) if one.kind == "compute" else one
                for one in sample.processes or ()
            )
            yield elapsed, replace(sample, gpus=(card,), processes=listed, machine=machine)

    return Told(
        script=script,
        seconds=plan.seconds,
        spans=(Span(start=0.0, end=plan.seconds, why="a card at its power cap"),),
        edit=swap_card,
        machine=machine,
    )
