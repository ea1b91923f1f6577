"""The boot id and the kernel release, or an error, and never a text that is neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.sources.boot import BootSource, kernel_release

PROC = Path(__file__).parents[1] / "fixtures" / "proc" / "gb10"


def test_the_boot_id_and_the_release_are_read() -> None:
    """Both come without their newline."""
    source = BootSource(proc_root=PROC)
    assert source.read() == "3f1c9a52-7d0b-4e88-9c41-5ab2d6e0f713"
    source.close()
    assert kernel_release(proc_root=PROC) == "6.17.0-1021-nvidia"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00" * 37,
        b"3f1c9a52-7d0b-4e88-9c41-5ab2d6e0f7\n",
        b"3F1C9A52-7D0B-4E88-9C41-5AB2D6E0F713\n",
        b"3f1c9a52-7d0b-4e88-9c41-5ab2d6e0f713\nmore\n",
        b"\xff" * 36,
        b"9" * 100_000,
    ],
)
def test_what_is_no_boot_id_is_refused(tmp_path: Path, text: bytes) -> None:
    """A wrong id would look like a restart, so nothing but an id is taken for one."""
    folder = tmp_path / "sys" / "kernel" / "random"
    folder.mkdir(parents=True)
    (folder / "boot_id").write_bytes(text)
    with pytest.raises(Unavailable) as caught:
        BootSource(proc_root=tmp_path).read()
    assert caught.value.reason in {"malformed", "too_large"}


@pytest.mark.parametrize("text", [b"", b"6.17\x00", b"a b\n", b"x" * 65, b"-6\n", b"6.17\n\n"])
def test_what_is_no_release_is_refused(tmp_path: Path, text: bytes) -> None:
    """The release goes into file headers, so it holds nothing but a release's characters."""
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "osrelease").write_bytes(text)
    with pytest.raises(Unavailable) as caught:
        kernel_release(proc_root=tmp_path)
    assert caught.value.reason == "malformed"
