"""The verdict in words and the order of the gotchas."""

from __future__ import annotations

import dataclasses

import pytest

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.export.status.words import NOT_JUDGED_HERE, TITLES, groups, verdict
from spark_watch.model import State
from tests.export.snapshots import SNAPSHOT, standing

NAMES = ("memory_low", "gpu_hot", "squeezed")


@pytest.mark.parametrize(
    ("states", "state", "headline"),
    [
        ((State.OK, State.OK, State.OK), State.OK, "No fault seen"),
        ((State.OK, State.UNKNOWN, State.OK), State.OK, "No fault seen"),
        ((State.UNKNOWN,) * 3, State.UNKNOWN, "Unknown"),
        (
            (State.OK, State.INFO, State.UNKNOWN),
            State.INFO,
            "No fault seen; worth knowing: gpu hot",
        ),
        (
            (State.WARNING, State.INFO, State.WARNING),
            State.WARNING,
            "Warning: memory low, squeezed",
        ),
        ((State.WARNING, State.CRITICAL, State.OK), State.CRITICAL, "Critical: gpu hot"),
    ],
)
def test_the_headline_is_the_worst(states: tuple[State, ...], state: State, headline: str) -> None:
    """The worst state gives the headline; no headline calls fine what nobody could judge."""
    standings = tuple(standing(name, one) for name, one in zip(NAMES, states, strict=True))
    said = verdict(dataclasses.replace(SNAPSHOT, standings=standings), alive=True)
    assert (said.state, said.headline) == (state, headline)


def test_the_second_line_counts_what_cannot_be_judged() -> None:
    """Beside a warning stand the notes and how many conditions are unknown, of how many."""
    states = (State.WARNING, State.INFO, State.UNKNOWN)
    standings = tuple(standing(name, one) for name, one in zip(NAMES, states, strict=True))
    said = verdict(dataclasses.replace(SNAPSHOT, standings=standings), alive=True)
    assert said.detail == "Also 1 note. 1 of 3 conditions cannot be judged now; each says why."


def test_a_stopped_loop_is_never_fine() -> None:
    """Whatever the last snapshot said: where nobody looks any more, the verdict is unknown."""
    fine = dataclasses.replace(SNAPSHOT, standings=(standing("gpu_hot", State.OK),))
    assert verdict(fine, alive=True).state is State.OK
    assert verdict(fine, alive=False).state is State.UNKNOWN
    assert verdict(None, alive=False).headline == "Unknown"


def test_the_worst_gotcha_stands_first() -> None:
    """Gotchas and conditions are in the order of their states; unknown stands before ok."""
    standings = (
        standing("memory_low", State.OK, gotcha="G3"),
        standing("gpu_hot", State.UNKNOWN, gotcha="G4"),
        standing("board_hot", State.OK, gotcha="G4"),
        standing("pool_overcommitted", State.INFO, gotcha="G6"),
        standing("squeezed", State.CRITICAL, gotcha="G6"),
    )
    found = groups(dataclasses.replace(SNAPSHOT, standings=standings))
    assert [group.gotcha for group in found] == ["G6", "G4", "G3"]
    assert [one.finding.condition for one in found[0].standings] == [
        "squeezed",
        "pool_overcommitted",
    ]
    assert [group.state for group in found] == [State.CRITICAL, State.UNKNOWN, State.OK]


def test_all_ten_gotchas_are_on_the_page() -> None:
    """Each gotcha has a title here or is named as one that is looked at before a run."""
    assert {kind.gotcha for kind in CATALOGUE} == set(TITLES)
    for number in range(1, 11):
        gotcha = f"G{number}"
        words = NOT_JUDGED_HERE.replace(",", " ").split()
        assert (gotcha in TITLES) != (gotcha in words), gotcha
