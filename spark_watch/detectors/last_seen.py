"""What the last sample before a hole or a restart showed, in words."""

from __future__ import annotations

from typing import Any

from spark_watch.model import GIB, Memory, Sample


class LastSeen:
    """Keeps the newest reading of the few parts that say how a machine was.

    Parts come at their own pace, so the last sample alone may lack them. Nothing is copied: the
    records are frozen and there is one of each.
    """

    __slots__ = ("_gpus", "_memory", "_zones", "sample")

    def __init__(self) -> None:
        self.sample: Sample | None = None
        """The newest sample, ``None`` before the first."""
        self._memory: Memory | None = None
        self._gpus: Any = None
        self._zones: Any = None

    def update(self, sample: Sample) -> None:
        """Take the newest sample."""
        self.sample = sample
        if sample.memory is not None:
            self._memory = sample.memory
        if sample.gpus is not None:
            self._gpus = sample.gpus
        if sample.zones is not None:
            self._zones = sample.zones

    def restart(self) -> None:
        """Forget everything: another boot begins."""
        self.sample = self._memory = self._gpus = self._zones = None

    def words(self) -> str:
        """Say what was seen last: available memory, hottest reading, a call that was out."""
        parts = []
        if self._memory is not None and self._memory.available_bytes is not None:
            parts.append(f"{self._memory.available_bytes / GIB:.1f} GiB available")
        board = [
            zone.temperature_celsius
            for zone in self._zones or ()
            if zone.temperature_celsius is not None
        ]
        if board:
            parts.append(f"hottest zone {max(board):.0f} C")
        die = [
            gpu.temperature_celsius
            for gpu in self._gpus or ()
            if gpu.temperature_celsius is not None
        ]
        if die:
            parts.append(f"GPU die {max(die):.0f} C")
        if self.sample is not None:
            parts += [
                f"a call to {source} out for {seconds:.0f} s"
                for source, seconds in self.sample.pending.items()
            ]
        return ", ".join(parts) or "none of memory, temperature or outstanding calls"
