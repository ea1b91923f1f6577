"""What the kernels in a library were built for, from their headers."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from spark_watch.preflight.elf import NotReadableError
from spark_watch.preflight.fatbin import targets
from spark_watch.preflight.packages import installed
from tests.preflight.environment import Environment
from tests.preflight.libraries import build

PTX, CODE = 1, 2
EXACT, FAMILY = 0x0110_0011, 0x0120_0011
PLAIN = 0x0100_0011
"""Flags as fatbinary of CUDA 13.5 writes them for compressed code."""


def entry(kind: int, arch: int, flags: int, payload: bytes = b"\x28\xb5\x2f\xfd" * 3) -> bytes:
    """One piece of code with its 64 bytes of header."""
    head = struct.pack(
        "<HHIQQIIIIQ", kind, 0x101, 64, len(payload), 0x40 << 32, 0x10008, arch, 0, 0, flags
    )
    return head.ljust(64, b"\0") + payload


def container(*entries: bytes, size: int | None = None) -> bytes:
    """A container, padded to eight bytes as the compiler does."""
    body = b"".join(entries)
    whole = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body) if size is None else size) + body
    return whole.ljust(len(whole) + -len(whole) % 8, b"\0")


def library(folder: Path, content: bytes, *, section: str = ".nv_fatbin") -> Path:
    """Compile a shared library with this section."""
    (folder / "content.bin").write_bytes(content)
    source = folder / "fat.c"
    source.write_text(
        f'__asm__(".section {section}, \\"a\\"\\n.balign 8\\n.incbin \\"content.bin\\"\\n");\n'
    )
    target = folder / "fat.so"
    command = ["cc", "-shared", "-fPIC", "-nostdlib", source.name, "-o", target.name]
    subprocess.run(command, check=True, cwd=folder)
    return target


@pytest.mark.parametrize("section", [".nv_fatbin", "__nv_relfatbin"])
def test_every_variant(tmp_path: Path, section: str) -> None:
    """Machine code and PTX, plain, for one chip and for a family, in several containers."""
    content = container(entry(CODE, 90, EXACT), entry(CODE, 120, PLAIN, b"")) + container(
        entry(CODE, 120, FAMILY), entry(PTX, 121, EXACT), entry(CODE, 121, PLAIN)
    )
    found = targets(library(tmp_path, content, section=section))
    assert found == {"sm_90a", "sm_120", "sm_120f", "compute_121a", "sm_121"}


def test_a_library_without_gpu_code(tmp_path: Path) -> None:
    """It was built for no GPU."""
    assert targets(build(tmp_path / "plain.so")) == frozenset()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\1" * 64, id="no container"),
        pytest.param(container(entry(CODE, 121, EXACT), size=1 << 40), id="too long"),
        pytest.param(container(entry(9, 121, EXACT)), id="an unknown kind"),
        pytest.param(
            container(struct.pack("<HHIQQIIIIQ", 2, 1, 0, 0, 0, 0, 0, 1, 0, 0)), id="loop"
        ),
    ],
)
def test_what_does_not_look_like_it_ends_the_reading(tmp_path: Path, content: bytes) -> None:
    """A layout that is not known gives no answer, and no half of one."""
    with pytest.raises(NotReadableError):
        targets(library(tmp_path, content))


def test_named_packages_of_an_environment(tmp_path: Path) -> None:
    """Packages with FP4 kernels are looked into; what cannot be read there is left out."""
    environment = Environment(tmp_path / "env")
    for name, content in (
        ("vllm", container(entry(CODE, 121, EXACT))),
        ("sgl_kernel", b"\1" * 64),
        ("other", container(entry(CODE, 121, EXACT))),
    ):
        (environment.site / name).mkdir()
        library(environment.site / name, content)
    assert installed(environment.python).targets == {"vllm": frozenset({"sm_121a"})}
