"""What people run on a Spark: scripts that keep a server or a training loop busy."""

from __future__ import annotations

from typing import Final

from spark_watch.model import GIB
from spark_watch.sources.simulated.chip import Work
from spark_watch.sources.simulated.machine import Script, Server, Spark, Steps

RESIDENT_SECONDS: Final = 4_000.0
"""How long ago a workload began that a scenario finds running."""


def resident_server(
    spark: Spark,
    *,
    gpu_gib: float = 84.0,
    claim_ratio: float | None = 0.7,
    host_gib: float = 4.5,
    engine: str = "vllm",
) -> Server:
    """A server that was started hours ago and holds its weights and cache."""
    server = spark.serve(engine=engine, claim_ratio=claim_ratio)
    _back_date(spark, server)
    server.engine.hold(gpu_gib=gpu_gib, anonymous_gib=host_gib)
    server.feed.generation_tokens = 1.8e6
    server.feed.prompt_tokens = 9.4e6
    server.feed.kv_cache_usage_ratio = 0.0
    return server


def resident_training(
    spark: Spark, *, gpu_gib: float = 68.0, steps: int = 412, step_seconds: float = 12.0
) -> Server:
    """A training loop that was started hours ago and has done ``steps`` steps."""
    job = spark.train(step_seconds=step_seconds)
    _back_date(spark, job)
    job.engine.hold(gpu_gib=gpu_gib, anonymous_gib=6.0)
    job.feed.steps = float(steps)
    return job


def _back_date(spark: Spark, server: Server) -> None:
    for process in (server.launcher, server.engine):
        process.started_seconds = max(0.0, spark.uptime - RESIDENT_SECONDS)


def decode(
    spark: Spark, server: Server, *, watts: float = 40.0, streams: int = 8, rate: float = 11.0
) -> None:
    """Generate tokens for ``streams`` requests at ``rate`` each, until told otherwise."""
    spark.chip.run(server.engine.pid, Work(watts))
    feed = server.feed
    feed.phase, feed.batch = "decode", float(streams)
    feed.requests_running, feed.requests_waiting = float(streams), 0.0
    feed.generation_rate, feed.prompt_rate = rate * streams, 0.0
    feed.kv_cache_usage_ratio = round(min(0.95, 0.03 * streams + 0.05), 3)


def prefill(
    spark: Spark, server: Server, *, watts: float = 88.0, sag: float = 0.07, streams: int = 8
) -> None:
    """Read prompts: dense work near the practical power limit, and no token comes out."""
    spark.chip.run(server.engine.pid, Work(watts, sag=sag, spread=0.02))
    feed = server.feed
    feed.phase, feed.batch = "prefill", float(streams)
    feed.requests_running = float(streams)
    feed.generation_rate, feed.prompt_rate = 0.0, 2_400.0


def rest(spark: Spark, server: Server) -> None:
    """No request: the server stays resident, the GPU reads 0 % at its idle clock."""
    spark.chip.rest(server.engine.pid)
    feed = server.feed
    feed.generation_rate = feed.prompt_rate = 0.0
    feed.requests_running = feed.requests_waiting = 0.0
    feed.kv_cache_usage_ratio = 0.0
    feed.phase, feed.batch = None, None


def traffic(
    server: Server,
    *,
    decode_watts: float = 40.0,
    prefill_watts: float = 88.0,
    prefill_seconds: tuple[float, float] = (1.0, 4.0),
    decode_seconds: tuple[float, float] = (20.0, 70.0),
    rest_ratio: float = 0.1,
    streams: tuple[int, int] = (4, 16),
) -> Script:
    """Requests come and go: prefill, then decode, now and then a pause.

    To be played with the server's engine as its owner, so that it ends with it.
    """

    def steps(spark: Spark) -> Steps:
        rng = spark.rng
        while True:
            wanted = rng.randint(*streams)
            prefill(spark, server, watts=prefill_watts * rng.uniform(0.95, 1.03), streams=wanted)
            yield rng.uniform(*prefill_seconds)
            decode(spark, server, watts=decode_watts * rng.uniform(0.93, 1.07), streams=wanted)
            yield rng.uniform(*decode_seconds)
            if rng.random() < rest_ratio:
                rest(spark, server)
                yield rng.uniform(5.0, 40.0)

    return steps


def training(
    job: Server,
    *,
    watts: float = 88.0,
    sag: float = 0.06,
    step_bytes: float = 1.4e12,
    checkpoint_every: float = 300.0,
    checkpoint_gib: float = 7.0,
) -> Script:
    """Steps at constant speed; a checkpoint every few minutes writes through the page cache."""

    def steps(spark: Spark) -> Steps:
        rng = spark.rng
        feed = job.feed
        feed.bytes_rate = step_bytes / (feed.step_seconds or 1.0)
        while True:
            feed.steps_running = True
            spark.chip.run(job.engine.pid, Work(watts, sag=sag, spread=0.015))
            yield checkpoint_every * rng.uniform(0.97, 1.03)
            feed.steps_running = False
            spark.chip.rest(job.engine.pid)
            seconds = checkpoint_gib / 2.2
            spark.pool.writing_bytes_per_second = checkpoint_gib * GIB / seconds
            yield seconds
            spark.pool.writing_bytes_per_second = 0.0

    return steps


def load_weights(
    spark: Spark,
    server: Server,
    *,
    weights_gib: float = 62.0,
    cache_gib: float = 22.0,
    gib_per_second: float = 0.9,
    through_page_cache: bool = True,
) -> Steps:
    """Start a server as it starts on a Spark: imports, weights, a profile run, cache, graphs.

    Weights read through the page cache fill it as fast as the driver takes them, until there is no
    free memory left and the kernel evicts the one for the other.
    """
    chip, engine = spark.chip, server.engine
    server.feed.phase = "load"
    engine.grow(gpu_gib=0.6, anonymous_gib=4.5, gib_per_second=0.5)
    yield 12.0
    if through_page_cache:
        spark.pool.reading_bytes_per_second = gib_per_second * GIB
    engine.grow(gpu_gib=weights_gib, gib_per_second=gib_per_second)
    yield weights_gib / gib_per_second
    spark.pool.reading_bytes_per_second = 0.0
    spark.log.write("nv_err_no_memory")
    chip.run(engine.pid, Work(84.0, sag=0.05))
    engine.grow(gpu_gib=weights_gib + 4.0, gib_per_second=0.8)
    yield 14.0
    chip.rest(engine.pid)
    engine.hold(gpu_gib=weights_gib + 1.0)
    yield 2.0
    engine.grow(gpu_gib=weights_gib + 1.0 + cache_gib, gib_per_second=1.6)
    yield cache_gib / 1.6 + 4.0
    chip.run(engine.pid, Work(36.0, utilization=0.5))
    engine.grow(gpu_gib=weights_gib + 2.2 + cache_gib, gib_per_second=0.1)
    yield 20.0
    chip.rest(engine.pid)
    rest(spark, server)
