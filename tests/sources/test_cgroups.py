"""Containers and groups from ``/proc/PID/cgroup``, refaults from one group at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.sources.cgroups import Refaults, container, group

ID = b"0123456789ab" + b"cdef" * 13


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0::/system.slice/docker-" + ID + b".scope\n", "0123456789ab"),
        (b"12:memory:/docker/" + ID + b"\n0::/docker/" + ID + b"\n", "0123456789ab"),
        (b"0::/machine.slice/libpod-" + ID + b".scope/container\n", "0123456789ab"),
        (
            b"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + ID + b".scope",
            "0123456789ab",
        ),
        (b"0::/user.slice/user-1000.slice/session-2.scope\n", None),
        (b"0::/system.slice/" + ID + b"\n", None),
        (b"0::/docker/" + ID[:63] + b"\n", None),
        (b"0::/docker/" + ID + b"0\n", None),
        (b"0::/docker\n0::/" + ID + b"\n", None),
        (b"", None),
        (b"\x00" * 200, None),
    ],
)
def test_a_container_is_known_by_its_full_id(text: bytes, expected: str | None) -> None:
    """Docker's, Podman's and Kubernetes' forms give the short id; other groups give none."""
    assert container(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0::/system.slice/vllm.service\n", "system.slice/vllm.service"),
        (b"4:memory:/a\n0::/b c\n", "b c"),
        (b"4:memory:/a\n", None),
        (b"0::/\n", None),
        (b"0::/../../etc\n", None),
        (b"0::/a/../b\n", None),
        (b"0::/a\x00b\n", None),
        (b"0:://etc\n", "etc"),
        (b"", None),
    ],
)
def test_a_group_is_a_path_below_the_root(text: bytes, expected: str | None) -> None:
    """The root is not a group of its own, and no path leads out of the hierarchy."""
    assert group(text) == expected


@given(st.binary(max_size=200))
def test_any_text_is_a_group_or_none(text: bytes) -> None:
    """Nothing is raised, and a group never climbs or starts at the file system's root."""
    container(text)
    found = group(b"0::/" + text)
    assert found is None or (not found.startswith("/") and ".." not in found.split("/"))


def _write(sys_root: Path, name: str, text: str) -> None:
    folder = sys_root / "fs" / "cgroup" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.stat").write_text(text)


def test_one_group_is_read_at_a_time_and_each_gets_its_turn(tmp_path: Path) -> None:
    """New groups come first; then the turns go round; a group nobody is in is forgotten."""
    for name in ("a", "b"):
        _write(tmp_path, name, "anon 1\nworkingset_refault_anon 2\nworkingset_refault_file 3\n")
    refaults = Refaults(sys_root=tmp_path)
    refaults.read(["a", "b"])
    assert (refaults.of("a"), refaults.of("b")) == (5, None)
    refaults.read(["a", "b"])
    assert (refaults.of("a"), refaults.of("b")) == (5, 5)
    for name in ("a", "b"):
        _write(tmp_path, name, "workingset_refault_anon 20\nworkingset_refault_file 30\n")
    refaults.read(["a", "b"])
    assert (refaults.of("a"), refaults.of("b")) == (50, 5)
    refaults.read(["b"])
    assert (refaults.of("a"), refaults.of("b")) == (None, 50)
    refaults.close()


def test_a_group_that_cannot_be_read_has_no_refaults(tmp_path: Path) -> None:
    """An absent group, one without the counters, and no group at all are None."""
    _write(tmp_path, "b", "workingset_refault_file 3\n")
    refaults = Refaults(sys_root=tmp_path)
    refaults.read(["a", "b"])
    refaults.read(["a", "b"])
    assert (refaults.of("a"), refaults.of("b"), refaults.of(None)) == (None, None, None)
    refaults.read([])
    refaults.close()
