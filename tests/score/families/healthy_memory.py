"""Healthy days as the pool sees them: full, thin, swinging, loading, copying."""

from __future__ import annotations

from spark_watch.model import GIB, State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.chip import Work
from spark_watch.sources.simulated.machine import Script, Spark, Steps
from spark_watch.sources.simulated.workloads import load_weights, resident_server, rest, traffic
from tests.score.families.scenes import JUDGED_UNDER_LOAD, leave_available, serving, unit
from tests.score.family import Plan, Told, healthy, story

HOUR = 3_600.0


@healthy(judged=JUDGED_UNDER_LOAD)
def steady_decode(plan: Plan) -> Script:
    """Hours of decode at one level of memory, from 9 to 90 GiB available."""
    available = plan.rng.uniform(9.0, 90.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=available)
        yield 0.0

    return script


@healthy(judged=JUDGED_UNDER_LOAD)
def thin_for_weeks(plan: Plan) -> Script:
    """A server lives for weeks at 1.6 to 1.9 GiB available with its swap empty."""
    available = plan.rng.uniform(1.65, 1.85)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=available)
        spark.pool.jitter_bytes = 0.03 * GIB
        yield 0.0

    return script


@healthy()
def low_and_flat(plan: Plan) -> Script:
    """MemAvailable flat at 3 to 7.5 GiB for hours: low, and enough."""
    available = plan.rng.uniform(3.0, 7.5)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=available)
        yield 0.0

    return script


@healthy()
def settles_low(plan: Plan) -> Script:
    """A soak loses half a gibibyte from 4.1 GiB in its first hours, then lies flat."""
    available = plan.rng.uniform(4.0, 4.4)
    lost = plan.rng.uniform(0.35, 0.55)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=available)
        held = server.engine.gpu_bytes / GIB
        server.engine.grow(gpu_gib=held + lost, gib_per_second=lost / 9_000.0)
        yield 0.0

    return script


@healthy()
def swings_by_two(plan: Plan) -> Script:
    """MemAvailable moves by up to 2 GiB either way around 6 to 12 GiB, every minute or so."""
    available = plan.rng.uniform(6.5, 12.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=available)
        engine = server.engine
        middle = engine.gpu_bytes / GIB
        while True:
            engine.grow(gpu_gib=middle + rng.uniform(-2.0, 2.0), gib_per_second=0.15)
            yield rng.uniform(20.0, 90.0)

    return script


@healthy()
def full_and_hot(plan: Plan) -> Script:
    """Three hours of mixed requests at 5.8 to 6.2 GiB available and up to 85 C."""
    available = plan.rng.uniform(5.8, 6.2)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=available, busy=False)
        spark.play(
            traffic(
                server,
                decode_watts=plan.rng.uniform(70.0, 80.0),
                prefill_watts=94.0,
                prefill_seconds=(5.0, 90.0),
                decode_seconds=(10.0, 200.0),
                rest_ratio=0.2,
            ),
            server.engine,
        )
        yield 0.0

    return script


@healthy()
def swap_parked(plan: Plan) -> Script:
    """6 GiB available and nearly all of the swap used by pages that nobody touches."""
    available = plan.rng.uniform(5.8, 6.4)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=available)
        engine = server.engine
        engine.cold_ratio = 0.9
        engine.swapped_bytes = 15.5 * GIB
        engine.anonymous_goal = engine.anonymous_bytes + engine.swapped_bytes
        yield 0.0

    return script


@healthy()
def page_cache_full(plan: Plan) -> Script:
    """A server with MemFree at 1.2 to 1.5 GiB and 7 to 32 GiB available: cache is not use."""
    available = plan.rng.uniform(7.0, 32.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=available)
        spark.pool.cache_bytes = 60.0 * GIB
        leave_available(spark, server.engine, available)
        yield 0.0

    return script


@healthy(shortest=900.0)
def file_copy(plan: Plan) -> Script:
    """A 60 GiB file is written and deleted: MemFree falls by 61 GiB, MemAvailable does not."""
    rate = plan.rng.uniform(0.5, 3.0)
    resident = plan.rng.random() < 0.4

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        if resident:
            serving(spark, plan, available_gib=80.0)
        else:
            spark.settle()
        pool = spark.pool
        while True:
            yield plan.rng.uniform(120.0, 240.0)
            pool.writing_bytes_per_second = rate * GIB
            yield 60.0 / rate
            pool.writing_bytes_per_second = 0.0
            yield plan.rng.uniform(60.0, 1_200.0)
            pool.cache_bytes = max(2.0 * GIB, pool.cache_bytes - 60.0 * GIB)

    return script


