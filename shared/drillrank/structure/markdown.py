r"""Markdown: the blocks of CommonMark with tables and front matter, its links, and how to write it.

pyromark (pulldown-cmark) parses it in linear time. Only blocks of the top level count: a heading in a list or a quote
opens no section. HTML between the blocks is read as HTML, so its headings open sections and its tags are not shown.
Tags, comments and entities inside a block are read as HTML, too; what looks like a tag and is none stays, as in
"List<String>".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from drillrank.structure.cutting import trimmed_end
from drillrank.structure.document import Block, BlockKind
from drillrank.structure.html import html_text, remove_invisible, scan_html
from drillrank.structure.markdown_source import prepare_markdown
from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Heading, Scan, assemble, fill_gaps

_KINDS: dict[str, BlockKind] = {
    "Heading": "heading",
    "Paragraph": "paragraph",
    "BlockQuote": "paragraph",
    "List": "list",
    "Table": "table",
    "CodeBlock": "code",
}
_WITH_MARKUP = ("Paragraph", "BlockQuote", "List", "Table")
_FENCE = re.compile(r"(`{3,}|~{3,})")
# What Markdown would take for a heading, a quote, a fence, a rule, an underline, a reference, a formula, attributes,
# front matter or HTML.
_READ_AS_MARKUP = re.compile(
    r"(?:#{1,6}(?:\s|$)|>|`{3}|~{3}|[-=*_](?:\s*[-=*_])*\s*$|\[[^\]]*\]:|\||<|\+\+\+|\$\$|\{:)"
)
_SIGNS_IN_TITLE = re.compile(r"([<*`\[])")  # of a heading
_CLOSING_SIGNS = re.compile(r"(?<=\s)(#+)$")
# "{#id}", "{.class}", "{: #id }", "{-}", "{key=value}" and "{/* #id */}" behind a heading, and a line of them below it.
_ATTRIBUTES = re.compile(r"\{:?\s*(?:[#.][^{}]*|-|[\w-]+=[^{}]*|/\*\s*#[\w-]+\s*\*/\s*)\}")
_ATTRIBUTE_LINE = re.compile(r"\{:[^{}\n]*\}")
# Tags without text, such as those around Markdown.
_SHOWS_NOTHING = re.compile(r"\s*(?:</?(?:a|br|center|details|div|hr|p|section|span)(?=[\s/>])[^<>]*>\s*)*")
_INLINE_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])")
_LINE_END_BEHIND = re.compile(r"[ \t]*(?:\r\n?|\n)")  # a break at the end of a line is one line end
_PAIRED_TAGS = frozenset({
    "a", "abbr", "b", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp",
    "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
})  # fmt: skip
_DEEPEST = 6  # heading of Markdown

Spans = Sequence[tuple[int, int]]
MarkdownLinks = list[tuple[int, str, str]]
"""Offset of the block, address and text of each link."""


def scan_markdown(text: str) -> Scan:
    """Find the top-level blocks of a Markdown text and the readable text of its headings."""
    return _MarkdownReader(text).scan()


def scan_markdown_or_plain(text: str) -> Scan:
    """Scan Markdown. If it has no headings, find them as in plain text."""
    scan = scan_markdown(text)
    if scan.headings:
        return scan
    plain = scan_plain(text)
    heading_spans = {(block.start, block.end) for block in plain.blocks if block.kind == "heading"}
    blocks = [
        replace(block, kind="heading")
        if block.kind in ("paragraph", "list") and (block.start, block.end) in heading_spans
        else block
        for block in scan.blocks
    ]
    heading_starts = {block.start for block in blocks if block.kind == "heading"}
    headings = {start: heading for start, heading in plain.headings.items() if start in heading_starts}
    return Scan(blocks, headings, scan.marks)


def markdown_links(text: str) -> MarkdownLinks:
    """Return the links and autolinks outside code, in order."""
    return _MarkdownReader(text).links


class _MarkdownReader:
    """Reads the events of the parser into blocks, headings and links.

    Attributes:
        links: Links of the text.
    """

    def __init__(self, text: str) -> None:
        import pyromark

        self.links: MarkdownLinks = []
        self._text = text
        self._blocks: list[Block] = []
        self._headings: dict[int, Heading] = {}
        source = prepare_markdown(text)
        self._source_start = source.start
        self._marks = int(source.has_front_matter)
        self._end = source.start if source.has_front_matter else 0  # of the last block
        self._offset = _character_offsets(source.text)
        self._block: tuple[str, Any] = ("", None)  # name and details
        self._depth = 0
        self._begin_block("", None)
        for event, span in pyromark.events_with_range(source.text, options=pyromark.Options.ENABLE_TABLES):
            self._read_event(event, span)

    def scan(self) -> Scan:
        """Return the blocks. If one has a rendering, all have, because a reader joins the renderings of a section."""
        text = self._text
        blocks = self._blocks
        has_invisible = remove_invisible(text.removeprefix("\ufeff")) != text.removeprefix("\ufeff")
        if has_invisible or any(block.rendering is not None for block in blocks):
            blocks = [
                replace(block, rendering=remove_invisible(text[block.start : block.end]))
                if block.rendering is None
                else block
                for block in fill_gaps(text, blocks)
            ]
        return Scan(blocks, self._headings, self._marks)

    def _begin_block(self, name: str, details: Any) -> None:
        self._block = (name, details)
        self._parts: list[str] = []  # of its readable text
        self._html: list[str] = []  # the same with its tags and links
        self._has_tags = False
        self._markup: list[tuple[int, int]] = []  # bytes of tags, comments and entities, in order
        self._block_links: list[list[Any]] = []  # address, index of the first part, index behind the last one
        self._open_links: list[list[Any]] = []

    def _read_event(self, event: Any, span: Any) -> None:
        kind, value = _name_and_details(event)
        if kind in ("Text", "Code"):
            self._add(value)
            if kind == "Text" and len(value) <= 2 and span["end"] - span["start"] > len(value.encode()):
                self._markup.append((span["start"], span["end"]))  # an entity
        elif kind in ("SoftBreak", "HardBreak"):
            self._add(" ")
        elif kind == "InlineHtml":
            self._html.append(value)
            self._has_tags = True
            self._markup.append((span["start"], span["end"]))
        elif kind == "Start":
            self._start(*_name_and_details(value))
        elif kind == "End":
            self._depth -= 1
            if value == "Link":
                self._open_links.pop().append(len(self._parts))
                self._html.append("</a>")
            if not self._depth:
                self._end_block(span)
        elif kind == "Rule" and not self._depth:
            self._begin_block("Rule", None)
            self._end_block(span)

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._html.append(escape(text))

    def _start(self, name: str, details: Any) -> None:
        if not self._depth:
            self._begin_block(name, details)
        elif name == "Link":
            address = "mailto:" * (details["link_type"] == "Email") + details["dest_url"]
            self._open_links.append([address, len(self._parts)])
            self._block_links.append(self._open_links[-1])
            self._html.append(f'<a href="{escape(address)}">')
            self._has_tags |= "#" in address
        self._depth += 1

    def _end_block(self, span: Any) -> None:
        """Add the block, with the white space before it in its line."""
        text = self._text
        name, details = self._block
        start = self._source_start + self._offset(span["start"])
        gap = text[self._end : start]
        start = 0 if not gap.strip("\ufeff \t") and not self._end else self._end + len(gap.rstrip(" \t"))
        markup = [
            (self._source_start + self._offset(first), self._source_start + self._offset(last))
            for first, last in self._markup
        ]
        end = trimmed_end(text, start, self._source_start + self._offset(span["end"]))
        if start == end:  # white space that CommonMark takes for text, such as a form feed
            return
        self._end = end
        if name == "HtmlBlock":
            self._add_html(start, end)
        elif name == "Paragraph" and _ATTRIBUTE_LINE.fullmatch(text, start, end):
            self._blocks.append(Block("other", start, end, ""))
        else:
            readable = name in _WITH_MARKUP and markup
            rendering = _render_markup(text, start, end, markup, name == "Table") if readable else None
            self._blocks.append(Block(_KINDS.get(name, "other"), start, end, rendering))
        self._marks += name in ("Heading", "Table") or (name == "CodeBlock" and details != "Indented")
        if name == "Heading":
            self._headings[start] = Heading(int(details["level"][1]), self._heading_title())
        for address, first, last in self._block_links:
            self.links.append((start, address, " ".join("".join(self._parts[first:last]).split())))

    def _add_html(self, start: int, end: int) -> None:
        """Add the visible blocks of HTML, or a block that shows nothing."""
        if _SHOWS_NOTHING.fullmatch(self._text, start, end):
            self._blocks.append(Block("other", start, end, ""))
            return
        scan = scan_html(self._text[start:end])
        self._blocks += [replace(block, start=start + block.start, end=start + block.end) for block in scan.blocks] or [
            Block("other", start, end, "")
        ]
        self._headings |= {start + offset: heading for offset, heading in scan.headings.items()}

    def _heading_title(self) -> str:
        """Return the readable title of a heading, without attributes and without a link to the heading itself."""
        title = "".join(self._parts)
        if self._has_tags:
            title = html_text(f"<h1>{''.join(self._html)}</h1>") or title
        title = remove_invisible(title).strip().replace("\0", "\ufffd")
        attributes_start = title.rfind("{")
        if attributes_start > 0 and _ATTRIBUTES.fullmatch(title, attributes_start):
            title = _CLOSING_SIGNS.sub("", title[:attributes_start].rstrip()).rstrip()
        return title


def _render_markup(text: str, start: int, end: int, markup: Spans, is_table: bool) -> str | None:
    """Return the text of a block with its tags, comments and entities read as HTML; None if there are none.

    The signs of Markdown stay. A row of a table has one line, so that a line break in it is a space.
    """
    sources = [text[first:last] for first, last in markup]
    remaining_tags = _select_tags(sources)
    parts: list[str] = []
    position = start
    for (first, last), source, is_kept in zip(markup, sources, remaining_tags, strict=True):
        if is_kept:
            is_break = is_table and source[1:3].lower() == "br"
            parts += [escape(text[position:first]), " " if is_break else source]
            line_end = _LINE_END_BEHIND.match(text, last) if source[1:3].lower() == "br" else None
            position = line_end.end() if line_end else last
    if position == start:
        return None
    parts.append(escape(text[position:end]))
    blocks = scan_html(f"<pre>{''.join(parts)}</pre>").blocks
    return "\n".join(block.rendering or "" for block in blocks).rstrip()


def _select_tags(sources: Sequence[str]) -> list[bool]:
    """Return True for each comment, entity, break, picture, and each tag that opens as often as it closes."""
    tags = [_INLINE_TAG.match(source) for source in sources]
    balance = Counter[str]()
    for tag in tags:
        if tag:
            balance[tag[2].lower()] += -1 if tag[1] else 1
    selected = []
    for tag, source in zip(tags, sources, strict=True):
        name = tag[2].lower() if tag else ""
        is_known = name in ("br", "wbr") or (name == "img" and "=" in source)
        is_paired = name in _PAIRED_TAGS and balance[name] == 0
        selected.append(is_known or is_paired or source.startswith(("&", "<!--")))
    return selected


def _name_and_details(event: Any) -> tuple[str, Any]:
    """Return the name and details of what the parser reports as a string, or as a dictionary of one key."""
    return (event, None) if isinstance(event, str) else next(iter(event.items()))


def _character_offsets(source: str) -> Callable[[int], int]:
    """Return a function from offsets of UTF-8, rising from call to call, to offsets of characters."""
    if source.isascii():
        return int
    encoded = source.encode()
    last_byte = last_character = 0

    def offset(byte: int) -> int:
        nonlocal last_byte, last_character
        last_character += len(encoded[last_byte:byte].decode())
        last_byte = byte
        return last_character

    return offset


def with_closed_fence(text: str) -> str:
    r"""Return a page of Markdown whose code ends with the page, so that the next pages are not code.

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
    r"""Return a heading on one line.

    >>> heading(2, "What <b> means")
    '## What \\<b> means'
    """
    title = _CLOSING_SIGNS.sub(r"\\\1", _SIGNS_IN_TITLE.sub(r"\\\1", " ".join(title.split())))
    return f"{'#' * min(level, _DEEPEST)} {title}"


