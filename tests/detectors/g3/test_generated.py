"""``memory_collapse`` on the study's generated series, a few of each kind."""

from __future__ import annotations

import pytest

from spark_watch.model import State
from tests.detectors.g3.pool import seeded
from tests.studies.memory_collapse import lead, raised_at, shipped
from tests.studies.series import a_collapse, a_quiet_one, a_twin


@pytest.mark.parametrize("seed", range(60))
def test_quiet_series_stay_quiet(seed: int) -> None:
    """Loads, swings, thin boxes and starts raise nothing; sharp dips are left to the study."""
    series = a_quiet_one(seeded(seed))
    if series.kind != "dips":
        assert raised_at(shipped(series)) is None, series.kind


def test_collapses_are_warned() -> None:
    """Of 100 collapses at least 90 are warned 2 s before their end, and none is missed."""
    rng = seeded(2)
    leads = []
    for _ in range(100):
        series = a_collapse(rng)
        leads.append(lead(series, raised_at(shipped(series))))
    assert sum(one >= 2.0 for one in leads) >= 90
    assert min(leads) > 0.0


def test_twins_are_never_critical() -> None:
    """Loads from rest below 40 GiB that end with room are a warning at most."""
    rng = seeded(3)
    assert not [one for _ in range(60) if State.CRITICAL in (one := shipped(a_twin(rng)))]
