"""The verdict in words, the gotchas by how bad they are, and the page as plain lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spark_watch.detectors.judge import Standing
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import State

TITLES: Final = {
    "G3": "Memory runs out below 128 GB",
    "G4": "Throttling, stuck at low power, reboot",
    "G5": "Memory bandwidth",
    "G6": "Contention on the one pool",
    "G10": "Busy without progress",
}
"""The gotchas that are judged while the machine runs; a test holds this against the catalogue."""

NOT_JUDGED_HERE: Final = "G1, G2, G7, G8 and G9 are looked at before a run: spark-watch preflight."

FIRST_SAMPLE: Final = "no sample yet"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole machine in one state and two lines."""

    state: State
    headline: str
    detail: str


@dataclass(frozen=True, slots=True)
class Group:
    """One gotcha with its conditions, the worst of both first."""

    gotcha: str
    title: str
    state: State
    standings: tuple[Standing, ...]


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many}"


def named(standings: Iterable[Standing]) -> str:
    """Return the names of conditions as words, comma between."""
    return ", ".join(one.finding.condition.replace("_", " ") for one in standings)


def verdict(snapshot: Snapshot | None, *, alive: bool) -> Verdict:
    """Return what stands above everything else.

    Args:
        snapshot: the newest one, ``None`` before the first.
        alive: whether the loop still ticks; where it does not, nothing is called fine.
    """
    if snapshot is None:
        return Verdict(State.UNKNOWN, "Unknown", "There is no sample yet.")
    if not alive:
        return Verdict(
            State.UNKNOWN,
            "Unknown: spark-watch has stopped looking",
            "What stands below is how it was at the last sample, and may be over.",
        )
    by_state = {
        state: [one for one in snapshot.standings if one.finding.state is state] for state in State
    }
    unknown = len(by_state[State.UNKNOWN])
    total = len(snapshot.standings)
    blind = (
        f"{unknown} of {total} conditions cannot be judged now; each says why."
        if unknown
        else f"All {total} conditions were judged."
    )
    for state, word in ((State.CRITICAL, "Critical"), (State.WARNING, "Warning")):
        if by_state[state]:
            also = [
                counted(len(by_state[other]), one, many)
                for other, one, many in (
                    (State.WARNING, "warning", "warnings"),
                    (State.INFO, "note", "notes"),
                )
                if other < state and by_state[other]
            ]
            more = f"Also {' and '.join(also)}. " if also else ""
            return Verdict(state, f"{word}: {named(by_state[state])}", more + blind)
    if unknown == total:
        return Verdict(State.UNKNOWN, "Unknown", "Nothing could be judged yet.")
    if by_state[State.INFO]:
        return Verdict(
            State.INFO, f"No fault seen; worth knowing: {named(by_state[State.INFO])}", blind
        )
    return Verdict(State.OK, "No fault seen", blind)


def groups(snapshot: Snapshot) -> list[Group]:
    """Return the gotchas, worst first, and in each its conditions, worst first."""
    found: dict[str, list[Standing]] = {}
    for standing in snapshot.standings:
        found.setdefault(standing.finding.gotcha, []).append(standing)
    made = [
        Group(
            gotcha,
            TITLES.get(gotcha, gotcha),
            max(one.finding.state for one in standings),
            tuple(sorted(standings, key=lambda one: -one.finding.state)),
        )
        for gotcha, standings in found.items()
    ]
    return sorted(made, key=lambda group: -group.state)


def black_box(snapshot: Snapshot) -> str | None:
    """Return why the black box does not record, ``None`` where it does or is not kept."""
    recorder = snapshot.recorder
    if recorder is None or recorder.reason is None:
        return None
    return f"The black box does not record: {recorder.reason}."


def lines(snapshot: Snapshot | None, paths: Iterable[str]) -> str:
    """Return the page as text: a line for each condition, worst first, with its remedy below.

    Args:
        snapshot: the newest one, ``None`` before the first.
        paths: what else the server has.
    """
    out = ["spark-watch", ""]
    if snapshot is None:
        out.append(FIRST_SAMPLE)
    else:
        findings = [standing.finding for standing in snapshot.standings]
        findings.sort(key=lambda finding: -finding.state)
        for finding in findings:
            out.append(
                f"{finding.gotcha} {finding.condition} {finding.state.name}: {finding.sentence}"
            )
            if finding.remedy:
                out.append(f"    {finding.remedy}")
        silent = black_box(snapshot)
        if silent is not None:
            out += ["", silent]
    out += ["", f"also here: {', '.join(paths)}"]
    return "\n".join(out) + "\n"
