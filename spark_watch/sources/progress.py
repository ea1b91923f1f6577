"""What the workloads say of themselves: those that report, and the servers that are asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from spark_watch.errors import Unavailable
from spark_watch.model import Progress
from spark_watch.sources.engines.reader import EngineReader
from spark_watch.sources.mailbox import Mailbox

MOST_WORKLOADS: Final = 8
"""The most workloads of a sample."""


class ProgressSource:
    """The newest report of every workload.

    Args:
        mailbox: the socket; ``None`` where there is no place for one.
        engines: asks the servers, in a thread of its own.
        clock: monotonic seconds.
    """

    name = "progress"

    def __init__(
        self,
        *,
        mailbox: Mailbox | None,
        engines: EngineReader,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mailbox = mailbox
        self._engines = engines
        self._clock = clock

    def start(self) -> None:
        """Start asking the servers."""
        self._engines.start()

    def read(self) -> tuple[Progress, ...] | None:
        """Return every workload's newest report, those that report by themselves first.

        ``None`` where there is neither a socket nor a server that could be asked.

        Raises:
            Unavailable: the socket cannot be opened, and no server has answered either.
        """
        reports: list[Progress] = []
        refused: Unavailable | None = None
        if self._mailbox is not None:
            try:
                reports += self._mailbox.read(self._clock())
            except Unavailable as error:
                refused = error
        reports += self._engines.latest()
        if refused is not None and not reports:
            raise refused
        if self._mailbox is None and not self._engines.asks:
            return None
        return tuple(reports[:MOST_WORKLOADS])

    def dropped(self) -> dict[str, int]:
        """Return what was thrown away and which questions failed, by reason, since the start."""
        counts = {f"engine_{reason}": count for reason, count in self._engines.errors.items()}
        if self._mailbox is not None:
            counts |= {f"message_{why}": count for why, count in self._mailbox.dropped.items()}
        return counts

    def close(self) -> None:
        """Stop listening and asking."""
        self._engines.close()
        if self._mailbox is not None:
            self._mailbox.close()
