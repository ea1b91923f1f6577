"""Power, clock and heat go wrong, with and without a flag that says so."""

from __future__ import annotations

from spark_watch.model import State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.chip import MHZ, Work
from spark_watch.sources.simulated.machine import Spark, Steps
from spark_watch.sources.simulated.workloads import decode, resident_training, rest, training
from tests.score.families.scenes import LOAD, serving, unit
from tests.score.family import LONG_INTERVALS, Plan, Told, story


@story(needs=LOAD)
def stuck_low_power(plan: Plan) -> Told:
    """Well at rest; 640 to 890 MHz and 14 to 20 W under load, with no bit set."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        yield onset
        while True:
            spark.chip.stuck_hertz = rng.uniform(640.0, 890.0) * MHZ
            decode(spark, server, watts=rng.uniform(34.0, 60.0), rate=5.0)
            yield rng.uniform(1.0, 60.0)

    end = onset + max(300.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="a resident server at rest"),
            Span(
                start=onset,
                end=end,
                why="busy at under 900 MHz",
                gotchas=("G4",),
                condition="low_power_state",
                deadline=plan.late(3.0),
            ),
            Span(
                start=onset,
                end=end,
                why="for more than twenty seconds",
                gotchas=("G4",),
                condition="low_power_state",
                at_least=State.CRITICAL,
                deadline=plan.late(22.0),
            ),
        ),
    )


@story(needs=LOAD, intervals=(5.0, 2.0, 10.0, 30.0))
def stuck_in_episodes(plan: Plan) -> Told:
    """Every half hour the clock falls to 640 MHz for five to ten minutes and recovers by itself."""
    rng = plan.rng
    healthy = rng.uniform(900.0, 1_500.0)
    sick = rng.uniform(300.0, 600.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        decode(spark, server, watts=44.0)
        for _ in range(2):
            yield healthy
            spark.chip.stuck_hertz = 640.0 * MHZ
            yield sick
            spark.chip.stuck_hertz = None

    spans = []
    start = 0.0
    for _ in range(2):
        spans.append(Span(start=start, end=start + healthy - 200.0, why="full clock"))
        onset = (start - 200.0 if start else 0.0) + healthy
        spans[-1] = Span(start=start, end=onset, why="full clock")
        spans.append(
            Span(
                start=onset,
                end=onset + sick,
                why="an episode at 640 MHz",
                gotchas=("G4",),
                condition="low_power_state",
                at_least=State.CRITICAL,
                deadline=plan.late(22.0),
            )
        )
        start = onset + sick + 200.0
    end = spans[-1].end + 600.0
    spans.append(Span(start=start, end=end, why="full clock again"))
    return Told(script=script, seconds=end, spans=tuple(spans))


@story(needs=("gpus.event_seconds",))
def throttled_by_heat(plan: Plan) -> Told:
    """The air stops under a training load: slowdown counters take a tenth of the time and more."""
    rng = plan.rng
    onset = rng.uniform(700.0, 900.0)
    resistance = rng.uniform(0.68, 0.85)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        job = resident_training(spark)
        spark.chip.run(job.engine.pid, Work(88.0, sag=0.05))
        spark.settle()
        spark.play(training(job, watts=88.0, sag=0.05), job.engine)
        yield onset
        spark.chip.kelvin_per_watt = resistance

    end = onset + max(900.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="warm, air flows"),
            Span(
                start=onset,
                end=end,
                why="the firmware takes the clock away",
                gotchas=("G4",),
                condition="thermal_slowdown",
                deadline=plan.late(480.0),
            ),
        ),
    )


@story(needs=("gpus.event_seconds",))
def throttled_a_little(plan: Plan) -> Told:
    """The software counter takes 4 to 8 % of the time, as on the worse of two twin boxes."""
    rng = plan.rng
    onset = rng.uniform(700.0, 900.0)
    share = rng.uniform(0.04, 0.08)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        decode(spark, server, watts=70.0)
        yield onset
        while True:
            spark.chip.count_slowdown(software=10.0 * share)
            yield 10.0

    end = onset + max(1_200.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="no slowdown"),
            Span(
                start=onset,
                end=end,
                why=f"software slowdown {share:.0%} of the time",
                gotchas=("G4",),
                condition="thermal_slowdown",
                deadline=plan.late(640.0),
            ),
        ),
    )


@story(needs=("gpus.event_seconds",))
def hardware_slowdown(plan: Plan) -> Told:
    """The hardware's own thermal slowdown steps in: first tenths of a second, then seconds."""
    rng = plan.rng
    onset = rng.uniform(700.0, 900.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        decode(spark, server, watts=80.0)
        yield onset
        while True:
            spark.chip.count_slowdown(software=1.0, hardware=0.6)
            yield 10.0

    end = onset + max(900.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="no slowdown"),
            Span(
                start=onset,
                end=end,
                why="hardware slowdown",
                gotchas=("G4",),
                condition="thermal_slowdown",
                deadline=plan.late(60.0),
            ),
            Span(
                start=onset,
                end=end,
                why="more than ten seconds of hardware slowdown in ten minutes",
                gotchas=("G4",),
                condition="thermal_slowdown",
                at_least=State.CRITICAL,
                deadline=plan.late(300.0),
            ),
        ),
    )


@story(needs=("zones", *LOAD))
def board_hot(plan: Plan) -> Told:
    """A fan turns the wrong way: the board sits at 96 to 98.5 C while the die stays at 80."""
    rng = plan.rng
    onset = rng.uniform(700.0, 900.0)
    goal = rng.uniform(96.0, 98.5)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        decode(spark, server, watts=72.0)
        spark.chip.trip_celsius = 104.0
        spark.settle()
        yield onset
        spark.chip.board_gap_celsius = goal - spark.chip.die_celsius

    end = onset + max(600.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="the board ten degrees above the die"),
            Span(
                start=onset,
                end=end,
                why="the board is one step from its trip point",
                gotchas=("G4",),
                condition="board_hot",
                deadline=plan.late(130.0),
            ),
        ),
    )