@healthy(shortest=1_800.0)
def steady_weight_load(plan: Plan) -> Script:
    """Servers load at one speed between 0.15 and 2 GiB/s and end with 9 to 40 GiB available."""
    rate = plan.rng.uniform(0.15, 2.0)
    left = plan.rng.uniform(9.0, 40.0)
    cached = plan.rng.random() < 0.6

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        yield plan.rng.uniform(60.0, 300.0)
        while True:
            server = spark.serve()
            weights = 110.0 - left
            yield from _plain_load(spark, server.engine.pid, weights, rate, through_cache=cached)
            rest(spark, server)
            spark.play(traffic(server), server.engine)
            yield plan.rng.uniform(1_800.0, 9_000.0)
            spark.stop(server)
            yield plan.rng.uniform(60.0, 600.0)

    return script


def _plain_load(
    spark: Spark, pid: int, weights_gib: float, rate: float, *, through_cache: bool
) -> Steps:
    """Weights at one speed and nothing after them."""
    (engine,) = (one for one in spark.pool.tenants if one.pid == pid)
    engine.grow(gpu_gib=0.6, anonymous_gib=4.0, gib_per_second=0.4)
    yield 12.0
    if through_cache:
        spark.pool.reading_bytes_per_second = rate * GIB
    engine.grow(gpu_gib=weights_gib, gib_per_second=rate)
    yield weights_gib / rate
    spark.pool.reading_bytes_per_second = 0.0
    spark.log.write("nv_err_no_memory", count=spark.rng.randint(1, 3))
    yield 20.0


@healthy(at_most=State.WARNING, shortest=900.0)
def fast_load_from_rest(plan: Plan) -> Script:
    """A server sets up its cache at 1.6 GiB/s from below 40 GiB: a collapse's twin."""
    left = plan.rng.uniform(9.0, 16.0)
    cache = plan.rng.uniform(12.0, 24.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        yield 120.0
        while True:
            server = spark.serve()
            yield from load_weights(
                spark,
                server,
                weights_gib=107.0 - left - cache,
                cache_gib=cache,
                gib_per_second=plan.rng.uniform(0.5, 1.2),
                through_page_cache=plan.rng.random() < 0.5,
            )
            spark.play(traffic(server), server.engine)
            yield plan.rng.uniform(1_800.0, 9_000.0)
            spark.stop(server)
            yield plan.rng.uniform(120.0, 600.0)

    return script


@healthy(shortest=900.0)
def single_dips(plan: Plan) -> Script:
    """Now and then a request takes 0.6 to 1.4 GiB for a few seconds, at 8 to 20 GiB available."""
    available = plan.rng.uniform(8.5, 20.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=available)
        engine = server.engine
        held = engine.gpu_bytes / GIB
        while True:
            yield rng.uniform(120.0, 900.0)
            engine.grow(gpu_gib=held + rng.uniform(0.6, 1.4), gib_per_second=1.4)
            yield rng.uniform(1.0, 4.0)
            engine.hold(gpu_gib=held)

    return script


@story(intervals=(1.0, 0.5, 2.0, 5.0, 10.0, 30.0))
def startup_dip(plan: Plan) -> Told:
    """A start dips to 5 to 7.5 GiB while it compiles, then gives the memory back."""
    rng = plan.rng
    lowest, left = rng.uniform(5.0, 7.5), rng.uniform(12.0, 20.0)
    rate = rng.uniform(0.25, 0.6)
    dip_at = rng.uniform(300.0, 400.0)
    held = rng.uniform(10.0, 40.0)
    fall = (left - lowest) / rate

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=left, busy=False)
        for process in (server.launcher, server.engine):
            process.started_seconds = spark.uptime - 60.0
        yield dip_at
        gib = server.engine.gpu_bytes / GIB
        spark.chip.run(server.engine.pid, Work(45.0, utilization=0.6))
        server.engine.grow(gpu_gib=gib + left - lowest, gib_per_second=rate)
        yield fall + held
        server.engine.hold(gpu_gib=gib)
        spark.play(traffic(server), server.engine)

    end = dip_at + fall + held
    seconds = max(1_500.0, end + 400.0 * plan.interval)
    settled = plan.late(end + 330.0)
    return Told(
        script=script,
        seconds=seconds,
        spans=(
            Span(start=0.0, end=dip_at, why="a server between load and compilation"),
            Span(start=dip_at, end=settled, why="a dip that ends", at_most=State.WARNING),
            Span(start=settled, end=seconds, why="serving"),
        ),
    )


@healthy(shortest=1_800.0)
def server_restarts(plan: Plan) -> Script:
    """A server is stopped; its shared memory comes back minutes later; it starts again."""
    rate = plan.rng.uniform(0.4, 1.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(14.0, 40.0))
        while True:
            yield rng.uniform(900.0, 7_200.0)
            spark.stop(server)
            yield rng.uniform(60.0, 400.0)
            server = spark.serve()
            yield from _plain_load(
                spark, server.engine.pid, rng.uniform(50.0, 92.0), rate, through_cache=False
            )
            spark.play(traffic(server), server.engine)

    return script


