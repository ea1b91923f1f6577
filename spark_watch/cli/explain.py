"""``spark-watch explain``: one gotcha in words, from symptom to fix."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from spark_watch.cli.common import say
from spark_watch.errors import UsageError

if TYPE_CHECKING:
    from spark_watch.preflight.gotchas import Gotcha

HELP = "explain a gotcha: symptom, cause, check, fix, sources, what reports say otherwise"
EXAMPLE = "spark-watch explain G7"

WIDTH = 100


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "gotcha", nargs="?", metavar="G1..G10", help="the number; all symptoms where left out"
    )


def run(options: argparse.Namespace) -> int:
    """Print one gotcha, or the list of all with their symptoms."""
    from spark_watch.preflight.gotchas import GOTCHAS  # noqa: PLC0415 - not for the daemon

    if options.gotcha is None:
        for gotcha in GOTCHAS:
            say(f"{gotcha.number} {gotcha.title}")
            say(_wrapped("symptom", gotcha.symptom))
        return 0
    wanted = str(options.gotcha).upper()
    found = next((gotcha for gotcha in GOTCHAS if gotcha.number == wanted), None)
    if found is None:
        raise UsageError(f"{options.gotcha}: there are G1 to G10")
    for line in explained(found):
        say(line)
    return 0


def explained(gotcha: Gotcha) -> Iterator[str]:
    """Yield the page of one gotcha, line by line."""
    yield f"{gotcha.number} {gotcha.title}"
    yield _wrapped("symptom", gotcha.symptom)
    yield _wrapped("cause", gotcha.cause)
    for name, texts in (
        ("check", gotcha.checks),
        ("fix", gotcha.fixes),
        ("source", gotcha.sources),
        ("differs", gotcha.differs),
    ):
        for text in texts:
            yield _wrapped(name, text)


def _wrapped(name: str, text: str) -> str:
    return textwrap.fill(
        f"  {name + ':':<9}{text}",
        WIDTH,
        subsequent_indent=" " * 11,
        break_long_words=False,
        break_on_hyphens=False,
    )
