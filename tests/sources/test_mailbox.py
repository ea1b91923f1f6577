"""The progress socket: what it takes, what it refuses, and who is still there."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_watch.errors import Unavailable
from spark_watch.model import Progress
from spark_watch.sources.mailbox import LIMIT_BYTES, MOST_WORKLOADS, Mailbox, Refused, parse


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Mailbox]:
    """An open mailbox that is closed afterwards."""
    made = Mailbox(path=tmp_path / "run" / "progress.sock")
    made.open()
    yield made
    made.close()


def send(box: Mailbox, **message: Any) -> None:
    """Send one message from this very process."""
    post(box, json.dumps({"v": 1, "workload": "train", **message}).encode())


def post(box: Mailbox, text: bytes) -> None:
    """Send raw bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(text, str(box.path))


def stranger(box: Mailbox, **message: Any) -> int:
    """Send one message from a process that has ended when this returns; return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            send(box, **message)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_counts_add_up(box: Mailbox) -> None:
    """Counts are those since the last message; the rest is as last told."""
    send(box, steps=12, step_seconds=0.8, tokens=4096, bytes=5.1e10, batch=8, phase="train")
    assert box.read(0.0) == [
        Progress(
            workload="train",
            phase="train",
            batch=8,
            generation_tokens_total=4096,
            steps_total=12,
            step_seconds=0.8,
            bytes_total=5.1e10,
        )
    ]
    send(box, steps=3, step_seconds=0.9)
    (report,) = box.read(1.0)
    assert (report.steps_total, report.step_seconds, report.batch) == (15, 0.9, 8)
    assert report.phase is None, "a message without a phase ends it"


def test_a_silent_loop_that_lives_stays(box: Mailbox) -> None:
    """A loop that hangs sends nothing: its counts stand still, which is the very news."""
    send(box, steps=1)
    box.read(0.0)
    assert box.read(50_000.0)[0].steps_total == 1


def test_a_loop_that_ended_is_gone(box: Mailbox, tmp_path: Path) -> None:
    """A process that was seen alive and is gone has no workload any more."""
    proc = tmp_path / "proc"
    box._proc_root = proc
    (proc / str(os.getpid())).mkdir(parents=True)
    (proc / str(os.getpid()) / "stat").write_bytes(Path("/proc/self/stat").read_bytes())
    send(box, steps=1)
    assert len(box.read(0.0)) == 1
    (proc / str(os.getpid()) / "stat").unlink()
    assert box.read(1.0) == []


def test_a_script_s_command_has_ended_when_it_is_heard(box: Mailbox) -> None:
    """Reports from a shell add up over their processes; three pauses of silence end it."""
    for second in (0.0, 100.0, 200.0):
        stranger(box, steps=1)
        (report,) = box.read(second)
    assert report.steps_total == 3
    assert len(box.read(490.0)) == 1, "290 s is less than three pauses of 100 s"
    assert box.read(510.0) == []


def test_another_run_under_the_same_name_starts_anew(box: Mailbox) -> None:
    """The counts of a process that has ended are not another's."""
    gone = stranger(box, workload="other", steps=1)
    send(box, steps=500)
    box.read(0.0)
    box._senders["train"].pid = gone
    send(box, steps=1)
    report = box.read(1.0)[-1]
    assert report.steps_total == 1


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b'{"v": 1}',
        b'{"v": 2, "workload": "a"}',
        b'{"v": true, "workload": "a"}',
        b'{"v": 1, "workload": ""}',
        b'{"v": 1, "workload": "a b"}',
        b'{"v": 1, "workload": "a\\nb"}',
        b'{"v": 1, "workload": "' + b"a" * 49 + b'"}',
        b'{"v": 1, "workload": 7}',
        b'{"v": 1, "workload": "a", "steps": -1}',
        b'{"v": 1, "workload": "a", "steps": true}',
        b'{"v": 1, "workload": "a", "steps": "1"}',
        b'{"v": 1, "workload": "a", "steps": NaN}',
        b'{"v": 1, "workload": "a", "steps": Infinity}',
        b'{"v": 1, "workload": "a", "steps": 1e400}',
        b'{"v": 1, "workload": "a", "steps": 1e10}',
        b'{"v": 1, "workload": "a", "phase": "UPPER"}',
        b'{"v": 1, "workload": "a", "phase": 1}',
        b"\xff\xfe",
        b"[" * 1000,
        b'{"v": 1, "workload": "a"' + b" " * LIMIT_BYTES + b"}",
    ],
)
def test_refused(box: Mailbox, text: bytes) -> None:
    """What is no message is thrown away and counted, and the next one is heard."""
    with pytest.raises(Refused):
        parse(text)
    post(box, text)
    send(box, steps=1)
    assert [one.steps_total for one in box.read(0.0)] == [1]
    assert box.dropped == {"refused": 1}


