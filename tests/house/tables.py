"""The README's tables, made from the code they describe; run as a module, this writes them.

A table stands between ``<!-- NAME -->`` and ``<!-- /NAME -->``; the rest is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.export.families import FAMILIES
from spark_watch.settings.tree import Settings
from tests.conftest import ROOT
from tests.house import rules

README: Final = ROOT / "README.md"

GOTCHAS: Final[Mapping[str, str]] = {
    "G3": "memory runs out below 128 GB",
    "G4": "throttling, stuck low power, reboot",
    "G5": "bandwidth ceiling",
    "G6": "contention on the one pool",
    "G10": "hang that looks busy",
}


def row(*cells: str) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def conditions() -> Iterator[str]:
    """Yield the table of conditions."""
    yield row("gotcha", "condition", "rule", "judged from", "where")
    yield row(*["---"] * 5)
    for kind in CATALOGUE:
        yield row(
            kind.gotcha,
            f"`{kind.name}`",
            kind.summary,
            ", ".join(f"`{source}`" for source in kind.sources) or "the samples' own times",
            "GB10" if kind.gb10_only else "any machine",
        )


def alerts() -> Iterator[str]:
    """Yield the table of alerts."""
    yield row("alert", "severity", "waits", "about")
    yield row(*["---"] * 4)
    for group in rules.alerts()["groups"]:
        for rule in group["rules"]:
            summary = rule["annotations"]["summary"]
            about = re.sub(r"\{\{ \$(?:labels\.)?(\w+) \}\}", r"*\1*", summary)
            severity = rule["labels"]["severity"]
            yield row(f"`{rule['alert']}`", severity, rule.get("for", "-"), about)


def metrics() -> Iterator[str]:
    """Yield the table of metrics."""
    yield row("metric", "kind", "labels", "what it is")
    yield row(*["---"] * 4)
    for family in FAMILIES:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield row(f"`{family.full_name}`", family.kind, labels, family.help)


def settings() -> Iterator[str]:
    """Yield the table of all settings but the conditions' levels, groups as ``group.name``."""
    yield row("setting", "default", "variable", "what it is")
    yield row(*["---"] * 4)
    for name, field in _leaves(Settings):
        variable = name.upper().replace(".", "__")
        yield row(
            f"`{name}`", _default(field), f"`SPARK_WATCH_{variable}`", field.description or ""
        )


def _leaves(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if name == "conditions":
            continue
        if _is_group(field):
            group: Any = field.annotation
            yield from _leaves(group, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def levels() -> Iterator[str]:
    """Yield the table of every level and hold of every condition."""
    yield row("`[conditions.…]`", "setting", "default", "what it is and where it is from")
    yield row(*["---"] * 4)
    conditions_model: Any = Settings.model_fields["conditions"].annotation
    for condition, group in conditions_model.model_fields.items():
        for name, field in group.annotation.model_fields.items():
            yield row(f"`{condition}`", f"`{name}`", _default(field), field.description or "")


def _is_group(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _default(field: FieldInfo) -> str:
    return "not set" if field.default is None else f"`{field.default}`"


TABLES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "conditions": conditions,
    "alerts": alerts,
    "metrics": metrics,
    "settings": settings,
    "levels": levels,
}


def filled(text: str) -> str:
    """Return the README's text with every table made anew."""
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if pattern.search(text) is None:
            raise SystemExit(f"README.md has no place for the table {name}")
        body = "\n".join(table()) + "\n"
        text = pattern.sub(lambda match, body=body: match[1] + body + match[2], text)  # type: ignore[misc]  # bound per turn
    return text


def main() -> int:
    """Write the tables into the README."""
    README.write_text(filled(README.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
