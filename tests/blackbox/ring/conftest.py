"""Rings that are given back after each test, as a kill would: without a mark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.ring.boxes import Box

Make = Callable[..., Box]
"""Makes a box over a folder; see :class:`Box`."""


@pytest.fixture
def make() -> Iterator[Make]:
    """Make boxes, and let go of their files at the end."""
    made: list[Box] = []

    def one(folder: Path, **more: Any) -> Box:
        made.append(Box(folder, **more))
        return made[-1]

    yield one
    for box in made:
        box.kill()
