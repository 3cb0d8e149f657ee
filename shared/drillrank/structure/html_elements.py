"""Properties of single HTML elements: hidden or shown, heading level, note mark, list numbers, columns of a table."""

from __future__ import annotations

import re
from typing import NamedTuple

from drillrank.structure import list_numbers
from drillrank.structure.html_tree import HEADINGS, HtmlNode

_DROPPED = frozenset({
    "annotation", "annotation-xml", "audio", "canvas", "datalist", "defs", "desc", "head", "iframe", "metadata", "nav",
    "noembed", "noframes", "noscript", "object", "rp", "script", "style", "symbol", "template", "title", "video",
})  # fmt: skip
# Classes of line numbers beside code: Pygments, Rouge, GitHub and others.
_LINE_NUMBERS = frozenset({
    "linenos", "linenodiv", "lineno", "linenumber", "line-number", "line-numbers-rows", "rouge-gutter", "blob-num",
    "hljs-ln-numbers",
})  # fmt: skip
CODE_TABLES = frozenset({"highlighttable", "rouge-table", "codehilitetable"})
"""Classes of tables that show code next to its line numbers."""
_DROPPED_ROLES = frozenset({"navigation", "menu", "menubar", "doc-toc", "doc-pagelist"})
_STYLE_COMMENT = re.compile(r"/\*[^*]*\*/")
_STYLE_VALUES = re.compile(
    r"(?:^|;)\s*(display|visibility|vertical-align|list-style-type|list-style|text-decoration|text-decoration-line)"
    r"\s*:\s*([^;!]{1,100})",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"[1-9]\d?$")
_MAX_LEVEL = 30
_PREVIEWED_NODES = 40
# Signs and words of a link that copies the address of a heading.
_PERMALINK_CLASSES = frozenset(
    {"headerlink", "header-anchor", "hash-link", "heading-link", "permalink", "anchorjs-link"}
)
_PERMALINK_SIGNS = frozenset({"", "#", "##", "[#]", "¶", "§", "🔗", "⚓", "∞"})
_PERMALINK_WORDS = frozenset({
    "anchor", "copy link", "edit", "link", "link to this heading", "link to this section", "permalink",
    "permanent link",
})  # fmt: skip
_SIGN_VARIANTS = re.compile("[\ufe0e\ufe0f\u200b\u20e3]")
_NOTE_CLASSES = frozenset({"footnote-ref", "footnote-reference", "footnoteref", "noteref", "fnref"})
_ORDINAL_ENDINGS = frozenset({
    "st", "nd", "rd", "th", "e", "er", "re", "ère", "eme", "ème", "ième", "nde", "d", "a", "o", "as", "os", "ª",
    "º",
})  # fmt: skip
_INNER_OPERATOR = re.compile(r".[-+*/=−–\s].", re.DOTALL)
_CHECKED_ROLES = frozenset({"checkbox", "radio", "menuitemcheckbox", "menuitemradio", "switch"})
_UNSEEN_INPUTS = frozenset({"file", "hidden", "password"})
_INTEGER = re.compile(r"\s*([-+]?\d{1,9})")
_NUMBER_STYLES = {
    "lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A", "upper-latin": "A", "lower-roman": "i",
    "upper-roman": "I", "decimal": "1", "disc": "", "circle": "", "square": "", "none": "",
}  # fmt: skip
_MAX_COLUMNS = 100
_MAX_ROWS = 65_534  # of a cell, as in browsers


def read_style(node: HtmlNode) -> dict[str, str]:
    """Return the properties of an element's style that matter to a reader, in lower case; the last one counts."""
    style = node.attributes.get("style", "")
    if not style:
        return {}
    return {name.lower(): value.strip().lower() for name, value in _STYLE_VALUES.findall(_STYLE_COMMENT.sub("", style))}


def is_hidden(node: HtmlNode, style: dict[str, str]) -> bool:
    """Return True if a reader never sees an element. Notes of a book count as seen, because readers open them.

    Text for screen readers alone counts as seen, too, because it is part of the page's content.
    """
    attributes = node.attributes
    if not attributes:
        return node.name in _DROPPED
    role = attributes.get("role", "").strip().lower()
    if node.name in _DROPPED or role in _DROPPED_ROLES:
        return True
    if node.name in ("body", "html"):  # scripts show a page once it is loaded
        return False
    if not _LINE_NUMBERS.isdisjoint(attributes.get("class", "").split()):
        return True
    is_note = "note" in attributes.get("epub:type", "") or role.endswith("note")
    return (
        (attributes.get("hidden", "until-found").strip().lower() != "until-found" and not is_note)
        or attributes.get("aria-hidden", "").strip().lower() == "true"
        or style.get("display") == "none"
        or style.get("visibility") in ("hidden", "collapse")
    )


