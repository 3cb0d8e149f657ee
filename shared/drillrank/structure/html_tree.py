"""Tree of an HTML page with the offset of every text and element in the source, in linear time.

The tree keeps the order of the source and has what a reader's view depends on: blocks, tables, lists and links. It
does not repair inline markup as a browser does, because bold or italic text reads the same wherever it ends. Each
step looks up open elements by name, so no shape of input takes more than linear time. Libraries that build a
browser's tree are quadratic for some inputs, and most do not report the offsets of texts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_RAW_TEXT = frozenset({
    "iframe", "listing", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp",
})  # fmt: skip
_WITH_ENTITIES = frozenset({"listing", "textarea", "title"})
_HIDDEN_TO_THE_END = frozenset({"script", "style"})
_FOREIGN = ("math", "svg")
_HEAD_CONTENT = frozenset({
    "base", "basefont", "bgsound", "head", "html", "link", "meta", "noscript", "script", "style", "template",
    "title",
})  # fmt: skip
_TABLE_PARTS = frozenset({"caption", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"})
# Elements that an end tag outside of them cannot close.
_SCOPES = frozenset({"button", "caption", "foreignobject", "marquee", "object", "table", "td", "template", "th"})
_LISTS = frozenset({"dl", "menu", "ol", "ul"})
_INLINE = frozenset({
    "a", "abbr", "b", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "label", "mark",
    "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
})  # fmt: skip
_CLOSES_PARAGRAPH = frozenset({
    "address", "article", "aside", "blockquote", "center", "details", "dialog", "dd", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
    "hr", "li", "listing", "main", "menu", "nav", "ol", "p", "plaintext", "pre", "search", "section", "summary",
    "table", "ul", "xmp",
})  # fmt: skip
_CELL_ENDS = frozenset({"caption", "colgroup", "td", "th"})
_ROW_ENDS = _CELL_ENDS | {"tr"}
_SECTION_ENDS = _ROW_ENDS | {"tbody", "tfoot", "thead"}
_TABLE = frozenset({"table", "template"})

# Open elements that a start tag closes, and the elements beyond which it closes none.
_IMPLIED_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "a": (frozenset({"a"}), _SCOPES),
    "button": (frozenset({"button"}), _SCOPES - {"button"}),
    "li": (frozenset({"li"}), _LISTS | _SCOPES),
    "optgroup": (frozenset({"optgroup", "option"}), frozenset({"select"}) | _SCOPES),
    "option": (frozenset({"option"}), frozenset({"optgroup", "select"}) | _SCOPES),
    "td": (_CELL_ENDS, _TABLE | {"tr"}),
    "tr": (_ROW_ENDS, _TABLE),
}
_IMPLIED_ENDS |= dict.fromkeys(("dd", "dt"), (frozenset({"dd", "dt"}), _LISTS | _SCOPES))
_IMPLIED_ENDS |= dict.fromkeys(("rb", "rp", "rt", "rtc"), (frozenset({"rb", "rp", "rt", "rtc"}), frozenset({"ruby"})))
_IMPLIED_ENDS |= dict.fromkeys(("caption", "colgroup", "tbody", "tfoot", "thead"), (_SECTION_ENDS, _TABLE))
_IMPLIED_ENDS["th"] = _IMPLIED_ENDS["td"]

_XHTML = "http://www.w3.org/1999/xhtml"
_XML_START = re.compile(r"\ufeff?\s*<\?xml\s")
_XHTML_NAMESPACE = re.compile(rf"""<[^<>]*\sxmlns(?::([\w.-]{{1,50}}))?\s*=\s*["']{re.escape(_XHTML)}["']""")
_NAMESPACE_WITHIN = 5000  # characters
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)")
_ATTRIBUTE = re.compile(r"""([^\s/<>][^\s/<>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s<>"'][^\s<>]*)))?""")
_STRICT_ATTRIBUTE = re.compile(r"""([^\s/<>][^\s/<>=]*)(?:\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s<>"'][^\s<>]*)))?""")
_BETWEEN_ATTRIBUTES = re.compile(r"[\s/]*")
_NOT_IN_END_TAG = re.compile(r"[<>]")
# Numbers of characters that are too long for a character; `unescape` would convert them digit by digit.
_LONG_NUMBER = re.compile(r"&#(?:[xX][0-9a-fA-F]{8,}|[0-9]{8,});?")
# An entity in an attribute needs its semicolon if a word goes on behind it, as in "?a=1&copy=2".
_ATTRIBUTE_ENTITY = re.compile(r"&(?:#\w{1,9};?|\w{1,40};|\w{1,40}(?![\w=]))")
_LONG_FAILURE = 200  # characters of a tag without an end


