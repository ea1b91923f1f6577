"""Catalogue and runbook say the same, and what the runbook tells people to type exists."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from spark_watch.cli import COMMANDS
from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.export.page import Page
from spark_watch.export.views import VIEWS
from spark_watch.preflight.gotchas import GOTCHAS
from tests.house.runbook import PAGE, RUNBOOK, SECTIONS, Entry, entries, rendered

TEXT = RUNBOOK.read_text()
ENTRIES = {entry.name: entry for entry in entries(TEXT)}

ORDINARY = {
    *("cat", "curl", "dmesg", "echo", "grep", "head", "journalctl", "kill", "last", "ls", "ping"),
    *("nvidia-smi", "ps", "readlink", "sort", "sync", "systemctl", "tail", "timeout", "vmstat"),
}
"""What a Spark has without anything being installed."""

SOURCE = re.compile(
    r"- ("
    r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+(#\d+| discussion \d+)?: \S.*"  # a thread, and what it reports
    r"|[A-Za-z0-9-]+/[A-Za-z0-9._-]+: \S.*"  # a repository that is one report
    r"|<https://docs\.(kernel\.org|nvidia\.com)/\S+>"
    r"|nvml\.h: `\w+\*?`"
    r")"
)


def test_every_condition_has_an_entry() -> None:
    """An alert about a condition leads to an entry that is there; the message names what is not."""
    missing = [kind.name for kind in CATALOGUE if kind.name not in ENTRIES]
    assert missing == [], f"deploy/runbook.md has no entry '## NAME' for {missing}"


def test_conditions_come_in_the_order_of_the_catalogue() -> None:
    """Runbook, README and page list conditions alike."""
    names = [kind.name for kind in CATALOGUE]
    assert [name for name in ENTRIES if name in names] == names


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name)
def test_an_entry_names_its_gotcha(kind: type) -> None:
    """From an entry one command leads to the failure mode behind it."""
    gotcha = vars(kind)["gotcha"]
    assert ENTRIES[vars(kind)["name"]].gotcha == gotcha
    assert gotcha in {gotcha.number for gotcha in GOTCHAS}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_entry_is_whole(entry: Entry) -> None:
    """Each entry has all sections in their order, none of them empty."""
    assert tuple(entry.sections) == SECTIONS
    assert all(entry.sections.values())


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_an_entry_is_confirmed_with_commands(entry: Entry) -> None:
    """At three in the morning nobody writes a command: each entry has one to paste."""
    assert _commands(entry.sections["Confirm"])


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_reports_can_be_looked_up(entry: Entry) -> None:
    """Each source is a thread or repository with what it reports, a kernel or NVIDIA page."""
    lines = entry.sections["Reported"].splitlines()
    assert [line for line in lines if SOURCE.fullmatch(line) is None] == []


def test_every_command_exists() -> None:
    """What stands in a block to paste is of spark-watch or of any Ubuntu with the driver."""
    words = {word for block in _commands(TEXT) for word in _words(block)}
    assert words - ORDINARY - {"spark-watch"} == set()


def test_every_command_of_ours_exists() -> None:
    """No entry sends people to a command that spark-watch does not have."""
    named = set(re.findall(r"\bspark-watch ([a-z]+)\b", "\n".join(_code(TEXT))))
    assert named
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name)
def test_the_remedies_name_commands_that_the_entry_or_the_product_has(kind: type) -> None:
    """A command of the system that a remedy names stands in the entry as well."""
    text = " ".join(vars(kind)["remedies"].values())
    entry = ENTRIES[vars(kind)["name"]]
    body = "\n".join(entry.sections.values())
    for command in re.findall(
        r"nvidia-smi -lgc 0,\d+|drop_caches|compact_memory|py-spy dump", text
    ):
        assert command in body


def test_the_page_is_the_runbook() -> None:
    """The page in the wheel is the runbook's text (`python -m tests.house.runbook` writes it)."""
    assert PAGE.read_text() == rendered(TEXT)


class _Anchors(HTMLParser):
    """Collects anchors and links, and sees that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what opens."""
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [values["href"] or ""] if "href" in values else []
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """See that what closes was open."""
        assert self.open.pop() == tag


def test_the_daemon_serves_an_anchor_for_each_condition() -> None:
    """`/runbook#memory_low` shows that entry, before the first sample as well."""
    answer = VIEWS["/runbook"](Page(), {})
    assert answer.status == 200
    assert answer.content_type == "text/html; charset=utf-8"
    anchors = _Anchors()
    anchors.feed(answer.body.decode())
    assert anchors.open == []
    assert len(set(anchors.ids)) == len(anchors.ids)
    assert {kind.name for kind in CATALOGUE} <= set(anchors.ids)
    assert {link[1:] for link in anchors.links if link.startswith("#")} <= set(anchors.ids)


@pytest.mark.parametrize(
    "text",
    ["a **bold** word", "a [link](x)", "| a | table |", "a stray ` tick", "- item\nno item"],
)
def test_markup_that_is_not_known_is_refused(text: str) -> None:
    """The page never shows raw markup: whoever uses more of Markdown finds out here."""
    with pytest.raises(ValueError, match=r"markup|item"):
        rendered(text)


def test_text_cannot_become_markup() -> None:
    """Signs that mean something in HTML are shown as they are."""
    page = rendered("## a_b\n\n`<b>` & more\n\n```sh\ncat <x >y\n```\n")
    assert "<code>&lt;b&gt;</code> &amp; more" in page
    assert "cat &lt;x &gt;y" in page


def _code(text: str) -> list[str]:
    """Return all that is set in code type."""
    return re.findall(r"```sh\n.+?```|`[^`\n]+`", text, re.DOTALL)


def _commands(text: str) -> list[str]:
    return re.findall(r"```sh\n(.+?)```", text, re.DOTALL)


def _words(block: str) -> list[str]:
    """Return the command of each simple command in a block; quoted text holds none."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", block)
    simple = re.split(r"\||&&|;|\n", plain)
    words = [part.split()[0] for part in simple if part.split()]
    return words + [word for part in simple for word in re.findall(r"timeout \d+ (\S+)", part)]
