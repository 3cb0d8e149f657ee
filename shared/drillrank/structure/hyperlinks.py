"""Hyperlinks of a document's source: inline and reference links, HTML anchors, wiki links and roles of Sphinx.

Expressions find them, because a parser would read every file a second time. A match in code does no harm: a link counts
only if its target is a document.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_LINKS = 10_000  # of one document
_MAX_CHARACTERS = 500  # of a target; a longer one is not a file
_MARKDOWN = re.compile(
    r"\[(?P<text>[^\[\]]{0,300})\](?:\([ \t]{0,9}(?:<(?P<angled>[^<>\n]{1,500})>|(?P<plain>[^\s()<>]{1,500}))"
    r"|\[(?P<label>[^\[\]\n]{0,100})\])"
)
_MARKDOWN_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<label>[^\[\]\n]{1,100})\]:[ \t]{0,9}<?(?P<target>[^\s<>]{1,500})", re.MULTILINE
)
_WIKI = re.compile(r"\[\[(?P<target>[^\[\]|\s][^\[\]|\n]{0,300})(?:\|(?P<text>[^\[\]\n]{1,300}))?\]\]")
_ANCHOR = re.compile(
    r"<a\s(?:[^<>]{0,500}?\s)?href\s{0,9}=\s{0,9}(?:\"(?P<double>[^\"<>]{1,500})\"|'(?P<single>[^'<>]{1,500})'"
    r"|(?P<bare>[^\s\"'<>]{1,500}))[^<>]{0,500}>(?P<text>[^<]{0,300})",
    re.IGNORECASE,
)
_RST = re.compile(
    r"(?::(?P<role>doc|ref):)?`(?:(?P<text>[^`<>]{1,300}?)\s{0,9}<(?P<target>[^`<>\n]{1,500})>|(?P<name>[^`<>]{1,300}))`"
    r"(?P<mark>_{0,2})"
)
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_RST_DEFINITION = re.compile(r"^\.\. _`?(?P<label>[^`:\n]{1,100})`?:[ \t]{1,9}(?P<target>\S{1,500})", re.MULTILINE)


class Hyperlink(NamedTuple):
    """Link in the source of a document.

    Attributes:
        start: Offset of the link in the source.
        target: Target as it is written: an address, a path, or `[[` with the name of a page. It may end with a fragment
            (`#battery`).
        text: Text that a reader sees, on one line.
    """

    start: int
    target: str
    text: str


def find_hyperlinks(source: str, format_name: str) -> list[Hyperlink]:
    """Return the first `MAX_LINKS` links of a document, in order.

    Links inside the document (`#battery`) and links that do not lead to pages (`mailto:`) are left out.

    Args:
        source: Text of the document.
        format_name: Name of the format of the text.

    >>> [link.target for link in find_hyperlinks("See [care](care.md#daily), [[Oak tree|oaks]] and [a].", "text")]
    ['care.md#daily', '[[Oak tree']
    >>> find_hyperlinks("See :doc:`the guide <guide/start>`.", "rst")
    [Hyperlink(start=4, target='guide/start', text='the guide')]
    """
    links = _find_rst_links(source) if format_name == "rst" else _find_links(source)
    distinct = dict.fromkeys(link for link in links if _is_page(link.target))
    return sorted(distinct, key=lambda link: link.start)[:MAX_LINKS]


def make_slug(heading: str) -> str:
    """Return the fragment of a heading, as GitHub and most site generators make it.

    >>> make_slug("What's new?")
    'whats-new'
    """
    return _NOT_IN_SLUG.sub("", heading.strip().casefold()).replace(" ", "-")


def _find_links(source: str) -> Iterator[Hyperlink]:
    """Yield the links of Markdown, HTML and wikis."""
    if "](" in source or "][" in source:
        matches = _MARKDOWN_DEFINITION.finditer(source) if "]:" in source else ()
        definitions = {_fold(match["label"]): match["target"] for match in matches}
        for match in _MARKDOWN.finditer(source):
            label = match["label"]
            target = match["angled"] or match["plain"] or definitions.get(_fold(label or match["text"]), "")
            yield Hyperlink(match.start(), target, _on_one_line(match["text"]))
    if "[[" in source:
        for match in _WIKI.finditer(source):
            target = match["target"].strip()
            yield Hyperlink(match.start(), f"[[{target}", _on_one_line(match["text"] or target))
    if "href" in source.lower():
        for match in _ANCHOR.finditer(source):
            target = html.unescape(match["double"] or match["single"] or match["bare"])
            yield Hyperlink(match.start(), target.strip(), _on_one_line(html.unescape(match["text"])))


def _find_rst_links(source: str) -> Iterator[Hyperlink]:
    definitions = {_fold(match["label"]): match["target"] for match in _RST_DEFINITION.finditer(source)}
    for match in _RST.finditer(source):
        name = match["name"] or ""
        target = match["target"] or ""
        if match["role"] is None:
            target = (target or definitions.get(_fold(name), "")) if match["mark"] else ""
        elif match["role"] == "doc":
            target = target or name
        else:  # labels of sections often are their headings
            target = f"[[{target or name}"
        yield Hyperlink(match.start(), target.strip(), _on_one_line(match["text"] or name))


def _is_page(target: str) -> bool:
    scheme, colon, _ = target.partition(":")
    return (
        0 < len(target) <= _MAX_CHARACTERS
        and not target.startswith("#")
        and (not colon or not scheme.isalpha() or len(scheme) == 1 or scheme.lower() in ("http", "https", "file"))
    )


def _fold(label: str) -> str:
    return " ".join(label.split()).casefold()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
