"""HTML: the text that a reader sees of a page, with its headings and links, and the offsets of both in the source.

Deleted text (`<del>`, `<s>`) reads as "~~text~~", so that it is neither lost nor taken for valid. Raised numbers read
as "10^5", marks of notes as " [3]", check boxes as "[x]". Merged cells fill as many columns and rows as they span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Literal, NamedTuple

from drillrank.structure.document import BlockKind
from drillrank.structure.html_elements import (
    CODE_TABLES,
    Columns,
    Numbering,
    control_text,
    heading_level,
    is_check_mark,
    is_hidden,
    is_note_mark,
    is_permalink,
    lowered_marks,
    preview,
    raised_marks,
    read_style,
)
from drillrank.structure.html_tree import HEADINGS, HtmlNode, parse_html
from drillrank.structure.scan import Rendering, Scan, VisibleBlock, tile_visible_blocks

_CONTAINERS: dict[str, BlockKind] = dict.fromkeys(("ul", "ol", "menu", "dir", "dl"), "list")
_CONTAINERS |= dict.fromkeys(("pre", "listing", "xmp", "plaintext"), "code")
_CONTAINERS["table"] = "table"
_CELLS = frozenset({"td", "th"})
# Blocks that a style can make part of a line.
_PLAIN_BLOCKS = frozenset({
    "address", "article", "aside", "center", "details", "div", "fieldset", "figcaption", "figure", "footer", "form",
    "header", "hgroup", "legend", "main", "p", "search", "section", "summary",
})  # fmt: skip
_BLOCKS = _CELLS | _PLAIN_BLOCKS | HEADINGS | frozenset(_CONTAINERS) | {
    "blockquote", "body", "caption", "dd", "dialog", "dt", "hr", "li", "optgroup", "tr",
}  # fmt: skip
_BLOCK_DISPLAYS = frozenset({"block", "flex", "flow-root", "grid", "list-item", "table", "-webkit-box"})
_LINE_DISPLAYS = ("inline", "contents", "ruby")
_DELETED = frozenset({"del", "s", "strike"})
_MAX_INDENT = 10
_SCRIPT_KINDS = {"sup": "sup", "sub": "sub", "msup": "sup", "msub": "sub", "super": "sup"}
# Soft hyphens, spaces without width and marks of direction; joiners between letters that do not join.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|(?<=[0-9A-Za-z\u00c0-\u058f])[\u200c\u200d]"
)
_FEW_BORDERS = 1000  # of merged cells, for any page; a longer page may have more


def scan_html(text: str, *, is_xhtml: bool | None = None) -> Scan:
    """Find the visible blocks of an HTML page or fragment, and its headings.

    Args:
        text: The page.
        is_xhtml: True if elements without content may close themselves; None if the declaration of the page decides.
    """
    return tile_visible_blocks(text, list(_Page(text, is_xhtml).blocks()))


def html_links(text: str) -> list[tuple[int, str, str]]:
    """Return the offset, address and text of each visible link of a page."""
    return [(link.offset, link.address, " ".join("".join(link.parts).split())) for link in _Page(text).links]


def html_text(text: str) -> str:
    """Return the readable text of a fragment on one line."""
    return " ".join(" ".join(block.rendering.split()) for block in _Page(text).blocks())


def remove_invisible(text: str) -> str:
    r"""Return a text without the characters that no reader sees, such as soft hyphens inside words.

    >>> remove_invisible("Gesamt\u00adkonzept")
    'Gesamtkonzept'
    """
    return text if text.isascii() else _INVISIBLE.sub("", text)


@dataclass
class _HtmlHeading:
    """Heading that ends with its element, or at the first block that begins in it after some text."""

    level: int
    has_text: bool = False
    has_ended: bool = False


@dataclass
class _HtmlLink:
    """Link of a page and the parts of its text."""

    offset: int
    address: str
    parts: list[str] = field(default_factory=list)


@dataclass
class _Terms:
    """Definition list whose terms are blocks. A term that follows another one shares its block."""

    is_after_term: bool = False


class _Context(NamedTuple):
    """Properties that the elements around a text give it.

    Attributes:
        kind: Kind of the block.
        is_raw: True if line ends and spaces are kept.
        is_quoted: True inside a quotation, whose headings are text.
        is_deleted: True if the author deleted the text.
        is_note_mark: True inside the mark of a note.
        is_in_cell: True inside a cell of a table, where blocks are words.
        heading: Heading around the text, or None.
        link: Link around the text, or None.
        n_lists: Number of lists around the text.
        numbering: Numbers of the innermost list's items; None for a list without numbers.
        columns: Columns of the innermost table; None outside of its rows.
        terms: Definition list around the text, if it is in no other kind of list or table.
    """

    kind: BlockKind = "paragraph"
    is_raw: bool = False
    is_quoted: bool = False
    is_deleted: bool = False
    is_note_mark: bool = False
    is_in_cell: bool = False
    heading: _HtmlHeading | None = None
    link: _HtmlLink | None = None
    n_lists: int = 0
    numbering: Numbering | None = None
    columns: Columns | None = None
    terms: _Terms | None = None


_Effect = Literal["text", "line", "raw line", "cell"]
_Step = Callable[[], None]


class _Piece(NamedTuple):
    """Text of a block, or the beginning of a line or cell. Only texts of the source have a node."""

    offset: int
    block: int
    kind: BlockKind
    level: int
    effect: _Effect
    text: str
    is_deleted: bool
    node: HtmlNode | None


class _Page:
    """Walks through the tree of a page and collects its pieces and links, both in the order of the source."""

    def __init__(self, text: str, is_xhtml: bool | None = None) -> None:
        self.links: list[_HtmlLink] = []
        self._pieces: list[_Piece] = []
        self._block = 0
        self._offset = 0
        self._previous = ""  # last character of the line
        self._is_after_number = False  # directly behind a raised or lowered number
        self._n_borders_left = max(_FEW_BORDERS, len(text) // 8)
        root = parse_html(text, is_xhtml)
        self._layout = _find_layout_tables(root)
        self._steps: list[_Step] = [partial(self._visit, root, _Context())]
        while self._steps:
            self._steps.pop()()

    def blocks(self) -> Iterator[VisibleBlock]:
        """Yield the visible blocks. A block starts with the outermost element that opens behind the text before it."""
        last_text, last_start = -1, -1
        for _, group in groupby(self._pieces, key=lambda piece: piece.block):
            pieces = list(group)
            texts = [piece for piece in pieces if piece.node and piece.text.strip()]
            if not texts:
                continue
            start = max(self._find_start(texts[0], last_text), last_start + 1)
            yield VisibleBlock(start, texts[0].kind, _render(pieces), texts[0].level)
            last_text, last_start = max(last_text, texts[-1].offset), start

    def _find_start(self, piece: _Piece, last_text: int) -> int:
        start, node = piece.offset, piece.node
        while node is not None and node.offset > last_text:
            start = min(start, node.offset)
            node = node.parent
        return start

    def _then(self, *steps: _Step) -> None:
        """Take these steps next."""
        self._steps.extend(reversed(steps))

    def _visit(self, node: HtmlNode, context: _Context) -> None:
        self._offset = max(self._offset, node.offset)
        if node.name == "#text":
            self._add_text(node.text, context, node)
            return
        style = read_style(node)
        level = heading_level(node)
        if is_hidden(node, style) or is_permalink(node, context.heading is not None):
            return
        if node.name == "button" and context.is_raw:  # copies the code
            return
        display = style.get("display", "")
        is_block = node.name in _BLOCKS or level > 0
        if node.name in _PLAIN_BLOCKS and not level and display.startswith(_LINE_DISPLAYS):
            is_block = False
        if node.name in _CELLS and context.columns is not None:
            self._enter_cell(node, context)
        elif is_block:
            self._enter_block(node, context, level)
        elif display in _BLOCK_DISPLAYS:
            self._border(context)
            self._then(partial(self._enter_inline, node, context, style), partial(self._border, context))
        else:
            self._enter_inline(node, context, style)

    def _visit_children(self, node: HtmlNode, context: _Context, *behind: _Step) -> None:
        self._then(*(partial(self._visit, child, context) for child in node.children), *behind)

    def _enter_cell(self, cell: HtmlNode, context: _Context) -> None:
        """Begin a cell, with a border for each column since the last one."""
        columns = context.columns
        if columns is not None:
            self._put_borders(columns.begin_cell(cell), context)
        self._put("text", context, " ")  # apart from stray text before the cell
        self._end_line()
        inner = context._replace(columns=None, is_in_cell=True)
        self._visit_children(cell, inner)

    def _put_borders(self, n_borders: int, context: _Context) -> None:
        n_extra = min(max(n_borders - 1, 0), self._n_borders_left)  # merged cells could fill millions of columns
        self._n_borders_left -= n_extra
        for _ in range(min(n_borders, 1) + n_extra):
            self._put("cell", context)

    def _enter_block(self, node: HtmlNode, context: _Context, level: int) -> None:
        self._border(context)
        behind: list[_Step] = []
        inner = self._make_inner_context(node, context)
        if level and not context.is_quoted and not context.heading:
            self._begin_block()
            inner = inner._replace(heading=_HtmlHeading(level))
            behind.append(self._begin_block)
        if node.name == "dl" and context.terms:
            behind.append(self._begin_block)
        elif node.name == "tr" and inner.columns is not None:
            behind.append(partial(self._end_row, inner))
        behind.append(partial(self._border, context))
        self._add_control(node, inner)
        self._visit_children(node, inner, *behind)

    def _make_inner_context(self, node: HtmlNode, context: _Context) -> _Context:
        """Return the context inside a block, after what marks its beginning."""
        inner = context
        name = node.name
        kind = _CONTAINERS.get(name)
        if kind == "code":
            self._put("raw line", context)
            inner = inner._replace(is_raw=True)
        elif kind == "list":
            terms = _Terms() if name == "dl" and (context.kind == "paragraph" or context.terms) else None
            numbering = Numbering(node) if name == "ol" else None
            inner = inner._replace(n_lists=context.n_lists + 1, numbering=numbering, terms=terms)
        elif name == "table":
            inner = inner._replace(columns=Columns(), terms=None)
        elif name == "blockquote":
            inner = inner._replace(is_quoted=True)
        elif name == "tr" and context.columns and context.kind != "paragraph":
            self._put("line", context)
            context.columns.begin_row()
        elif name == "li" and context.kind == "list":
            marker = context.numbering.marker(node) if context.numbering else "- "
            self._put("line", context, "  " * min(context.n_lists - 1, _MAX_INDENT) + marker)
            inner = inner._replace(numbering=None)
        elif name in ("dt", "dd") and context.terms:
            self._enter_term(name, context.terms)
        if kind and context.kind == "paragraph" and id(node) not in self._layout:
            inner = inner._replace(kind=kind)
        if inner.kind == "paragraph":
            inner = inner._replace(columns=None)  # of a table that arranges the page
        return inner

    def _enter_term(self, name: str, terms: _Terms) -> None:
        """Begin a block with each term that follows no other term."""
        if name == "dt" and not terms.is_after_term:
            self._begin_block()
        terms.is_after_term = name == "dt"

    def _end_row(self, context: _Context) -> None:
        if context.columns is not None:
            self._put_borders(context.columns.end_row(), context)

    def _enter_inline(self, node: HtmlNode, context: _Context, style: dict[str, str]) -> None:
        name = node.name
        if name == "br":
            self._break(context)
        else:
            self._add_control(node, context)
        script = _SCRIPT_KINDS.get(name if name in ("sup", "sub") else style.get("vertical-align", ""), "")
        inner = context
        if name in _DELETED or "line-through" in style.get("text-decoration", style.get("text-decoration-line", "")):
            inner = inner._replace(is_deleted=True)
        if name == "a" and "href" in node.attributes:
            inner = inner._replace(link=_HtmlLink(self._offset, node.attributes["href"].strip()))
            self.links += [inner.link] if inner.link else []
        if script or (name == "a" and is_note_mark(node)):
            self._enter_script(node, inner, script or "sup")
        elif name == "ruby":
            self._enter_ruby(node, inner)
        elif name in ("mfrac", "frac"):
            self._enter_fraction(node, inner)
        elif name in ("msub", "msubsup", "msup"):
            self._enter_math_script(node, inner)
        else:
            self._visit_children(node, inner)

    def _add_control(self, node: HtmlNode, context: _Context) -> None:
        """Add the text of a form control. A mark without adjacent words makes no block, and code has no marks."""
        text = control_text(node)
        if not is_check_mark(text):
            self._add_text(text, context, node)
        elif not context.is_raw:
            self._add_text(text, context, None)

    def _enter_script(self, node: HtmlNode, context: _Context, script: str) -> None:
        """Keep raised or lowered text apart from the text before it and behind it."""
        if context.is_note_mark:
            self._visit_children(node, context)
            return
        link = context.link
        is_note = is_note_mark(node) or (node.name != "a" and link is not None and "#" in link.address)
        if script == "sub":
            before, behind = lowered_marks(node, self._previous)
        else:
            before, behind = raised_marks(node, self._previous, is_note)
        if behind == "]":
            context = context._replace(is_note_mark=True)
        if before:
            self._add_text(before, context._replace(link=None), None)
        self._visit_children(node, context, partial(self._end_script, behind, context))

    def _end_script(self, behind: str, context: _Context) -> None:
        if behind:
            self._add_text(behind, context._replace(link=None), None)
        else:
            self._is_after_number = self._previous.isdigit()

    def _enter_ruby(self, node: HtmlNode, context: _Context) -> None:
        """Read the base text first, so that its words are whole, and then its reading in parentheses."""
        readings = [child for child in node.children if child.name in ("rt", "rtc") and preview(child).text]
        bases = [child for child in node.children if child.name not in ("rt", "rtc")]
        steps: list[_Step] = [partial(self._visit, child, context) for child in bases]
        if readings:
            steps.append(partial(self._add_text, "(", context, None))
            steps += [partial(self._visit, child, context) for child in readings]
            steps.append(partial(self._add_text, ")", context, None))
        self._then(*steps)

    def _enter_fraction(self, node: HtmlNode, context: _Context) -> None:
        if self._previous.isalnum():
            self._add_text(" ", context, None)
        parts = [child for child in node.children if child.name != "#text"]
        if len(parts) != 2:
            self._visit_children(node, context)
            return
        first, second = (partial(self._visit_operand, part, context) for part in parts)
        self._then(first, partial(self._add_text, "/", context, None), second)

    def _visit_operand(self, node: HtmlNode, context: _Context) -> None:
        """Visit a part of a formula, in parentheses if it has several parts."""
        if sum(child.name != "#text" for child in node.children) > 1:
            self._add_text("(", context, None)
            self._then(partial(self._visit, node, context), partial(self._add_text, ")", context, None))
        else:
            self._visit(node, context)

    def _enter_math_script(self, node: HtmlNode, context: _Context) -> None:
        parts = [child for child in node.children if child.name != "#text"]
        scripts = ("sub", "sup") if node.name == "msubsup" else (node.name.removeprefix("m"),)
        steps: list[_Step] = [partial(self._visit, part, context) for part in parts[:1]]
        for part, script in zip(parts[1:], scripts, strict=False):
            steps.append(partial(self._enter_script_part, part, context, script))
        self._then(*steps, *(partial(self._visit, part, context) for part in parts[1 + len(scripts) :]))

    def _enter_script_part(self, node: HtmlNode, context: _Context, script: str) -> None:
        self._offset = max(self._offset, node.offset)
        self._enter_script(node, context, script)

    def _end_line(self) -> None:
        self._previous = ""
        self._is_after_number = False

    def _begin_block(self) -> None:
        self._block += 1
        self._end_line()

    def _border(self, context: _Context) -> None:
        """End a block, a line of a list or a word of a table's cell."""
        self._end_line()
        heading = context.heading
        if heading and not heading.has_ended:
            heading.has_ended = heading.has_text
            self._block += heading.has_ended
        elif context.kind == "paragraph":
            self._block += 1
        elif context.kind == "table" or context.is_in_cell:
            self._put("text", context, " ")
        else:
            self._put("line", context)

    def _break(self, context: _Context) -> None:
        """End a line inside a block."""
        self._end_line()
        is_in_heading = context.heading is not None and not context.heading.has_ended
        if context.is_raw:
            self._put("text", context, "\n")
        elif context.kind == "table" or context.is_in_cell or is_in_heading:
            self._put("text", context, " ")
        else:
            self._put("line", context)

    def _add_text(self, text: str, context: _Context, node: HtmlNode | None) -> None:
        text = remove_invisible(text)
        if not text:
            return
        if self._is_after_number and text[0].isdigit():
            self._put("text", context, " ")
        self._is_after_number = False
        self._previous = text[-1]
        if text.strip() and context.heading:
            context.heading.has_text = True
        if context.link is not None:
            context.link.parts.append(text)
        self._put("text", context, text, node)

    def _put(self, effect: _Effect, context: _Context, text: str = "", node: HtmlNode | None = None) -> None:
        heading = context.heading if context.heading and not context.heading.has_ended else None
        kind: BlockKind = "heading" if heading else context.kind
        level = heading.level if heading else 0
        deleted = context.is_deleted
        self._pieces.append(_Piece(self._offset, self._block, kind, level, effect, text, deleted, node))


def _render(pieces: list[_Piece]) -> str:
    """Return the readable text of a block."""
    rendering = Rendering()
    for (effect, is_deleted), group in groupby(pieces, key=lambda piece: (piece.effect, piece.is_deleted)):
        if effect == "text":
            text = "".join(piece.text for piece in group)
            words = text.strip()
            rendering.add(text.replace(words, f"~~{words}~~") if is_deleted and words else text)
        elif effect == "cell":
            for _ in group:
                rendering.cell()
        else:
            for piece in group:
                rendering.line(piece.text or None, raw=effect == "raw line")
    return rendering.text()


def _find_layout_tables(root: HtmlNode) -> set[int]:
    """Return the ids of tables that arrange the page: those with headings, tables, or code and its line numbers."""
    layout: set[int] = set()
    stack: list[tuple[HtmlNode, HtmlNode | None]] = [(root, None)]
    while stack:
        node, table = stack.pop()
        if table and (node.name == "table" or node.name in HEADINGS):
            layout.add(id(table))
        if node.name == "table" and not CODE_TABLES.isdisjoint(node.attributes.get("class", "").split()):
            layout.add(id(node))
        inner = node if node.name == "table" else table
        stack += [(child, inner) for child in node.children]
    return layout
