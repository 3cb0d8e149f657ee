"""PowerPoint files as Markdown: each slide is a section and a page. Hidden slides and shapes are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple
from xml.etree.ElementTree import Element

from drillrank.structure.formats import ConvertedText
from drillrank.structure.list_numbers import format_number
from drillrank.structure.markdown import heading, prose
from drillrank.structure.office_archive import (
    OfficeArchive,
    Relation,
    convert_office,
    descendants,
    is_on,
    outermost,
    parse_count,
    shown_children,
)
from drillrank.structure.office_drawings import referenced_drawing
from drillrank.structure.office_text import (
    Run,
    folded_lines,
    formula_text,
    join_runs,
    on_one_line,
    with_symbols,
    write_table,
)
from drillrank.structure.pages import Pages, join_pages

_TITLES = frozenset({"title", "ctrTitle"})
_SLIDE_FURNITURE = frozenset({"sldNum"})
_NOTES_FURNITURE = frozenset({"sldNum", "sldImg", "hdr", "ftr", "dt"})
_SHAPES = frozenset({"sp", "pic", "graphicFrame", "grpSp", "cxnSp"})
_UNSEEN = frozenset({"rPr", "pPr", "endParaRPr", "bodyPr", "lstStyle", "spPr", "style", "extLst"})
_NUMBER_FORMATS = {"arabic": "decimal", "alphaLc": "lowerLetter", "alphaUc": "upperLetter"}
_NUMBER_FORMATS |= {"romanLc": "lowerRoman", "romanUc": "upperRoman", "circleNum": "decimalEnclosedCircle"}
_NUMBER_TYPE = re.compile(r"([a-z]+(?:Lc|Uc|Num)?)(Period|ParenR|ParenBoth|Plain|Minus|DbPlain|WdBlkPlain|WdWhtPlain)?")
_FRAMES = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})", "Minus": "- {} -"}
_MAX_LEVEL = 8
_PRIVATE_USE = re.compile("[\uf000-\uf0ff]+")  # what a run's font of symbols shows; it has another for letters
_ESCAPED_CONTROL = re.compile(r"_x00[01][0-9A-Fa-f]_")  # a line break of a title, such as "_x000B_"
_MARKDOWN_NUMBER = re.compile(r"\d{1,9}[.)]")


def convert_pptx(content: bytes) -> ConvertedText:
    """Convert a PowerPoint file to Markdown; its slides are its pages.

    Raises:
        InvalidInput: The file is broken, protected by a password, or passes a limit; the message continues its name.
    """
    return convert_office(content, "PPTX", _read_presentation)


def _read_presentation(archive: OfficeArchive) -> tuple[str, Pages | None]:
    main = archive.main_part("ppt/presentation.xml")
    relations = archive.relations(main)
    slide_ids = [slide.get("r:id") or slide.get("id") or "" for slide in descendants(archive.read_tree(main), "sldId")]
    pages: list[tuple[str, int | None]] = []
    for number, slide_id in enumerate(slide_ids, start=1):
        relation = relations.get(slide_id)
        slide = archive.try_read_tree(relation.name if relation else "", "slides")
        if relation is not None and slide is not None and is_on(slide.get("show")):
            blocks = _slide_blocks(archive, relation.name, slide, number)
            pages.append(("\n\n".join(map(archive.count_written, blocks)), number))
    return join_pages(pages)


def _slide_blocks(archive: OfficeArchive, name: str, slide: Element, number: int) -> Iterator[str]:
    """Yield the title, the shapes in their order, then notes and comments."""
    relations = archive.relations(name)
    titles = [shape for shape in descendants(slide, "sp") if _placeholder(shape) in _TITLES and not _is_hidden(shape)]
    title = " ".join(_paragraph_texts(titles[0])) if titles else ""
    yield heading(1, title or f"Slide {number}")
    yield from _ShapeReader(archive, relations, titles[0] if titles else None).blocks(slide)
    for relation in relations.values():
        if relation.kind not in ("notesSlide", "comments"):
            continue
        tree = archive.try_read_tree(relation.name, "notes and comments")
        if tree is None:
            continue
        if relation.kind == "comments":
            texts = (on_one_line("".join(text.itertext())) for text in outermost(tree, "text", "txBody"))
            yield from map(prose, filter(None, texts))
        else:
            yield from _ShapeReader(archive, archive.relations(relation.name), None, _NOTES_FURNITURE).blocks(tree)


def _properties(shape: Element) -> Element | None:
    """Return the non-visual properties of a shape, such as `nvSpPr`."""
    return next((child for child in shape if child.tag.startswith("nv") and child.tag.endswith("Pr")), None)


def _placeholder(shape: Element) -> str:
    """Return the kind of placeholder that a shape fills, such as "title"; empty if it fills none."""
    properties = _properties(shape)
    placeholder = None if properties is None else properties.find("nvPr/ph")
    return "" if placeholder is None else placeholder.get("type", "obj")


def _drawing(shape: Element) -> Element | None:
    """Return the element with a shape's name, description and visibility."""
    properties = _properties(shape)
    return None if properties is None else properties.find("cNvPr")


def _is_hidden(shape: Element) -> bool:
    drawing = _drawing(shape)
    return drawing is not None and is_on(drawing.get("hidden", "0"))


