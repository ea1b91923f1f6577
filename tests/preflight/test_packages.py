"""What the folders of an environment hold, without importing any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_watch.preflight.packages import CUDA_LIBRARY, installed, normalised, sites_of
from tests.preflight.environment import Environment
from tests.preflight.libraries import build


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment without any package."""
    return Environment(tmp_path / "env")


def test_versions_come_from_what_installers_note(environment: Environment) -> None:
    """Names are compared in their normal form, and local versions are kept."""
    environment.distribution("flash_attn", "2.8.3")
    environment.distribution("torch", "2.9.1+cu130")
    found = installed(environment.python)
    assert found.versions == {"flash-attn": "2.8.3", "torch": "2.9.1+cu130"}
    assert found.sites == (environment.site,)


def test_links_are_told_by_package(environment: Environment) -> None:
    """Each package has the CUDA versions of all its files; others have none."""
    build(environment.site / "old" / "kernels" / "_C.so", ["libcudart.so.12", "libc.so.6"])
    build(environment.site / "both" / "cuda126.so", ["libcudart.so.12"])
    build(environment.site / "both" / "cuda130.so", ["libcublas.so.13"])
    build(environment.site / "fft" / "_C.so", ["libcufft.so.12", "libcusparse.so.12"])
    build(environment.site / "single.cpython-312.so", ["libnvrtc.so.12"])
    assert installed(environment.python).links == {
        "old": frozenset({12}),
        "both": frozenset({12, 13}),
        "single": frozenset({12}),
    }


def test_a_file_that_is_no_library_is_counted(environment: Environment) -> None:
    """It takes nothing else from the answer."""
    environment.module("odd", "")
    (environment.site / "odd" / "fake.so.1").write_text("a linker script")
    found = installed(environment.python)
    assert (found.unread, found.links) == (1, {})


def test_a_link_out_of_the_environment_is_not_followed(
    environment: Environment, tmp_path: Path
) -> None:
    """What lies elsewhere is not this environment's."""
    target = build(tmp_path / "elsewhere.so", ["libcudart.so.12"])
    (environment.site / "linked.so").symlink_to(target)
    assert installed(environment.python).links == {}


def test_no_environment_at_all(tmp_path: Path) -> None:
    """An interpreter that is not there has no folder of packages."""
    assert installed(tmp_path / "bin" / "python").sites == ()


def test_debian_and_system_folders_count(tmp_path: Path) -> None:
    """Where an environment lets in the system's packages, both folders are looked at."""
    home = tmp_path / "usr"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python3.12").write_text("")
    (home / "lib" / "python3" / "dist-packages").mkdir(parents=True)
    (home / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    env = tmp_path / "env"
    (env / "bin").mkdir(parents=True)
    (env / "bin" / "python").symlink_to(home / "bin" / "python3.12")
    (env / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    configuration = env / "pyvenv.cfg"
    own = env / "lib" / "python3.12" / "site-packages"
    configuration.write_text("include-system-site-packages = true\n")
    assert list(sites_of(env / "bin" / "python")) == [
        own,
        home / "lib" / "python3" / "dist-packages",
    ]
    configuration.write_text("include-system-site-packages = false\n")
    assert list(sites_of(env / "bin" / "python")) == [own]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("libcudart.so.12", "12"),
        ("libcudart.so.12.4.127", "12"),
        ("libcublasLt.so.13", "13"),
        ("libnvJitLink.so.12", "12"),
        ("libcufft.so.12", None),
        ("libcusolver.so.12", None),
        ("libcusparse.so.12", None),
        ("libcudart.so", None),
        ("libcudart.so.12x", None),
        ("mylibcudart.so.12", None),
    ],
)
def test_which_names_tell_the_version_of_cuda(name: str, version: str | None) -> None:
    """Only libraries that count with CUDA do; CUDA 13 itself brings three that end in 12."""
    match = CUDA_LIBRARY.fullmatch(name)
    assert (match[1] if match else None) == version


def test_names_are_normalised() -> None:
    """Case and the kind of the dash make no difference."""
    assert normalised("Flash_Attn") == normalised("flash-attn") == normalised("flash..attn")
