"""Markdown: the blocks of CommonMark with tables and front matter.

markdown-it-py recognises the blocks; only the top level is kept, and inline rules run for headings alone.
Three block rules of our own keep headings from being swallowed, and the time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, hr
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from drillrank.structure.document import Block, BlockKind
from drillrank.structure.lines import line_starts, trimmed_end
from drillrank.structure.scan import Scan

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "quote": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}
_EVIDENT = frozenset({"heading_open", "table_open", "fence", "front_matter"})
_MAX_NESTING = 20
_MAX_HEADING = 1000  # a longer one is hardly a heading, and inline rules are not linear
_INLINE_MARKUP = re.compile(r"[\\`*_\[<&\n]")
# Quoted lines that text on the next line cannot continue: blank, heading, fence, underline or rule.
_NO_PARAGRAPH = re.compile(r">[> \t]*(?:$|#{1,6}(?:[ \t]|$)|```|~~~|[=-]+[ \t]*$)")
_BOM = "\ufeff"


def scan_markdown(text: str) -> Scan:
    """Find the top-level blocks of a Markdown text and the readable text of its headings."""
    starts = line_starts(text)
    references: dict[str, Any] = {}
    tokens = _BLOCKS.parse(text.removeprefix(_BOM), references)  # the mark still belongs to the first line's span
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    evident = False
    for index, token in enumerate(tokens):
        if token.level or token.map is None:  # nested, or the end of a block
            continue
        start = starts[token.map[0]]
        end = trimmed_end(text, start, starts[token.map[1]])
        if start == end:  # white space that CommonMark takes for text, such as a form feed
            continue
        blocks.append(Block(_KINDS.get(token.type, "other"), start, end))
        evident = evident or token.type in _EVIDENT
        if token.type == "heading_open":
            headings.append((int(token.tag[1:]), _readable(tokens[index + 1].content, references)))
    return Scan(blocks, headings, evident)


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


def _leading_break(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A `---` on the first line with a blank line below opens no front matter, which would hide the headings in it."""
    return start == 0 and state.isEmpty(1) and hr(state, start, end, silent)


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Skip what is nested too deeply, but only up to the end of its list; the library would skip to the text's end."""
    if silent or state.level < _MAX_NESTING:
        return False
    while start < end and (state.isEmpty(start) or state.sCount[start] >= state.blkIndent):
        start += 1
    state.line = start
    return True


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A quote as a whole. The library also parses what is in it, in quadratic time where a quote holds open fences.

    CommonMark lets the line below a quote continue it if the quote ends in a paragraph, which is guessed here from
    the last quoted line.
    """
    if state.is_code_block(start) or not _rest(state, start).startswith(">"):
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "blockquote"
    terminators = state.md.block.ruler.getRules("blockquote")
    line = start + 1
    while line < end and not state.isEmpty(line):
        quoted = state.sCount[line] >= state.blkIndent and _rest(state, line).startswith(">")
        if not quoted and (
            _NO_PARAGRAPH.match(_rest(state, line - 1)) or any(rule(state, line, end, True) for rule in terminators)
        ):
            break
        line += 1
    state.parentType = outer
    state.push("quote", "blockquote", 0).map = [start, line]
    state.line = line
    return True


def _rest(state: StateBlock, line: int) -> str:
    """A line without its indentation and list markers."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _ready(parser: MarkdownIt) -> MarkdownIt:
    """Compile the parser's rule chains now: the library does it at the first use, and not safely for two threads."""
    parser.render("text")
    return parser


def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 10**9}).enable("table").disable(["inline", "text_join"])
    front_matter_plugin(parser)
    rules = parser.block.ruler
    rules.before("front_matter", "leading_break", _leading_break)
    rules.before("leading_break", "too_deep", _too_deep)
    rules.at("blockquote", _quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return parser


_BLOCKS = _ready(_block_parser())
_INLINE = _ready(MarkdownIt("commonmark"))
