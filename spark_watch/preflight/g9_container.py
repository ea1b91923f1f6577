"""G9: bare pip drifts, so a container comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from spark_watch.preflight.facts import Facts
from spark_watch.preflight.packages import normalised
from spark_watch.preflight.report import Line, Result

NAMED: Final = ("torch", "triton", "xformers", "transformers")

FIX: Final = "start from an NGC or Unsloth container, whose set of versions was tested together"


def check(facts: Facts) -> Iterator[Line]:
    """Say whether this is a container, which versions are there, and what has drifted."""
    yield _container(facts)
    if facts.python is None:
        return
    if facts.installed is None or not facts.installed.sites:
        reason = facts.why("installed") if facts.installed is None else "no folder of packages"
        yield Line(
            "G9",
            "versions",
            Result.SKIP,
            f"the packages of {facts.python} could not be looked at: {reason}",
            "name the interpreter inside the environment (bin/python)",
        )
        return
    yield _versions(facts)
    if facts.pins is not None:
        yield _drift(facts.pins, facts.installed.versions)


def _container(facts: Facts) -> Line:
    if facts.container is None:
        return Line(
            "G9",
            "container",
            Result.SKIP,
            f"signs of a container could not be looked for: {facts.why('container')}",
            FIX,
        )
    if facts.container:
        signs = ", ".join(facts.container)
        return Line("G9", "container", Result.PASS, f"this runs in a container ({signs})")
    return Line(
        "G9",
        "container",
        Result.INFO,
        "no sign of a container, which does not prove that there is none",
        FIX,
    )


def _versions(facts: Facts) -> Line:
    found = [f"{name} {facts.version(name)}" for name in NAMED if facts.version(name)]
    torch = facts.version("torch") or ""
    values = {name: facts.version(name) for name in NAMED}
    if torch.endswith("+cpu"):
        return Line(
            "G9",
            "versions",
            Result.FAIL,
            f"torch {torch} is the build without CUDA, which pip takes on aarch64 by itself",
            FIX,
            values,
        )
    if not found:
        return Line(
            "G9", "versions", Result.INFO, f"none of {', '.join(NAMED)} is installed", FIX, values
        )
    return Line("G9", "versions", Result.PASS, f"installed: {', '.join(found)}", "", values)


def _drift(listed: Mapping[str, str], there: Mapping[str, str]) -> Line:
    apart = [
        f"{name} {there[name]} (listed {wanted})"
        for name, wanted in sorted(listed.items())
        if name in there and not same_version(there[name], wanted)
    ]
    missing = sorted(listed.keys() - there.keys())
    common = len(listed.keys() & there.keys())
    if apart:
        return Line(
            "G9",
            "drift",
            Result.WARN,
            f"{len(apart)} of {common} listed packages have drifted: {', '.join(apart[:8])}",
            "install from the list again (pip install -r FILE), or go back to the container",
            {"drifted": len(apart), "missing": len(missing)},
        )
    if not common:
        return Line(
            "G9",
            "drift",
            Result.SKIP,
            "none of the listed packages is installed, so nothing could be compared",
            "name the list that this environment was made from",
        )
    return Line(
        "G9",
        "drift",
        Result.PASS,
        f"all {common} listed packages that are installed have the listed version",
        "",
        {"drifted": 0, "missing": len(missing)},
    )


def same_version(there: str, wanted: str) -> bool:
    """Whether an installed version is the listed one; without ``+local`` the list means any."""
    if "+" not in wanted:
        there = there.partition("+")[0]
    return there.lower() == wanted.lower()


def pins(text: str) -> dict[str, str]:
    """Return name to version of every ``name==version`` line of a requirements or freeze file."""
    found = {}
    for line in text.splitlines():
        name, equals, rest = line.partition("==")
        words = rest.split(";")[0].split()
        if equals and words and not name.lstrip().startswith(("#", "-")):
            found[normalised(name.partition("[")[0].strip())] = words[0]
    return found
