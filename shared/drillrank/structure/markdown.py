"""Markdown: the blocks of CommonMark with tables and front matter.

markdown-it-py recognises the blocks; only the top level is kept, and inline rules run for headings alone.
The block rules are in `markdown_blocks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from drillrank.structure.document import Block, BlockKind
from drillrank.structure.lines import LINE_END, line_starts, trimmed_end
from drillrank.structure.markdown_blocks import block_parser, ready
from drillrank.structure.scan import Scan

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "quote": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table": "table",
    "fence": "code",
    "code_block": "code",
}
_MARKS = frozenset({"heading_open", "table", "fence", "front_matter"})
_MAX_HEADING = 1000  # a longer one is hardly a heading, and inline rules are not linear
_MAX_INLINE = 4000
_ITEM_BORDER = re.compile(r"(?:\r\n?|\n)(?=[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]|[\r\n]))")
_LINK_SIGN = re.compile(r"\]|<[a-zA-Z]")
_INLINE_MARKUP = re.compile(r"[\\`*_\[<&\n]")
_BOM = "\ufeff"


def scan_markdown(text: str) -> Scan:
    """Find the top-level blocks of a Markdown text and the readable text of its headings."""
    references: dict[str, Any] = {}
    tokens = _block_tokens(text, references)
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    marks = 0
    for index, block in _blocks(text, tokens):
        token = tokens[index]
        blocks.append(block)
        marks += token.type in _MARKS
        if token.type == "heading_open":
            headings.append((int(token.tag[1:]), _readable(tokens[index + 1].content, references)))
    return Scan(blocks, headings, marks)


def markdown_links(text: str) -> list[tuple[int, str, str]]:
    """Offset of the block, address and text of the links and autolinks outside code, in order.

    Inline rules see paragraphs and items one by one, and at most `_MAX_INLINE` characters at once: a link across such
    a border is not found.
    """
    references: dict[str, Any] = {}
    tokens = _block_tokens(text, references)
    links: list[tuple[int, str, str]] = []
    for _, block in _blocks(text, tokens):
        if block.kind not in ("code", "other"):
            for part in _ITEM_BORDER.split(text[block.start : block.end]):
                for at in range(0, len(part), _MAX_INLINE):
                    found = _inline_links(part[at : at + _MAX_INLINE], references)
                    links += [(block.start, target, shown) for target, shown in found]
    return links


def _inline_links(part: str, references: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not _LINK_SIGN.search(part):
        return
    tokens: list[Token] = []
    _INLINE.inline.parse(part, _INLINE, references, tokens)
    opened = 0
    for index, token in enumerate(tokens):
        if token.type == "link_open":
            opened = index
        elif token.type == "link_close":
            yield str(tokens[opened].attrs.get("href", "")), " ".join(_text(tokens[opened + 1 : index]).split())


def _blocks(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, Block]]:
    """The top-level blocks, and where their tokens stand."""
    starts = line_starts(text)
    for index, token in enumerate(tokens):
        if token.level or token.map is None:  # nested, or the end of a block
            continue
        start = starts[token.map[0]]
        end = trimmed_end(text, start, starts[token.map[1]])
        if start < end:  # white space that CommonMark takes for text, such as a form feed, is none
            yield index, Block(_KINDS.get(token.type, "other"), start, end)


def _block_tokens(text: str, references: dict[str, Any]) -> list[Token]:
    """The library's tokens, and in `references` the link definitions."""
    text = text.removeprefix(_BOM).replace("\0", "\ufffd")  # the mark still belongs to the first line's span
    if "\r" in text:
        text = LINE_END.sub("\n", text)
    tokens: list[Token] = []
    _BLOCKS.block.parse(text, _BLOCKS, references, tokens)  # `_BLOCKS.parse` would search every line for \r and \0
    return tokens


def _readable(heading: str, references: dict[str, Any]) -> str:
    """A heading as a reader sees it."""
    if len(heading) > _MAX_HEADING or not _INLINE_MARKUP.search(heading):
        return heading
    tokens: list[Token] = []
    _INLINE.inline.parse(heading, _INLINE, references, tokens)
    return _text(tokens).strip()


def _text(tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            parts.append(_text(token.children or ()))
        elif token.type != "html_inline":
            parts.append(token.content)
    return "".join(parts)


_BLOCKS = block_parser()
_INLINE = ready(MarkdownIt("commonmark"))
