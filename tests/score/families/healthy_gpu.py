"""Healthy days as the chip sees them: cool, hot, locked, at its limit, waiting for a network."""

from __future__ import annotations

from spark_watch.sources.simulated.chip import MHZ, Work
from spark_watch.sources.simulated.machine import Script, Spark, Steps
from spark_watch.sources.simulated.workloads import (
    decode,
    prefill,
    resident_training,
    rest,
    traffic,
    training,
)
from tests.score.families.scenes import ALWAYS_JUDGED, JUDGED_UNDER_LOAD, serving, unit
from tests.score.family import Plan, healthy

TWO_NODES = ((1, 24.5, 23.0), (4, 23.8, 34.0), (16, 21.6, 45.0))
"""Streams, tokens a second for each, and watts of one of two nodes that share a model.

Source: heitor-mocelin/dgx-spark-research, tensor parallel over two boxes.
"""


@healthy(judged=ALWAYS_JUDGED)
def deep_idle(plan: Plan) -> Script:
    """Nothing runs: 208 MHz and 4 W are idle, not stuck."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.settle()
        yield 0.0

    return script


@healthy(judged=ALWAYS_JUDGED)
def idle_resident(plan: Plan) -> Script:
    """A server waits for requests at 10 to 13 W and 2.4 GHz; short bursts come now and then."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 60.0), busy=False)
        while True:
            yield rng.uniform(120.0, 1_800.0)
            decode(spark, server, watts=rng.uniform(33.0, 42.0), streams=1, rate=30.0)
            yield rng.uniform(1.0, 12.0)
            rest(spark, server)

    return script


@healthy(judged=JUDGED_UNDER_LOAD)
def clock_lock(plan: Plan) -> Script:
    """An operator has locked the clock at 2000 to 2184 MHz: flat, slower, and no fault."""
    lock = plan.rng.uniform(2_000.0, 2_184.0) * MHZ

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        spark.chip.locked_hertz = lock
        serving(spark, plan, available_gib=plan.rng.uniform(10.0, 40.0), decode_watts=32.0)
        yield 0.0

    return script


@healthy()
def prefill_and_decode(plan: Plan) -> Script:
    """Dense prefill at 89 to 93 W and 2.2 GHz takes turns with decode at 46 W and 2.48 GHz."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(8.5, 30.0), busy=False)
        while True:
            prefill(spark, server, watts=rng.uniform(88.0, 93.0), sag=0.085)
            yield rng.uniform(20.0, 180.0)
            decode(spark, server, watts=rng.uniform(44.0, 48.0))
            yield rng.uniform(20.0, 180.0)

    return script


@healthy()
def hundred_watt_plateau(plan: Plan) -> Script:
    """97 to 101 W at 2.41 to 2.46 GHz and 80 to 84 C for the whole run, decode gaps between."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 30.0), busy=False)
        while True:
            prefill(spark, server, watts=rng.uniform(97.0, 100.0), sag=0.0)
            yield rng.uniform(60.0, 900.0)
            decode(spark, server, watts=rng.uniform(45.0, 55.0))
            yield rng.uniform(5.0, 60.0)

    return script


