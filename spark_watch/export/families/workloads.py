"""What the workloads report of themselves: the newest of each, at most eight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import Progress

MOST: Final = 8
"""The most workloads on the page; a recording may hold more."""

_FEED: Final = "the workload's own progress feed."


def _told(pick: Callable[[Progress], float | None]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        reports: dict[str, Progress] = {}
        for report in snapshot.latest.progress or ():
            reports.setdefault(report.workload, report)
        return (((workload,), pick(report)) for workload, report in list(reports.items())[:MOST])

    return read


def _count(snapshot: Snapshot) -> Samples:
    reports = snapshot.latest.progress
    return one(None if reports is None else len({report.workload for report in reports}))


_LABELS: Final = ("workload",)

FAMILIES: Final = (
    Family(
        "workloads",
        "gauge",
        f"Workloads that report, those not shown one by one included: {_FEED}",
        _count,
    ),
    Family(
        "workload_generation_tokens",
        "counter",
        f"Tokens made, or trained on: {_FEED}",
        _told(lambda report: report.generation_tokens_total),
        _LABELS,
    ),
    Family(
        "workload_prompt_tokens",
        "counter",
        f"Prompt tokens read: {_FEED}",
        _told(lambda report: report.prompt_tokens_total),
        _LABELS,
    ),
    Family(
        "workload_steps",
        "counter",
        f"Steps done, or forward passes of an engine: {_FEED}",
        _told(lambda report: report.steps_total),
        _LABELS,
    ),
    Family(
        "workload_step_seconds",
        "gauge",
        f"Time one step takes: {_FEED}",
        _told(lambda report: report.step_seconds),
        _LABELS,
    ),
    Family(
        "workload_moved_bytes",
        "counter",
        f"Bytes moved to and from memory, as reported: {_FEED}",
        _told(lambda report: report.bytes_total),
        _LABELS,
    ),
    Family(
        "workload_requests_running",
        "gauge",
        f"Requests being answered: {_FEED}",
        _told(lambda report: report.requests_running),
        _LABELS,
    ),
    Family(
        "workload_requests_waiting",
        "gauge",
        f"Requests in the queue: {_FEED}",
        _told(lambda report: report.requests_waiting),
        _LABELS,
    ),
    Family(
        "workload_preemptions",
        "counter",
        f"Requests put back for lack of cache: {_FEED}",
        _told(lambda report: report.preemptions_total),
        _LABELS,
    ),
    Family(
        "workload_kv_cache_usage_ratio",
        "gauge",
        f"Share of the cache in use: {_FEED}",
        _told(lambda report: report.kv_cache_usage_ratio),
        _LABELS,
    ),
)
