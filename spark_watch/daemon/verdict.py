"""The one state in which a look at many conditions ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.model import State

OF_OURSELVES: Final = frozenset(kind.name for kind in CATALOGUE if not kind.sources)
"""Conditions that read nothing of the machine: that they are fine says nothing of it."""


def worst(states: Iterable[tuple[str, State]]) -> State:
    """Return the worst state of (condition, state) pairs.

    Returns:
        ``UNKNOWN`` only where nothing of the machine could be judged: one condition that is ok
        outweighs those that cannot be judged, but not where it is about the watch itself.
    """
    told = [
        state
        for name, state in states
        if state is not State.UNKNOWN and (state is not State.OK or name not in OF_OURSELVES)
    ]
    return max(told, default=State.UNKNOWN)
