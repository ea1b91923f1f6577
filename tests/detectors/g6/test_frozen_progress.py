"""Which process a workload's report belongs to, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterable

from spark_watch.detectors.g6_contention.frozen_progress import FrozenProgress
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import Process, Progress, Sample

FIRST = Process(pid=7, engine="vllm", name="VLLM::EngineCore")
SECOND = Process(pid=8, engine="vllm", name="VLLM::EngineCore")


def watched(reports: Iterable[tuple[Progress, ...]]) -> tuple[FrozenProgress, float]:
    """Return what is known after one report a second, and the moment."""
    progress = FrozenProgress(60.0, 60.0)
    timeline = Timeline()
    now = 0.0
    for second, report in enumerate(reports):
        tick = timeline.place(Sample(t=1e9 + second, progress=report))
        progress.update(tick)
        now = tick.now
    return progress, now


def told(workload: str, tokens: float, preempted: float | None = None) -> Progress:
    """Return what a server with four requests says."""
    return Progress(
        workload=workload,
        generation_tokens_total=tokens,
        requests_running=4,
        preemptions_total=preempted,
    )


def test_of_two_servers_the_frozen_one_is_meant() -> None:
    """Two vLLMs: the one that stands still is frozen, the other is not."""
    progress, now = watched(
        (told("vllm/7", 100.0), told("vllm/8", float(second))) for second in range(90)
    )
    assert progress.frozen_seconds(now, FIRST) == 89.0
    assert progress.frozen_seconds(now, SECOND) is None


def test_a_report_by_the_engine_s_name_is_that_engine_s() -> None:
    """A recording names the engine alone."""
    progress, now = watched((told("vllm", 100.0),) for _ in range(90))
    assert progress.frozen_seconds(now, FIRST) == 89.0
    assert progress.frozen_seconds(now, Process(pid=9, engine="sglang")) is None


def test_requests_put_back_within_the_window() -> None:
    """Five before the last minute, three in it; a reset counts nothing."""
    counts = [0.0] * 10 + [5.0] * 100 + [8.0] * 10 + [0.0] * 5
    progress, _ = watched((told("vllm/7", 1.0 * n, count),) for n, count in enumerate(counts))
    assert progress.preempted(FIRST) == 3
    assert progress.preempted(SECOND) == 0
