"""G1: CUDA 12 and CUDA 13 libraries do not go together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spark_watch.preflight.cage import Answers
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.imports import Trouble, kernel, trouble
from spark_watch.preflight.packages import CUDA_LIBRARY
from spark_watch.preflight.report import Line, Result

WANTED: Final = 13
"""The CUDA generation of DGX OS on a GB10."""

LIBRARY: Final = "libcudart.so.13"

FIX_TORCH: Final = (
    "use an NGC or Unsloth container for CUDA 13, or install torch from the cu130 index "
    "(pip install torch --index-url https://download.pytorch.org/whl/cu130) into a fresh "
    "environment"
)
FIX_WHEELS: Final = (
    "install builds of these packages for CUDA 13, or build them against the torch that is there; "
    "a link from the .so.12 name to a .so.13 file makes it crash later"
)
FIX_STRAY: Final = (
    "remove the CUDA 12 packages or their folders from /etc/ld.so.conf.d and run ldconfig; until "
    "then a wheel for CUDA 12 loads half and fails with an undefined symbol"
)

NVIDIA_WHEELS: Final = "nvidia"
"""The folder of NVIDIA's own run-time wheels, which link one another."""


def check(facts: Facts) -> Iterator[Line]:
    """Judge torch, the CUDA 13 run-time library, stray CUDA 12 libraries and wheels that ask."""
    yield _torch(facts)
    yield _library(facts)
    yield _stray(facts)
    if facts.python is not None:
        yield _wheels(facts)


def _line(facts: Facts, check: str, result: Result, sentence: str, fix: str = "") -> Line:
    """Return a line; on a machine that is no Spark CUDA 12 is nobody's fault."""
    if facts.foreign and result > Result.INFO:
        result, sentence = Result.INFO, f"{sentence}; this machine is no GB10, so not judged"
    return Line("G1", check, result, sentence, fix)


def _torch(facts: Facts) -> Line:
    if facts.python is None:
        return _line(
            facts,
            "torch",
            Result.INFO,
            "no Python environment was named, so no torch was looked at",
            "name the interpreter of the training environment with --python PATH",
        )
    met = trouble(facts, facts.torch, "torch", facts.why("torch"))
    if met is not None or facts.torch is None:
        return _met(facts, met)
    return _built(facts, facts.torch)


def _met(facts: Facts, met: Trouble | None) -> Line:
    """Return the line of a torch that gave no answer to judge."""
    met = met or Trouble(Result.SKIP, "torch was not looked at")
    return _line(facts, "torch", met.result, met.sentence, met.by_hand or FIX_TORCH)


def _built(facts: Facts, answers: Answers) -> Line:
    """Judge a torch that was imported by the CUDA it was built for and whether a kernel ran."""
    version, cuda = answers.answer("import", "version"), answers.answer("import", "cuda")
    match = re.match(r"(\d{1,3})\b", str(cuda or ""))
    if match is None:
        sentence = f"torch {version} is built without CUDA"
        return _line(facts, "torch", Result.FAIL, sentence, FIX_TORCH)
    built = f"torch {version} built for CUDA {cuda}"
    if int(match[1]) != WANTED:
        result = Result.FAIL if int(match[1]) < WANTED else Result.INFO
        sentence = f"{built}, while CUDA {WANTED} is expected here"
        return _line(facts, "torch", result, sentence, FIX_TORCH)
    met = kernel(facts, answers, "torch", built)
    if met is not None:
        return _met(facts, met)
    if "kernel" in answers.steps:
        return _line(facts, "torch", Result.PASS, f"{built}; a kernel ran on the GPU")
    sentence = f"{built}; no kernel was tried, since the GPU is not known to be idle"
    return _line(facts, "torch", Result.PASS, sentence)


def _library(facts: Facts) -> Line:
    """Judge whether the CUDA 13 run-time library loads, in the environment or else here."""
    answers = facts.torch if facts.torch is not None and "cudart" in facts.torch.steps else None
    where = f"in {facts.python}" if answers is not None else "by the system's loader"
    answers = answers or facts.cudart
    if answers is None or "cudart" not in answers.steps:
        reason = facts.why("cudart") if answers is None else f"python {answers.how}"
        return _line(facts, "cudart", Result.INFO, f"loading {LIBRARY} was not tried: {reason}")
    if answers.answer("cudart", "loaded") is True:
        return _line(facts, "cudart", Result.PASS, f"{LIBRARY} loads {where}")
    if answers.answer("import", "version") is None:
        return _line(
            facts,
            "cudart",
            Result.INFO,
            f"{LIBRARY} is not found {where}; wheels and containers bring their own",
            "name the environment with --python PATH, or install the CUDA 13 run-time library",
        )
    return _line(
        facts,
        "cudart",
        Result.FAIL,
        f"{LIBRARY} does not load {where}: {answers.answer('cudart', 'error')}",
        FIX_TORCH,
    )


def _stray(facts: Facts) -> Line:
    if facts.loader is None:
        return _line(
            facts,
            "stray",
            Result.SKIP,
            f"the loader's cache could not be read: {facts.why('loader')}",
            "run ldconfig -p and look for libcudart.so.12",
        )
    old = sorted(
        {
            name
            for name, _ in facts.loader
            if (match := CUDA_LIBRARY.fullmatch(name)) and int(match[1]) < WANTED
        }
    )
    if old:
        places = sorted({path for name, path in facts.loader if name in old})
        sentence = f"the loader's cache lists {', '.join(old)} ({places[0]})"
        return _line(facts, "stray", Result.WARN, sentence, FIX_STRAY)
    return _line(
        facts,
        "stray",
        Result.PASS,
        f"no CUDA 12 library among the {len(facts.loader)} in the loader's cache",
    )


def _wheels(facts: Facts) -> Line:
    if facts.installed is None or not facts.installed.sites:
        reason = facts.why("installed") if facts.installed is None else "no folder of packages"
        return _line(
            facts,
            "wheels",
            Result.SKIP,
            f"the packages of {facts.python} could not be looked at: {reason}",
            "name the interpreter inside the environment (bin/python)",
        )
    links = facts.installed.links
    # a package with a build for each CUDA picks one when it is imported (bitsandbytes)
    old = sorted(
        package
        for package, versions in links.items()
        if package != NVIDIA_WHEELS and versions and max(versions) < WANTED
    )
    if old:
        return _line(
            facts,
            "wheels",
            Result.WARN,
            f"these packages link CUDA 12 libraries alone: {', '.join(old)}",
            FIX_WHEELS,
        )
    if not facts.installed.complete:
        return _line(
            facts,
            "wheels",
            Result.SKIP,
            "the environment is too large to be looked through",
            "look for .so.12 with readelf -d in the packages that you use",
        )
    return _line(
        facts, "wheels", Result.PASS, "no package links CUDA 12 libraries alone (ELF headers)"
    )
