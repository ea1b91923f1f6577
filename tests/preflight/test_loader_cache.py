"""The loader's cache, as ldconfig really writes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.preflight.loader_cache import libraries, parse
from tests.preflight.libraries import compile_shared

LDCONFIG = shutil.which("ldconfig", path="/usr/sbin:/sbin:/usr/bin:/bin")


def cache(tmp_path: Path, names: list[str]) -> Path:
    """Return the path of a cache that ldconfig made of libraries with these names."""
    if LDCONFIG is None:
        pytest.skip("no ldconfig here")
    folder = tmp_path / "lib"
    folder.mkdir()
    source = tmp_path / "empty.c"
    source.write_text("int spark_watch_nothing(void) { return 0; }\n")
    for name in names:
        compile_shared(source, folder / name, f"-Wl,-soname,{name}")
    configuration = tmp_path / "ld.so.conf"
    configuration.write_text(f"{folder}\n")
    target = tmp_path / "ld.so.cache"
    command = [LDCONFIG, "-X", "-C", str(target), "-f", str(configuration)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return target


def test_a_real_cache(tmp_path: Path) -> None:
    """Both libraries are in it, with the folder they were found in."""
    found = dict(libraries(cache(tmp_path, ["libcudart.so.12", "libcudart.so.13"])))
    assert found["libcudart.so.12"] == str(tmp_path / "lib" / "libcudart.so.12")
    assert found["libcudart.so.13"] == str(tmp_path / "lib" / "libcudart.so.13")


def test_a_cache_behind_an_older_table(tmp_path: Path) -> None:
    """Offsets count from the table of today's form, wherever in the file it begins."""
    table = cache(tmp_path, ["libcudart.so.13"]).read_bytes()
    assert parse(b"ld.so-1.7.0\0" + bytes(52) + table) == parse(table)


@pytest.mark.parametrize("kept", [0, 10, 47, 60, 0.5])
def test_a_cache_that_is_cut_off(tmp_path: Path, kept: float) -> None:
    """It is refused: a list that lacks its end would hide a stray library."""
    data = cache(tmp_path, ["libcudart.so.12"]).read_bytes()
    length = int(len(data) * kept) if isinstance(kept, float) else kept
    with pytest.raises(Unavailable):
        parse(data[:length])


def test_no_cache(tmp_path: Path) -> None:
    """A machine without one says why."""
    with pytest.raises(Unavailable, match="No such file"):
        libraries(tmp_path / "ld.so.cache")