def heading_level(node: HtmlNode) -> int:
    """Return the level of a heading; 0 for other elements."""
    role = node.attributes.get("role", "").strip().lower()
    if role != "heading" and (role or node.name not in HEADINGS):
        return 0
    level = node.attributes.get("aria-level", "").strip()
    if _LEVEL.match(level):
        return min(int(level), _MAX_LEVEL)
    return int(node.name[1]) if node.name in HEADINGS else 2


class Preview(NamedTuple):
    """Beginning of an element's text.

    Attributes:
        text: Text of the first nodes, without white space around it.
        has_fragment_link: True if they contain a link into a page.
    """

    text: str
    has_fragment_link: bool


def preview(node: HtmlNode) -> Preview:
    """Return the beginning of an element's text, from a limited number of its nodes."""
    parts: list[str] = []
    has_fragment_link = False
    stack = [node]
    for _ in range(_PREVIEWED_NODES):
        if not stack:
            break
        inner = stack.pop()
        parts.append(inner.text or inner.attributes.get("alt", "") * (inner.name == "img"))
        has_fragment_link |= inner.name == "a" and "#" in inner.attributes.get("href", "")
        if inner.name not in _DROPPED:
            stack += reversed(inner.children[:_PREVIEWED_NODES])
    return Preview("".join(parts).strip(), has_fragment_link)


def is_permalink(node: HtmlNode, in_heading: bool) -> bool:
    """Return True if an element only copies the address of a heading, such as the "¶" of Sphinx.

    A link without a class of its own counts if it is in a heading, leads into a page and has a sign as its text.
    """
    if not node.attributes and node.name not in ("a", "button"):
        return False
    classes = set(node.attributes.get("class", "").lower().split())
    if "mw-editsection" in classes:
        return True
    if node.name not in ("a", "button"):
        return False
    text = _SIGN_VARIANTS.sub("", preview(node).text).strip().lower()
    if classes & _PERMALINK_CLASSES:
        return text in _PERMALINK_SIGNS or text.strip("[]") in _PERMALINK_WORDS
    return in_heading and text in _PERMALINK_SIGNS and "#" in node.attributes.get("href", "#")


def is_note_mark(node: HtmlNode) -> bool:
    """Return True if an element declares that it refers to a note."""
    attributes = node.attributes
    classes = set(attributes.get("class", "").lower().split())
    kinds = f"{attributes.get('role', '')} {attributes.get('epub:type', '')}".lower()
    return "noteref" in kinds or bool(classes & _NOTE_CLASSES)


def raised_marks(node: HtmlNode, previous: str, is_note: bool) -> tuple[str, str]:
    """Return what keeps raised text apart from the character before it, to put before and behind the text.

    "10⁵" reads "10^5", the mark of a note reads " [3]", a fraction " 1/2", and an ordinal "1st".
    """
    text, has_fragment_link = preview(node)
    if not text:
        return "", ""
    following = node.following
    follows = following.text.lstrip()[:1] if following is not None else ""
    is_fraction = follows == "⁄" or (
        follows == "/" and following is not None and following.following is not None
        and following.following.name == "sub" and following.text.strip() == "/"
    )  # fmt: skip
    if is_note or has_fragment_link:
        return (" [", "]") if text[0].isalnum() else ("", "")
    if is_fraction:
        return (" " if previous.isalnum() else ""), ""
    if previous.isdigit() and text.lower().rstrip(".") in _ORDINAL_ENDINGS:
        return "", ""
    if not text[0].isalnum() and (text[0] not in "+-−–(" or len(text) == 1):
        return "", ""
    if text.isalpha() and text.isupper() and len(text) > 1:  # such as TM
        return " ", ""
    if previous.isalnum() or (previous and previous in ")]}'’′%"):
        return ("^(", ")") if _INNER_OPERATOR.search(text) and text[0] != "(" else ("^", "")
    if previous and previous in '.,;:!?"”»':
        return " [", "]"
    return "", ""


def lowered_marks(node: HtmlNode, previous: str) -> tuple[str, str]:
    """Return what keeps lowered text apart from the character before it: "_" between digits."""
    return ("_" if previous.isdigit() and preview(node).text[:1].isdigit() else ""), ""


