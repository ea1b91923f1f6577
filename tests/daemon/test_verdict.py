"""What many conditions come to, and what does not count as knowing."""

from __future__ import annotations

import pytest

from spark_watch.daemon.verdict import worst
from spark_watch.model import State


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ({}, State.UNKNOWN),
        ({"memory_low": State.UNKNOWN}, State.UNKNOWN),
        ({"memory_low": State.UNKNOWN, "gpu_hot": State.OK}, State.OK),
        ({"memory_low": State.OK, "gpu_hot": State.INFO}, State.INFO),
        ({"memory_low": State.WARNING, "gpu_hot": State.CRITICAL}, State.CRITICAL),
        ({"memory_low": State.UNKNOWN, "telemetry_gap": State.OK}, State.UNKNOWN),
        ({"memory_low": State.OK, "telemetry_gap": State.OK}, State.OK),
        ({"memory_low": State.UNKNOWN, "telemetry_gap": State.WARNING}, State.WARNING),
    ],
)
def test_the_worst_counts(states: dict[str, State], verdict: State) -> None:
    """Unknown where nothing of the machine was judged; our own watch being fine is not that."""
    assert worst(states.items()) is verdict
