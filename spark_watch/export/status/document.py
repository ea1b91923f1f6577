"""The status page as one HTML document without anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from spark_watch import __version__
from spark_watch.detectors.judge import Standing
from spark_watch.export.snapshot import Snapshot
from spark_watch.export.status.charts import charts, drawn
from spark_watch.export.status.history import Point
from spark_watch.export.status.markup import Markup, element, joined
from spark_watch.export.status.words import (
    NOT_JUDGED_HERE,
    Group,
    black_box,
    counted,
    groups,
    verdict,
)
from spark_watch.model import State
from spark_watch.sources.reading import SourceHealth

RELOAD_SECONDS: Final = "5"
"""How often the page comes anew where there is no JavaScript."""

SUBJECTS: Final = 8
"""How many subjects of one condition have a sentence of their own."""

SIGNS: Final = {
    State.CRITICAL: "✖",
    State.WARNING: "▲",
    State.INFO: "●",
    State.UNKNOWN: "?",
    State.OK: "✔",
}
"""A form for each state beside its word, so that neither rests on colour."""


@cache
def _file(name: str) -> str:
    return (resources.files("spark_watch.export.status") / name).read_text("utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def policy() -> str:
    """Return the page's content security policy: our style, our script, our own server."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(_file('status.css'))}",
            f"script-src {_hash(_file('status.js'))}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def document(
    snapshot: Snapshot | None, points: Sequence[Point], *, alive: bool, paths: Sequence[str]
) -> bytes:
    """Return the page.

    Args:
        snapshot: the newest one, ``None`` before the first.
        points: the last ten minutes, oldest first.
        alive: whether the loop still ticks.
        paths: what else the server has, linked at the end.
    """
    said = verdict(snapshot, alive=alive)
    top = element(
        "section",
        element("h1", element("span", SIGNS[said.state], aria_hidden="true"), f" {said.headline}"),
        element("p", said.detail),
        class_=f"verdict {said.state.label}",
        aria_label="Verdict",
    )
    body = Markup() if snapshot is None else _columns(snapshot, points)
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", f"{said.headline} - spark-watch"),
            element("link", rel="icon", href="data:,"),
            element("noscript", element("meta", http_equiv="refresh", content=RELOAD_SECONDS)),
            element("style", Markup(_file("status.css"))),
        ),
        element(
            "body",
            element("p", id="lost", class_="lost", role="alert", hidden="hidden"),
            element("main", _head(snapshot), top, body, id="main"),
            element(
                "footer",
                element("p", NOT_JUDGED_HERE),
                element("nav", *_links(paths), aria_label="Other pages"),
            ),
            element("script", Markup(_file("status.js"))),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n".encode()


def _links(paths: Sequence[str]) -> list[Markup]:
    return [joined(element("a", path, href=path), " ") for path in paths]


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _head(snapshot: Snapshot | None) -> Markup:
    if snapshot is None:
        return element("header", element("p", f"spark-watch {__version__}"), class_="top")
    kind = snapshot.origin.partition(":")[0]
    what = {"simulate": "a simulated box", "replay": "a recording, not this machine"}.get(kind, "")
    names = [identity.name for identity in snapshot.identities if identity.name is not None]
    if not names and snapshot.machine is not None and snapshot.machine.gpu_name is not None:
        names = [snapshot.machine.gpu_name]
    about = ", ".join(one for one in (*names, what) if one)
    return element(
        "header",
        element("p", element("b", "spark-watch"), f" {__version__}{' · ' if about else ''}{about}"),
        element("p", f"as of {_moment(snapshot.at_seconds)}"),
        class_="top",
    )


def _columns(snapshot: Snapshot, points: Sequence[Point]) -> Markup:
    memory = snapshot.latest.memory
    pictures = [
        drawn(chart, points, snapshot.at_seconds, snapshot.loop.interval_seconds)
        for chart in charts(memory.total_bytes if memory else None)
    ]
    return element(
        "div",
        element("div", *[_group(group) for group in groups(snapshot)]),
        element(
            "div",
            element("section", element("h2", "Last ten minutes"), *pictures, class_="card"),
            _sources(snapshot),
        ),
        class_="columns",
    )


def _word(state: State) -> Markup:
    return element(
        "span",
        element("span", SIGNS[state], aria_hidden="true"),
        f" {state.name}",
        class_=f"word {state.label}",
    )


def _group(group: Group) -> Markup:
    """Return one gotcha: what stands out and what is not known in full, what is fine folded."""
    parts = [
        element(
            "header",
            element("h2", f"{group.gotcha}  {group.title}"),
            _word(group.state),
        )
    ]
    loud = [one for one in group.standings if one.finding.state > State.UNKNOWN]
    if loud:
        parts.append(element("ul", *[_standing(one, whole=True) for one in loud]))
    for state, word in ((State.UNKNOWN, "unknown: cannot be judged now"), (State.OK, "ok")):
        rest = [one for one in group.standings if one.finding.state is state]
        if rest:
            unfolded = {"open": "open"} if state is State.UNKNOWN else {}
            parts.append(
                element(
                    "details",
                    element("summary", f"{SIGNS[state]} {len(rest)} {word}"),
                    element("ul", *[_standing(one, whole=False) for one in rest]),
                    id=f"{group.gotcha}-{state.label}",
                    **unfolded,
                )
            )
    return element("section", *parts, class_=f"card group {group.state.label}")


def _standing(standing: Standing, *, whole: bool) -> Markup:
    finding = standing.finding
    name = element(
        "a",
        finding.condition.replace("_", " "),
        href=f"/runbook#{finding.condition}",
        class_="name",
    )
    if not whole:
        return element("li", name, f": {finding.sentence}")
    since = f" since {_moment(finding.since_seconds)}. "
    shown = [one for one in standing.subjects if one.state is finding.state]
    parts = [element("p", _word(finding.state), " ", name, since, finding.sentence)]
    parts += [
        element("p", one.sentence) for one in shown[:SUBJECTS] if one.subject != finding.subject
    ]
    if len(shown) > SUBJECTS:
        parts.append(element("p", f"And {len(shown) - SUBJECTS} more."))
    if finding.remedy:
        parts.append(element("p", element("b", "What helps: "), finding.remedy, class_="remedy"))
    return element("li", *parts)


def _sources(snapshot: Snapshot) -> Markup:
    """Return how the sources fare: a row for each that does not simply answer."""
    loop = snapshot.loop
    well = [one for one in snapshot.sources if one.success and one.pending_seconds is None]
    others = [one for one in snapshot.sources if one not in well]
    silent = black_box(snapshot)
    parts = [element("h2", "Sources")]
    if others:
        columns = [element("th", word, scope="col") for word in ("source", "health", "answered")]
        rows = [
            element(
                "tr",
                element("th", one.source, scope="row"),
                element("td", *_health(one)),
                element("td", _age(one, snapshot.at_seconds)),
            )
            for one in sorted(others, key=lambda one: one.success is None)
        ]
        parts.append(
            element("table", element("thead", element("tr", *columns)), element("tbody", *rows))
        )
    if well:
        names = ", ".join(one.source for one in well)
        parts.append(element("p", _sign(State.OK, f"answering: {names}")))
    if silent is not None:
        parts.append(element("p", _sign(State.WARNING, silent)))
    looks = counted(loop.ticks, "look", "looks")
    parts.append(element("p", f"{looks} taken, {loop.missed_ticks} missed."))
    return element("section", *parts, class_="card")


def _health(health: SourceHealth) -> list[Markup]:
    said = []
    if health.success is False:
        reason = (health.reason or "no reason given").replace("_", " ")
        said.append(_sign(State.WARNING, f"fails: {reason}"))
    elif health.success is None:
        said.append(_sign(State.UNKNOWN, "not asked yet"))
    if health.pending_seconds is not None:
        said.append(
            element("p", _sign(State.WARNING, f"a call is out for {health.pending_seconds:.0f} s"))
        )
    return said


def _sign(state: State, words: str) -> Markup:
    return element(
        "span",
        element("span", SIGNS[state], class_=f"word {state.label}", aria_hidden="true"),
        f" {words}",
    )


def _age(health: SourceHealth, now: float) -> str:
    if health.last_success_seconds is None:
        return "never" if health.success is False else ""
    return f"{max(0.0, now - health.last_success_seconds):.0f} s ago"
