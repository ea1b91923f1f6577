"""The simulated box: scripts run on time, processes add up with the pool, reboots are reboots."""

import pytest

from spark_watch.model import GIB, Sample
from spark_watch.sources.simulated.chip import Work
from spark_watch.sources.simulated.machine import BOOT_SECONDS, Spark, Steps
from spark_watch.sources.simulated.workloads import decode, resident_server


@pytest.fixture
def spark() -> Spark:
    """A box at its start, nothing running."""
    return Spark(seed=5, start=1_000_000.0)


def read(spark: Spark) -> Sample:
    """A sample that must be there."""
    sample = spark.sample()
    assert sample is not None
    return sample


def test_a_script_wakes_exactly_when_it_asked_to(spark: Spark) -> None:
    """Waits of 3.3 and 70 s end at 3.3 and 73.3 s, however far the box is moved at once."""
    woken: list[float] = []

    def script(box: Spark) -> Steps:
        woken.append(box.elapsed)
        yield 3.3
        woken.append(box.elapsed)
        yield 70.0
        woken.append(box.elapsed)

    spark.play(script)
    spark.advance_to(60.0)
    spark.advance_to(120.0)
    assert woken == pytest.approx([0.0, 3.3, 73.3])


def test_a_script_ends_with_the_process_that_owns_it(spark: Spark) -> None:
    """After its server is stopped, nothing keeps the GPU busy in its name."""
    server = resident_server(spark)

    def keep_busy(box: Spark) -> Steps:
        while True:
            box.chip.run(server.engine.pid, Work(40.0))
            yield 1.0

    spark.play(keep_busy, server.engine)
    spark.advance_to(10.0)
    spark.stop(server)
    spark.advance_to(30.0)
    assert spark.chip.work is None
    assert read(spark).progress == ()
    assert read(spark).processes == ()


def test_processes_add_up_with_the_pool(spark: Spark) -> None:
    """What the listed processes hold is the driver's residual less its own base of 0.9 GiB."""
    resident_server(spark, gpu_gib=40.0)
    resident_server(spark, gpu_gib=21.5, engine="llama.cpp")
    spark.advance_to(60.0)
    sample = read(spark)
    assert sample.processes is not None
    assert sample.memory is not None
    assert sample.memory.driver_residual_bytes is not None
    listed = sum(process.gpu_bytes or 0 for process in sample.processes)
    assert listed == int(61.5 * GIB)
    assert (sample.memory.driver_residual_bytes - listed) / GIB == pytest.approx(0.9, abs=0.2)


def test_an_engine_names_its_launcher_until_that_is_killed(spark: Spark) -> None:
    """The launcher holds no GPU memory; once it is gone the engine is an orphan."""
    server = resident_server(spark)
    by_kind = {process.kind: process for process in read(spark).processes or ()}
    assert by_kind["launcher"].gpu_bytes is None
    assert by_kind["compute"].launcher_pid == by_kind["launcher"].pid
    spark.kill(server.launcher)
    (orphan,) = read(spark).processes or ()
    assert orphan.launcher_pid is None
    assert orphan.engine == "vllm"


def test_losing_power_is_a_new_boot_without_a_stop_marker(spark: Spark) -> None:
    """Nothing is read while it is off; then another boot id, clocks at zero, nothing running."""
    resident_server(spark)
    spark.advance_to(100.0)
    before = read(spark)
    spark.lose_power(90.0)
    spark.advance_to(150.0)
    assert spark.sample() is None
    spark.advance_to(190.0 + BOOT_SECONDS - 1.0)
    assert spark.sample() is None
    spark.advance_to(190.0 + BOOT_SECONDS)
    after = read(spark)
    assert not before.stopped
    assert after.boot_id != before.boot_id
    assert after.monotonic_seconds == pytest.approx(BOOT_SECONDS)
    assert after.t - before.t == pytest.approx(90.0 + BOOT_SECONDS)
    assert after.processes == ()
    assert after.gpus is not None
    assert after.gpus[0].event_seconds is not None
    assert before.gpus is not None
    assert before.gpus[0].event_seconds is not None
    assert (
        after.gpus[0].event_seconds["sw_power_cap"] < before.gpus[0].event_seconds["sw_power_cap"]
    )


def test_a_blocked_driver_takes_gpu_and_processes_away(spark: Spark) -> None:
    """While a call is outstanding its age grows and what NVML would say is absent, not zero."""
    spark.nvml_blocked_since = 0.0
    spark.advance_to(12.0)
    sample = read(spark)
    assert sample.gpus is None
    assert sample.processes is None
    assert sample.pending == {"nvml": 12.0}
    assert sample.memory is not None


def test_a_lost_gpu_is_a_failure_with_its_reason(spark: Spark) -> None:
    """A lost GPU is named in ``failed``."""
    spark.nvml_failure = "gpu_is_lost"
    sample = read(spark)
    assert sample.gpus is None
    assert [(failure.source, failure.reason) for failure in sample.failed] == [
        ("nvml", "gpu_is_lost")
    ]


def test_the_kernel_log_is_read_once(spark: Spark) -> None:
    """Lines of one kind come together with their number, and only in the next sample."""
    spark.log.write("nv_err_no_memory", count=3)
    spark.log.write("xid", 79)
    spark.log.write("nv_err_no_memory")
    first, second = read(spark), read(spark)
    assert [(event.kind, event.code, event.count) for event in first.kernel or ()] == [
        ("nv_err_no_memory", None, 4),
        ("xid", 79, 1),
    ]
    assert second.kernel == ()


def test_clearing_mends_everything_and_keeps_the_boot(spark: Spark) -> None:
    """After a story is cleared the box is idle, healthy, and still the same boot."""
    resident_server(spark)
    spark.chip.stuck_hertz = 7.0e8
    spark.nvml_blocked_since = 0.0
    before = spark.boot_id
    spark.clear()
    spark.advance_to(60.0)
    sample = read(spark)
    assert sample.boot_id == before
    assert sample.processes == ()
    assert sample.gpus is not None
    assert sample.gpus[0].performance_state == 8
    assert sample.memory is not None
    assert (sample.memory.available_bytes or 0) > 110 * GIB
    decode(spark, resident_server(spark))
    spark.advance_to(70.0)
    gpus = read(spark).gpus
    assert gpus is not None
    assert (gpus[0].sm_hertz or 0) > 2.4e9
