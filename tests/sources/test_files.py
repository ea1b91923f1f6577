"""The kept descriptor: what it returns, what it follows, and that nothing makes it wait."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.sources.files import KeptFile, children, integer, label, natural, source_error


def test_a_kept_file_shows_what_was_written_since(tmp_path: Path) -> None:
    """The second reading returns the new text, through the descriptor of the first."""
    path = tmp_path / "file"
    path.write_bytes(b"first\n")
    kept = KeptFile(path)
    assert kept.read() == b"first\n"
    descriptor = kept._descriptor
    path.write_bytes(b"second\n")
    assert kept.read() == b"second\n"
    assert kept._descriptor == descriptor
    kept.close()


def test_a_replaced_file_is_opened_anew(tmp_path: Path) -> None:
    """A file that was replaced by another of the same name is read in its new form."""
    path = tmp_path / "file"
    path.write_bytes(b"old\n")
    kept = KeptFile(path)
    assert kept.read() == b"old\n"
    (tmp_path / "new").write_bytes(b"new\n")
    (tmp_path / "new").replace(path)
    assert kept.read() == b"new\n"
    kept.close()


def test_a_removed_file_is_missed_at_once(tmp_path: Path) -> None:
    """The open descriptor of a removed file does not go on answering with its last text."""
    path = tmp_path / "file"
    path.write_bytes(b"text\n")
    kept = KeptFile(path)
    kept.read()
    path.unlink()
    with pytest.raises(Unavailable) as caught:
        kept.read()
    assert caught.value.reason == "not_found"
    path.write_bytes(b"back\n")
    assert kept.read() == b"back\n"
    kept.close()


def test_a_descriptor_that_stops_answering_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ESTALE from the kept descriptor the path is opened again within the same reading."""
    path = tmp_path / "file"
    path.write_bytes(b"text\n")
    kept = KeptFile(path)
    kept.read()
    stale = kept._descriptor
    pread = os.pread
    refused: list[int] = []

    def pread_once_stale(descriptor: int, length: int, offset: int) -> bytes:
        if descriptor == stale and not refused:
            refused.append(descriptor)
            raise OSError(errno.ESTALE, "stale")
        return pread(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", pread_once_stale)
    assert kept.read() == b"text\n"
    assert refused == [stale]
    kept.close()


def test_a_table_handed_out_in_pieces_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short answers, as /proc gives them for long tables, are put together."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: pread(fd, min(length, 3), at))
    kept = KeptFile(path)
    assert kept.read() == b"0123456789"
    kept.close()


def test_a_text_as_long_as_the_limit_is_refused(tmp_path: Path) -> None:
    """One byte below the limit is read; at the limit the text may be cut off and is an error."""
    path = tmp_path / "file"
    kept = KeptFile(path, limit=8)
    path.write_bytes(b"1234567")
    assert kept.read() == b"1234567"
    path.write_bytes(b"12345678")
    with pytest.raises(Unavailable) as caught:
        kept.read()
    assert caught.value.reason == "too_large"
    kept.close()


@pytest.mark.parametrize("kind", ["directory", "fifo", "under_a_file"])
def test_what_is_no_file_is_an_error_without_waiting(tmp_path: Path, kind: str) -> None:
    """A directory, a FIFO without a writer and a path below a file are errors at once."""
    path = tmp_path / "thing"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"")
        path = path / "below"
    kept = KeptFile(path)
    with pytest.raises(Unavailable) as caught:
        kept.read()
    assert caught.value.reason == ("not_found" if kind == "under_a_file" else "not_a_file")
    assert kept._descriptor == -1


def test_an_endless_device_is_refused() -> None:
    """A device that never ends is ``too_large`` after the limit."""
    kept = KeptFile(Path("/dev/zero"))
    with pytest.raises(Unavailable) as caught:
        kept.read()
    assert caught.value.reason == "too_large"
    kept.close()


@pytest.mark.parametrize(
    ("number", "kind", "reason"),
    [
        (errno.EACCES, Unavailable, "permission_denied"),
        (errno.EPERM, Unavailable, "permission_denied"),
        (errno.ENOENT, Unsupported, "not_found"),
        (errno.EOPNOTSUPP, Unsupported, "not_supported"),
        (errno.EIO, Unavailable, "eio"),
        (0, Unavailable, "os_error"),
    ],
)
def test_each_error_number_has_its_class_and_reason(
    number: int, kind: type[Exception], reason: str
) -> None:
    """What the kernel answers is told by class and by a reason in snake case."""
    error = source_error(OSError(number, "text"), Path("/x"), absent=Unsupported)
    assert type(error) is kind
    assert error.reason == reason
    assert str(error) == "/x: text"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (b"0", 0),
        (b"18446744073709551615", 2**64 - 1),
        (b"184467440737095516150", None),
        (b"9" * 5000, None),
        (b"", None),
        (b"-1", None),
        (b"+1", None),
        (b"1_000", None),
        (b" 1", None),
        ("٣".encode(), None),
        (b"0x10", None),
    ],
)
def test_only_plain_digits_are_a_number(word: bytes, value: int | None) -> None:
    """Signs, blanks, other scripts and numbers no kernel prints are not numbers."""
    assert natural(word) == value


def test_a_label_keeps_only_what_a_label_may_hold() -> None:
    """Quotes, newlines, blanks and bytes beyond ASCII go; the rest is cut at 48 characters."""
    assert label(b'VLLM::Worker_TP0"}\n evil\xff\x00') == "VLLM::Worker_TP0evil"
    assert label(b"x" * 100) == "x" * 48
    assert label(b"\xff\x00 ") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"52400\n", 52_400),
        (b"-40000", -40_000),
        (b"0\n", 0),
        (b"4294967295\n", 2**32 - 1),
        (b"42949672950\n", None),
        (b"1\n2\n", None),
        (b"1\n\n", None),
        (b" 1\n", None),
        (b"+1\n", None),
        (b"--1\n", None),
        (b"1.5\n", None),
        (b"", None),
    ],
)
def test_an_attribute_is_one_number_or_none(text: bytes, value: int | None) -> None:
    """A sign, up to ten digits and one newline; anything else is no number."""
    assert integer(text) == value


@given(st.binary(max_size=24) | st.from_regex(rb"-?[0-9]{1,12}\n?", fullmatch=True))
def test_no_number_and_no_label_is_invented(text: bytes) -> None:
    """Whatever the text, a number is the text itself and a label is made of its characters."""
    number = integer(text)
    assert number is None or number == int(text)
    whole = natural(text)
    assert whole is None or whole == int(text)
    name = label(text)
    assert name is None or (re.fullmatch(r"[A-Za-z0-9_.:-]{1,48}", name) is not None)
    assert name is None or set(name.encode()) <= set(text)


def test_the_names_in_a_folder_come_sorted_or_as_an_error(tmp_path: Path) -> None:
    """A folder that is not there is the class asked for; a file in its place is ``not_found``."""
    for name in ("b", "a"):
        (tmp_path / name).write_bytes(b"")
    assert children(tmp_path) == ["a", "b"]
    with pytest.raises(Unsupported):
        children(tmp_path / "none", absent=Unsupported)
    with pytest.raises(Unavailable) as caught:
        children(tmp_path / "a")
    assert caught.value.reason == "not_found"