def test_unknown_keys_are_left_out(box: Mailbox) -> None:
    """A newer client's message is understood as far as it is known."""
    send(box, steps=1, loss=[0.3, {"a": 1}])
    assert box.read(0.0)[0].steps_total == 1


@settings(
    derandomize=True,
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.one_of(st.binary(max_size=1100), st.from_regex(rb'\{"v": ?1, .{0,200}\}')))
def test_no_bytes_break_it(text: bytes) -> None:
    """Whatever is sent, the answer is a message within bounds or a refusal."""
    try:
        message = parse(text)
    except Refused:
        return
    assert 0 < len(message["workload"]) <= 48


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    message=st.dictionaries(
        st.sampled_from(["v", "workload", "steps", "tokens", "bytes", "batch", "phase", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_no_object_breaks_it(message: dict[str, Any]) -> None:
    """Any JSON object is a message within bounds or a refusal."""
    try:
        found = parse(json.dumps(message).encode())
    except Refused:
        return
    numbers = [value for key, value in found.items() if key not in {"workload", "phase"}]
    assert all(0 <= number <= 1e18 for number in numbers)


def test_flood_is_counted_and_dropped(tmp_path: Path) -> None:
    """More messages than a reading takes: the rest is thrown away and counted."""
    box = Mailbox(path=tmp_path / "s")
    box.open()
    here = iter([(b'{"v": 1, "workload": "a", "steps": 1}', 0)] * 1000 + [None])
    box._receive = lambda: next(here)  # type: ignore[method-assign]  # the kernel's queue is shorter
    (report,) = box.read(0.0)
    assert report.steps_total == 128
    assert box.dropped == {"flood": 872}
    box.close()


def test_too_many_workloads(box: Mailbox) -> None:
    """The first eight are told apart; a ninth is counted and thrown away."""
    for number in range(MOST_WORKLOADS + 1):
        send(box, workload=f"w{number}", steps=1)
        box.read(0.0)
    assert len(box.read(1.0)) == MOST_WORKLOADS
    assert box.dropped == {"too_many_workloads": 1}


def test_open_to_its_group_alone(box: Mailbox) -> None:
    """Owner and group may write, nobody else."""
    mode = box.path.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o660


def test_stale_socket_is_replaced_and_a_live_one_is_not(box: Mailbox) -> None:
    """A second daemon leaves the first one's socket alone; a dead one's is replaced."""
    second = Mailbox(path=box.path)
    with pytest.raises(Unavailable, match="somebody listens") as refused:
        second.open()
    assert refused.value.reason == "socket_in_use"
    assert box._socket is not None
    box._socket.close()
    second.open()
    send(second, steps=1)
    assert len(second.read(0.0)) == 1
    second.close()
    assert not second.path.exists()


def test_close_leaves_another_s_socket(box: Mailbox) -> None:
    """What has been replaced meanwhile is not ours to take away."""
    box.path.unlink()
    box.path.touch()
    box.close()
    assert box.path.exists()


def test_no_such_group(tmp_path: Path) -> None:
    """A group that does not exist is named, and no socket is left open to anybody."""
    box = Mailbox(path=tmp_path / "s", group="no-such-group-here")
    with pytest.raises(Unavailable) as refused:
        box.open()
    assert refused.value.reason == "no_such_group"
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    """What cannot be made is a failure of the source, not of the daemon."""
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable) as refused:
        Mailbox(path=tmp_path / "file" / "s").open()
    assert refused.value.reason == "socket_failed"


def test_descriptors_that_are_passed_along_are_closed(box: Mailbox) -> None:
    """A sender cannot fill the daemon's table of open files."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        Path(os.devnull).open() as null,
    ):
        sender.connect(str(box.path))
        for _ in range(5):
            socket.send_fds(sender, [b'{"v": 1, "workload": "a", "steps": 1}'], [null.fileno()])
        sender.close()
    box.read(0.0)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
