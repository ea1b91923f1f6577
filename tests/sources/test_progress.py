"""Reports and answers together: one list, and what it takes for it to fail."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.model import Progress
from spark_watch.sources.engines.reader import EngineReader
from spark_watch.sources.mailbox import Mailbox
from spark_watch.sources.progress import MOST_WORKLOADS, ProgressSource


class Asked(EngineReader):
    """A reader with the answers it is given."""

    def __init__(self, *reports: Progress) -> None:
        super().__init__(servers=tuple, urls=["vllm=http://127.0.0.1:1/metrics"] if reports else ())
        self.reports = list(reports)

    def latest(self) -> list[Progress]:
        """Return them."""
        return self.reports


ENGINE = Progress(workload="vllm/7", requests_running=1)


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    """A mailbox that is not yet open."""
    made = Mailbox(path=tmp_path / "s")
    yield made
    made.close()


def send(mailbox: Mailbox, name: str) -> None:
    """Report one step."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        text = json.dumps({"v": 1, "workload": name, "steps": 1}).encode()
        sender.sendto(text, str(mailbox.path))


def test_reports_come_before_answers(mailbox: Mailbox) -> None:
    """Both kinds are in one list, at most eight of them."""
    source = ProgressSource(mailbox=mailbox, engines=Asked(*[ENGINE] * MOST_WORKLOADS))
    assert source.read() == (ENGINE,) * MOST_WORKLOADS
    send(mailbox, "train")
    found = source.read()
    assert found is not None
    assert [one.workload for one in found] == ["train", *["vllm/7"] * (MOST_WORKLOADS - 1)]


def test_nobody_reports(mailbox: Mailbox) -> None:
    """An open socket that nobody writes to is a reading, and an empty one."""
    assert ProgressSource(mailbox=mailbox, engines=Asked()).read() == ()


def test_nobody_to_ask() -> None:
    """Without a socket and without a server there is nothing to read."""
    assert ProgressSource(mailbox=None, engines=Asked()).read() is None


def test_socket_that_cannot_be_opened(tmp_path: Path) -> None:
    """It is a failure of the source, unless a server answers all the same."""
    (tmp_path / "file").touch()
    broken = Mailbox(path=tmp_path / "file" / "s")
    with pytest.raises(Unavailable) as refused:
        ProgressSource(mailbox=broken, engines=Asked()).read()
    assert refused.value.reason == "socket_failed"
    assert ProgressSource(mailbox=broken, engines=Asked(ENGINE)).read() == (ENGINE,)


def test_what_was_thrown_away_is_counted(mailbox: Mailbox) -> None:
    """Refused messages and failed questions stand beside one another, by their reasons."""
    engines = Asked(ENGINE)
    engines.errors["timeout"] = 2
    source = ProgressSource(mailbox=mailbox, engines=engines)
    source.read()
    send(mailbox, "two words")
    source.read()
    assert source.dropped() == {"engine_timeout": 2, "message_refused": 1}
