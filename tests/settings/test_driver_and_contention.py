"""Levels of drivers and contention that contradict each other stop the start."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from spark_watch.settings.conditions import ConditionSettings


@pytest.mark.parametrize(
    ("condition", "values", "named"),
    [
        ("driver_stalled", {"critical_seconds": 9.0}, "critical_seconds"),
        ("driver_allocation_failures", {"leave_lines": 6}, "leave_lines"),
        ("driver_allocation_failures", {"strained_lines": 21}, "strained_lines"),
        ("driver_memory_creep", {"leave_gib": 0.6}, "leave_gib"),
        ("pool_overcommitted", {"info_claims_ratio": 1.1}, "info_claims_ratio"),
        ("pool_overcommitted", {"heavy_leave_gib": 5.0}, "heavy_leave_gib"),
        ("pool_overcommitted", {"leave_memory_gib": 15.0}, "leave_memory_gib"),
        ("squeezed", {"hold_seconds": 61.0}, "hold_seconds"),
        ("unattributed_memory", {"leave_gib": 17.0}, "leave_gib"),
    ],
)
def test_levels_out_of_order_are_refused(
    condition: str, values: dict[str, Any], named: str
) -> None:
    """A way out beyond the way in, or a lesser state above a greater one, is named and refused."""
    with pytest.raises(ValidationError, match=named):
        ConditionSettings.model_validate({condition: values})
