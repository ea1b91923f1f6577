"""The pool runs out: in seconds, in hours, into swap, or into a wedge with memory to spare."""

from __future__ import annotations

from spark_watch.model import GIB, State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.chip import Work
from spark_watch.sources.simulated.machine import Spark, Steps
from spark_watch.sources.simulated.workloads import decode, rest, traffic
from tests.score.families.scenes import MEMORY, serving, unit
from tests.score.family import FAST_INTERVALS, LONG_INTERVALS, Plan, Told, story

CRITICAL = State.CRITICAL


def _collapse_spans(
    plan: Plan, *, onset: float, level: float, rate: float, end: float
) -> tuple[Span, ...]:
    """A warning before 6 GiB are left and a critical before 1.5, two readings allowed for each."""
    warned = max(3.0, (level - 6.0) / rate) + 2 * plan.interval
    certain = max(4.0, (level - 1.5) / rate) + 2 * plan.interval
    return (
        Span(start=0.0, end=onset, why="an ordinary stretch"),
        Span(
            start=onset,
            end=end,
            why=f"{rate:.1f} GiB/s from {level:.0f} GiB",
            gotchas=("G3",),
            condition="memory_collapse",
            deadline=warned,
        ),
        Span(
            start=onset,
            end=end,
            why=f"{rate:.1f} GiB/s from {level:.0f} GiB, nearly gone",
            gotchas=("G3",),
            condition="memory_collapse",
            at_least=CRITICAL,
            deadline=certain,
        ),
    )


@story(needs=MEMORY, intervals=FAST_INTERVALS, fast=True)
def collapse_out_of_quiet(plan: Plan) -> Told:
    """A server at rest or serving takes 20 to 38 GiB at 1.6 to 4.4 GiB/s until nothing is left."""
    rng = plan.rng
    level, rate = rng.uniform(20.0, 38.0), rng.uniform(1.6, 4.4)
    onset = rng.uniform(60.0, 240.0)
    busy = rng.random() < 0.5

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=level, busy=busy)
        yield onset
        server.engine.grow(gpu_gib=125.0, gib_per_second=rate)

    end = onset + level / rate + 20.0
    spans = _collapse_spans(plan, onset=onset, level=level, rate=rate, end=end)
    return Told(script=script, seconds=end + 10.0, spans=spans)


@story(needs=MEMORY, intervals=FAST_INTERVALS, fast=True)
def collapse_ramps_up(plan: Plan) -> Told:
    """As the published series: 0.1, 0.8, 1.8, then 4.4 GiB/s from 29 GiB, faster or slower."""
    rng = plan.rng
    level, pace = rng.uniform(27.0, 31.0), rng.uniform(0.75, 1.15)
    onset = rng.uniform(60.0, 200.0)
    steps = [(rate * pace, 2.0) for rate in (0.1, 0.8, 1.8, 4.4, 4.4, 2.2, 3.0)]

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=level, busy=False)
        yield onset
        held = server.engine.gpu_bytes / GIB
        for rate, seconds in steps:
            held += rate * seconds
            server.engine.grow(gpu_gib=held, gib_per_second=rate)
            yield seconds
        server.engine.grow(gpu_gib=125.0, gib_per_second=2.0 * pace)

    end = onset + 30.0
    spans = (
        Span(start=0.0, end=onset, why="a server between load and profile run"),
        Span(
            start=onset + 2.0,
            end=end,
            why="29 GiB in about twelve seconds",
            gotchas=("G3",),
            condition="memory_collapse",
            deadline=(19.0 / 4.4 + 2.0) / pace + 2 * plan.interval,
        ),
        Span(
            start=onset + 2.0,
            end=end,
            why="29 GiB in about twelve seconds, the last ones",
            gotchas=("G3",),
            condition="memory_collapse",
            at_least=CRITICAL,
            deadline=11.0 / pace + 2 * plan.interval,
        ),
    )
    return Told(script=script, seconds=end + 10.0, spans=spans)


@story(needs=MEMORY, intervals=(0.25, 0.5), fast=True)
def collapse_at_once(plan: Plan) -> Told:
    """34 GiB at 14 GiB/s, the fastest fall on record: two seconds from level to nothing."""
    level = plan.rng.uniform(30.0, 38.0)
    rate = plan.rng.uniform(9.0, 14.0)
    onset = plan.rng.uniform(60.0, 150.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=level, busy=False)
        yield onset
        server.engine.grow(gpu_gib=125.0, gib_per_second=rate)

    end = onset + level / rate + 5.0
    return Told(
        script=script,
        seconds=end + 5.0,
        spans=(
            Span(start=0.0, end=onset, why="at rest"),
            Span(
                start=onset,
                end=end,
                why=f"{rate:.0f} GiB/s",
                gotchas=("G3",),
                condition="memory_collapse",
                at_least=CRITICAL,
                deadline=level / rate + 2 * plan.interval,
            ),
        ),
    )


