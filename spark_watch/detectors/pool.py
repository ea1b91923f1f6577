"""The pool as it was read last, for rules that are fed by another part of the sample."""

from __future__ import annotations

from spark_watch.detectors.timeline import Tick
from spark_watch.model import Memory


class Pool:
    """The newest reading of the pool for as long as it speaks.

    A rule about processes or about the kernel log needs the pool beside it, and the two come at
    their own pace.
    """

    __slots__ = ("_at", "_memory")

    def __init__(self) -> None:
        self._memory: Memory | None = None
        self._at = 0.0

    def update(self, tick: Tick) -> Memory | None:
        """Take a sample and return the newest reading, ``None`` where it is stale or none came."""
        if tick.sample.memory is not None:
            self._memory = tick.sample.memory
            self._at = tick.now
        elif self._memory is not None and tick.now - self._at > tick.stale_after("memory"):
            self._memory = None
        return self._memory


def available_bytes(memory: Memory | None) -> int | None:
    """Bytes that are available, ``None`` where that is not known."""
    return None if memory is None else memory.available_bytes