@healthy(shortest=1_800.0)
def model_switches(plan: Plan) -> Script:
    """Models are loaded on demand: 20 to 65 GiB come and go every ten to thirty minutes."""
    rate = plan.rng.uniform(0.5, 1.8)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        spark.settle()
        while True:
            server = spark.serve(engine="ollama", claim_ratio=None)
            size = rng.uniform(20.0, 65.0)
            server.engine.grow(gpu_gib=size, anonymous_gib=1.5, gib_per_second=rate)
            yield size / rate + 5.0
            spark.play(traffic(server, streams=(1, 2)), server.engine)
            yield rng.uniform(600.0, 1_800.0)
            spark.stop(server)
            yield rng.uniform(1.0, 20.0)

    return script


@healthy(shortest=900.0)
def compiler_fan_out(plan: Plan) -> Script:
    """Sixteen compiler jobs take 30 to 60 GiB of ordinary memory on a box without a server."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        spark.settle()
        while True:
            yield rng.uniform(200.0, 600.0)
            jobs = spark.spawn("cc1plus", kind="system", anonymous_gib=0.2)
            jobs.grow(anonymous_gib=rng.uniform(30.0, 60.0), gib_per_second=0.3)
            spark.base_load = 0.8
            yield rng.uniform(300.0, 900.0)
            spark.kill(jobs)
            spark.base_load = 0.02

    return script


@healthy(shortest=900.0)
def lines_at_rest(plan: Plan) -> Script:
    """The driver logs one failed allocation now and then, once sixteen in a second, with room."""
    available = plan.rng.uniform(26.0, 60.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        serving(spark, plan, available_gib=available)
        while True:
            yield rng.uniform(200.0, 3_000.0)
            spark.log.write("nv_err_no_memory", count=rng.choice((1, 1, 1, 2, 3, 16)))

    return script


@healthy(shortest=1_800.0)
def first_large_prompt(plan: Plan) -> Script:
    """The first large prompt of a run costs the driver 0.8 GiB for good, once."""
    available = plan.rng.uniform(14.0, 30.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=available)
        yield plan.rng.uniform(100.0, 900.0)
        gib = server.engine.gpu_bytes / GIB
        server.engine.grow(gpu_gib=gib + 0.8, gib_per_second=0.2)

    return script


@healthy(shortest=900.0)
def first_touch_faults(plan: Plan) -> Script:
    """A process touches its files for the first time: 237 major faults in a minute, then none."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(20.0, 60.0))
        yield 120.0
        while True:
            tool = spark.spawn("python3", anonymous_gib=0.4, claim_bytes=2 * GIB)
            tool.grow(gpu_gib=1.5, gib_per_second=0.2)
            for _ in range(30):
                tool.major_faults += 237 / 30
                spark.pool.major_faults += 237 / 30
                yield 2.0
            yield plan.rng.uniform(300.0, 1_800.0)
            spark.kill(tool)
            yield plan.rng.uniform(60.0, 300.0)

    return script


@healthy(shortest=900.0)
def large_free_allocation(plan: Plan) -> Script:
    """A test takes 10 to 112 GB in eight steps and gives it all back: planned, and over."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        while True:
            yield plan.rng.uniform(200.0, 900.0)
            ladder = spark.spawn("python3")
            for step in range(1, 8):
                ladder.grow(gpu_gib=11.5 * step, gib_per_second=9.0)
                yield 12.0
            spark.kill(ladder)

    return script


@healthy(shortest=900.0)
def second_model_fits(plan: Plan) -> Script:
    """A second server, capped at a fifth, starts and leaves 30 GiB; four lines, both well."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        first = resident_server(spark, gpu_gib=54.0, claim_ratio=0.46)
        spark.play(traffic(first), first.engine)
        spark.settle()
        yield plan.rng.uniform(200.0, 600.0)
        second = spark.serve(engine="llama.cpp", claim_ratio=0.2)
        second.engine.grow(gpu_gib=22.0, anonymous_gib=1.5, gib_per_second=0.8)
        yield 20.0
        spark.log.write("nv_err_no_memory", count=4)
        yield 20.0
        spark.play(traffic(second, streams=(1, 4)), second.engine)

    return script


@healthy(shortest=900.0)
def idle_and_full_of_cache(plan: Plan) -> Script:
    """After a checksum of everything an idle box has 4 to 12 GiB free and 105 GiB of page cache."""
    free = plan.rng.uniform(3.8, 12.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.pool.cache_bytes += spark.pool.free_bytes - free * GIB
        spark.settle()
        yield 0.0

    return script


@healthy()
def a_little_pressure(plan: Plan) -> Script:
    """Pressure of one to four per cent comes and goes: somebody waits for memory now and then."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=plan.rng.uniform(8.6, 30.0))
        while True:
            spark.pool.livelock_ratio = plan.rng.choice((0.0, plan.rng.uniform(0.005, 0.04)))
            yield plan.rng.uniform(10.0, 300.0)

    return script