@story(needs=MEMORY, intervals=(5.0, 10.0, 30.0, 60.0), fast=True)
def collapse_seen_slowly(plan: Plan) -> Told:
    """A collapse of ten seconds with five seconds to a minute between two readings."""
    level = plan.rng.uniform(20.0, 38.0)
    rate = plan.rng.uniform(1.6, 4.4)
    onset = plan.rng.uniform(200.0, 400.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=level, busy=False)
        yield onset
        server.engine.grow(gpu_gib=125.0, gib_per_second=rate)

    end = onset + level / rate + max(60.0, 4 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="at rest"),
            Span(
                start=onset,
                end=end,
                why=f"{rate:.1f} GiB/s from {level:.0f} GiB",
                gotchas=("G3",),
                condition="memory_collapse",
                at_least=CRITICAL,
                deadline=level / rate + 2 * plan.interval,
            ),
        ),
    )


@story(needs=MEMORY, intervals=FAST_INTERVALS, fast=True)
def load_runs_away(plan: Plan) -> Told:
    """A steady load turns into a fall of 3 to 5 GiB/s when 22 to 27 GiB are left."""
    rng = plan.rng
    level, rate = rng.uniform(22.0, 27.0), rng.uniform(3.0, 5.0)
    steady = rng.uniform(0.4, 1.0)
    loaded = 110.0 - level
    onset = 40.0 + loaded / steady

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        yield 40.0
        server = spark.serve()
        server.engine.grow(gpu_gib=loaded, gib_per_second=steady)
        yield loaded / steady
        server.engine.grow(gpu_gib=125.0, gib_per_second=rate)

    end = onset + (level + 6.0) / rate + 10.0
    spans = _collapse_spans(plan, onset=onset, level=level + 6.0, rate=rate, end=end)
    return Told(script=script, seconds=end + 5.0, spans=spans)


@story(needs=MEMORY, intervals=(1.0, 0.5, 2.0), fast=True)
def load_goes_too_far(plan: Plan) -> Told:
    """A steady load of 0.5 to 1.2 GiB/s simply does not stop: critical in its last gibibytes."""
    rate = plan.rng.uniform(0.5, 1.2)
    level = 116.0
    gone = 40.0 + level / rate

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        yield 40.0
        server = spark.serve()
        server.engine.grow(gpu_gib=125.0, gib_per_second=rate)

    start = gone - 6.0 / rate
    return Told(
        script=script,
        seconds=gone + 40.0,
        spans=(
            Span(start=0.0, end=gone - 16.0 / rate, why="a load with room left"),
            Span(
                start=start,
                end=gone + 35.0,
                why="the load does not stop",
                gotchas=("G3",),
                condition="memory_collapse",
                at_least=CRITICAL,
                deadline=6.0 / rate + 10.0 + 2 * plan.interval,
            ),
        ),
    )


@story(needs=MEMORY, intervals=LONG_INTERVALS)
def slow_leak(plan: Plan) -> Told:
    """0.08 to 0.4 GiB a minute from 9 to 14 GiB: half an hour's warning before two are left."""
    rng = plan.rng
    level, a_minute = rng.uniform(9.0, 14.0), rng.uniform(0.1, 0.4)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=level, rest_ratio=0.0)
        server.engine.grow(gpu_gib=125.0, gib_per_second=a_minute / 60.0)
        yield 0.0

    reached = min(8.0, 2.0 + 27.0 * a_minute)
    start = max(1_200.0, (level - reached) / a_minute * 60.0)
    end = (level - 1.2) / a_minute * 60.0
    start = min(start, end - 60.0)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(
                start=0.0,
                end=max(0.0, (level - 8.5) / a_minute * 60.0),
                why="more than 8 GiB available",
            ),
            Span(
                start=start,
                end=end,
                why=f"{a_minute:.2f} GiB a minute",
                gotchas=("G3",),
                condition="memory_low",
                deadline=min(plan.late(420.0), end - start),
            ),
        ),
    )


@story(needs=(*MEMORY, "vm.swapped_in_bytes", "vm.swapped_out_bytes"))
def swap_thrash(plan: Plan) -> Told:
    """Driver memory pushes the hot pages out: in and out of swap at once, with 1 to 3 GiB left."""
    rng = plan.rng
    onset = rng.uniform(300.0, 600.0)
    excess = rng.uniform(2.0, 4.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=9.0, rest_ratio=0.0)
        victim = spark.spawn("python3", kind="system", anonymous_gib=7.0, cold_ratio=0.1)
        server.engine.hold(gpu_gib=server.engine.gpu_bytes / GIB - 7.0)
        server.engine.cold_ratio = 0.1
        yield onset
        over = spark.pool.available_bytes / GIB + excess + 2.0
        held = server.engine.gpu_bytes / GIB
        server.engine.grow(gpu_gib=held + over, gib_per_second=0.35)
        victim.cold_ratio = 0.05

    start = onset + 45.0
    end = start + max(420.0, 12 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="serving with 9 GiB"),
            Span(
                start=start,
                end=end,
                why="hot pages move both ways",
                gotchas=("G3",),
                condition="swap_thrash",
                deadline=plan.late(90.0),
            ),
        ),
    )


