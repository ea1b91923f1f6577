"""The runbook: how it is taken apart, and how it becomes the page that the daemon serves.

Run as a module, this writes the page anew. Only the part of Markdown that the runbook uses is
known; anything else ends in an error, so that nothing is shown wrongly.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.conftest import ROOT

RUNBOOK: Final = ROOT / "deploy" / "runbook.md"
PAGE: Final = ROOT / "spark_watch" / "export" / "runbook.html"

SECTIONS: Final = ("Meaning", "Confirm", "Do", "Do not", "Reported")
"""What every entry holds, in this order."""

STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1rem}"
    "pre{overflow-x:auto;padding:.6rem;border:1px solid #8888;border-radius:.3rem}"
    "code{font-family:ui-monospace,monospace;font-size:.95em}"
    "h2{border-top:2px solid #8888;padding-top:1rem;margin-top:2.5rem}"
    "nav ul{columns:3 11rem}"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One anchor of the runbook.

    Args:
        name: the heading, which is the anchor.
        gotcha: the number its second line names, ``None`` where it has none.
        sections: the text below each heading of the third level, in order.
    """

    name: str
    gotcha: str | None
    sections: dict[str, str]


def entries(text: str) -> list[Entry]:
    """Take the runbook apart; what stands before the first named entry is left out."""
    found = []
    for chunk in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, body = chunk.partition("\n")
        if re.fullmatch(r"[a-z]+(_[a-z]+)*", name):
            lead, *parts = re.split(r"^### ", body, flags=re.MULTILINE)
            gotcha = re.search(r"^(G\d+): `spark-watch explain \1`$", lead, re.MULTILINE)
            sections = {}
            for part in parts:
                title, _, content = part.partition("\n")
                sections[title] = content.strip()
            found.append(Entry(name, gotcha[1] if gotcha else None, sections))
    return found


def rendered(text: str) -> str:
    """Return the runbook as one page of HTML without scripts or anything from elsewhere."""
    names = [entry.name for entry in entries(text)]
    links = "".join(f'<li><a href="#{name}">{name}</a></li>' for name in names)
    nav = f'<nav aria-label="Entries"><ul>{links}</ul></nav>'
    body = "\n".join(_blocks(text)).replace("</h1>", f"</h1>\n{nav}", 1)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>spark-watch runbook</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _blocks(text: str) -> Iterator[str]:
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line:
            at += 1
        elif line.startswith("```"):
            end = lines.index("```", at + 1)
            yield f"<pre><code>{html.escape(chr(10).join(lines[at + 1 : end]))}</code></pre>"
            at = end + 1
        elif heading := re.fullmatch(r"(#{1,3}) (.+)", line):
            level = len(heading[1])
            anchor = f' id="{html.escape(heading[2])}"' if level == len("##") else ""
            yield f"<h{level}{anchor}>{_inline(heading[2])}</h{level}>"
            at += 1
        else:
            end = at
            while end < len(lines) and lines[end] and not lines[end].startswith(("```", "#")):
                end += 1
            yield _paragraph(lines[at:end])
            at = end


def _paragraph(lines: list[str]) -> str:
    """Return a paragraph or a flat list; a line that is indented goes on with the item before."""
    item = re.compile(r"(?:- |\d+\. )(.+)")
    if item.fullmatch(lines[0]) is None:
        return f"<p>{_inline(' '.join(lines))}</p>"
    items: list[str] = []
    for line in lines:
        if match := item.fullmatch(line):
            items.append(match[1])
        elif line.startswith("  "):
            items[-1] += f" {line.strip()}"
        else:
            raise ValueError(f"neither an item nor its continuation: {line!r}")
    tag = "ul" if lines[0].startswith("-") else "ol"
    return f"<{tag}>{''.join(f'<li>{_inline(text)}</li>' for text in items)}</{tag}>"


def _inline(text: str) -> str:
    """Return code spans and addresses marked up; other markup is refused."""
    out = []
    for piece in re.split(r"(`[^`]+`|<https://[^>]+>)", text):
        if piece.startswith("`"):
            out.append(f"<code>{html.escape(piece[1:-1])}</code>")
        elif piece.startswith("<https://"):
            address = html.escape(piece[1:-1])
            out.append(f'<a href="{address}">{address}</a>')
        elif re.search(r"\*\*|\]\(|`|^\||<", piece):
            raise ValueError(f"markup that is not known here: {piece!r}")
        else:
            plain = html.escape(piece, quote=False)
            out.append(
                re.sub(
                    r"\b([A-Za-z0-9-]+/[A-Za-z0-9._-]+)#(\d+)\b",
                    r'<a href="https://github.com/\1/issues/\2">\1#\2</a>',
                    plain,
                )
            )
    return "".join(out)


def main() -> int:
    """Write the page."""
    PAGE.write_text(rendered(RUNBOOK.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
