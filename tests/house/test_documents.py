"""The documents say what there is: every link leads somewhere, every name stands in the README."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from spark_watch.cli import COMMANDS
from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.export.families import FAMILIES
from spark_watch.settings.tree import Settings
from tests.conftest import ROOT
from tests.house import tables

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
"""An inline Markdown link or picture."""


def _documents() -> list[str]:
    """Return the project's Markdown files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def _anchors(document: Path) -> set[str]:
    """Return the anchors of a document: those written in HTML and those headings get."""
    text = document.read_text()
    headings = re.findall(r"^#+ +(.+?)#*$", text, re.MULTILINE)
    slugs = {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }
    return slugs | set(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", text))


@pytest.mark.parametrize("name", _documents())
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link of a document names a file that exists, and a heading it has."""
    broken = []
    for match in LINK.finditer((ROOT / name).read_text()):
        path, _, anchor = match["target"].partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        target = ((ROOT / name).parent / path) if path else ROOT / name
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(match["target"])
    assert broken == []


def _settings(model: type[BaseModel]) -> Iterator[str]:
    """Return the names of the leaves of a settings tree."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _settings(field.annotation)
        else:
            yield name


def _code_words() -> str:
    """Return all that the README sets in code type."""
    return "\n".join(re.findall(r"`+([^`]+)`+", (ROOT / "README.md").read_text()))


def test_every_setting_is_in_the_readme() -> None:
    """Whoever reads the README finds every setting by its name."""
    words = _code_words()
    names = set(_settings(Settings))
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", words)) == []


def test_every_condition_is_in_the_readme() -> None:
    """Whoever reads the README finds every condition by its name."""
    words = _code_words()
    names = {kind.name for kind in CATALOGUE}
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", words)) == []


def test_every_metric_is_in_the_readme() -> None:
    """Whoever reads the README finds every metric by the name that it has on the page."""
    words = _code_words()
    names = {family.full_name for family in FAMILIES}
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", words)) == []


def test_the_readme_names_no_metric_that_is_not_there() -> None:
    """A metric that was renamed leaves no trace of its old name."""
    named = set(re.findall(r"\bsparkwatch_\w*[a-z]\b", _code_words()))
    assert sorted(named - {family.full_name for family in FAMILIES}) == []


def test_the_readme_has_the_commands_and_no_others() -> None:
    """Every command is shown at least once as it is typed, and none that does not exist."""
    assert set(re.findall(r"\bspark-watch ([a-z]+)\b", _code_words())) == set(COMMANDS)


def test_every_make_target_of_the_readme_exists() -> None:
    """A target that the README tells people to run is one that the Makefile has."""
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z]+)\b", _code_words())) <= set(targets)


def test_the_tables_are_those_of_the_code() -> None:
    """Every table of the README says what the code says (`python -m tests.house.tables`)."""
    text = tables.README.read_text()
    assert tables.filled(text) == text