@story(needs=("pressure.full_avg10_ratio",))
def pressure_wedge(plan: Plan) -> Told:
    """Reclaim goes round in circles: pressure 60 to 97 % with 4 to 60 GiB available."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    share = rng.uniform(0.65, 0.97)
    available = rng.choice((rng.uniform(4.5, 12.0), rng.uniform(20.0, 60.0)))
    lasts = max(400.0, 10 * plan.interval)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=available, rest_ratio=0.0)
        yield onset
        spark.pool.livelock_ratio = share

    end = onset + lasts
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="no pressure"),
            Span(
                start=onset,
                end=end,
                why="the host is wedged in reclaim",
                gotchas=("G3",),
                condition="memory_stalled",
                deadline=plan.late(20.0),
            ),
            Span(
                start=onset,
                end=end,
                why="for more than three minutes",
                gotchas=("G3",),
                condition="memory_stalled",
                at_least=CRITICAL,
                deadline=plan.late(200.0),
            ),
        ),
    )


@story(needs=("free_blocks", *MEMORY, "processes"))
def fragmented_after_days(plan: Plan) -> Told:
    """A week of use: 118 GiB available and hardly a block of 16 MiB; the next start will stall."""
    wear = plan.rng.uniform(0.92, 1.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.pool.max_block_bytes = 32 * 1024**2
        spark.pool.wear = wear
        spark.settle()
        yield 0.0

    seconds = max(900.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=seconds,
        spans=(
            Span(
                start=0.0,
                end=seconds,
                why="free memory in crumbs, nothing running",
                gotchas=("G3",),
                condition="memory_fragmented",
                deadline=plan.late(120.0),
            ),
        ),
    )


@story(needs=(*MEMORY, "kernel", "memory"))
def allocation_failures(plan: Plan) -> Told:
    """75 failed allocations in one start, with 22 GiB still available and 84 % with the driver."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    a_second = rng.uniform(0.8, 12.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(18.0, 24.0), busy=False)
        decode(spark, server)
        yield onset
        for _ in range(90):
            spark.log.write("nv_err_no_memory", count=max(1, round(a_second)))
            yield 1.0
        rest(spark, server)

    end = onset + 90.0
    return Told(
        script=script,
        seconds=end + 60.0,
        spans=(
            Span(start=0.0, end=onset, why="serving"),
            Span(
                start=onset,
                end=end,
                why="the driver is refused again and again",
                gotchas=("G3",),
                condition="driver_allocation_failures",
                deadline=plan.late(30.0),
            ),
        ),
    )


@story(needs=(*MEMORY, "kernel"))
def few_failures_when_short(plan: Plan) -> Told:
    """Six to twelve failed allocations in a minute with less than 11 GiB available."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    lines = rng.randint(6, 12)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(8.6, 10.8))
        yield onset
        for _ in range(lines):
            spark.log.write("nv_err_no_memory")
            yield 40.0 / lines

    end = onset + 55.0
    return Told(
        script=script,
        seconds=end + max(60.0, 4 * plan.interval),
        spans=(
            Span(start=0.0, end=onset, why="serving with 9 to 11 GiB"),
            Span(
                start=onset,
                end=end + plan.interval,
                why="refused while the pool is short",
                gotchas=("G3",),
                condition="driver_allocation_failures",
                deadline=plan.late(45.0, 2.0),
            ),
        ),
    )


@story(needs=(*MEMORY, "memory", "processes"), intervals=LONG_INTERVALS)
def residual_creeps(plan: Plan) -> Told:
    """Each large prompt costs the driver 0.85 GiB for good, four times over."""
    rng = plan.rng
    first = rng.uniform(1_000.0, 1_400.0)
    steps = 4

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(14.0, 24.0))
        yield first
        held = server.engine.gpu_bytes / GIB
        for number in range(1, steps + 1):
            server.engine.grow(gpu_gib=held + 0.85 * number, gib_per_second=0.3)
            yield 300.0

    end = first + 300.0 * steps + 1_200.0
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(
                start=first + 300.0,
                end=end,
                why="driver memory that does not come back",
                gotchas=("G3",),
                condition="driver_memory_creep",
                at_least=State.INFO,
                deadline=plan.late(900.0),
            ),
        ),
    )


@story(needs=(*MEMORY, "vm", "kernel"), intervals=(1.0, 0.5, 2.0, 5.0), fast=True)
def next_to_nothing(plan: Plan) -> Told:
    """Serving comes down to half a gibibyte and the box swaps: critical, whatever came before."""
    rng = plan.rng
    onset = rng.uniform(200.0, 400.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=6.5, rest_ratio=0.0)
        spark.play(traffic(server), server.engine)
        yield onset
        held = server.engine.gpu_bytes / GIB
        spark.chip.run(server.engine.pid, Work(60.0))
        server.engine.grow(gpu_gib=held + 10.0, gib_per_second=rng.uniform(0.1, 0.25))

    start = onset + 65.0
    end = start + 240.0
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="6.5 GiB, flat"),
            Span(
                start=start,
                end=end,
                why="under 1.5 GiB and swapping",
                gotchas=("G3",),
                condition="memory_low",
                at_least=CRITICAL,
                deadline=plan.late(60.0),
            ),
        ),
    )
