"""The driver blocks, reports errors, loses its GPU or does not come back."""

from __future__ import annotations

from collections.abc import Callable

from spark_watch.model import State
from spark_watch.sources.simulated import Span
from spark_watch.sources.simulated.machine import Server, Spark, Steps
from tests.score.families.scenes import serving, unit
from tests.score.family import Plan, Told, story

CRITICAL_XIDS = (48, 62, 64, 74, 79, 95, 119, 120, 154)
OTHER_XIDS = (13, 31, 43)
STANDS_SECONDS = 300.0


def _strikes(
    plan: Plan,
    strike: Callable[[Spark, Server], None],
    why: str,
    *,
    at_least: State = State.CRITICAL,
    within: float = 1.0,
) -> Told:
    """A box that serves, and then something that the driver or the kernel reports."""
    rng = plan.rng
    onset = rng.uniform(200.0, 500.0)
    available = rng.uniform(9.0, 40.0)

    def script(spark: Spark) -> Steps:
        unit(spark, plan)
        server = serving(spark, plan, available_gib=available)
        yield onset
        strike(spark, server)

    end = onset + max(STANDS_SECONDS, 6 * plan.interval)
    return Told(
        script=script,
        seconds=end,
        spans=(
            Span(start=0.0, end=onset, why="serving"),
            Span(
                start=onset,
                end=end,
                why=why,
                gotchas=("G3",),
                condition="driver_fault",
                at_least=at_least,
                deadline=plan.late(within, 2.0),
            ),
        ),
    )


@story(needs=("kernel",))
def critical_xid(plan: Plan) -> Told:
    """The driver reports an error that it does not recover from: 79, 119 and their kin."""
    code = plan.rng.choice(CRITICAL_XIDS)
    return _strikes(plan, lambda spark, _: spark.log.write("xid", code), f"Xid {code}")


@story(needs=("kernel",))
def other_xid(plan: Plan) -> Told:
    """A program's own fault on the GPU: Xid 13, 31 or 43."""
    code = plan.rng.choice(OTHER_XIDS)
    return _strikes(
        plan,
        lambda spark, _: spark.log.write("xid", code),
        f"Xid {code}",
        at_least=State.WARNING,
    )


@story(needs=("kernel",))
def hung_tasks_and_pcie(plan: Plan) -> Told:
    """The kernel reports tasks stuck in the driver, or a fatal PCIe error."""
    kind, code = plan.rng.choice((("hung_task", "nvidia-smi"), ("pcie_fatal", None)))
    return _strikes(plan, lambda spark, _: spark.log.write(kind, code), kind)


@story(needs=("failed",))
def gpu_lost(plan: Plan) -> Told:
    """The GPU is lost: every call says so until the box is started anew."""

    def lose(spark: Spark, server: Server) -> None:
        del server
        spark.nvml_failure = "gpu_is_lost"

    return _strikes(plan, lose, "the GPU is lost", within=10.0)


@story(needs=("kernel", "vm"))
def oom_kill(plan: Plan) -> Told:
    """The kernel kills a process for memory; the box recovers."""

    def kill(spark: Spark, server: Server) -> None:
        spark.log.write("oom_kill", "VLLM::EngineCor")
        spark.pool.oom_kills += 1
        spark.stop(server)

    return _strikes(plan, kill, "killed for memory", at_least=State.WARNING)


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
    return Told(
        script=script,
        seconds=end + 60.0,
        spans=(
            Span(start=0.0, end=onset, why="serving"),
            Span(
                start=onset,
                end=end,
                why="a call is outstanding",
                gotchas=("G3",),
                condition="driver_stalled",
                deadline=plan.late(10.0, 2.0),
            ),
            Span(
                start=onset,
                end=end,
                why="a call is outstanding for more than a minute",
                gotchas=("G3",),
                condition="driver_stalled",
                at_least=State.CRITICAL,
                deadline=plan.late(60.0, 2.0),
            ),
        ),
    )