@healthy()
def hot_soak(plan: Plan) -> Script:
    """A soak at 84 to 86.5 C with a flat clock: hot, and within limits."""
    goal = plan.rng.uniform(84.0, 86.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        chip = spark.chip
        job = resident_training(spark)
        chip.run(job.engine.pid, Work(90.0, sag=0.05))
        chip.kelvin_per_watt = (goal - chip.ambient_celsius) / 90.0
        chip.board_gap_celsius = 5.5
        spark.settle()
        spark.play(training(job, watts=90.0, sag=0.05), job.engine)
        yield 0.0

    return script


@healthy()
def hot_board_spikes(plan: Plan) -> Script:
    """The board lies at 91 to 92 C and reads 94 to 95.8 in single samples; the clock is flat."""
    goal = plan.rng.uniform(90.8, 91.6)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        chip = spark.chip
        job = resident_training(spark)
        chip.run(job.engine.pid, Work(88.0, sag=0.05))
        chip.board_gap_celsius = 8.0
        chip.kelvin_per_watt = (goal - 8.0 - chip.ambient_celsius) / 88.0
        chip.board_noise_celsius = 1.1
        chip.trip_celsius = 97.5
        spark.settle()
        spark.play(training(job, watts=88.0, sag=0.05), job.engine)
        yield 0.0

    return script


@healthy()
def warms_up(plan: Plan) -> Script:
    """From cold to 80 C the clock steps down by 4 %: warmth, not throttling."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(12.0, 40.0), busy=False)
        spark.chip.kelvin_per_watt = rng.uniform(0.55, 0.62)
        yield 120.0
        while True:
            decode(spark, server, watts=rng.uniform(58.0, 68.0))
            yield rng.uniform(40.0, 120.0)
            decode(spark, server, watts=rng.uniform(34.0, 40.0))
            yield rng.uniform(10.0, 30.0)

    return script


@healthy()
def network_bound(plan: Plan) -> Script:
    """One of two nodes: 96 % and 20 to 48 W, because it waits for the other; tokens come."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(10.0, 30.0), busy=False)
        while True:
            streams, rate, watts = rng.choice(TWO_NODES)
            decode(
                spark,
                server,
                watts=watts * rng.uniform(0.9, 1.05),
                streams=streams,
                rate=rate * rng.uniform(0.95, 1.03),
            )
            yield rng.uniform(60.0, 900.0)
            if rng.random() < 0.2:
                rest(spark, server)
                yield rng.uniform(5.0, 60.0)

    return script


@healthy()
def low_power_decode(plan: Plan) -> Script:
    """A small model decodes at 17 to 30 W and 2.5 GHz, one stream, without a pause."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(20.0, 80.0), busy=False)
        while True:
            decode(spark, server, watts=rng.uniform(17.5, 30.0), streams=1, rate=24.0)
            yield rng.uniform(300.0, 1_800.0)

    return script


@healthy()
def long_prefill(plan: Plan) -> Script:
    """A prompt of a hundred thousand tokens: minutes at 46 to 90 W, and no token comes out."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(12.0, 30.0), busy=False)
        while True:
            prefill(spark, server, watts=rng.uniform(46.0, 90.0), streams=1)
            server.feed.prompt_rate = 0.0
            yield rng.uniform(60.0, 600.0)
            server.feed.prompt_tokens += 100_000
            decode(spark, server, watts=38.0, streams=1, rate=20.0)
            yield rng.uniform(20.0, 120.0)
            rest(spark, server)
            yield rng.uniform(1.0, 60.0)

    return script


@healthy(judged=JUDGED_UNDER_LOAD)
def steady_training(plan: Plan) -> Script:
    """Hours of training at constant speed with a checkpoint every five minutes."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        job = resident_training(
            spark, gpu_gib=rng.uniform(12.0, 92.0), step_seconds=rng.uniform(0.4, 66.0)
        )
        watts = rng.uniform(72.0, 92.0)
        spark.chip.run(job.engine.pid, Work(watts, sag=0.05))
        spark.settle()
        spark.play(training(job, watts=watts, sag=0.05), job.engine)
        yield 0.0

    return script


@healthy()
def other_batch_sizes(plan: Plan) -> Script:
    """The batch changes every twenty minutes and the step with it: another workload."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        job = resident_training(spark, step_seconds=2.0)
        spark.settle()
        spark.play(training(job), job.engine)
        while True:
            batch = rng.choice((1, 2, 4, 8, 16))
            job.feed.batch = float(batch)
            job.feed.step_seconds = 0.6 + 0.55 * batch
            yield rng.uniform(900.0, 1_800.0)

    return script


@healthy()
def load_alternates(plan: Plan) -> Script:
    """A rate sweep: half load and half idle in turns, 13 to 74 W, 2405 to 2515 MHz."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(8.6, 12.0), busy=False)
        while True:
            decode(spark, server, watts=rng.uniform(38.0, 74.0), streams=rng.randint(1, 40))
            yield rng.uniform(10.0, 300.0)
            rest(spark, server)
            yield rng.uniform(5.0, 240.0)

    return script


@healthy()
def workload_changes(plan: Plan) -> Script:
    """Six phases of a quarter of an hour and more at other powers: a lower one is not a plateau."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(8.6, 12.0), busy=False)
        while True:
            watts = rng.uniform(40.0, 96.0)
            if watts > 75.0:
                prefill(spark, server, watts=watts, sag=0.08 * (watts - 60.0) / 40.0)
            else:
                decode(spark, server, watts=watts)
            yield rng.uniform(900.0, 2_200.0)
            rest(spark, server)
            yield rng.uniform(10.0, 60.0)

    return script


@healthy()
def power_cap_counter(plan: Plan) -> Script:
    """The power-cap counter runs for hours on an idle box, and thermal time is one part in 2000."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=40.0, busy=False)
        spark.play(traffic(server, rest_ratio=0.6), server.engine)
        while True:
            yield plan.rng.uniform(300.0, 1_200.0)
            spark.chip.count_slowdown(software=plan.rng.uniform(0.05, 0.3))

    return script


@healthy(intervals=(0.25, 0.5, 1.0, 0.25, 2.0), shortest=400.0)
def clock_ramps(plan: Plan) -> Script:
    """For up to 0.9 s after work arrives the clock is still on its way up from idle."""

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        rng = plan.rng
        server = serving(spark, plan, available_gib=rng.uniform(10.0, 40.0), busy=False)
        while True:
            yield rng.uniform(5.0, 40.0)
            spark.chip.stuck_hertz = rng.uniform(208.0, 900.0) * MHZ
            decode(spark, server, watts=40.0)
            yield rng.uniform(0.2, 0.9)
            spark.chip.stuck_hertz = None
            yield rng.uniform(5.0, 60.0)
            rest(spark, server)

    return script