def control_text(node: HtmlNode) -> str:
    """Return what a reader sees of a form control or image that has no text inside; empty for other elements.

    The hint in an empty field is left out, because it would read as an answer.

    >>> control_text(HtmlNode("input", 0, attributes={"type": "checkbox", "checked": ""}))
    '[x] '
    """
    attributes = node.attributes
    role = attributes.get("role", "").strip().lower()
    kind = attributes.get("type", "text").strip().lower()
    if node.name == "img" or (node.name == "input" and kind == "image"):
        return attributes.get("alt", "")
    if node.name == "input" and kind in ("checkbox", "radio"):
        return "[x] " if "checked" in attributes else "[ ] "
    if node.name == "input":
        value = attributes.get("value", "").strip()
        return f" {value} " if value and kind not in _UNSEEN_INPUTS else ""
    if role in _CHECKED_ROLES and "aria-checked" in attributes:
        return "[x] " if attributes["aria-checked"].strip().lower() == "true" else "[ ] "
    if node.name == "option":
        label = attributes.get("label", "") if not node.children else ""
        return f" [x] {label}" if "selected" in attributes else f" {label}"
    return " " if node.name in ("button", "mtd", "select", "text", "textarea") else ""  # "text" is of drawings


def is_check_mark(text: str) -> bool:
    """Return True if the text of a control only says if it is checked."""
    return text in ("[x] ", "[ ] ")


class Numbering:
    """Numbers of the items of a list.

    Attributes:
        next: Number of the next item.
    """

    def __init__(self, node: HtmlNode) -> None:
        """Read where a numbered list starts, and in which direction and style it goes on."""
        is_reversed = "reversed" in node.attributes
        self._step = -1 if is_reversed else 1
        first = sum(child.name == "li" for child in node.children) if is_reversed else 1
        start = _read_integer(node.attributes.get("start", ""))
        self.next = first if start is None else start
        self._style = _number_style(node, "1")

    def marker(self, item: HtmlNode) -> str:
        """Return the marker of the next item, such as "3. ", and count the item."""
        value = _read_integer(item.attributes.get("value", ""))
        number = self.next if value is None else value
        self.next = number + self._step
        style = _number_style(item, self._style)
        return f"{format_number(number, style)}. " if style else "- "


def _number_style(node: HtmlNode, default: str) -> str:
    style = read_style(node)
    for word in style.get("list-style-type", style.get("list-style", "")).split():
        if word in _NUMBER_STYLES:
            return _NUMBER_STYLES[word]
    kind = node.attributes.get("type", "").strip()
    return kind if kind in ("1", "a", "A", "i", "I") else default


def format_number(number: int, style: str) -> str:
    """Return the number of an item in the style of HTML's `type`.

    >>> format_number(28, "a"), format_number(4, "I"), format_number(0, "a")
    ('ab', 'IV', '0')
    """
    if style in "aA" and number > 0:
        letters = ""
        while number:
            number, letter = divmod(number - 1, 26)
            letters = chr(ord(style) + letter) + letters
        return letters
    if style in "iI" and number > 0:
        numeral = list_numbers.format_number(number, "lowerRoman")
        return numeral if style == "i" else numeral.upper()
    return str(number)


def _read_integer(value: str) -> int | None:
    match = _INTEGER.match(value)
    return int(match[1]) if match else None


class Columns:
    """Columns of a table that the cells of the current row fill, with those that merged cells of earlier rows fill.

    Attributes:
        is_cell_open: True if the row has a cell already.
    """

    def __init__(self) -> None:
        self._row = -1
        self._last_row_by_column: dict[int, int] = {}  # last row that a merged cell fills
        self.begin_row()

    def begin_row(self) -> None:
        """Begin the next row."""
        self._row += 1
        self._column = 0
        self._last_start = 0
        self._n_cells = 0

    def begin_cell(self, cell: HtmlNode) -> int:
        """Begin a cell and return the number of column borders between the last cell and this one."""
        self._skip_filled_columns()
        n_borders = self._column - self._last_start
        self._last_start = self._column
        self._n_cells += 1
        n_columns = min(max(_read_integer(cell.attributes.get("colspan", "")) or 1, 1), _MAX_COLUMNS)
        n_rows = _read_integer(cell.attributes.get("rowspan", ""))
        n_rows = _MAX_ROWS if n_rows == 0 else max(n_rows or 1, 1)
        if n_rows > 1:
            for column in range(self._column, min(self._column + n_columns, _MAX_COLUMNS)):
                self._last_row_by_column[column] = self._row + n_rows - 1
        self._column += n_columns
        return n_borders

    def end_row(self) -> int:
        """Return the number of column borders behind the last cell. A cell that is alone in its row has none."""
        if self._n_cells < 2:
            return 0
        self._skip_filled_columns()
        return self._column - 1 - self._last_start

    def _skip_filled_columns(self) -> None:
        while self._last_row_by_column.get(self._column, -1) >= self._row:
            self._column += 1
