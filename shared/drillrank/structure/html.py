"""HTML: what a reader sees of a page, and where in the source it stands.

justhtml builds the tree that a browser would build, and tells where its texts and elements began. The texts are put
back into the order of the source, so that what the tree moves, such as stray text in a table, keeps its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from drillrank import limits
from drillrank.structure.document import BlockKind, Rendering, Scan, Shown, spread

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
# What justhtml would take for text, since it keeps track of places, or what would make it join text piece by piece, in
# quadratic time: declarations, the rest of an end tag, a `<` that opens no tag. The end of a comment is left alone.
_ODD_MARKUP = re.compile(
    r"""(?P<hidden> <!\[CDATA\[ | <(?:[?!](?!--)|/(?![a-zA-Z])) [^<>]* (?<!--)(?<!--!)> )
      | (?P<end_tag> </[a-zA-Z][^\s/<>]* ) (?P<rest> [\s/][^<>]* (?<!--)(?<!--!) ) (?=>)
      | (?P<text> <(?!/?[a-zA-Z]|!--) | <(?=/[a-zA-Z][^\s/<>]*[\s/]) )""",
    re.VERBOSE,
)
_BOM = "\ufeff"
_MARK = re.compile(r"<!--|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/<>]*)")
_REST = re.compile(r"[^<>]*>?")
_RAW = frozenset({"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"})
_STYLES = frozenset({"b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"})
_MOST_STYLES = 30  # open at once: each paragraph opens them all again
_SCOPES = frozenset({"applet", "button", "caption", "html", "marquee", "object", "table", "template"})
# Elements that hold nothing, or end where the next of their kind begins.
_FLAT = frozenset({
    "a", "area", "base", "body", "br", "col", "dd", "dt", "embed", "h1", "h2", "h3", "h4", "h5", "h6", "head", "hr",
    "html", "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "source", "tbody", "td", "tfoot",
    "th", "thead", "tr", "track", "wbr",
})  # fmt: skip


def scan_html(text: str) -> Scan:
    """Find the visible blocks of an HTML page or fragment, and its headings."""
    return spread(text, list(_Page(text).shown()))


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
        used = set(text)
        marks = (mark for mark in map(chr, range(0xE000, 0x110000)) if mark not in used)
        self._less_than, self._nothing = next(marks), next(marks)
        text = _shallow(_ODD_MARKUP.sub(self._harmless, text), self._nothing)
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

    def _harmless(self, odd: re.Match[str]) -> str:
        """Stands for odd markup at the same length; texts get their `<` back."""
        if odd["text"]:
            return self._less_than
        return (odd["end_tag"] or "").ljust(len(odd[0]))

    def shown(self) -> Iterator[Shown]:
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
                yield Shown(self._start(texts[0], before), texts[0].kind, rendering.text(), texts[0].level)
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
            self.links.append((self._at, attributes["href"].strip().replace(self._less_than, "<"), link))
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
        text = text.replace(self._less_than, "<").replace(self._nothing, "")
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


def _shallow(text: str, nothing: str) -> str:
    """A page of the same length, nested no deeper than `limits.XML_DEPTH`: the library's time grows with the depth.

    Blocks below become paragraphs, other tags nothing. What is open is told without building the tree, so it is rather
    too much.
    """
    parts: list[str] = []
    opened: list[str] = []
    counts: Counter[str] = Counter()  # of those, by name
    at = done = 0
    while found := _MARK.search(text, at):
        at = found.end()
        name = (found["name"] or "").lower()
        if not name or (name in _RAW and not found["end"]):
            closing = re.compile(rf"</{re.escape(name)}" if name else "--!?>", re.IGNORECASE)
            over = closing.search(text, at if name else at - 2)
            if not over:
                break
            at = over.end()
        elif found["end"]:
            around = _SCOPES if name in _BLOCKS else _BLOCKS
            for location in range(len(opened) - 1 if counts[name] else -1, -1, -1):
                if opened[location] == name:
                    counts.subtract(opened[location:])
                    del opened[location:]
                    break
                if opened[location] in around:
                    break
        elif name not in _FLAT:
            styles = sum(counts[style] for style in _STYLES) if name in _STYLES else 0
            if len(opened) < limits.XML_DEPTH and styles < _MOST_STYLES:
                opened.append(name)
                counts[name] += 1
                continue
            if name not in _BLOCKS and (rest := _REST.match(text, at)):
                at = rest.end()
            shallow = f"<p{' ' * (len(name) - 1)}" if name in _BLOCKS else nothing * (at - found.start())
            parts += text[done : found.start()], shallow
            done = at
    return "".join([*parts, text[done:]])


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
