"""A condition that says what a test tells it, to stand before the one that is tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_watch.detectors.condition import Condition, Judgement
from spark_watch.detectors.timeline import Tick
from spark_watch.model import State


class Said(Condition[Mapping[float, State]]):
    """Has from each second on the state that its settings name for it, and is ok before."""

    name = "memory_collapse"
    gotcha = "G3"
    part = "sample"
    sources = ()
    summary = "what the test says"
    remedies: ClassVar = {}

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Say the newest state that is due."""
        due = [state for second, state in self.settings.items() if second <= tick.now]
        return {"host": Judgement(due[-1] if due else State.OK, "as told")}
