"""Sysctls, guards and signs of a container, from trees of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.preflight.host import container_signs, guards, sysctls


def put(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_sysctls(tmp_path: Path) -> None:
    """Those that hold a number are there; one that is garbled is left out."""
    put(tmp_path / "sys" / "vm" / "min_free_kbytes", "67584\n")
    put(tmp_path / "sys" / "vm" / "watermark_boost_factor", "many\n")
    assert sysctls(proc_root=tmp_path) == {"min_free_kbytes": 67584}


def test_no_sysctl(tmp_path: Path) -> None:
    """None of them is no answer."""
    with pytest.raises(Unavailable):
        sysctls(proc_root=tmp_path)


def test_guards_by_their_name(tmp_path: Path) -> None:
    """Those that run are named; a process that has ended meanwhile is passed over."""
    put(tmp_path / "1" / "comm", "systemd\n")
    put(tmp_path / "612" / "comm", "systemd-oomd\n")
    put(tmp_path / "613" / "comm", "earlyoom\n")
    (tmp_path / "614").mkdir()
    put(tmp_path / "version", "Linux\n")
    assert guards(proc_root=tmp_path) == ("earlyoom", "systemd-oomd")


def test_processes_that_cannot_be_listed(tmp_path: Path) -> None:
    """No list is not an empty one."""
    with pytest.raises(Unavailable):
        guards(proc_root=tmp_path / "none")


OVERLAY = "21 20 0:19 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"
DISK = "21 20 8:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n"


@pytest.mark.parametrize(
    ("files", "variables", "sign"),
    [
        ({".dockerenv": ""}, {}, "/.dockerenv"),
        ({"run/.containerenv": ""}, {}, "/run/.containerenv"),
        ({}, {"container": "podman"}, "the variable container"),
        ({}, {"NVIDIA_BUILD_ID": "1"}, "NVIDIA_BUILD_ID"),
        (
            {"proc/1/cgroup": "0::/system.slice/docker-12ab.scope\n"},
            {},
            "the control group of process 1",
        ),
        (
            {"proc/1/cgroup": "0::/\n", "proc/self/cgroup": "0::/kubepods/pod1\n"},
            {},
            "the control group of this process",
        ),
        ({"proc/self/mountinfo": OVERLAY}, {}, "an overlay as the root file system"),
    ],
)
def test_each_sign_of_a_container(
    tmp_path: Path, files: dict[str, str], variables: dict[str, str], sign: str
) -> None:
    """Any one of them is seen by itself."""
    for name, text in files.items():
        put(tmp_path / name, text)
    found = container_signs(variables, root=tmp_path, proc_root=tmp_path / "proc")
    assert found == (sign,)


def test_no_sign(tmp_path: Path) -> None:
    """A host of its own shows none, also where /proc cannot be read."""
    put(tmp_path / "proc" / "1" / "cgroup", "0::/init.scope\n")
    put(tmp_path / "proc" / "self" / "mountinfo", DISK)
    assert container_signs({}, root=tmp_path, proc_root=tmp_path / "proc") == ()
    assert container_signs({}, root=tmp_path, proc_root=tmp_path / "none") == ()