class HtmlNode:
    """Element or text of a page.

    Attributes:
        name: Name of the element in lower case; `"#text"` for a text.
        offset: Offset of its first character in the source.
        text: Content of a text, with entities decoded.
        attributes: Values by name; empty for a text.
        parent: Element that contains the node; None for the root.
        children: Nodes inside the element, in the order of the source.
        following: Next node of the same parent, or None.
    """

    __slots__ = ("attributes", "children", "following", "name", "offset", "parent", "text")

    def __init__(self, name: str, offset: int, text: str = "", attributes: dict[str, str] | None = None) -> None:
        self.name = name
        self.offset = offset
        self.text = text
        self.attributes: dict[str, str] = attributes or {}
        self.parent: HtmlNode | None = None
        self.children: list[HtmlNode] = []
        self.following: HtmlNode | None = None

    def append(self, child: HtmlNode) -> None:
        """Add a child behind the others."""
        child.parent = self
        if self.children:
            self.children[-1].following = child
        self.children.append(child)


def parse_html(text: str, is_xhtml: bool | None = None) -> HtmlNode:
    """Return the root of a page's tree.

    Args:
        text: The page.
        is_xhtml: True if elements without content may close themselves; None if the declaration of the page decides.

    >>> root = parse_html("<p>One<p>two &amp; three")
    >>> [(node.name, node.offset, node.children[0].text) for node in root.children]
    [('p', 0, 'One'), ('p', 6, 'two & three')]
    """
    builder = _TreeBuilder()
    for token in _Tokenizer(text, declares_xhtml(text) if is_xhtml is None else is_xhtml).tokens():
        builder.add(token)
    return builder.root


def declares_xhtml(text: str) -> bool:
    """Return True if a text declares that it is XML, by a declaration or by the namespace of XHTML.

    >>> declares_xhtml('<html xmlns="http://www.w3.org/1999/xhtml"><title/>'), declares_xhtml("<html><title>")
    (True, False)
    """
    return bool(_XML_START.match(text) or _XHTML_NAMESPACE.search(text, 0, _NAMESPACE_WITHIN))


class _Token(NamedTuple):
    """Start tag, end tag or text. `name` is empty for a text, and `text` for a tag without content."""

    kind: str
    offset: int
    name: str = ""
    text: str = ""
    attributes: dict[str, str] | None = None
    closed: bool = False


