"""What it means that importing a package of somebody's environment did not come to an end."""

from __future__ import annotations

from dataclasses import dataclass

from spark_watch.preflight.cage import Answers
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.report import Result


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a step gives no answer to judge.

    Args:
        result: ``FAIL`` where the code is at fault, ``SKIP`` where nobody can say, ``INFO`` where
            the package is not there.
        sentence: what happened.
        by_hand: what to try where nobody can say; "" elsewhere.
    """

    result: Result
    sentence: str
    by_hand: str = ""


def trouble(facts: Facts, answers: Answers | None, module: str, why: str) -> Trouble | None:
    """Return why a module was not imported, ``None`` where it was.

    Args:
        facts: the interpreter they are about.
        answers: what came of it.
        module: its name.
        why: the reason where there is no answer at all.
    """
    if answers is None or answers.end in {"refused", "not_started"}:
        reason = why if answers is None else str(answers.value)
        return Trouble(
            Result.SKIP,
            f"{module} in {facts.python} was not imported: {reason}",
            "run spark-watch preflight as the owner of the environment, with an interpreter that "
            "runs",
        )
    if "import" not in answers.steps:
        return ended(facts, answers, module, f"python {answers.how} while it imported {module}")
    error = str(answers.answer("import", "error") or "")
    if not error:
        return None
    if error.startswith("ModuleNotFoundError") and f"'{module}'" in error:
        return Trouble(Result.INFO, f"there is no {module} in {facts.python}")
    return Trouble(Result.FAIL, f"{module} cannot be imported: {error}")


def ended(facts: Facts, answers: Answers, module: str, sentence: str) -> Trouble:
    """Return what it means that the process ended within a step: a crash is the code's fault."""
    if answers.end == "signal":
        return Trouble(Result.FAIL, sentence)
    return Trouble(Result.SKIP, sentence, f"try it by hand: {facts.python} -c 'import {module}'")


def kernel(facts: Facts, answers: Answers, module: str, found: str) -> Trouble | None:
    """Return why the first kernel gave no answer, ``None`` where it ran or was not tried."""
    if answers.unfinished == "kernel":
        return ended(
            facts, answers, module, f"{found}, but python {answers.how} in its first kernel"
        )
    if "kernel" in answers.steps and answers.answer("kernel", "ran") is not True:
        reason = answers.answer("kernel", "error") or "a wrong result"
        return Trouble(Result.FAIL, f"{found}, but its first kernel failed: {reason}")
    return None
