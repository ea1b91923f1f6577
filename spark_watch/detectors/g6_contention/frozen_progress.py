"""Which servers have requests running and make no token."""

from __future__ import annotations

from dataclasses import dataclass

from spark_watch.detectors.holds import Hold
from spark_watch.detectors.timeline import Tick
from spark_watch.model import Process, Progress


@dataclass(slots=True)
class _Feed:
    tokens: float | None
    hold: Hold
    frozen: bool = False


class FrozenProgress:
    """Watches every workload that reports, as long as it reports.

    Args:
        seconds: how long tokens must stand still while requests run.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._feeds: dict[str, _Feed] = {}

    def update(self, tick: Tick) -> None:
        """Take a sample; one without progress says nothing."""
        progress = tick.sample.progress
        if progress is None:
            return
        feeds: dict[str, _Feed] = {}
        for report in progress:
            tokens = _tokens(report)
            feed = self._feeds.get(report.workload)
            if feed is None:
                feed = _Feed(None, Hold(self._seconds))
            still = tokens is not None and tokens == feed.tokens and bool(report.requests_running)
            feed.frozen = feed.hold.update(tick.now, still, tick.interval("progress"))
            feed.tokens = tokens
            feeds[report.workload] = feed
        self._feeds = feeds

    def frozen_seconds(self, now: float, process: Process) -> float | None:
        """Return for how long the process's workload has been frozen, ``None`` where it is not.

        A workload goes by its engine's name or by that of the process (``vllm``, ``vllm/1234``).
        """
        for name, feed in self._feeds.items():
            if feed.frozen and (
                name == process.subject or name.partition("/")[0] in {process.engine, process.name}
            ):
                return feed.hold.held_seconds(now)
        return None


def _tokens(report: Progress) -> float | None:
    """Return all tokens that a server has made or read, ``None`` where it does not count them."""
    counts = (report.generation_tokens_total, report.prompt_tokens_total)
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