class _Tokenizer:
    """Splits a page into tags and texts. Incomplete markup stays text, so that no word is lost."""

    def __init__(self, text: str, is_xhtml: bool) -> None:
        self._text = text
        self._is_xhtml = is_xhtml
        namespace = _XHTML_NAMESPACE.search(text, 0, _NAMESPACE_WITHIN)
        self._prefix = f"{namespace[1]}:" if namespace and namespace[1] else ""
        # Ends that do not occur behind these offsets are not searched again.
        self._last_end = {end: text.rfind(end) for end in (">", "-->", "--!>", "]]>")}
        self._missing_end_tags: set[str] = set()
        self._open_formulas = 0  # open elements of drawings and formulas, whose tags may close themselves
        self._attribute = _ATTRIBUTE

    def tokens(self) -> Iterator[_Token]:
        """Yield the tags and texts in the order of the source."""
        text = self._text
        text_start = int(text.startswith("\ufeff"))
        position = text.find("<", text_start)
        while position >= 0:
            markup = self._read_markup(position)
            if markup is None:
                position = text.find("<", position + 1)
                continue
            tokens, end = markup
            if text_start < position:
                yield _Token("text", text_start, text=_decode(text[text_start:position]))
            yield from tokens
            text_start = end
            position = text.find("<", end)
        if text_start < len(text):
            yield _Token("text", text_start, text=_decode(text[text_start:]))

    def _read_markup(self, start: int) -> tuple[list[_Token], int] | None:
        """Return the tokens of the markup at an offset and where it ends; None if there is only text."""
        text = self._text
        tag = _TAG.match(text, start)
        if tag is not None:
            name = tag[2].lower().removeprefix(self._prefix)
            return self._read_end_tag(start, name, tag.end()) if tag[1] else self._read_start_tag(start, name, tag)
        if text.startswith("<!--", start):
            return self._read_comment(start)
        if text.startswith("<![CDATA[", start):
            if start < self._last_end["]]>"]:
                end = text.index("]]>", start)
                return [_Token("text", start, text=text[start + 9 : end])], end + 3
            return [], start + 9
        if text.startswith(("<!", "<?", "</"), start):
            bracket = _NOT_IN_END_TAG.search(text, start + 1)
            if bracket is not None and bracket[0] == ">":
                return [_Token("text", start, text=" ")], bracket.end()
        return None

    def _read_comment(self, start: int) -> tuple[list[_Token], int] | None:
        text = self._text
        if text.startswith(("<!-->", "<!--->"), start):
            return [], text.index(">", start) + 1
        ends = [text.index(end, start + 4) + len(end) for end in ("-->", "--!>") if start + 4 <= self._last_end[end]]
        return ([], min(ends)) if ends else None

    def _read_end_tag(self, start: int, name: str, position: int) -> tuple[list[_Token], int] | None:
        end = _NOT_IN_END_TAG.search(self._text, position)
        if end is None:
            return None
        if name in _FOREIGN:
            self._open_formulas = max(0, self._open_formulas - 1)
        return [_Token("end", start, name)], end.end() if end[0] == ">" else end.start()

    def _read_start_tag(self, start: int, name: str, tag: re.Match[str]) -> tuple[list[_Token], int] | None:
        text = self._text
        attributes: dict[str, str] = {}
        end = self._skip_blank(tag.end())
        while attribute := self._attribute.match(text, end):
            value = attribute[2] or attribute[3] or attribute[4] or ""
            if "&" in value:
                value = _ATTRIBUTE_ENTITY.sub(lambda entity: _decode(entity[0]), value)
            attributes.setdefault(attribute[1].lower(), value)
            end = self._skip_blank(attribute.end())
        if not text.startswith(">", end):
            if end - start > _LONG_FAILURE:  # its quoted values may contain other such tags
                self._attribute = _STRICT_ATTRIBUTE
            return None
        closes_itself = text[end - 1] == "/"
        closed = closes_itself and (self._is_xhtml or self._open_formulas > 0 or name in _FOREIGN)
        if name in _FOREIGN and not closed:
            self._open_formulas += 1
        opening = _Token("start", start, name, attributes=attributes, closed=closed)
        if name in _RAW_TEXT and not closed:
            return self._read_raw_text(opening, end + 1, closes_itself)
        return [opening], end + 1

    def _skip_blank(self, position: int) -> int:
        """Return the end of the white space and slashes at a position."""
        blank = _BETWEEN_ATTRIBUTES.match(self._text, position)
        return blank.end() if blank else position

    def _read_raw_text(self, opening: _Token, start: int, closes_itself: bool) -> tuple[list[_Token], int]:
        """Read what is text up to the end tag. A tag without an end tag is empty, so that it hides no text."""
        name = opening.name
        end = None
        if name not in self._missing_end_tags and name != "plaintext":
            end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._text, start)
        if end is not None:
            stop = end.start()
        elif name == "plaintext" or (name in _HIDDEN_TO_THE_END and not closes_itself):
            stop = len(self._text)
        else:
            self._missing_end_tags.add(name)
            return [opening._replace(closed=True)], start
        content = self._text[start:stop]
        text = _Token("text", start, text=_decode(content) if name in _WITH_ENTITIES else content)
        return [opening, text, _Token("end", stop, name)], stop if end is None else self._after_end_tag(end.end())

    def _after_end_tag(self, position: int) -> int:
        end = _NOT_IN_END_TAG.search(self._text, position)
        return len(self._text) if end is None else end.end() if end[0] == ">" else end.start()


