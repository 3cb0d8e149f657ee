"""Block rules for markdown-it-py: only the top level counts, no heading is swallowed, and time is linear.

Some rules replace the library's where it would hide headings, take quadratic time or parse what is inside a block.
The `plain` ones recognise the usual cases of the top level by how they begin, with the library's result.
"""

from __future__ import annotations

import re

from drillrank.errors import mute_logger

with mute_logger("markdown_it"):
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock, heading, hr, table
    from mdit_py_plugins.front_matter import front_matter_plugin

_MAX_NESTING = 20
_MAX_ITEM_NESTING = _MAX_NESTING // 2 - 1  # a list within an item is two levels deeper
# Quoted lines that text on the next line cannot continue: blank, heading, fence, underline or rule.
_NO_PARAGRAPH = re.compile(r">[> \t]*(?:$|#{1,6}(?:[ \t]|$)|```|~~~|[=-]+[ \t]*$)")
# A line that may be more than text of a paragraph: another kind of block, an underline, a rule, a link definition.
_NOT_PLAIN = re.compile(
    r"#|>|<|`{3}|~{3}|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|[-*_:|=][-*_:|= \t]*$|\[(?![^\[\]\\]*\](?!:))"
)
_ITEM = re.compile(r"([-+*]|\d{1,9}[.)])(?: {1,4}|\t)(?=\S)")
_ODD_ITEM = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_MAY_BE_DELIMITER = re.compile(r"[-:|][-:| \t]*$")  # makes the line above the head of a table


