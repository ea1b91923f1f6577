"""The box goes dark, or we do."""

from __future__ import annotations

from spark_watch.model import State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.machine import BOOT_SECONDS, Spark, Steps
from spark_watch.sources.simulated.workloads import resident_training, training
from tests.score.families.scenes import serving, unit
from tests.score.family import Plan, Told, story

TIME = ("monotonic_seconds", "boottime_seconds", "boot_id")


@story(needs=TIME)
def power_lost(plan: Plan) -> Told:
    """The power goes in mid run without a sign and comes back minutes later."""
    rng = plan.rng
    onset, off = rng.uniform(300.0, 900.0), rng.uniform(45.0, 600.0)
    training_runs = rng.random() < 0.5

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        if training_runs:
            job = resident_training(spark)
            spark.play(training(job), job.engine)
            spark.settle()
        else:
            spark.settle()
        yield onset
        spark.lose_power(off)

    back = onset + off + BOOT_SECONDS
    end = back + max(600.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset - 0.1, why="nothing announces it"),
            Span(
                start=back,
                end=end,
                why="a new boot without a stop",
                gotchas=("G4",),
                condition="unclean_reboot",
                deadline=plan.late(3.0, 2.0),
            ),
        ),
    )


@story(needs=TIME)
def power_lost_twice(plan: Plan) -> Told:
    """Twice in one day."""
    rng = plan.rng
    first, off, between = rng.uniform(300.0, 600.0), 60.0, rng.uniform(900.0, 1_800.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        yield first
        spark.lose_power(off)
        yield off + BOOT_SECONDS + between
        spark.lose_power(off)

    again = first + 2 * (off + BOOT_SECONDS) + between
    end = again + max(600.0, 15 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=first - 0.1, why="idle"),
            Span(
                start=again,
                end=end,
                why="the second unclean reboot within a day",
                gotchas=("G4",),
                condition="unclean_reboot",
                at_least=State.CRITICAL,
                deadline=plan.late(3.0, 2.0),
            ),
        ),
    )


@story(needs=TIME, intervals=(1.0, 2.0, 5.0, 0.5, 10.0))
def blind_for_minutes(plan: Plan) -> Told:
    """The box is so wedged that our own loop stands still for ten minutes to an hour."""
    rng = plan.rng
    onset, blind = rng.uniform(300.0, 600.0), rng.uniform(600.0, 3_600.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(9.0, 12.0))
        yield onset
        spark.silence(blind)

    back = onset + blind
    end = back + max(300.0, 10 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="serving"),
            Span(
                start=back,
                end=end,
                why="a hole in our own recording",
                gotchas=("G3",),
                condition="telemetry_gap",
                deadline=plan.late(3.0, 2.0),
            ),
        ),
    )
