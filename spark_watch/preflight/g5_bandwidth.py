"""G5: bandwidth is what can be had, not what is specified."""

from __future__ import annotations

from collections.abc import Iterator

from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Result

BUDGET = "180 to 192 GB/s for a mix of kernels, 219 to 235 GB/s for large plain reads"


def check(facts: Facts) -> Iterator[Line]:
    """Say what to budget. The probe itself is never run from here: it takes the GPU."""
    if facts.foreign:
        yield Line(
            "G5", "budget", Result.INFO, "this machine is no GB10, so no range to budget is known"
        )
        return
    yield Line(
        "G5",
        "budget",
        Result.INFO,
        f"not measured on this machine; budget {BUDGET}, not the specified 273",
        "measure while the box is idle, and count both directions of a copy the same way",
    )