def block_parser() -> MarkdownIt:
    """CommonMark's blocks with tables and front matter; inline rules do not run."""
    parser = MarkdownIt("commonmark", {"maxNesting": 10**9}).enable("table").disable(["inline", "text_join"])
    front_matter_plugin(parser)
    rules = parser.block.ruler
    rules.before("front_matter", "leading_break", _leading_break)
    rules.before("leading_break", "too_deep", _too_deep)
    rules.at("code", _code)
    rules.at("fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    rules.at("table", _table, {"alt": ["paragraph", "reference"]})
    rules.at("blockquote", _quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    rules.before("too_deep", "plain", _plain)
    return ready(parser)


def ready(parser: MarkdownIt) -> MarkdownIt:
    """Compile the parser's rule chains now: the library does it at the first use, and not safely for two threads."""
    parser.render("text")
    return parser


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
    return _block(state, "quote", start, line)


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A table as a whole, without its cells."""
    if not table(state, start, end, True):
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "table"  # rules before may have left "paragraph" there
    terminators = state.md.block.ruler.getRules("blockquote")  # the chain that the library takes for tables
    line = start + 2
    while line < end and not state.isEmpty(line) and 0 <= state.sCount[line] - state.blkIndent < 4:
        if not _is_plain(state, line) and any(rule(state, line, end, True) for rule in terminators):
            break
        line += 1
    state.parentType = outer
    return _block(state, "table", start, line)


def _code(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Indented code, without a copy of its lines."""
    if silent or not state.is_code_block(start):
        return False
    behind = start
    for line in range(start, end):
        if state.is_code_block(line) and not state.isEmpty(line):
            behind = line + 1
        elif not state.isEmpty(line):
            break
    return _block(state, "code_block", start, behind)


def _fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Fenced code, without a copy of its lines."""
    opening = _FENCE.match(state.src, state.bMarks[start] + state.tShift[start], state.eMarks[start])
    if not opening or state.is_code_block(start):
        return False
    return silent or _block(state, "fence", start, _fence_end(state, start + 1, end, state.blkIndent, opening[0]))


def _fence_end(state: StateBlock, line: int, end: int, content: int, fence: str) -> int:
    """The line after a fenced block: after its closing fence, or where a line stands left of the content."""
    while line < end:
        at = state.bMarks[line] + state.tShift[line]
        if at < state.eMarks[line]:
            indent = state.sCount[line] - content
            if indent < 0:
                break
            if indent < 4 and state.src.startswith(fence, at) and not _rest(state, line).rstrip(" \t").strip(fence[0]):
                return line + 1
        line += 1
    return line


def _is_plain(state: StateBlock, line: int) -> bool:
    """Whether a line that is not blank can only be text."""
    at = state.bMarks[line] + state.tShift[line]
    return state.src[at].isalpha() or not _NOT_PLAIN.match(state.src, at, state.eMarks[line])


def _plain(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A block at the top level, where its beginning tells its kind; the other rules do what this one leaves."""
    if silent or state.level:
        return False
    src, at = state.src, state.bMarks[start] + state.tShift[start]
    first = src[at]
    if first == "#":
        return _plain_heading(state, start, end)
    if first.isalpha() or not (src.startswith((">", "```", "~~~"), at) or _ITEM.match(src, at)):
        return _plain_paragraph(state, start, end)
    if _MAY_BE_DELIMITER.match(_rest(state, start + 1)):
        return False
    if first == ">":
        return _quote(state, start, end, False)
    return _fence(state, start, end, False) if first in "`~" else _plain_list(state, start, end)


def _plain_paragraph(state: StateBlock, start: int, end: int) -> bool:
    """A paragraph of which no other rule can want any line."""
    if state.sCount[start] >= 4:
        return False
    line = start
    while line < end and not state.isEmpty(line):
        if not _is_plain(state, line):
            return False
        line += 1
    return _block(state, "paragraph_open", start, line)


def _plain_heading(state: StateBlock, start: int, end: int) -> bool:
    """A line with a hash that the next line cannot make the head of a table."""
    return not _MAY_BE_DELIMITER.match(_rest(state, start + 1)) and heading(state, start, end, False)


def _plain_list(state: StateBlock, start: int, end: int) -> bool:
    """A list whose items hold text, fences and lists of the same sort; the library does the others."""
    src, starts, shifts, ends, indents = state.src, state.bMarks, state.tShift, state.eMarks, state.sCount
    if indents[start] >= 4:
        return False
    items: list[tuple[int, str]] = []  # the open ones: indent of their content, last character of their marker
    line = start
    after_text = False  # the line before is text that this one may continue
    while line < end:
        at = starts[line] + shifts[line]
        if at >= ends[line]:  # a blank line
            after_text = False
            line += 1
            continue
        indent, depth = indents[line], len(items)
        while depth and items[depth - 1][0] > indent:
            depth -= 1
        item = _ITEM.match(src, at)
        if not (item or after_text or depth or _ODD_ITEM.match(src, at, ends[line])):
            break  # something after the list
        if indent - (items[depth - 1][0] if depth else 0) >= 4:
            return False
        if item:
            marker, kind = item[1], item[1][-1]
            if depth == 0 and items and items[0][1] != kind:
                break  # another list
            if depth == len(items) and after_text and kind in ".)" and int(marker[:-1]) != 1:
                return False  # only a list that starts at 1 interrupts text
            content = indent + item.end() - at
            if src[item.end() - 1] == "\t":
                content = (indent + len(marker)) // 4 * 4 + 4
            items[depth:] = [(content, kind)]
            if len(items) > _MAX_ITEM_NESTING:
                return False
            at = item.end()
        elif not after_text:
            del items[depth:]
        after_text = True
        line += 1
        if not src[at].isalpha() and _NOT_PLAIN.match(src, at, ends[line - 1]):
            fence = _FENCE.match(src, at, ends[line - 1])
            if not fence or not (item or depth == len(items)):
                return False
            line = _fence_end(state, line, end, items[-1][0], fence[0])
            after_text = False
    return _block(state, "bullet_list_open", start, line)


def _rest(state: StateBlock, line: int) -> str:
    """A line without its indentation and list markers."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _block(state: StateBlock, type_: str, start: int, line: int) -> bool:
    """One token for the lines from `start` up to `line`."""
    state.push(type_, "", 0).map = [start, line]
    state.line = line
    return True
