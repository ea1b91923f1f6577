"""The log never holds anybody up, and says what it lost."""

from __future__ import annotations

import io
import json
import threading

import pytest

from spark_watch.daemon import log as logs
from spark_watch.daemon.log import LogQueue
from tests.waiting import PATIENCE_SECONDS, until


class Stuck(io.StringIO):
    """A pipe whose reader has stopped; it takes everything again once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.gate = threading.Event()

    def write(self, text: str) -> int:
        """Wait until the reader goes on."""
        self.entered.set()
        assert self.gate.wait(PATIENCE_SECONDS)
        return super().write(text)


def test_a_stream_that_blocks_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines beyond the queue's room are counted at once, and said when there is room again."""
    monkeypatch.setattr(logs, "QUEUE_LINES", 5)
    stream = Stuck()
    lines = LogQueue(stream)
    lines.write("first")
    assert stream.entered.wait(PATIENCE_SECONDS)
    for number in range(8):
        lines.write(f"line {number}")
    assert lines.dropped == 3
    stream.gate.set()
    until(lambda: "line 4" in stream.getvalue())
    lines.write("last")
    lines.close(PATIENCE_SECONDS)
    written = stream.getvalue().splitlines()
    assert [line for line in written if not line.startswith("{")] == [
        "first", "line 0", "line 1", "line 2", "line 3", "line 4", "last",
    ]  # fmt: skip
    (lost,) = (json.loads(line) for line in written if line.startswith("{"))
    assert lost == {"event": "log_lines_dropped", "count": 3}


def test_a_stream_that_blocks_does_not_hold_up_the_end() -> None:
    """Close waits for a moment and goes."""
    stream = Stuck()
    lines = LogQueue(stream)
    lines.write("first")
    assert stream.entered.wait(PATIENCE_SECONDS)
    lines.close(0.01)
    stream.gate.set()
    lines._thread.join(PATIENCE_SECONDS)
    assert not lines._thread.is_alive()


def test_a_stream_that_fails_does_not_end_the_log() -> None:
    """A closed pipe costs its lines and nothing else."""

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            """Fail."""
            raise BrokenPipeError(text)

    lines = LogQueue(Broken())
    lines.write("lost")
    lines.write("lost too")
    until(lines._queue.empty)
    assert lines._thread.is_alive()
    lines.close(PATIENCE_SECONDS)
    assert not lines._thread.is_alive()


def test_lines_are_json_with_the_data_as_keys() -> None:
    """An event with its level, its time and its values; a line end stays inside the text."""
    stream = io.StringIO()
    logger, lines = logs.configure(stream)
    logger.warning("source_failing", source="nvml", reason="a\nb")
    lines.close(PATIENCE_SECONDS)
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {
        "event": "source_failing",
        "level": "warning",
        "source": "nvml",
        "reason": "a\nb",
    }


def test_a_terminal_gets_text() -> None:
    """Where a person reads along, a line is no JSON."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            """Say yes."""
            return True

    stream = Terminal()
    logger, lines = logs.configure(stream)
    logger.info("listening", url="http://127.0.0.1:9810/")
    lines.close(PATIENCE_SECONDS)
    assert "listening" in stream.getvalue()
    assert not stream.getvalue().startswith("{")
