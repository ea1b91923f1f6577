"""The daemon's own health: its sources, its loop, its cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_watch import __version__
from spark_watch.export.families.family import Family, Samples, one
from spark_watch.export.snapshot import LoopHealth, Snapshot
from spark_watch.sources.reading import SourceHealth


def _source(pick: Callable[[SourceHealth], float | None]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return (((health.source,), pick(health)) for health in snapshot.sources)

    return read


def _errors(snapshot: Snapshot) -> Samples:
    return (
        ((health.source, reason), count)
        for health in snapshot.sources
        for reason, count in sorted(health.errors.items())
    )


def _success(health: SourceHealth) -> float | None:
    return None if health.success is None else float(health.success)


def _loop(pick: Callable[[LoopHealth], float | None]) -> Callable[[Snapshot], Samples]:
    def read(snapshot: Snapshot) -> Samples:
        return one(pick(snapshot.loop))

    return read


def _build(snapshot: Snapshot) -> Samples:
    return (((__version__, snapshot.origin.partition(":")[0]), 1.0),)


def _reload(loop: LoopHealth) -> float | None:
    return None if loop.config_reload_success is None else float(loop.config_reload_success)


FAMILIES: Final = (
    Family(
        "build_info",
        "gauge",
        "Version of spark-watch and where its samples come from, constant 1: spark-watch.",
        _build,
        ("version", "origin"),
    ),
    Family(
        "source_success",
        "gauge",
        "Whether the source's last reading succeeded: spark-watch.",
        _source(_success),
        ("source",),
    ),
    Family(
        "source_duration_seconds",
        "gauge",
        "How long the source's last reading took: spark-watch.",
        _source(lambda health: health.duration_seconds),
        ("source",),
    ),
    Family(
        "source_last_success_timestamp_seconds",
        "gauge",
        "When the source last answered, absent where it never did: spark-watch.",
        _source(lambda health: health.last_success_seconds),
        ("source",),
    ),
    Family(
        "source_pending_seconds",
        "gauge",
        "For how long a call of the source has been out, absent below 1 s: spark-watch.",
        _source(lambda health: health.pending_seconds),
        ("source",),
    ),
    Family(
        "source_errors",
        "counter",
        "Readings that failed, by reason: spark-watch.",
        _errors,
        ("source", "reason"),
    ),
    Family("ticks", "counter", "Ticks of the loop: spark-watch.", _loop(lambda loop: loop.ticks)),
    Family(
        "missed_ticks",
        "counter",
        "Ticks that could not be kept because the one before took too long: spark-watch.",
        _loop(lambda loop: loop.missed_ticks),
    ),
    Family(
        "tick_lateness_seconds",
        "gauge",
        "How late the last tick began: spark-watch.",
        _loop(lambda loop: loop.late_seconds),
    ),
    Family(
        "tick_lateness_high_seconds",
        "gauge",
        "Highest lateness of late, falling by a tenth with each tick: spark-watch.",
        _loop(lambda loop: loop.late_high_seconds),
    ),
    Family(
        "tick_duration_seconds",
        "gauge",
        "How long the last tick took after it was read: spark-watch.",
        _loop(lambda loop: loop.tick_duration_seconds),
    ),
    Family(
        "judge_duration_seconds",
        "gauge",
        "How long judging the last sample took: spark-watch.",
        _loop(lambda loop: loop.judge_duration_seconds),
    ),
    Family(
        "interval_seconds",
        "gauge",
        "Seconds between two ticks: spark-watch.",
        _loop(lambda loop: loop.interval_seconds),
    ),
    Family(
        "danger_mode_active",
        "gauge",
        "1 while the pool is read four times a second because it may be collapsing: spark-watch.",
        _loop(lambda loop: float(loop.danger)),
    ),
    Family(
        "internal_errors",
        "counter",
        "Conditions that raised, each a bug worth reporting: spark-watch.",
        _loop(lambda loop: loop.internal_errors),
    ),
    Family(
        "self_cpu_seconds",
        "counter",
        "CPU time of the daemon itself: times(2).",
        _loop(lambda loop: loop.cpu_seconds),
    ),
    Family(
        "self_resident_bytes",
        "gauge",
        "Resident memory of the daemon itself: /proc/self/statm.",
        _loop(lambda loop: loop.resident_bytes),
    ),
    Family(
        "start_timestamp_seconds",
        "gauge",
        "When the daemon started: spark-watch.",
        _loop(lambda loop: loop.started_seconds),
    ),
    Family(
        "last_sample_timestamp_seconds",
        "gauge",
        "When the newest sample was taken: spark-watch.",
        lambda snapshot: one(snapshot.at_seconds),
    ),
    Family(
        "config_reload_success",
        "gauge",
        "Whether the last reload of the settings succeeded, absent before one: spark-watch.",
        _loop(_reload),
    ),
    Family(
        "config_reload_timestamp_seconds",
        "gauge",
        "When the settings were last asked to be reloaded, absent before: spark-watch.",
        _loop(lambda loop: loop.config_reload_seconds),
    ),
)
