"""The status page as markup."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from html.parser import HTMLParser

import pytest

from spark_watch.blackbox.ring import RecorderStatus
from spark_watch.export import views
from spark_watch.export.page import Page
from spark_watch.export.status.document import document, policy
from spark_watch.export.status.markup import VOID
from spark_watch.model import Machine, State
from spark_watch.sources.reading import SourceHealth
from tests.conftest import ROOT
from tests.export.snapshots import SNAPSHOT, standing

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\ud800"


class Tree(HTMLParser):
    """Checks that every element is closed in order, and keeps what is asked about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element's begin."""
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element without content."""
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Take an element's end."""
        assert self.open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]


def html(accept: str = "text/html", page: Page | None = None) -> str:
    """Return the page as a browser gets it."""
    if page is None:
        page = Page()
        page.publish(SNAPSHOT)
    return views.index(page, {"accept": accept}).body.decode()


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("text/plain", "text/plain"),
        ("text/html;q=0", "text/plain"),
        ("text/html", "text/html"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
    ],
)
def test_who_asks_for_html_gets_it(accept: str, kind: str) -> None:
    """A browser gets the page and curl the lines; caches are told that it depends."""
    page = Page()
    page.publish(SNAPSHOT)
    answer = views.index(page, {"accept": accept})
    assert answer.content_type == f"{kind}; charset=utf-8"
    assert answer.headers["Vary"] == "Accept"


def test_it_is_well_formed_and_has_its_parts() -> None:
    """Elements nest, there is one h1, each gotcha and part has a heading, and a language is set."""
    tree = Tree(html())
    assert len(tree.named("h1")) == 1
    assert len(tree.named("h2")) == 4
    assert len(tree.named("h3")) == 4
    assert tree.named("html") == [{"lang": "en"}]
    assert [one["role"] for one in tree.named("svg")] == ["img"] * 4
    assert all(one["aria-label"] for one in tree.named("svg"))
    assert [one["scope"] for one in tree.named("th")] == ["col"] * 3 + ["row"] * 2


def test_nothing_comes_from_elsewhere() -> None:
    """Every address is a path of ours; no element takes style or script by attribute."""
    tree = Tree(html())
    for tag, attributes in tree.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in {"style", "src", "srcset", "action"}, (tag, name)
            if name == "href":
                assert value is not None
                assert value.startswith("/") or value == "data:,"
                assert not value.startswith("//")


def test_the_policy_allows_what_is_there_and_no_more() -> None:
    """The hashes of the policy are those of the one style and the one script of the page."""
    body = html()
    for name, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(f"<{name}>(.*?)</{name}>", body, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy()
    assert policy().startswith("default-src 'none';")
    assert "unsafe" not in policy()
    assert "*" not in policy()
    page = Page()
    page.publish(SNAPSHOT)
    assert views.index(page, {"accept": "text/html"}).headers["Content-Security-Policy"] == policy()


def test_it_comes_anew_without_javascript() -> None:
    """A browser that runs no script reloads the page by itself."""
    assert '<noscript><meta http-equiv="refresh" content="5"/></noscript>' in html()


def test_whatever_a_text_holds_it_stays_text() -> None:
    """Names, sentences, remedies and reasons from the machine open no element."""
    hostile = dataclasses.replace(
        SNAPSHOT,
        standings=(
            standing("gpu_hot", State.WARNING, sentence=HOSTILE, remedy=HOSTILE, subject=HOSTILE),
        ),
        machine=Machine(gpu_name=HOSTILE),
        identities=(),
        sources=(SourceHealth(source=HOSTILE, success=False, reason=HOSTILE),),
        origin=f"{HOSTILE}:x",
        recorder=RecorderStatus(reason=HOSTILE),
    )
    body = document(hostile, (), alive=True, paths=()).decode()
    tree = Tree(body)
    assert tree.named("img") == []
    assert len(tree.named("script")) == 1
    assert body.count("&lt;img src=x onerror=alert(1)&gt;") == 6


def test_the_states_have_words() -> None:
    """Each state stands there as a word beside its sign; what is fine is folded, unknown is not."""
    standings = tuple(
        standing(name, state, gotcha="G4")
        for name, state in zip(("a", "b", "c", "d", "e"), State, strict=True)
    )
    body = document(
        dataclasses.replace(SNAPSHOT, standings=standings), (), alive=True, paths=()
    ).decode()
    for word in ("✖</span> CRITICAL", "▲</span> WARNING", "●</span> INFO", "? 1 unknown", "✔ 1 ok"):
        assert word in body
    folded = {one["id"]: "open" in one for one in Tree(body).named("details")}
    assert folded == {"G4-unknown": True, "G4-ok": False}


def test_the_sources_that_fail_have_a_row() -> None:
    """A failing source has reason and age, an unanswered call its seconds, the others a line."""
    body = html()
    assert "fails: late" in body
    assert "a call is out for 12 s" in body
    assert "12 s ago" in body
    assert "not asked yet" in body
    assert "answering: meminfo" in body
    assert "The black box does not record: no_space." in body
    assert "10000 looks taken, 3 missed." in body


def test_a_recording_is_not_taken_for_the_machine() -> None:
    """The page says that samples come from a recording, and not from which."""
    assert "a recording, not this machine" in html()
    assert "a-file-name" not in html()


def test_before_the_first_sample() -> None:
    """The page is there and calls itself unknown."""
    assert "There is no sample yet." in html(page=Page())
    Tree(html(page=Page()))


def test_it_is_rendered_once_for_each_snapshot() -> None:
    """A crowd of browsers costs one rendering; a loop that stops changes the page all the same."""
    page = Page()
    page.publish(SNAPSHOT)
    now = 1e12
    first = page.status(now, ())
    assert page.status(now, ()) is first
    assert b"has stopped looking" in first
    page.publish(SNAPSHOT)
    assert page.status(now, ()) is first
    page.publish(dataclasses.replace(SNAPSHOT))
    assert page.status(now, ()) is not first


def _luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_text_has_contrast(mode: str) -> None:
    """Each colour of text has at least 4.5 to 1 against page and card, in both modes (WCAG AA)."""
    css = (ROOT / "spark_watch" / "export" / "status" / "status.css").read_text()
    blocks = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in css.split("@media")[:2]]
    colours = blocks[mode == "dark"]
    assert len(colours) == 12
    for name, colour in colours.items():
        if name in {"back", "card", "line"}:
            continue
        for ground in (colours["back"], colours["card"]):
            bright, dim = sorted((_luminance(colour), _luminance(ground)), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (name, ground)
