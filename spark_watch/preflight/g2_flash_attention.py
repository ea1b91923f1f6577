"""G2: flash-attn has no wheel for bare pip, and where it is there, Unsloth prefers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spark_watch.preflight.facts import Facts
from spark_watch.preflight.imports import Trouble, kernel, trouble
from spark_watch.preflight.report import Line, Result

OVERRIDE: Final = (
    "to get SDPA all the same, before from_pretrained: import unsloth.models._utils as u; "
    "u.HAS_FLASH_ATTENTION = False (wshobson/agents#624); then look at "
    "model.config._attn_implementation"
)
FIX_BROKEN: Final = (
    "uninstall it (pip uninstall flash-attn) and use SDPA, which has flash kernels of its own; or "
    "use the build in an NGC container: it must match the minor version of torch"
)


def check(facts: Facts) -> Iterator[Line]:
    """Judge whether flash-attn imports, runs, and would override a requested SDPA."""
    if facts.python is None:
        yield Line(
            "G2",
            "flash_attn",
            Result.INFO,
            "no Python environment was named, so no flash-attn was looked at",
            "name the interpreter of the training environment with --python PATH",
        )
        return
    unsloth = facts.version("unsloth")
    yield _flash(facts)
    if unsloth is None:
        return
    answers = facts.flash
    if answers is not None and answers.answer("import", "version") is not None:
        yield Line(
            "G2",
            "unsloth",
            Result.WARN,
            f"Unsloth {unsloth} beside it takes flash-attn even where attn_implementation='sdpa' "
            "was asked for",
            OVERRIDE,
        )
    else:
        yield Line(
            "G2",
            "unsloth",
            Result.INFO,
            f"Unsloth {unsloth} is there; without a flash-attn that imports it uses SDPA",
        )


def _flash(facts: Facts) -> Line:
    answers = facts.flash
    met = trouble(facts, answers, "flash_attn", facts.why("flash"))
    if met is None and answers is not None:
        found = f"flash-attn {answers.answer('import', 'version')} imports"
        met = kernel(facts, answers, "flash_attn", found)
        if met is None and "kernel" in answers.steps:
            return _line(Result.PASS, f"{found} and its kernel ran on the GPU")
        if met is None:
            return _line(
                Result.INFO,
                f"{found}; its kernel was not tried, since the GPU is not known to be idle",
                "run preflight again while nothing is on the GPU",
            )
    met = met or Trouble(Result.SKIP, "flash-attn was not looked at")
    if met.result is Result.INFO:
        return _line(
            Result.INFO,
            "flash-attn is not installed, as usual on a Spark outside an NGC container; SDPA "
            "stands in",
            "ask for attn_implementation='sdpa'; there is no aarch64 wheel for pip to find",
        )
    return _line(met.result, met.sentence, met.by_hand or FIX_BROKEN)


def _line(result: Result, sentence: str, fix: str = "") -> Line:
    return Line("G2", "flash_attn", result, sentence, fix)
