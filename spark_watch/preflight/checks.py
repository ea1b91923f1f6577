"""The ten checks in their order, and the report they make of the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from spark_watch import __version__
from spark_watch.preflight import (
    g1_cuda,
    g2_flash_attention,
    g3_memory,
    g4_power,
    g5_bandwidth,
    g6_contention,
    g7_nvfp4,
    g8_playbooks,
    g9_container,
    g10_tensor_parallel,
)
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Report, Result

CHECKS: Final[Mapping[str, Callable[[Facts], Iterator[Line]]]] = {
    "G1": g1_cuda.check,
    "G2": g2_flash_attention.check,
    "G3": g3_memory.check,
    "G4": g4_power.check,
    "G5": g5_bandwidth.check,
    "G6": g6_contention.check,
    "G7": g7_nvfp4.check,
    "G8": g8_playbooks.check,
    "G9": g9_container.check,
    "G10": g10_tensor_parallel.check,
}
"""Every gotcha has one, and every one says at least one line."""


def report(facts: Facts, *, took_seconds: float = 0.0) -> Report:
    """Return what all checks say of the facts; one that raises says so and stops no other."""
    lines = [line for gotcha, check in CHECKS.items() for line in _lines(gotcha, check, facts)]
    return Report(
        lines=tuple(lines),
        is_gb10=facts.machine.is_gb10,
        headroom_bytes=facts.headroom_bytes,
        at_seconds=facts.now_seconds,
        short=g3_memory.short(facts),
        more=_more(facts, took_seconds),
    )


def _lines(gotcha: str, check: Callable[[Facts], Iterator[Line]], facts: Facts) -> list[Line]:
    try:
        return list(check(facts))
    except Exception as error:  # noqa: BLE001 - no check may keep another from its answer
        sentence = f"the check itself failed ({type(error).__name__}: {error})"
        return [Line(gotcha, "check", Result.SKIP, sentence, "report it as a bug of spark-watch")]


def _more(facts: Facts, took_seconds: float) -> dict[str, Any]:
    return {
        "spark_watch_version": __version__,
        "at": facts.now_seconds,
        "took_seconds": round(took_seconds, 3),
        "machine": asdict(facts.machine),
        "python": None if facts.python is None else str(facts.python),
        "unread": dict(facts.unread),
    }
