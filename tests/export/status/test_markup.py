"""Text becomes markup in one place."""

from __future__ import annotations

from spark_watch.export.status.markup import Markup, element, joined


def test_text_is_escaped_and_markup_is_not() -> None:
    """A child that is plain text cannot open an element; one that is markup stays one."""
    assert element("p", "<b>&", element("i", "x")) == "<p>&lt;b&gt;&amp;<i>x</i></p>"
    assert joined("<", Markup("<i>")) == "&lt;<i>"


def test_attributes_cannot_be_left() -> None:
    """Quotes in a value are escaped; names take their hyphens and lose a trailing underscore."""
    made = element("a", "x", href='"><script>', class_="a'b", aria_label="c")
    assert made == ('<a href="&quot;&gt;&lt;script&gt;" class="a&#x27;b" aria-label="c">x</a>')


def test_an_element_without_content_closes_itself() -> None:
    """A line has no end tag."""
    assert element("line", x1="0") == '<line x1="0"/>'


def test_what_is_no_text_is_replaced() -> None:
    """A lone surrogate, as an undecodable name holds, does not break the encoding of the page."""
    assert element("p", "\ud800x").encode() == b"<p>?x</p>"
