"""Markup that is safe by construction: text becomes markup in one place only, escaped."""

from __future__ import annotations

import html
from typing import Final

VOID: Final = frozenset({"meta", "link", "path", "line"})
"""Elements without content."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Return a text as markup: nothing in it can open an element or end an attribute."""
    return Markup(html.escape(value.encode("utf-8", "replace").decode()))


def element(name: str, /, *children: str, **attributes: str) -> Markup:
    """Return one element.

    Args:
        name: the element's name, written by us.
        children: markup as it is, anything else escaped.
        attributes: by name; ``_`` stands for ``-``, a trailing one is dropped (``class_``). Values
            are escaped.
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items()
    )
    if name in VOID:
        return Markup(f"<{name}{words}/>")
    inner = "".join(one if isinstance(one, Markup) else text(one) for one in children)
    return Markup(f"<{name}{words}>{inner}</{name}>")


def joined(*children: str) -> Markup:
    """Return markup one after the other."""
    return Markup("".join(one if isinstance(one, Markup) else text(one) for one in children))
