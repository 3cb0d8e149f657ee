"""Styles and list numbers of OpenDocument files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from xml.etree.ElementTree import Element

from drillrank.structure.docx_styles import is_title_name
from drillrank.structure.list_numbers import format_number
from drillrank.structure.office_archive import descendants, parse_count
from drillrank.structure.office_text import Script

_MAX_BASES = 20  # styles, one based on another
_MAX_LEVELS = 10
_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "": "none"}


class TextFormat(NamedTuple):
    """Height of a text, and whether it is hidden."""

    script: Script = ""
    is_hidden: bool = False


class BlockStyle(NamedTuple):
    """Style of a paragraph or slide: its text, its heading level (0 for none), and its list if it names one."""

    text: TextFormat = TextFormat()
    outline_level: int = 0
    is_title: bool = False
    is_hidden: bool = False
    list_style: str | None = None


class ListLevel(NamedTuple):
    """Definition of one level of a list; `number_format` is empty for bullets."""

    number_format: str = ""
    prefix: str = ""
    suffix: str = ""
    start: int = 1
    shown_levels: int = 1


class OpenDocumentStyles:
    """All styles of a document, by their names.

    Attributes:
        lists: Levels of each list style.
        outline: Levels of the headings.
    """

    def __init__(self, trees: Iterable[Element]) -> None:
        self._elements: dict[str, Element] = {}
        self._styles: dict[str, BlockStyle] = {}
        self.lists: dict[str, dict[int, ListLevel]] = {}
        self.outline: dict[int, ListLevel] = {}
        for element in (
            element for tree in trees for element in descendants(tree, "style", "list-style", "outline-style")
        ):
            if element.tag == "style":
                self._elements[element.get("name", "")] = element
            elif element.tag == "list-style":
                self.lists[element.get("name", "")] = _read_levels(element)
            else:
                self.outline = _read_levels(element)

    def find(self, element: Element) -> BlockStyle:
        """Return the style that an element names."""
        name = element.get("style-name", "")
        if name not in self._styles:
            chain: list[Element] = []
            next_name = name
            while next_name in self._elements and len(chain) < _MAX_BASES:
                chain.append(self._elements[next_name])
                next_name = chain[-1].get("parent-style-name", "")
            style = BlockStyle()
            for base in reversed(chain):
                style = _with_own_properties(base, style)
            self._styles[name] = style
        return self._styles[name]

    def text_format(self, span: Element, around: TextFormat) -> TextFormat:
        """Return the format of a span of text within other text."""
        named = self.find(span).text if span.get("style-name") else TextFormat()
        return TextFormat(named.script or around.script, named.is_hidden or around.is_hidden)


def _with_own_properties(element: Element, base: BlockStyle) -> BlockStyle:
    text = element.find("text-properties")
    position = text.get("text-position", "") if text is not None else ""
    height = position.split(" ")[0]
    script: Script = "_" if height.startswith(("sub", "-")) else "^" if height.strip("0%") else ""
    is_hidden = text is not None and text.get("display") == "none"
    slide = element.find("drawing-page-properties")
    name = element.get("display-name", element.get("name", ""))
    own_level = element.get("default-outline-level")
    return BlockStyle(
        TextFormat(script if position else base.text.script, is_hidden or base.text.is_hidden),
        base.outline_level if own_level is None else parse_count(own_level, 0),
        (base.is_title and name.lower() != "subtitle") or is_title_name(name),
        slide is not None and slide.get("visibility") == "hidden",
        element.get("list-style-name", base.list_style),
    )


def _read_levels(list_style: Element) -> dict[int, ListLevel]:
    levels: dict[int, ListLevel] = {}
    for level in list_style:
        depth = min(max(parse_count(level.get("level"), 1), 1), _MAX_LEVELS)
        is_number = level.tag in ("list-level-style-number", "outline-level-style")
        levels[depth] = ListLevel(
            _FORMATS.get(level.get("num-format", ""), "decimal") if is_number else "",
            level.get("num-prefix", "") if is_number else "",
            level.get("num-suffix", "") if is_number else "",
            parse_count(level.get("start-value"), 1),
            parse_count(level.get("display-levels"), 1),
        )
    return levels


class _OpenList:
    """List that is being read: its style, and the last number of each level."""

    def __init__(self, style: str, numbers: dict[int, int]) -> None:
        self.style = style
        self.numbers = numbers


class ListLabels:
    """Counts the items of all lists and the headings of a document, in its order."""

    def __init__(self, styles: OpenDocumentStyles) -> None:
        self._styles = styles
        self._open: list[_OpenList] = []
        self._numbers_by_id: dict[str, dict[int, int]] = {}
        self._numbers_by_style: dict[str, dict[int, int]] = {}
        self._heading_numbers: dict[int, int] = {}

    @contextmanager
    def open_list(self, element: Element) -> Iterator[int]:
        """Count the items of a list until it ends; gives its level, starting at 0."""
        around = self._open[-1] if self._open else None
        style = element.get("style-name") or (around.style if around else "") or self._style_of_first_item(element)
        numbers = around.numbers if around else self._continued_numbers(element, style)
        self._open.append(_OpenList(style, numbers))
        if around:
            numbers.pop(len(self._open), None)
        self._numbers_by_id[element.get("id", "")] = self._numbers_by_style[style] = numbers
        try:
            yield len(self._open) - 1
        finally:
            self._open.pop()

    def _style_of_first_item(self, element: Element) -> str:
        first = next(descendants(element, "p", "h"), None)
        return "" if first is None else self._styles.find(first).list_style or ""

    def _continued_numbers(self, element: Element, style: str) -> dict[int, int]:
        if (continued := element.get("continue-list")) in self._numbers_by_id:
            return self._numbers_by_id[continued or ""]
        if element.get("continue-numbering") == "true":
            return self._numbers_by_style.get(style, {})
        return {}

    def next_label(self, item: Element) -> str:
        """Count an item of the innermost list, and return its number as printed; empty for a bullet."""
        levels = self._styles.lists.get(self._open[-1].style, {})
        first = next((child for child in item if child.tag != "number"), None)
        if first is not None and first.tag == "list":
            return ""  # only nests a list more deeply
        label = _count(levels, len(self._open), self._open[-1].numbers, item.get("start-value"))
        return item.findtext("number") or label

    def next_heading_label(self, element: Element, level: int) -> str:
        """Count a heading outside lists, and return its number as printed; empty if headings have no numbers."""
        if element.get("is-list-header") == "true" or self._styles.find(element).list_style == "":
            return ""
        start = element.get("start-value") if element.get("restart-numbering") == "true" else None
        label = _count(self._styles.outline, min(level, _MAX_LEVELS), self._heading_numbers, start)
        return element.findtext("number") or label


def _count(levels: dict[int, ListLevel], depth: int, numbers: dict[int, int], start: str | None) -> str:
    definition = levels.get(depth, ListLevel())
    numbers[depth] = parse_count(start, numbers.get(depth, definition.start - 1) + 1)
    for deeper in [other for other in numbers if other > depth]:
        del numbers[deeper]
    if definition.number_format in ("", "none"):
        return ""
    first = max(depth - max(definition.shown_levels, 1) + 1, 1)
    levels_in_label = [(levels.get(level, ListLevel()), level) for level in range(first, depth + 1)]
    parts = (
        format_number(numbers.get(level, shown_level.start), shown_level.number_format)
        for shown_level, level in levels_in_label
        if shown_level.number_format not in ("", "none")
    )
    return f"{definition.prefix}{'.'.join(parts)}{definition.suffix}".strip()
