"""The growing log: only what is new, never more than a bounded piece, losses counted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.model import KernelEvent
from spark_watch.sources.kernel_log import KernelLogSource

XID = b"3,%d,123456789,-;NVRM: Xid (PCI:000f:01:00): %d, pid=812, name=python3\n"
NO_MEMORY = b"3,%d,123456789,-;NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)\n"


def _append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that holds one old Xid."""
    path = tmp_path / "kmsg"
    path.write_bytes(XID % (1, 13))
    return path


def test_only_what_is_logged_after_the_start_counts(log: Path) -> None:
    """The old Xid is no news; a new one is, once; a quiet log is an empty reading."""
    source = KernelLogSource(path=log)
    assert source.read() == ()
    _append(log, XID % (2, 79))
    assert source.read() == (KernelEvent(kind="xid", code=79),)
    assert source.read() == ()
    source.close()


def test_lines_of_one_kind_and_code_are_one_event(log: Path) -> None:
    """Events are counted by kind and code, in order of first appearance."""
    source = KernelLogSource(path=log)
    _append(log, NO_MEMORY % 2 + XID % (3, 119) + NO_MEMORY % 4 + XID % (5, 154) + NO_MEMORY % 6)
    assert source.read() == (
        KernelEvent(kind="nv_err_no_memory", count=3),
        KernelEvent(kind="xid", code=119),
        KernelEvent(kind="xid", code=154),
    )
    source.close()


def test_what_services_write_does_not_count(log: Path) -> None:
    """The same text with the facility of a user or a daemon is not the kernel speaking."""
    source = KernelLogSource(path=log)
    for priority in (b"11", b"12", b"27", b"30"):
        _append(log, priority + XID[1:] % (2, 79))
    assert source.read() == ()
    source.close()


def test_half_a_line_waits_for_its_other_half(log: Path) -> None:
    """A line is read when its end is there."""
    source = KernelLogSource(path=log)
    line = XID % (2, 79)
    _append(log, line[:40])
    assert source.read() == ()
    _append(log, line[40:])
    assert source.read() == (KernelEvent(kind="xid", code=79),)
    source.close()


def test_a_flood_is_taken_in_bounded_pieces_and_nothing_is_missed(log: Path) -> None:
    """No reading takes much more than its share of 20,000 lines, and the Xid behind them comes."""
    source = KernelLogSource(path=log, lines_per_reading=500)
    _append(log, b"".join(b"6,%d,1,-;usb 1-1: some other line\n" % n for n in range(20_000)))
    _append(log, XID % (20_001, 79))
    longest_read = 16384 // len(b"6,0,1,-;usb 1-1: some other line\n") + 1
    readings = 1
    while not (events := source.read()):
        readings += 1
    assert events == (KernelEvent(kind="xid", code=79),)
    assert readings >= 20_000 // (500 + longest_read)
    source.close()


def test_a_line_without_an_end_takes_bounded_memory(log: Path) -> None:
    """A megabyte without a newline is not kept, and the line after it is read."""
    source = KernelLogSource(path=log)
    _append(log, b"x" * 2**20)
    assert source.read() == ()
    assert len(source._rest) <= 16384
    _append(log, b"\n" + XID % (2, 79))
    assert source.read() == (KernelEvent(kind="xid", code=79),)
    source.close()


@pytest.mark.parametrize(
    "text", [b"\x00" * 5000, b"\xff\xfe\n" * 100, b"\n" * 70_000, b"4,1,1,-;\n"]
)
def test_hostile_text_is_silence(log: Path, text: bytes) -> None:
    """NULs, bytes beyond ASCII, empty lines and empty messages are nothing."""
    source = KernelLogSource(path=log)
    _append(log, text)
    assert [source.read() for _ in range(3)] == [(), (), ()]
    source.close()


def test_a_fifo_is_read_without_waiting(tmp_path: Path) -> None:
    """Without a writer, with a silent one and after a line, no reading waits."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    source = KernelLogSource(path=path)
    assert source.read() == ()
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    assert source.read() == ()
    os.write(writer, XID % (1, 48))
    assert source.read() == (KernelEvent(kind="xid", code=48),)
    os.close(writer)
    source.close()


def test_a_log_that_is_not_there_is_unsupported(tmp_path: Path) -> None:
    """No such path means no kernel log for us, as inside a unit without devices."""
    source = KernelLogSource(path=tmp_path / "none")
    with pytest.raises(Unsupported) as caught:
        source.read()
    assert caught.value.reason == "not_found"


def test_a_directory_is_an_error_each_time(tmp_path: Path) -> None:
    """A directory opens and does not read; nothing stays open."""
    source = KernelLogSource(path=tmp_path)
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            source.read()
        assert caught.value.reason == "not_a_file"
    assert source._descriptor == -1


def test_a_log_only_root_may_read_is_unavailable(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``dmesg_restrict`` the kernel answers EPERM: a reason, not silence."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "open", refuse)
    source = KernelLogSource(path=log)
    with pytest.raises(Unavailable) as caught:
        source.read()
    assert caught.value.reason == "permission_denied"


@pytest.fixture
def device(log: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., KernelLogSource]:
    """A source that takes its log for the device, with scripted answers to its reads."""

    def make(*answers: bytes | int) -> KernelLogSource:
        script: Iterator[bytes | int] = iter(answers)
        source = KernelLogSource(path=log)
        source._in_records = True
        real = os.read

        def read(descriptor: int, length: int) -> bytes:
            if descriptor != source._descriptor:
                return real(descriptor, length)
            answer = next(script, errno.EAGAIN)
            if isinstance(answer, int):
                raise OSError(answer, os.strerror(answer))
            return answer

        monkeypatch.setattr(os, "read", read)
        return source

    return make


def test_what_the_kernel_overwrote_is_counted_as_lost(
    device: Callable[..., KernelLogSource],
) -> None:
    """Line 10 then EPIPE then line 510: 499 lines were lost, and reading goes on."""
    source = device(XID % (10, 13), errno.EPIPE, XID % (510, 79), XID % (511, 79))
    assert source.read() == (
        KernelEvent(kind="xid", code=13),
        KernelEvent(kind="xid", code=79, count=2),
    )
    assert source.lost == 499


def test_a_loss_of_unknown_size_counts_as_one(device: Callable[..., KernelLogSource]) -> None:
    """Before any line was seen the size is not known; a record too long is one lost record."""
    source = device(errno.EPIPE, XID % (510, 79), errno.EINVAL, XID % (512, 79))
    assert source.read() == (KernelEvent(kind="xid", code=79, count=2),)
    assert source.lost == 2


def test_a_device_that_only_overruns_does_not_hold_the_loop(
    device: Callable[..., KernelLogSource],
) -> None:
    """One EPIPE after another ends with the reading's share."""
    source = device(*[errno.EPIPE] * 5000)
    assert source.read() == ()


def test_what_was_read_before_an_error_is_not_lost(
    device: Callable[..., KernelLogSource],
) -> None:
    """The event comes first, the error with the next reading."""
    source = device(XID % (10, 79), errno.EIO, errno.EIO)
    assert source.read() == (KernelEvent(kind="xid", code=79),)
    with pytest.raises(Unavailable) as caught:
        source.read()
    assert caught.value.reason == "eio"
