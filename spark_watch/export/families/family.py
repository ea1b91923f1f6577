"""What a metric family is: its name, its words and how its samples come out of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from spark_watch.export.snapshot import Snapshot

NAMESPACE: Final = "sparkwatch"
"""The prefix of every metric: one word, as the naming guide asks."""

Samples = Iterable[tuple[tuple[str, ...], float | None]]
"""Label values with the number that belongs to them; ``None`` is left out of the page."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family.

    Args:
        name: without prefix, and without ``_total`` for a counter.
        kind: ``gauge`` or ``counter``.
        help: one sentence that ends with the source's own name.
        read: takes the samples out of a snapshot, in a stable order.
        labels: label names, in the order of the label values.
    """

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    read: Callable[[Snapshot], Samples]
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name as it stands on the page."""
        suffix = "_total" if self.kind == "counter" else ""
        return f"{NAMESPACE}_{self.name}{suffix}"


def one(value: float | None) -> Samples:
    """Return the samples of a family without labels."""
    return (((), value),)
