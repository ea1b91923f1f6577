"""The libraries that an ELF file asks for, from its headers alone."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_watch.preflight.elf import NotReadableError, needed
from tests.preflight.libraries import build


def test_a_real_library(tmp_path: Path) -> None:
    """Every name comes back in the order in which the linker wrote it."""
    library = build(tmp_path / "ext.so", ["libcudart.so.12", "libnvrtc.so.12", "libcufft.so.12"])
    assert needed(library) == ("libcudart.so.12", "libnvrtc.so.12", "libcufft.so.12")


def test_a_library_that_asks_for_nothing(tmp_path: Path) -> None:
    """No name is an answer too."""
    assert needed(build(tmp_path / "alone.so")) == ()


@pytest.mark.parametrize("order", ["<", ">"])
def test_other_machines(tmp_path: Path, order: str) -> None:
    """A 32-bit file of either byte order is read as well: 52 bytes of header, two segments."""
    text = b"\0libcudart.so.12\0"
    dynamic = struct.pack(order + "iIiIiI", 1, 1, 5, 0x1000 + 140, 0, 0)
    head = b"\x7fELF" + bytes([1, 1 if order == "<" else 2, 1]) + bytes(9)
    head += struct.pack(order + "HHIIIIIHHHHHH", 3, 40, 1, 0, 52, 0, 0, 52, 32, 2, 0, 0, 0)
    load = struct.pack(order + "IIIIIIII", 1, 0, 0x1000, 0, 200, 200, 4, 4096)
    where = struct.pack(order + "IIIIIIII", 2, 116, 0x1000 + 116, 0, 24, 24, 4, 4)
    path = tmp_path / "small.so"
    path.write_bytes(head + load + where + dynamic + text)
    assert needed(path) == ("libcudart.so.12",)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text, not a library", b"\x7fELF\2\1" * 20])
def test_what_is_no_elf_file(tmp_path: Path, content: bytes) -> None:
    """It is refused, whatever it holds."""
    path = tmp_path / "no.so"
    path.write_bytes(content)
    with pytest.raises(NotReadableError):
        needed(path)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    """Cut anywhere, it is either refused or has all its names: never a part of them."""
    whole = build(tmp_path / "whole.so", ["libcudart.so.12"]).read_bytes()
    cut = tmp_path / "cut.so"
    for length in range(0, len(whole), 97):
        cut.write_bytes(whole[:length])
        try:
            found = needed(cut)
        except NotReadableError:
            continue
        assert found == ("libcudart.so.12",)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_headers_never_do_more_than_be_refused(tmp_path: Path, data: st.DataObject) -> None:
    """With any bytes of the headers changed there is an answer or a refusal, and nothing else."""
    original = tmp_path / "original.so"
    if not original.exists():
        build(original, ["libcudart.so.12"])
    content = bytearray(original.read_bytes())
    for at in data.draw(st.lists(st.integers(4, 600), max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(content)
    with contextlib.suppress(NotReadableError, OSError):
        assert isinstance(needed(damaged), tuple)


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    """A pipe in place of a library is refused at once."""
    os.mkfifo(tmp_path / "pipe.so")
    with pytest.raises((NotReadableError, OSError)):
        needed(tmp_path / "pipe.so")
