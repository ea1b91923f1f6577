"""G7: NVFP4 is slower than FP8 where kernels were not built for ``sm_121a``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Line, Result

CAPABILITY: Final = (12, 1)

_TARGET: Final = re.compile(
    r"(?:sm_|compute_)?(?:121[af]|120f|12\.1[af]|12\.0f)(?:\+ptx)?", re.IGNORECASE
)
"""``a`` is for this chip alone, ``f`` for its family, ``120f`` included; all of them have the FP4
conversions (PTX ISA, target-specific features)."""

VARIABLES: Final = ("TORCH_CUDA_ARCH_LIST", "FLASHINFER_CUDA_ARCH_LIST", "CUDAARCHS")
"""Where containers and builds name the architectures of kernel packages."""

FIX: Final = (
    "stay on FP8 until the kernels are built for it: build the engine with "
    "TORCH_CUDA_ARCH_LIST=12.1a (FlashInfer: FLASHINFER_CUDA_ARCH_LIST=12.1a) and a ptxas of CUDA "
    "12.9 or newer, then measure both"
)


def check(facts: Facts) -> Iterator[Line]:
    """Judge the compute capability and what the kernels were built for."""
    yield _capability(facts)
    yield from _targets(facts)


def _capability(facts: Facts) -> Line:
    known = [gpu for gpu in facts.identities if gpu.compute_capability is not None]
    if not known:
        return Line(
            "G7",
            "capability",
            Result.SKIP,
            f"the compute capability could not be read: {facts.why('gpus')}",
            "see that nvidia-smi answers",
        )
    gpu = known[0]
    major, minor = gpu.compute_capability or (0, 0)
    sentence = f"{gpu.name or 'GPU 0'} has compute capability {major}.{minor}"
    if (major, minor) == CAPABILITY:
        return Line("G7", "capability", Result.PASS, sentence)
    if facts.machine.is_gb10:
        return Line(
            "G7",
            "capability",
            Result.WARN,
            f"{sentence}, and a GB10 has 12.1",
            "update the driver; kernels are chosen by this number",
        )
    return Line("G7", "capability", Result.INFO, f"{sentence}; the rule is for 12.1")


def _targets(facts: Facts) -> Iterator[Line]:
    arches = facts.torch.answer("import", "arches") if facts.torch is not None else None
    named = {name: facts.variables[name] for name in VARIABLES if facts.variables.get(name)}
    built = facts.installed.targets if facts.installed is not None else {}
    if arches is None and not named and not built:
        yield Line(
            "G7",
            "targets",
            Result.INFO,
            "what kernels are built for could not be looked at: no torch was imported and no "
            "variable names architectures",
            "name the environment with --python PATH; until then prefer FP8 to NVFP4",
        )
        return
    if arches is not None:
        yield _judged(facts, "torch", [str(arch) for arch in arches])
    for package, found in sorted(built.items()):
        yield _judged(facts, package, sorted(found))
    for name, text in named.items():
        yield _judged(facts, name, re.split(r"[;,\s]+", text))


def _judged(facts: Facts, name: str, arches: Iterable[str]) -> Line:
    listed = [arch for arch in arches if arch]
    shown = " ".join(listed) or "nothing"
    if any(_TARGET.fullmatch(arch) for arch in listed):
        return Line("G7", name.lower(), Result.PASS, f"{name} is built for {shown}")
    if facts.foreign:
        return Line(
            "G7",
            name.lower(),
            Result.INFO,
            f"{name} is built for {shown}; this machine is no GB10, so not judged",
        )
    return Line(
        "G7",
        name.lower(),
        Result.WARN,
        f"{name} is built for {shown}, not for sm_121a: NVFP4 may run slower than FP8",
        FIX,
    )
