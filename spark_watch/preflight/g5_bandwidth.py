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
    settings = facts.conditions.bandwidth_ceiling
    probe = settings.probe_bytes_per_second
    if probe is not None:
        values = {"probe_bytes_per_second": probe}
        sentence = f"a plain read reached {probe / 1e9:.0f} GB/s on this machine"
        if probe < settings.budget_low_bytes_per_second:
            yield Line(
                "G5",
                "budget",
                Result.WARN,
                f"{sentence}; budget this, not {BUDGET}",
                "measure again while the box is idle: probes differ, and a slow state that no flag "
                "reports makes reads three times slower",
                values,
            )
        else:
            sentence += f"; budget up to {settings.probe_ratio:.0%} of it for decode, not 273"
            yield Line("G5", "budget", Result.PASS, sentence, "", values)
        return
    yield Line(
        "G5",
        "budget",
        Result.INFO,
        f"not measured on this machine; budget {BUDGET}, not the specified 273",
        "measure while the box is idle, and count both directions of a copy the same way",
    )