def _paragraph_texts(shape: Element) -> Iterator[str]:
    yield from filter(None, (" ".join(_lines(paragraph)) for paragraph in outermost(shape, "p")))


def _lines(paragraph: Element) -> list[str]:
    """Return the lines of a paragraph; raised text never runs into numbers."""
    runs: list[Run] = []
    pending = [(child, "", "") for child in reversed(shown_children(paragraph))]
    while pending:
        element, baseline, font = pending.pop()
        if element.tag == "t":
            text = _PRIVATE_USE.sub(partial(_symbols_of, font), _ESCAPED_CONTROL.sub("\n", element.text or ""))
            runs.append(Run(text, "^" if baseline > "0" else "_" if baseline.startswith("-") else ""))
        elif element.tag == "br":
            runs.append(Run("\n"))
        elif element.tag in ("tab", "p"):
            runs.append(Run(" "))
        elif element.tag == "oMath":
            runs.append(Run(formula_text(element)))
            continue
        if element.tag in ("r", "fld"):
            properties = element.find("rPr")
            baseline = "" if properties is None else properties.get("baseline", "")
            symbols = None if properties is None else properties.find("sym")
            font = "" if symbols is None else symbols.get("typeface", "")
        if element.tag not in _UNSEEN:
            pending += [(child, baseline, font) for child in reversed(shown_children(element))]
    return folded_lines(join_runs(runs))


def _symbols_of(font: str, match: re.Match[str]) -> str:
    return with_symbols(match[0], font)


class _Numbering(NamedTuple):
    """Automatic number of a paragraph: its kind, such as "arabicPeriod", where it starts, and its level."""

    kind: str
    start: int
    level: int


class _ShapeReader:
    """Reads the shapes of a slide, those in groups too."""

    def __init__(
        self,
        archive: OfficeArchive,
        relations: Mapping[str, Relation],
        title: Element | None,
        left_out: frozenset[str] = _SLIDE_FURNITURE,
    ) -> None:
        self._archive = archive
        self._relations = relations
        self._title = title
        self._left_out = left_out
        self._numbers: dict[int, tuple[_Numbering, int]] = {}  # last number of each level

    def blocks(self, root: Element) -> Iterator[str]:
        """Yield Markdown for each paragraph, table, chart, diagram and description of a picture or shape."""
        pending = [root]
        while pending:
            element = pending.pop()
            tag = element.tag
            if tag in _SHAPES and self._is_left_out(element):
                continue
            if tag == "txBody":
                self._numbers.clear()
            if tag == "p":
                if block := self._paragraph_block(element):
                    yield block
            elif tag == "tbl":
                rows = [self._row_texts(row) for row in outermost(element, "tr")]
                if rows:
                    yield write_table(rows)
            elif tag in ("chart", "relIds"):
                if rows := referenced_drawing(self._archive, self._relations, element):
                    yield write_table(rows)
            else:
                if tag in _SHAPES and (description := _description(element)):
                    yield prose(description)
                pending += reversed(shown_children(element))

    def _is_left_out(self, shape: Element) -> bool:
        return shape is self._title or _is_hidden(shape) or _placeholder(shape) in self._left_out

    def _row_texts(self, row: Element) -> list[str]:
        """Return the cells of a row; those that are merged into another cell are empty."""
        return [
            "" if is_on(cell.get("hMerge", "0")) or is_on(cell.get("vMerge", "0")) else self._cell_text(cell)
            for cell in outermost(row, "tc")
        ]

    def _cell_text(self, cell: Element) -> str:
        self._numbers.clear()
        paragraphs = ((_lines(paragraph), paragraph) for paragraph in outermost(cell, "p"))
        return " ".join(
            " ".join(filter(None, (self._next_label(paragraph), *lines))) for lines, paragraph in paragraphs if lines
        )

    def _paragraph_block(self, paragraph: Element) -> str:
        lines = _lines(paragraph)
        if not lines:
            return ""
        label = self._next_label(paragraph)
        if not label:
            return "\n".join(map(prose, lines))
        marker = label if _MARKDOWN_NUMBER.fullmatch(label) else f"- {label}"
        return f"{marker} {' '.join(lines)}"

    def _next_label(self, paragraph: Element) -> str:
        """Count a paragraph, and return its automatic number; empty if it has none."""
        properties = paragraph.find("pPr")
        level = min(parse_count(properties.get("lvl"), 0), _MAX_LEVEL) if properties is not None else 0
        for deeper in [other for other in self._numbers if other > level]:
            del self._numbers[deeper]
        automatic = None if properties is None else properties.find("buAutoNum")
        if automatic is None:
            self._numbers.pop(level, None)
            return ""
        numbering = _Numbering(automatic.get("type", ""), parse_count(automatic.get("startAt"), 1), level)
        last_numbering, last_number = self._numbers.get(level, (numbering, numbering.start - 1))
        number = last_number + 1 if last_numbering == numbering else numbering.start
        self._numbers[level] = numbering, number
        match = _NUMBER_TYPE.match(numbering.kind)
        number_format = _NUMBER_FORMATS.get(match[1], "decimal") if match else "decimal"
        return _FRAMES.get(match[2] if match else "", "{}").format(format_number(number, number_format))


def _description(shape: Element) -> str:
    drawing = _drawing(shape)
    return "" if drawing is None else on_one_line(drawing.get("descr") or drawing.get("title") or "")
