"""The traces that owners of real machines recorded, with what a fair reader says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from spark_watch.model import State
from spark_watch.sources.simulated import Span

SUFFIX: Final = ".labels.json"


def labelled(folder: Path) -> Iterator[tuple[Path, tuple[Span, ...]]]:
    """Every trace of the folder that has labels, with those spans that are to be scored.

    Spans of low confidence are left out.
    """
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        labels = json.loads(path.read_text(encoding="utf-8"))
        spans = tuple(
            span_of(label) for label in labels["spans"] if label.get("confidence") != "low"
        )
        yield folder / labels["trace"], spans


def span_of(label: Mapping[str, Any]) -> Span:
    """One span of a labels file."""
    quiet = label["label"] == "quiet"
    return Span(
        start=float(label["from"]),
        end=float(label["to"]),
        why=str(label.get("why", "")),
        gotchas=() if quiet else tuple(label["label"]),
        condition=label.get("condition_hint"),
        at_least=State[str(label.get("at_least", "warning")).upper()],
        at_most=State[str(label.get("at_most", "info")).upper()],
        deadline=None if label.get("deadline") is None else float(label["deadline"]),
    )
