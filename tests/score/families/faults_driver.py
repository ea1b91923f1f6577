"""The driver blocks, reports errors, loses its GPU or does not come back."""

from __future__ import annotations

from spark_watch.model import State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.machine import Spark, Steps
from tests.score.families.scenes import serving, unit
from tests.score.family import Plan, Told, story

CRITICAL_XIDS = (48, 62, 64, 74, 79, 95, 119, 120, 154)
OTHER_XIDS = (13, 31, 43)


def _after(
    plan: Plan, onset: float, *spans: Span, seconds: float
) -> tuple[float, tuple[Span, ...]]:
    """A quiet stretch before the fault, its spans, and the length of the whole."""
    del plan
    return seconds, (Span(start=0.0, end=onset, why="serving"), *spans)


@story(needs=("pending", "gpus"))
def driver_stall(plan: Plan) -> Told:
    """No NVML call returns for two to ten minutes."""
    rng = plan.rng
    onset, lasts = rng.uniform(200.0, 500.0), rng.uniform(150.0, 740.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(3.5, 40.0))
        yield onset
        spark.nvml_blocked_since = spark.elapsed
        yield lasts
        spark.nvml_blocked_since = None

    end = onset + lasts
    seconds, spans = _after(
        plan,
        onset,
        Span(
            start=onset,
            end=end,
            why="a call is outstanding",
            gotchas=("G3",),
            condition="driver_stalled",
            deadline=plan.late(10.0, 1.0),
        ),
        Span(
            start=onset,
            end=end,
            why="a call is outstanding for more than a minute",
            gotchas=("G3",),
            condition="driver_stalled",
            at_least=State.CRITICAL,
            deadline=plan.late(60.0, 1.0),
        ),
        seconds=end + 60.0,
    )
    return Told(script=script, seconds=seconds, spans=spans)


@story(needs=("kernel",))
def critical_xid(plan: Plan) -> Told:
    """The driver reports an error that it does not recover from: 79, 119 and their kin."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    code = rng.choice(CRITICAL_XIDS)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(9.0, 40.0))
        yield onset
        spark.log.write("xid", code)

    seconds, spans = _after(
        plan,
        onset,
        Span(
            start=onset,
            end=onset + 300.0,
            why=f"Xid {code}",
            gotchas=("G3",),
            condition="driver_fault",
            at_least=State.CRITICAL,
            deadline=plan.late(1.0, 1.0),
        ),
        seconds=onset + max(300.0, 4 * plan.interval),
    )
    return Told(script=script, seconds=seconds, spans=spans)


@story(needs=("kernel",))
def other_xid(plan: Plan) -> Told:
    """A program's own fault on the GPU: Xid 13, 31 or 43."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    code = rng.choice(OTHER_XIDS)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(9.0, 40.0))
        yield onset
        spark.log.write("xid", code)

    seconds, spans = _after(
        plan,
        onset,
        Span(
            start=onset,
            end=onset + 300.0,
            why=f"Xid {code}",
            gotchas=("G3",),
            condition="driver_fault",
            deadline=plan.late(1.0, 1.0),
        ),
        seconds=onset + max(300.0, 4 * plan.interval),
    )
    return Told(script=script, seconds=seconds, spans=spans)


@story(needs=("failed",))
def gpu_lost(plan: Plan) -> Told:
    """The GPU is lost: every call says so until the box is started anew."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(9.0, 40.0))
        yield onset
        spark.nvml_failure = "gpu_is_lost"

    seconds, spans = _after(
        plan,
        onset,
        Span(
            start=onset,
            end=onset + 400.0,
            why="the GPU is lost",
            gotchas=("G3",),
            condition="driver_fault",
            at_least=State.CRITICAL,
            deadline=plan.late(10.0),
        ),
        seconds=onset + max(400.0, 6 * plan.interval),
    )
    return Told(script=script, seconds=seconds, spans=spans)


@story(needs=("kernel",))
def hung_tasks_and_pcie(plan: Plan) -> Told:
    """The kernel reports tasks stuck in the driver, or a fatal PCIe error."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    kind, code = rng.choice((("hung_task", "nvidia-smi"), ("pcie_fatal", None)))

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        serving(spark, plan, available_gib=rng.uniform(9.0, 40.0))
        yield onset
        spark.log.write(kind, code)

    seconds, spans = _after(
        plan,
        onset,
        Span(
            start=onset,
            end=onset + 300.0,
            why=kind,
            gotchas=("G3",),
            condition="driver_fault",
            at_least=State.CRITICAL,
            deadline=plan.late(1.0, 1.0),
        ),
        seconds=onset + max(300.0, 4 * plan.interval),
    )
    return Told(script=script, seconds=seconds, spans=spans)


@story(needs=("kernel", "vm"))
def oom_kill(plan: Plan) -> Told:
    """The kernel kills a process for memory; the box recovers."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=rng.uniform(9.0, 40.0))
        yield onset
        spark.log.write("oom_kill", "VLLM::EngineCor")
        spark.pool.oom_kills += 1
        spark.stop(server)

    seconds, spans = _after(
        plan,
        onset,
        Span(
            start=onset,
            end=onset + 300.0,
            why="killed for memory",
            gotchas=("G3",),
            condition="driver_fault",
            deadline=plan.late(1.0, 1.0),
        ),
        seconds=onset + max(300.0, 4 * plan.interval),
    )
    return Told(script=script, seconds=seconds, spans=spans)