def _decode(text: str) -> str:
    """Replace entities by their characters."""
    return unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


class _TreeBuilder:
    """Builds the tree from tokens. Indices of open elements are kept by name, so that each lookup is constant."""

    def __init__(self) -> None:
        self.root = HtmlNode("#root", 0)
        self._open = [self.root]
        self._indices: dict[str, list[int]] = defaultdict(list)
        self._block_indices = [0]  # of open elements that are not inline

    def add(self, token: _Token) -> None:
        """Add the next token of the page."""
        if token.kind == "text":
            if token.text.strip() and self._last({"title", "script", "style"}) < 0:
                self._end_head()
            self._open[-1].append(HtmlNode("#text", token.offset, token.text))
        elif token.kind == "end":
            self._end(token)
        else:
            self._start(token)

    def _start(self, token: _Token) -> None:
        name = token.name
        if name not in _HEAD_CONTENT:
            self._end_head()
        if name in ("html", "body", "head") and self._last({name}) >= 0:
            return
        if name in _CLOSES_PARAGRAPH:
            self._close({"p"}, _SCOPES)
        if name in _IMPLIED_ENDS:
            self._close(*_IMPLIED_ENDS[name])
        if name in HEADINGS and self._open[-1].name in HEADINGS:
            self._close_from(len(self._open) - 1)
        node = HtmlNode(name, token.offset, attributes=token.attributes)
        self._open[-1].append(node)
        if name in VOID or token.closed:
            return
        self._indices[name].append(len(self._open))
        if name not in _INLINE:
            self._block_indices.append(len(self._open))
        self._open.append(node)

    def _end(self, token: _Token) -> None:
        name = token.name
        if name in ("html", "body"):
            return
        if name in ("br", "p") and self._last({name}) <= self._last(_SCOPES):
            self._open[-1].append(HtmlNode(name, token.offset))
        elif name in HEADINGS:
            self._close(HEADINGS, _SCOPES)
        elif name in _TABLE_PARTS:
            self._close({name}, {"template"} if name == "table" else _TABLE)
        elif name == "li":
            self._close({name}, _LISTS | _SCOPES)
        elif name in _INLINE and self._last({name}) < self._block_indices[-1]:
            pass  # a block inside it is still open
        else:
            self._close({name}, _SCOPES - {name})

    def _end_head(self) -> None:
        if self._indices["head"]:
            self._close({"head"}, frozenset())

    def _last(self, names: set[str] | frozenset[str]) -> int:
        """Return the index of the innermost open element with one of the names; -1 if there is none."""
        return max((indices[-1] for name in names if (indices := self._indices.get(name))), default=-1)

    def _close(self, names: set[str] | frozenset[str], boundaries: set[str] | frozenset[str]) -> None:
        """Close open elements with these names, and all inside them, up to the innermost of the boundaries."""
        indices = [self._indices[name][-1] for name in names if self._indices.get(name)]
        if len(indices) == 1 and indices[0] == len(self._open) - 1:  # no boundary is inside the innermost element
            self._close_from(indices[0])
        elif indices:
            boundary = self._last(boundaries)
            index = min((index for index in indices if index > boundary), default=0)
            if index:
                self._close_from(index)

    def _close_from(self, index: int) -> None:
        while len(self._open) > index:
            self._indices[self._open.pop().name].pop()
        while self._block_indices[-1] >= index:
            self._block_indices.pop()