def prose(text: str) -> str:
    r"""Return a paragraph that does not begin like markup.

    >>> prose("# of shares")
    '\\# of shares'
    """
    return f"\\{text}" if _READ_AS_MARKUP.match(text) else text


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is the head, with as many cells as the longest row.

    >>> print(table([["2031"], ["Sales", "12"]]))
    |  | 2031 |
    | --- | --- |
    | Sales | 12 |
    """
    width = max(map(len, rows))
    first, *others = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    head = [*[""] * (width - len(first)), *first]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * width, *others))


def html_as_markdown(page: str, *, is_xhtml: bool | None = None) -> Iterator[str]:
    """Yield the headings and blocks of a page of HTML as a reader sees them.

    Args:
        page: The page.
        is_xhtml: True if elements without content may close themselves; None if the page decides.

    >>> list(html_as_markdown("<h1>Foxes</h1><p>They <b>hunt</b>.</p>"))
    ['# Foxes', 'They hunt.']
    """
    document = assemble(page, scan_html(page, is_xhtml=is_xhtml), "html")
    for section in document.sections():
        for block in document.blocks(section):
            readable = document.readable(block).strip("\n")  # spaces at the ends are blank cells
            if block.kind == "heading":
                yield heading(section.level, section.heading)
            elif block.kind == "table" and readable.strip():
                yield table([line.split(" | ") for line in readable.splitlines()])
            elif readable.strip():
                yield "\n".join(prose(line) if not line.startswith("- ") else line for line in readable.splitlines())
