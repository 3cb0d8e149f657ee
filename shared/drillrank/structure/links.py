"""The links that a document's sections hold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from drillrank.structure.document import Document
from drillrank.structure.html import html_links
from drillrank.structure.latex import latex_links


def markdown_links(text: str) -> list[tuple[int, str, str]]:
    """Links of a Markdown text: offset of their block, address and shown text; see `drillrank.structure.markdown`."""
    from drillrank.structure import markdown  # its parser takes as long to load as the rest of the package

    return markdown.markdown_links(text)


_FINDERS: dict[str, Callable[[str], list[tuple[int, str, str]]]] = {
    "markdown": markdown_links,
    "html": html_links,
    "latex": latex_links,
}


class Link(NamedTuple):
    """A link as the author wrote it.

    Attributes:
        target: The address, relative or absolute; nothing is resolved.
        text: What a reader sees of it.
    """

    target: str
    text: str


def section_links(document: Document) -> list[list[Link]]:
    r"""The links of every section, in the order of `document.sections()`.

    Markdown's links and autolinks, HTML's visible anchors, LaTeX's `\href` and `\url`. Plain text has none. The text is
    searched anew at every call.

    >>> from drillrank.structure import parse_document
    >>> section_links(parse_document("# Foxes\n\nSee [whales](/whales) and <http://a.b>.\n\n# Whales\n"))
    [[Link(target='/whales', text='whales'), Link(target='http://a.b', text='http://a.b')], []]
    """
    starts = [section.start for section in document.sections()]
    links: list[list[Link]] = [[] for _ in starts]
    finder = _FINDERS.get(document.format)
    for at, target, text in finder(document.text) if finder else ():
        links[bisect_right(starts, at) - 1].append(Link(target, text))
    return links
