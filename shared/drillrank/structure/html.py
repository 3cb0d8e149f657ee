"""HTML: what a reader sees of a page, and where in the source it stands.

justhtml builds the tree that a browser would build, and tells where its texts and elements began. The texts are put
back into the order of the source, so that what the tree moves, such as stray text in a table, keeps its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from drillrank.structure.document import BlockKind
from drillrank.structure.scan import Rendering, Scan, VisibleBlock, tile_visible_blocks

if TYPE_CHECKING:
    from justhtml import Node

_CONTAINERS: dict[str, BlockKind] = dict.fromkeys(("ul", "ol", "menu", "dl"), "list")
_CONTAINERS |= dict.fromkeys(("pre", "listing", "xmp", "plaintext"), "code")
_CONTAINERS["table"] = "table"
_CELLS = frozenset({"td", "th"})
_BLOCKS = frozenset(_CONTAINERS) | {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
    "legend", "li", "main", "optgroup", "p", "search", "section", "summary", "tr",
}  # fmt: skip
_DROPPED = frozenset({
    "annotation", "annotation-xml", "audio", "canvas", "datalist", "defs", "desc", "head", "iframe", "metadata", "nav",
    "noembed", "noframes", "noscript", "object", "script", "style", "symbol", "template", "title", "video",
})  # fmt: skip
_DROPPED_ROLES = frozenset({"navigation", "menu", "menubar", "doc-toc", "doc-pagelist"})
_HEADING = re.compile(r"h[1-6]$")
_LEVEL = re.compile(r"[1-9]\d?$")
_NOT_DISPLAYED = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_MAX_LEVEL = 30
_MAX_INDENT = 10
# What justhtml would take for text, since it keeps track of places: declarations, and the rest of an end tag. The end
# of a comment is left alone.
_ODD_MARKUP = re.compile(
    r"""(?P<hidden> <!\[CDATA\[ | <(?:[?!](?!--)|/(?![a-zA-Z])) [^<>]* (?<!--)(?<!--!)> )
      | (?P<end_tag> </[a-zA-Z][^\s/<>]* ) (?P<rest> [\s/][^<>]* (?<!--)(?<!--!) ) (?=>)""",
    re.VERBOSE,
)
_BOM = "\ufeff"
_STYLE = re.compile(
    r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(\s[^<>]*)>",
    re.IGNORECASE,
)
_MOST_STYLES = 20  # that differ: each paragraph may open them all again


def scan_html(text: str) -> Scan:
    """Find the visible blocks of an HTML page or fragment, and its headings."""
    return tile_visible_blocks(text, list(_Page(text).shown()))


def html_links(text: str) -> list[tuple[int, str, str]]:
    """Offset, address and text of the visible links of a page."""
    return [(offset, address, " ".join("".join(parts).split())) for offset, address, parts in _Page(text).links]


@dataclass
class _Heading:
    """A heading ends with its element, or at the first block that begins in it after some text."""

    level: int
    begun: bool = False
    ended: bool = False


class _Context(NamedTuple):
    """What the elements around a text make of it."""

    kind: BlockKind = "paragraph"
    raw: bool = False
    quoted: bool = False
    heading: _Heading | None = None
    link: list[str] | None = None
    lists: int = 0
    numbers: Iterator[int] | None = None  # of the items of a numbered list, or the cells of a row


_Does = Literal["add", "line", "raw line", "cell"]


class _Piece(NamedTuple):
    """A text, or the beginning of a line or cell."""

    offset: int
    block: int
    kind: BlockKind
    level: int
    does: _Does
    text: str
    node: Node | None


class _Page:
    """Walks through the tree of a page and collects its pieces, in the tree's order, and its links."""

    def __init__(self, text: str) -> None:
        from justhtml import JustHTML  # takes longer to load than the rest of the package's parsers

        self.links: list[tuple[int, str, list[str]]] = []
        self._pieces: list[_Piece] = []
        self._shift = int(text.startswith(_BOM))  # the parser does not count the mark
        self._block = 0
        self._at = 0
        text = _few_styles(_ODD_MARKUP.sub(lambda odd: (odd["end_tag"] or "").ljust(len(odd[0])), text))
        root = JustHTML(text, sanitize=False, track_node_locations=True).root
        self._layout = _layout_tables(root)
        todo: list[tuple[Node | None, _Context | None]] = [(root, _Context())]
        while todo:
            node, context = todo.pop()
            if context is None:  # after a heading
                self._block += 1
            elif node is None:  # after a block
                self._border(context)
            elif not node.name.startswith(("#c", "#p", "!")):  # a comment, an instruction, the doctype
                if node.origin_offset is not None:  # what the source does not hold begins where the last one did
                    self._at = node.origin_offset + self._shift
                if node.name == "#text":
                    self._add(str(node.data), context, node)
                else:
                    todo += self._enter(node, context)

    def shown(self) -> Iterator[VisibleBlock]:
        """The visible blocks in the order of the source.

        A block starts with the outermost element that opens between it and the text before it.
        """
        before = -1
        for _, group in groupby(sorted(self._pieces, key=lambda piece: piece.offset), key=lambda piece: piece.block):
            pieces = list(group)
            texts = [piece for piece in pieces if piece.node and piece.text.strip()]
            if texts:
                rendering = Rendering()
                for piece in pieces:
                    if piece.does == "add":
                        rendering.add(piece.text)
                    elif piece.does == "cell":
                        rendering.cell()
                    else:
                        rendering.line(piece.text or None, raw=piece.does == "raw line")
                yield VisibleBlock(self._start(texts[0], before), texts[0].kind, rendering.text(), texts[0].level)
                before = texts[-1].offset

    def _start(self, piece: _Piece, before: int) -> int:
        start, node = piece.offset, piece.node
        while node is not None:
            if node.origin_offset is not None:
                if node.origin_offset + self._shift <= before:
                    break
                start = min(start, node.origin_offset + self._shift)
            node = node.parent
        return start

    def _enter(self, node: Node, context: _Context) -> list[tuple[Node | None, _Context | None]]:
        """What is still to do after the start of an element, the last first."""
        name, attributes = node.name, {key: value or "" for key, value in (node.attrs or {}).items()}
        role = attributes.get("role", "").strip().lower()
        if name in _DROPPED or role in _DROPPED_ROLES or _is_hidden(attributes):
            return []
        if name == "br":
            self._break(context)
        elif name in ("option", "text"):  # "text" is of drawings
            self._put("add", context, " ")
        elif name == "img":
            self._add(attributes.get("alt", ""), context, node)
        inner = context
        behind: list[tuple[Node | None, _Context | None]] = []
        level = _heading_level(name, role, attributes)
        if name in _CELLS and context.kind == "table":
            if context.numbers and next(context.numbers):
                self._put("cell", context)
            inner = context._replace(numbers=None)
        elif name in _BLOCKS or name in _CELLS or level:
            self._border(context)
            behind.append((None, context))
            inner = self._inside(node, name, context)
            if level and not context.quoted and not context.heading:
                self._block += 1
                inner = inner._replace(heading=_Heading(level))
                behind.append((None, None))
        elif name == "a" and "href" in attributes:
            link: list[str] = []
            inner = context._replace(link=link)
            self.links.append((self._at, attributes["href"].strip(), link))
        return [*behind, *((child, inner) for child in reversed(node.children or ()))]

    def _inside(self, node: Node, name: str, context: _Context) -> _Context:
        """The context inside a block."""
        inner = context
        kind = _CONTAINERS.get(name)
        if kind == "code":
            self._put("raw line", context)
            inner = inner._replace(raw=True)
        elif kind == "list":
            inner = inner._replace(lists=context.lists + 1, numbers=count(1) if name == "ol" else None)
        elif name == "blockquote":
            inner = inner._replace(quoted=True)
        elif name == "tr" and context.kind != "paragraph":
            self._put("line", context)
            inner = inner._replace(numbers=count())
        elif name == "li" and context.kind == "list":
            marker = f"{next(context.numbers)}. " if context.numbers else "- "
            self._put("line", context, "  " * min(context.lists - 1, _MAX_INDENT) + marker)
            inner = inner._replace(numbers=None)
        if kind and context.kind == "paragraph" and id(node) not in self._layout:
            inner = inner._replace(kind=kind)
        return inner

    def _border(self, context: _Context) -> None:
        """Between two blocks, or lines of a list, or words of a table's cell."""
        heading = context.heading
        if heading and not heading.ended:
            heading.ended = heading.begun
            self._block += heading.ended
        elif context.kind == "paragraph":
            self._block += 1
        elif context.kind == "table":
            self._put("add", context, " ")
        else:
            self._put("line", context)

    def _break(self, context: _Context) -> None:
        inline = context.raw or context.kind == "table" or (context.heading and not context.heading.ended)
        self._put("add" if inline else "line", context, ("\n" if context.raw else " ") if inline else "")

    def _add(self, text: str, context: _Context, node: Node) -> None:
        heading = context.heading
        if text.strip() and heading:
            heading.begun = True
        if context.link is not None:
            context.link.append(text)
        self._put("add", context, text, node)

    def _put(self, does: _Does, context: _Context, text: str = "", node: Node | None = None) -> None:
        heading = context.heading if context.heading and not context.heading.ended else None
        kind: BlockKind = "heading" if heading else context.kind
        level = heading.level if heading else 0
        self._pieces.append(_Piece(self._at, self._block, kind, level, does, text, node))


def _heading_level(name: str, role: str, attributes: dict[str, str]) -> int:
    """Level of a heading; 0 for other elements."""
    if role != "heading" and (role or not _HEADING.match(name)):
        return 0
    level = attributes.get("aria-level", "").strip()
    if _LEVEL.match(level):
        return min(int(level), _MAX_LEVEL)
    return int(name[1]) if _HEADING.match(name) else 2


def _is_hidden(attributes: dict[str, str]) -> bool:
    """Whether a reader never sees it; notes of a book are shown when they are asked for."""
    is_note = "note" in attributes.get("epub:type", "") or attributes.get("role", "").endswith("note")
    return (
        (attributes.get("hidden", "until-found").strip().lower() != "until-found" and not is_note)
        or attributes.get("aria-hidden", "").strip().lower() == "true"
        or _NOT_DISPLAYED.search(attributes.get("style", "")) is not None
    )


def _few_styles(text: str) -> str:
    """A page of the same length, in which further styles have no attributes: of equal ones few are open at once."""
    known: set[str] = set()

    def plain(tag: re.Match[str]) -> str:
        if len(known) < _MOST_STYLES:
            known.add(tag[0])
        return tag[0] if tag[0] in known else tag[0].replace(tag[1], " " * len(tag[1]))

    return _STYLE.sub(plain, text)


def _layout_tables(root: Node) -> set[int]:
    """Tables that hold headings or other tables: they arrange the page, and are no tables for a reader."""
    found: set[int] = set()
    todo: list[tuple[Node, Node | None]] = [(root, None)]
    while todo:
        node, table = todo.pop()
        if table and (node.name == "table" or _HEADING.match(node.name)):
            found.add(id(table))
        inner = node if node.name == "table" else table
        todo += [(child, inner) for child in node.children or ()]
    return found