@story(needs=LOAD)
def die_hot(plan: Plan) -> Told:
    """The room warms up until the die lies at 90 to 92 C."""
    rng = plan.rng
    onset = rng.uniform(700.0, 900.0)
    goal = rng.uniform(90.0, 92.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        job = resident_training(spark)
        spark.chip.run(job.engine.pid, Work(86.0, sag=0.05))
        spark.chip.board_gap_celsius = 3.0
        spark.chip.trip_celsius = 104.0
        spark.settle()
        spark.play(training(job, watts=86.0, sag=0.05, checkpoint_gib=1.0), job.engine)
        yield onset
        step = (goal - spark.chip.die_celsius) / 30.0
        for _ in range(30):
            spark.chip.ambient_celsius += step
            yield 10.0

    end = onset + 300.0 + max(900.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="warm"),
            Span(
                start=onset + 300.0,
                end=end,
                why="the die above 88 C",
                gotchas=("G4",),
                condition="gpu_hot",
                deadline=plan.late(180.0),
            ),
        ),
    )


@story(needs=(*LOAD, "progress"), intervals=LONG_INTERVALS)
def power_falls_to_a_plateau(plan: Plan) -> Told:
    """The same training loop runs at 95 W, then flat at 68 W with a fifth less clock."""
    rng = plan.rng
    onset = rng.uniform(2_400.0, 3_600.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.chip.kelvin_per_watt = 0.45
        job = resident_training(spark)
        spark.settle()
        loop = Work(95.0, sag=0.03, spread=0.01)
        spark.chip.run(job.engine.pid, loop)
        job.feed.steps_running = True
        yield onset
        spark.chip.kelvin_per_watt = 0.60
        spark.chip.run(job.engine.pid, Work(68.0, sag=0.2, spread=0.006))
        job.feed.step_seconds = (job.feed.step_seconds or 1.0) * 1.25

    end = onset + 1_800.0
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="training at the practical limit"),
            Span(
                start=onset,
                end=end,
                why="less power and less clock for the same work, and hot",
                gotchas=("G4", "G5"),
                condition="power_plateau",
                deadline=plan.late(900.0),
            ),
        ),
    )


@story(needs=(*LOAD, "progress"), intervals=LONG_INTERVALS)
def slow_decode_mode(plan: Plan) -> Told:
    """The same steps take half as long again at a full clock and half the power; no flag."""
    rng = plan.rng
    onset = rng.uniform(2_400.0, 3_600.0)
    step = rng.uniform(0.5, 12.0)
    slower = rng.uniform(1.45, 1.6)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        job = resident_training(spark, step_seconds=step)
        spark.chip.run(job.engine.pid, Work(36.0))
        job.feed.bytes_rate = 2.0e11
        spark.settle()
        yield onset
        spark.chip.run(job.engine.pid, Work(19.0))
        job.feed.step_seconds = step * slower
        job.feed.bytes_rate = 2.0e11 / slower

    end = onset + max(1_800.0, 30 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="constant work at constant speed"),
            Span(
                start=onset,
                end=end,
                why="the same work at two thirds of its speed",
                gotchas=("G5",),
                condition="bandwidth_degraded",
                deadline=plan.late(900.0),
            ),
        ),
    )


@story(needs=(*LOAD, "progress"))
def spinning_kernel(plan: Plan) -> Told:
    """96 % at 10 to 26 W, tokens frozen with requests running: a kernel spins and nothing comes."""
    rng = plan.rng
    onset = rng.uniform(300.0, 600.0)
    watts = rng.uniform(11.0, 24.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        decode(spark, server, watts=44.0)
        spark.settle()
        yield onset
        spark.chip.run(server.engine.pid, Work(max(watts, spark.chip.idle_watts + 0.3)))
        server.feed.freeze()

    end = onset + max(600.0, 20 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="decode at 44 W"),
            Span(
                start=onset,
                end=end,
                why="busy on paper",
                gotchas=("G10",),
                condition="busy_without_progress",
                deadline=plan.late(90.0),
            ),
            Span(
                start=onset,
                end=end,
                why="for more than two minutes",
                gotchas=("G10",),
                condition="busy_without_progress",
                at_least=State.CRITICAL,
                deadline=plan.late(160.0),
            ),
        ),
    )


@story(needs=LOAD)
def idle_is_not_frozen(plan: Plan) -> Told:
    """A load of 60 s at a time, with a box stuck at 700 MHz in the first of them only."""
    rng = plan.rng
    onset = 120.0

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0), busy=False)
        yield onset
        spark.chip.stuck_hertz = 700.0 * MHZ
        decode(spark, server, watts=44.0)
        yield 240.0
        spark.chip.stuck_hertz = None
        while True:
            decode(spark, server, watts=44.0)
            yield 300.0
            rest(spark, server)
            yield 60.0

    recovered = plan.late(onset + 240.0 + 80.0, 4.0)
    end = recovered + max(1_200.0, 30 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="at rest"),
            Span(
                start=onset,
                end=onset + 240.0,
                why="busy at 700 MHz",
                gotchas=("G4",),
                condition="low_power_state",
                at_least=State.CRITICAL,
                deadline=plan.late(22.0),
            ),
            Span(start=recovered, end=end, why="full clock under load for more than a minute"),
        ),
    )
