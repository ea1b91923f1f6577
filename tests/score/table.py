"""The one table, the lists under it, and the bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.score.grade import Alarm, Found, Score

DAY_SECONDS: Final = 86_400.0
FALSE_WARNING_DAYS: Final = 30.0
"""Generated healthy days for each of which less than one false warning may stand."""


@dataclass(frozen=True, slots=True)
class Result:
    """What all traces together say."""

    scores: tuple[Score, ...]
    gotchas: Mapping[str, str]

    def found(self, *, recorded: bool) -> list[Found]:
        """Every fault span of the recorded or of the generated traces."""
        return [one for score in self.scores if score.recorded == recorded for one in score.found]

    def alarms(self, *, recorded: bool) -> list[Alarm]:
        """Everything that stood where it should not have."""
        return [one for score in self.scores if score.recorded == recorded for one in score.alarms]

    @property
    def healthy_days(self) -> float:
        """Days of quiet spans in the generated traces."""
        quiet = sum(score.quiet_seconds for score in self.scores if not score.recorded)
        return quiet / DAY_SECONDS

    @property
    def errors(self) -> list[str]:
        """Traces in which a condition broke."""
        return [f"{score.trace}: {error}" for score in self.scores for error in score.errors]

    def bars(self) -> list[tuple[str, bool]]:
        """What must hold, and whether it does."""
        real = self.found(recorded=True)
        late = [one for one in real if not one.in_time]
        loud = self.alarms(recorded=True)
        false = self.alarms(recorded=False)
        allowed = self.healthy_days / FALSE_WARNING_DAYS
        return [
            (f"recorded fault spans in time: {len(real) - len(late)} of {len(real)}", not late),
            (f"recorded quiet spans: {len(loud)} false", not loud),
            (
                f"generated: {len(false)} false in {self.healthy_days:.1f} healthy days",
                len(false) < allowed,
            ),
            (f"conditions that broke: {len(self.errors)}", not self.errors),
        ]


def render(result: Result) -> str:
    """The whole report as text."""
    return "\n".join(
        (
            *_table(result),
            *_listing("recorded: missed or late", _misses(result.found(recorded=True))),
            *_listing("recorded: false", _false(result.alarms(recorded=True))),
            *_listing("generated: missed or late", _misses(result.found(recorded=False))),
            *_listing("generated: false", _false(result.alarms(recorded=False))),
            *_listing("generated: whole traces that a condition never judged", _unjudged(result)),
            *_listing("found in time, but only under another name", _misnamed(result)),
            *_listing("broken", result.errors),
            *_listing("no recorded positive", _unproven(result)),
            "",
            *(f"{'PASS' if holds else 'FAIL'}  {bar}" for bar, holds in result.bars()),
        )
    )


HEADINGS: Final = (
    ("condition", "<28"),
    ("spans", ">6"),
    ("in time", ">8"),
    ("named", ">6"),
    ("delay s", ">8"),
    ("to spare s", ">11"),
    ("worst s", ">8"),
    ("false", ">6"),
    ("a day", ">7"),
)


def _table(result: Result) -> list[str]:
    """A row a condition: generated and recorded spans together, by the name in the answer."""
    spans = [*result.found(recorded=True), *result.found(recorded=False)]
    false = [*result.alarms(recorded=True), *result.alarms(recorded=False)]
    names = [*result.gotchas]
    names += sorted({one.span.condition or "(any)" for one in spans} - set(names))
    rows = ["".join(f"{title:{shape}}" for title, shape in HEADINGS)]
    for name in names:
        mine = [one for one in spans if (one.span.condition or "(any)") == name]
        wrong = [one for one in false if one.condition == name]
        rows.append(_row(name, mine, wrong, result.healthy_days))
    return rows


def _row(name: str, mine: list[Found], wrong: list[Alarm], days: float) -> str:
    delays = [one.after for one in mine if one.after is not None]
    spare = [one.deadline - one.after for one in mine if one.after is not None]
    cells = (
        name,
        str(len(mine)) if mine else "-",
        str(sum(one.in_time for one in mine)) if mine else "-",
        str(sum(one.named_in_time for one in mine)) if mine else "-",
        f"{median(delays):.1f}" if delays else "-",
        f"{median(spare):.1f}" if spare else "-",
        f"{min(spare):.1f}" if spare else "-",
        str(len(wrong)),
        f"{len(wrong) / days:.3f}" if days else "-",
    )
    return "".join(f"{cell:{shape}}" for cell, (_, shape) in zip(cells, HEADINGS, strict=True))


def _listing(title: str, lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    return ["", f"{title}: {len(listed) or 'none'}", *(f"  {line}" for line in listed)]


def _misses(found: list[Found]) -> list[str]:
    lines = []
    for one in sorted(found, key=lambda each: each.trace):
        if one.in_time:
            continue
        span = one.span
        when = "never" if one.after is None else f"after {one.after:.1f} s by {one.by}"
        lines.append(
            f"{one.trace} at {span.start:.1f} s: {'/'.join(span.gotchas)} "
            f"{span.condition or ''} {span.at_least.label} within {one.deadline:.1f} s: {when} "
            f"({span.why})"
        )
    return lines


def _false(alarms: list[Alarm]) -> list[str]:
    return [
        f"{one.trace} at {one.at:.1f} s: {one.condition} {one.state.label}: {one.sentence} "
        f"[{one.why}]"
        for one in sorted(alarms, key=lambda each: (each.condition, each.trace))
    ]


def _unjudged(result: Result) -> list[str]:
    return sorted(f"{name} in {score.trace}" for score in result.scores for name in score.unjudged)


def _misnamed(result: Result) -> list[str]:
    counts: dict[tuple[str, str, str], int] = {}
    for one in [*result.found(recorded=True), *result.found(recorded=False)]:
        if one.in_time and not one.named_in_time and one.span.condition is not None:
            key = (one.trace.rpartition("/")[0] or one.trace, one.span.condition, one.by or "")
            counts[key] = counts.get(key, 0) + 1
    return [
        f"{trace}: {wanted} found as {by} ({number})"
        for (trace, wanted, by), number in sorted(counts.items())
    ]


def _unproven(result: Result) -> list[str]:
    proven = {
        name
        for one in result.found(recorded=True)
        if one.in_time
        for name in (one.span.condition, one.by)
    }
    return [name for name in result.gotchas if name not in proven]
