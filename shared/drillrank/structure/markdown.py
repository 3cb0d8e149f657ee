r"""Markdown: the blocks of CommonMark with tables and front matter, its links, and how to write it.

pyromark (pulldown-cmark) reads it in time linear in the text. Only blocks of the top level are kept: a heading in a
list or a quote opens no section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from drillrank.structure.cutting import trimmed_end
from drillrank.structure.document import Block, BlockKind, Document
from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Heading, Scan
from drillrank.text import without_surrogates

_KINDS: dict[str, BlockKind] = {
    "Heading": "heading",
    "Paragraph": "paragraph",
    "BlockQuote": "paragraph",
    "List": "list",
    "Table": "table",
    "CodeBlock": "code",
}
# A break on the first line with a blank line below opens no front matter.
_FRONT_MATTER = re.compile(
    r"\ufeff?---[ \t]*(?:\r\n?|\n)(?![ \t]*[\r\n])(?:[^\r\n]*(?:\r\n?|\n))*?---[ \t]*(?![^\r\n])"
)
# Below a line that is nested deeper, each line would take time that grows with the depth.
_TOO_DEEP = re.compile(
    r"(?<![^\r\n])((?:[ \t]*(?:[-+*](?=[ \t])|>|\d{1,9}[.)](?=[ \t]))){50}[ \t]*|[ \t]{200,})([-+*>]|\d{1,9}[.)])"
)
_ODD_LINE_END = re.compile(r"\r(?!\n)")
_FENCE = re.compile(r"(`{3,}|~{3,})")
# What Markdown would take for a heading, a quote, a fence, a rule, an underline, a reference, front matter or HTML.
_READ_AS_MARKUP = re.compile(r"(?:#{1,6}(?:\s|$)|>|`{3}|~{3}|[-=*_](?:\s*[-=*_])*\s*$|\[[^\]]*\]:|\||<|\+\+\+)")
_INSIDE = re.compile(r"([<*`\[])")  # of a heading
_CLOSING = re.compile(r"(?<=\s)(#+)$")
_DEEPEST = 6  # heading of Markdown

Links = list[tuple[int, str, str]]
"""Offset of the block, address and shown text of each link."""


def scan_markdown(text: str) -> Scan:
    """Find the top-level blocks of a Markdown text and the readable text of its headings."""
    return _read(text)[0]


def scan_markdown_or_plain(text: str) -> Scan:
    """Scan Markdown. If it has no headings, find them as in plain text."""
    scan = scan_markdown(text)
    if scan.headings:
        return scan
    plain = scan_plain(text)
    found = {(block.start, block.end) for block in plain.blocks if block.kind == "heading"}
    blocks = [
        replace(block, kind="heading")
        if block.kind in ("paragraph", "list") and (block.start, block.end) in found
        else block
        for block in scan.blocks
    ]
    return Scan(blocks, plain.headings, scan.marks)


def markdown_links(text: str) -> Links:
    """The links and autolinks outside code, in order."""
    return _read(text)[1]


def _read(text: str) -> tuple[Scan, Links]:
    import pyromark

    front = _FRONT_MATTER.match(text)
    skipped = front.end() if front else int(text.startswith("\ufeff"))
    source = _TOO_DEEP.sub(
        lambda deep: deep[1] + "x" * len(deep[2]), without_surrogates(_ODD_LINE_END.sub("\n", text[skipped:]))
    )
    offset = _character_offsets(source)
    blocks: list[Block] = []
    headings: dict[int, Heading] = {}
    links: Links = []
    marks = int(front is not None)
    top: tuple[str, Any] = ("", None)  # the block
    depth, ended = 0, front.end() if front else 0
    shown: list[str] = []  # of the block
    found: list[list[Any]] = []  # its links: address, and which of its texts
    opened: list[list[Any]] = []  # those of them that go on
    for event, span in pyromark.events_with_range(source, options=pyromark.Options.ENABLE_TABLES):
        kind, value = _named(event)
        if kind in ("Text", "Code"):
            shown.append(value)
        elif kind in ("SoftBreak", "HardBreak"):
            shown.append(" ")
        elif kind == "Start":
            name, details = _named(value)
            if not depth:
                top, shown, found = (name, details), [], []
            elif name == "Link":
                mail = "mailto:" * (details["link_type"] == "Email")
                opened.append([mail + details["dest_url"], len(shown)])
                found.append(opened[-1])
            depth += 1
            continue
        elif kind == "End":
            depth -= 1
            if value == "Link":
                opened.pop().append(len(shown))
        if depth or kind not in ("End", "Rule"):
            continue
        name, details = top if kind == "End" else _named(event)
        start = skipped + offset(span["start"])
        gap = text[ended:start]
        start = 0 if not gap.strip("\ufeff \t") and not ended else ended + len(gap.rstrip(" \t"))
        end = trimmed_end(text, start, skipped + offset(span["end"]))
        if start == end:  # white space that CommonMark takes for text, such as a form feed
            continue
        ended = end
        blocks.append(Block(_KINDS.get(name, "other"), start, end))
        marks += name in ("Heading", "Table") or (name == "CodeBlock" and details != "Indented")
        if name == "Heading":
            headings[start] = Heading(int(details["level"][1]), "".join(shown).strip().replace("\0", "\ufffd"))
        links += [(start, target, " ".join("".join(shown[first:last]).split())) for target, first, last in found]
    return Scan(blocks, headings, marks), links


def _named(event: Any) -> tuple[str, Any]:
    """Name and details of what the library reports as a string, or as a dictionary of one key."""
    return (event, None) if isinstance(event, str) else next(iter(event.items()))


def _character_offsets(source: str) -> Callable[[int], int]:
    """Turns offsets of UTF-8, rising from call to call, into offsets of characters."""
    if source.isascii():
        return int
    encoded = source.encode()
    at = count = 0

    def offset(byte: int) -> int:
        nonlocal at, count
        count += len(encoded[at:byte].decode())
        at = byte
        return count

    return offset


def with_closed_fence(text: str) -> str:
    r"""A page of Markdown whose code ends with it, so that the pages below are none.

    >>> with_closed_fence("```\nx = 1")
    '```\nx = 1\n```'
    """
    last = scan_markdown(text).blocks[-1:]
    opening = _FENCE.match(text[last[0].start :].lstrip()) if last and last[0].kind == "code" else None
    lines = text[last[0].start :].split("\n") if opening else []
    if opening and (len(lines) < 2 or not re.fullmatch(rf" {{0,3}}{opening[1]}{opening[1][0]}*[ \t]*", lines[-1])):
        return f"{text}\n{opening[1]}"
    return text


def heading(level: int, title: str) -> str:
    r"""A heading on one line.

    >>> heading(2, "What <b> means")
    '## What \\<b> means'
    """
    title = _CLOSING.sub(r"\\\1", _INSIDE.sub(r"\\\1", " ".join(title.split())))
    return f"{'#' * min(level, _DEEPEST)} {title}"


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
