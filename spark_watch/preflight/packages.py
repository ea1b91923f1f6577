"""What is installed in a Python environment, read from its folders: nothing is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError
from spark_watch.model import EMPTY
from spark_watch.preflight.elf import NotReadableError, needed
from spark_watch.preflight.fatbin import targets
from spark_watch.sources.files import read_once

CUDA_LIBRARY: Final = re.compile(
    r"lib(?:cudart|nvrtc|cublas|cublasLt|nvblas|nvJitLink|cupti)\.so\.(1[2-9])(?:\.\d+)*"
)
"""Libraries whose version is that of CUDA. Others count on their own: CUDA 13 brings
``libcufft.so.12``, ``libcusolver.so.12`` and ``libcusparse.so.12`` (CUDA 13.0 release notes)."""

KERNEL_PACKAGES: Final = frozenset(
    {
        *("vllm", "sgl_kernel", "tensorrt_llm", "transformer_engine", "transformer_engine_torch"),
        *("flashinfer", "flashinfer_jit_cache", "flashinfer_cubin", "deep_gemm", "qutlass"),
    }
)
"""Packages with FP4 kernels of their own, whose architectures are worth knowing."""

MAXIMUM_ENTRIES: Final = 200_000
"""Entries of an environment that are looked at; one with torch and vLLM has 60,000."""

_DISTRIBUTION: Final = re.compile(
    r"(?P<name>.+?)-(?P<version>[^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info"
)
_LIBRARY: Final = re.compile(r".+\.so(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What the folders of an environment hold.

    Args:
        sites: the folders that packages lie in; empty where none was found.
        versions: normalised name of each distribution, and its version.
        links: package (a folder or file beside the others) to the CUDA versions that files of it
            ask the loader for (``{12}``, ``{12, 13}``).
        targets: those of :data:`KERNEL_PACKAGES` that hold GPU code, and what it was built for.
        unread: files with a library's name that are no readable ELF file.
        complete: whether everything was looked at.
    """

    sites: tuple[Path, ...] = ()
    versions: Mapping[str, str]
    links: Mapping[str, frozenset[int]]
    targets: Mapping[str, frozenset[str]] = field(default_factory=lambda: EMPTY)
    unread: int = 0
    complete: bool = True


def normalised(name: str) -> str:
    """Return a distribution's name as it is compared: lower case, runs of ``-_.`` as one ``-``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(python: Path) -> Installed:
    """Return what the environment of an interpreter holds."""
    sites = tuple(sites_of(python))
    versions: dict[str, str] = {}
    links: dict[str, frozenset[int]] = {}
    built: dict[str, frozenset[str]] = {}
    unread = 0
    entries = Budget(MAXIMUM_ENTRIES)
    for site in sites:
        for entry in _listed(site):
            match = _DISTRIBUTION.fullmatch(entry)
            if match is not None:
                versions.setdefault(normalised(match["name"]), match["version"])
        for file in _libraries(site, entries):
            try:
                names = needed(file)
            except (OSError, NotReadableError):
                unread += 1
                continue
            package = file.relative_to(site).parts[0].partition(".")[0]
            found = {int(match[1]) for match in map(CUDA_LIBRARY.fullmatch, names) if match}
            if found:
                links[package] = links.get(package, frozenset()) | found
            if package in KERNEL_PACKAGES and (code := _targets(file)):
                built[package] = built.get(package, frozenset()) | code
    return Installed(
        sites=sites,
        versions=versions,
        links=links,
        targets=built,
        unread=unread,
        complete=entries.left > 0,
    )


def places_of(python: Path) -> tuple[Path, Path]:
    """Return the folders an environment consists of: that of its programs, and the whole."""
    folder = Path(os.path.abspath(python)).parent  # noqa: PTH100 - a link stands for itself
    return folder, folder.parent


def sites_of(python: Path) -> Iterator[Path]:
    """Yield the folders in which an interpreter looks for packages, each once."""
    seen = set()
    for prefix, version in _prefixes(python):
        for pattern in (
            f"lib/python{version}/site-packages",
            f"lib64/python{version}/site-packages",
            f"local/lib/python{version}/dist-packages",
            f"lib/python{version}/dist-packages",
            "lib/python3/dist-packages",
        ):
            for folder in sorted(prefix.glob(pattern)):
                real = folder.resolve()
                if real not in seen and real.is_dir():
                    seen.add(real)
                    yield real


def _prefixes(python: Path) -> Iterator[tuple[Path, str]]:
    """Yield where packages may be installed, with the version of Python, ``3.*`` where unknown."""
    prefix = places_of(python)[1]
    real = python.resolve()
    match = re.search(r"python(3\.\d+)", real.name)
    version = match[1] if match else "3.*"
    try:
        configuration = read_once(prefix / "pyvenv.cfg").decode("utf-8", "replace").lower()
    except SourceError:
        configuration = ""
    yield prefix, version
    isolated = configuration and not re.search(
        r"^include-system-site-packages *= *true", configuration, re.MULTILINE
    )
    if not isolated:
        yield real.parent.parent, version
        if real.parent.parent == Path("/usr"):
            yield Path("/usr/local"), version


def _targets(file: Path) -> frozenset[str]:
    try:
        return targets(file)
    except (OSError, NotReadableError):
        return frozenset()


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted, not paths
    except OSError:
        return []


@dataclass(slots=True)
class Budget:
    """How many entries may still be looked at."""

    left: int


def _libraries(site: Path, entries: Budget) -> Iterator[Path]:
    """Yield every file below a folder whose name is a shared library's; links are not followed."""
    for folder, _, names in os.walk(site):
        for name in names:
            entries.left -= 1
            if entries.left <= 0:
                return
            path = Path(folder, name)
            if _LIBRARY.fullmatch(name) and not path.is_symlink():
                yield path
