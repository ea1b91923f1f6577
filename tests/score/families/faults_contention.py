"""Several tenants on the one pool: too much claimed, squeezed out, left behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from spark_watch.model import GIB, State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.chip import Work
from spark_watch.sources.simulated.machine import Spark, Steps
from spark_watch.sources.simulated.workloads import resident_server, traffic
from tests.score.families.scenes import MEMORY, serving, unit
from tests.score.family import Plan, Timed, Told, story

TENANTS = ("processes", *MEMORY)


@story(needs=TENANTS)
def claims_exceed_the_pool(plan: Plan) -> Told:
    """Two servers claim more than the pool between them, before either has filled its share."""
    rng = plan.rng
    onset = rng.uniform(300.0, 600.0)
    first = round(rng.uniform(0.5, 0.7), 2)
    second = round(rng.uniform(1.04 - first, 0.6), 2)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = resident_server(spark, gpu_gib=121.0 * first - 8.0, claim_ratio=first)
        spark.play(traffic(server), server.engine)
        spark.settle()
        yield onset
        other = spark.serve(engine="sglang", claim_ratio=second)
        other.engine.grow(gpu_gib=14.0, gib_per_second=0.4)

    end = onset + max(600.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="one capped server"),
            Span(
                start=onset,
                end=end,
                why=f"claims of {first:.2f} and {second:.2f}",
                gotchas=("G6",),
                condition="pool_overcommitted",
                deadline=plan.late(60.0),
            ),
        ),
    )


@story(needs=TENANTS)
def uncapped_beside_a_server(plan: Plan) -> Told:
    """A job of 20 GiB with no claim grows beside a server until less than 14 GiB are left."""
    rng = plan.rng
    onset = rng.uniform(300.0, 600.0)
    left = rng.uniform(9.0, 13.5)
    size = rng.uniform(12.0, 24.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=left + size + 0.5)
        yield onset
        job = spark.spawn("python3", anonymous_gib=0.5)
        job.grow(gpu_gib=size, gib_per_second=0.3)
        spark.chip.run(job.pid, Work(50.0))

    full = onset + size / 0.3
    end = full + max(600.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="one server"),
            Span(
                start=full,
                end=end,
                why="an uncapped job has taken the reserve",
                gotchas=("G6",),
                condition="pool_overcommitted",
                deadline=plan.late(60.0),
            ),
        ),
    )


@story(needs=(*TENANTS, "vm"))
def squeezed_out(plan: Plan) -> Told:
    """A growing neighbour pushes a server's memory into swap; it faults and slows down."""
    rng = plan.rng
    onset = rng.uniform(300.0, 600.0)
    excess = rng.uniform(3.0, 5.0)
    rate = 0.25

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = resident_server(spark, gpu_gib=72.0, host_gib=9.0, claim_ratio=0.62)
        server.engine.cold_ratio = 0.15
        spark.play(traffic(server, rest_ratio=0.0), server.engine)
        spark.settle()
        yield onset
        spark.pool.hot_cache_bytes = 3.0 * GIB
        job = spark.train()
        wanted = spark.pool.available_bytes / GIB + excess
        job.engine.grow(gpu_gib=0.6 * wanted, anonymous_gib=0.4 * wanted, gib_per_second=rate)
        spark.chip.run(job.engine.pid, Work(55.0))
        yield 0.6 * wanted / rate
        job.engine.grow(anonymous_gib=0.4 * wanted + 4.0, gib_per_second=0.02)

    start = onset + 0.6 * 37.0 / rate
    end = start + max(480.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="one server, capped"),
            Span(
                start=start,
                end=end,
                why="paged out by a growing neighbour",
                gotchas=("G6",),
                condition="squeezed",
                deadline=plan.late(120.0),
            ),
        ),
    )


@story(needs=TENANTS)
def orphaned_engine(plan: Plan) -> Told:
    """The front of a server is killed; its engine stays behind with all the memory."""
    rng = plan.rng
    onset = rng.uniform(300.0, 600.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 30.0))
        yield onset
        spark.kill(server.launcher)
        spark.workloads.clear()

    end = onset + max(600.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="a server under its launcher"),
            Span(
                start=onset,
                end=end,
                why="an engine without its launcher",
                gotchas=("G6",),
                condition="orphaned_memory",
                deadline=plan.late(100.0),
            ),
        ),
    )


@story(needs=("processes", "memory"))
def nobody_holds_it(plan: Plan) -> Told:
    """From inside another pid namespace no process is listed although 60 to 95 GiB are held."""
    held = plan.rng.uniform(60.0, 95.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        resident_server(spark, gpu_gib=held)
        spark.settle()
        yield 0.0

    seconds = max(900.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=seconds,
        spans=(
            Span(
                start=0.0,
                end=seconds,
                why="memory that no listed process holds",
                gotchas=("G6",),
                condition="unattributed_memory",
                at_least=State.INFO,
                deadline=plan.late(180.0),
            ),
        ),
        edit=_hide_processes,
    )


def _hide_processes(samples: Iterable[Timed]) -> Iterator[Timed]:
    for elapsed, sample in samples:
        yield elapsed, replace(sample, processes=())
