"""Markdown that says what was found elsewhere: headings, tables, and text that must not be read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from drillrank.structure.document import Document

DEEPEST = 6  # heading of Markdown

# What Markdown would take for a heading, a quote, a fence, a rule, an underline, a reference, front matter or HTML.
_READ_AS_MARKUP = re.compile(r"(?:#{1,6}(?:\s|$)|>|`{3}|~{3}|[-=*_](?:\s*[-=*_])*\s*$|\[[^\]]*\]:|\||<|\+\+\+)")

_INSIDE = re.compile(r"([<*`\[])")  # of a heading
_CLOSING = re.compile(r"(\s)(#+)$")


def heading(level: int, title: str) -> str:
    r"""A heading on one line.

    >>> heading(2, "What <b> means")
    '## What \\<b> means'
    """
    title = _CLOSING.sub(r"\1\\\2", _INSIDE.sub(r"\\\1", " ".join(title.split())))
    return f"{'#' * min(level, DEEPEST)} {title}"


def prose(text: str) -> str:
    r"""A paragraph that begins with no mark.

    >>> prose("# of shares")
    '\\# of shares'
    """
    return f"\\{text}" if _READ_AS_MARKUP.match(text) else text


def table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the head, with as many cells as the longest row.

    >>> print(table([["2031"], ["Sales", "12"]]))
    |  | 2031 |
    | --- | --- |
    | Sales | 12 |
    """
    width = max(map(len, rows))
    first, *others = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    head = [*[""] * (width - len(first)), *first]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * width, *others))


def as_markdown(document: Document) -> Iterator[str]:
    """The headings and blocks of a document as a reader sees them.

    >>> from drillrank.structure import parse_document
    >>> list(as_markdown(parse_document("<h1>Foxes</h1><p>They <b>hunt</b>.</p>")))
    ['# Foxes', 'They hunt.']
    """
    for section in document.sections():
        for block in document.blocks(section):
            shown = document.readable(block).strip()
            if block.kind == "heading":
                yield heading(section.level, section.heading)
            elif block.kind == "table" and shown:
                yield table([line.split(" | ") for line in shown.splitlines()])
            elif shown:
                yield "\n".join(prose(line) if not line.startswith("- ") else line for line in shown.splitlines())
