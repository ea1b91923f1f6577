"""How every condition stands, and the quantities the conditions judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch.export.families.family import Family, Samples
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import STATE_LABELS, State


def _states(snapshot: Snapshot) -> Samples:
    return (
        (
            (standing.finding.gotcha, standing.finding.condition, label),
            float(standing.finding.state.label == label),
        )
        for standing in snapshot.standings
        for label in STATE_LABELS
    )


def _changed(snapshot: Snapshot) -> Samples:
    return (
        (
            (standing.finding.gotcha, standing.finding.condition),
            standing.changed_at_seconds,
        )
        for standing in snapshot.standings
    )


def _changes(snapshot: Snapshot) -> Samples:
    return (
        (
            (standing.finding.gotcha, standing.finding.condition, label),
            standing.changes.get(State[label.upper()], 0),
        )
        for standing in snapshot.standings
        for label in STATE_LABELS
    )


def measured(name: str) -> Callable[[Snapshot], Samples]:
    """Return a reader of one judged quantity."""

    def read(snapshot: Snapshot) -> Samples:
        return (
            (labels, value)
            for (measure, labels), value in sorted(snapshot.measures.items())
            if measure == name
        )

    return read


def _measure(name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(name, "gauge", text, measured(name), labels)


MEASURES: Final = (
    _measure(
        "memory_exhaustion_seconds",
        "Seconds until the pool is down to its floor at the present rate, absent while it does not "
        "fall: MemAvailable in /proc/meminfo.",
    ),
    _measure(
        "memory_trend_bytes_per_second",
        "Robust slope of what can still be allocated over 20 min, negative while it falls: "
        "MemAvailable in /proc/meminfo.",
    ),
    _measure(
        "swap_in_bytes_per_second",
        "Rate at which swap is read back, as judged: pswpin in /proc/vmstat.",
    ),
    _measure(
        "swap_out_bytes_per_second",
        "Rate at which memory is written to swap, as judged: pswpout in /proc/vmstat.",
    ),
    _measure(
        "gpu_event_reason_ratio",
        "Share of the last 10 min in which a reason held the clock down: nvmlDeviceGetFieldValues.",
        ("gpu", "reason"),
    ),
    _measure(
        "pool_claims_ratio",
        "Sum of what the engines say they will take, as a share of the pool and no hard cap: their "
        "flags in /proc/PID/cmdline.",
    ),
    _measure(
        "workload_memory_bytes_per_second",
        "Bytes a workload moves as judged, reported or estimated, at most 8 workloads: the "
        "workload's own progress feed.",
        ("workload",),
    ),
)
"""Every quantity that a condition publishes; a test holds this against the conditions."""

FAMILIES: Final = (
    Family(
        "condition_state",
        "gauge",
        "1 for the state a condition is in and 0 for the four others: spark-watch.",
        _states,
        ("gotcha", "condition", "state"),
    ),
    Family(
        "condition_last_change_timestamp_seconds",
        "gauge",
        "When a condition last changed its state, absent before the first change: spark-watch.",
        _changed,
        ("gotcha", "condition"),
    ),
    Family(
        "condition_changes",
        "counter",
        "How often a condition entered a state: spark-watch.",
        _changes,
        ("gotcha", "condition", "to"),
    ),
    *MEASURES,
)
