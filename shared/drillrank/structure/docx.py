"""Word files as Markdown.

A paragraph is a heading if one of these holds (`_BlockReader._read_paragraph`, `docx_styles.py`):

- it has an outline level; level 9 makes it body text, whatever its style is
- its style is named "heading 1" to "heading 9", also in the language of the program that wrote the file
- its style has an outline level
- its style is based on such a style

A title (style "Title") before all headings is above them. If a file has no heading at all, the Markdown scanner guesses
headings as in plain text. Numbers of headings and lists are counted as Word counts them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from xml.etree.ElementTree import Element

from drillrank.errors import InvalidInput
from drillrank.structure.docx_numbering import ListNumbers, NumberedLevel
from drillrank.structure.docx_styles import WordStyle, WordStyles, read_outline_level
from drillrank.structure.docx_text import NoteMarks, ParagraphReader
from drillrank.structure.encodings import decode_text
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading, html_as_markdown, prose
from drillrank.structure.office_archive import (
    OfficeArchive,
    Relation,
    UnreadablePart,
    child_value,
    convert_office,
    is_switched_on,
    outermost,
    parse_count,
    shown_children,
)
from drillrank.structure.office_text import formula_text, write_table

_MAIN_PART = re.compile(r"word/document\d*\.xml")
_MAX_INITIALS = 10
_NO_LIST = "0"
_MAX_PREFIX = 10_000  # characters that a paragraph takes over from those before it
_MAX_SPAN = 63  # columns of a table in Word
_MARKDOWN_NUMBER = re.compile(r"\d{1,9}[.)]")
_SKIPPED = frozenset({
    "del", "moveFrom", "sectPr", "sdtPr", "sdtEndPr", "tblPr", "tblGrid", "trPr", "tcPr", "pPr", "rPr",
})  # fmt: skip
_NOTES = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}


@dataclass(frozen=True, slots=True)
class WordBlock:
    """Block of a Word file.

    Attributes:
        kind: What the block is; "markdown" is written as it is.
        lines: Its text.
        level: Level of a heading, starting at 1 (0 for the title), or of a list item, starting at 0.
        label: Printed number of a list item; empty for a bullet.
        rows: Cells of a table.
    """

    kind: Literal["heading", "paragraph", "item", "table", "markdown"]
    lines: tuple[str, ...] = ()
    level: int = 0
    label: str = ""
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def line(self) -> str:
        """The text on one line, with the number of a list item and bars between cells."""
        if self.kind == "table":
            return "; ".join(map(" | ".join, self.rows))
        return " ".join(filter(None, (self.label if self.kind == "item" else "", *self.lines)))


def convert_docx(content: bytes) -> ConvertedText:
    """Convert a Word file to Markdown.

    Raises:
        InvalidInput: The file is broken, protected by a password, or passes a limit; the message continues its name.
    """
    return convert_office(content, "DOCX", lambda archive: (_WordDocument(archive).markdown(), None))


class _WordDocument:
    """Reads the parts of a Word file: running headers, the body, notes, comments and running footers."""

    def __init__(self, archive: OfficeArchive) -> None:
        self._archive = archive
        self._main = archive.main_part("word/document.xml")
        if self._main not in archive:
            self._main = next(filter(_MAIN_PART.fullmatch, archive.part_names()), self._main)
        self._document = archive.read_tree(self._main)
        self._relations = archive.relations(self._main)
        self._styles = WordStyles(self._related_tree("styles"))
        self._numbers = ListNumbers(self._related_tree("numbering"), self._styles.list_id_by_style)
        trees = {kind: self._related_tree(kind) for kind in _NOTES}
        self._note_by_id = {
            (kind, note.get("id", "")): note
            for kind, tree in trees.items()
            if tree is not None
            for note in tree.findall(_NOTES[kind])
        }
        initials = {
            id_: note.get("initials", "")[:_MAX_INITIALS]
            for (kind, id_), note in self._note_by_id.items()
            if kind == "comments"
        }
        self._note_marks = NoteMarks(self._note_formats(), initials)

    def markdown(self) -> str:
        """Return the whole document as Markdown."""
        body = self._document.find("body")
        if body is None:
            raise InvalidInput("it has no body of text")
        headers = list(self._running_texts("header"))
        blocks = rank_titles(self._read_part(self._main, body))
        blocks += self._read_notes()
        return "\n\n".join(write_blocks([*headers, *blocks, *self._running_texts("footer")]))

    def _related_name(self, kind: str) -> str:
        """Return the name of the one part of a kind: by its relation, or else its usual name."""
        usual_name = posixpath.join(posixpath.dirname(self._main), f"{kind}.xml")
        return next((relation.name for relation in self._relations.values() if relation.kind == kind), usual_name)

    def _related_tree(self, kind: str) -> Element | None:
        name = self._related_name(kind)
        is_expected = any(relation.kind == kind for relation in self._relations.values())
        return self._archive.try_read_tree(name) if is_expected or name in self._archive else None

    def _note_formats(self) -> dict[str, str]:
        settings = self._related_tree("settings")
        trees = [tree for tree in (settings, self._document) if tree is not None]
        names = {"footnotePr": "footnotes", "endnotePr": "endnotes"}
        return {
            names[properties.tag]: number_format
            for tree in trees
            for properties in outermost(tree, *names)
            if (number_format := child_value(properties, "numFmt"))
        }

    def _read_part(self, name: str, *containers: Element) -> list[WordBlock]:
        relations = self._relations if name == self._main else self._archive.relations(name)
        paragraphs = ParagraphReader(self._archive, relations, self._styles, self._note_marks)
        reader = _BlockReader(self._archive, relations, self._styles, self._numbers, paragraphs)
        return [block for container in containers for block in reader.read(container)]

    def _read_notes(self) -> Iterator[WordBlock]:
        """Yield each note and comment that the text refers to, once."""
        blocks_by_kind: dict[str, list[WordBlock]] = {kind: [] for kind in _NOTES}
        while self._note_marks.unread_notes:
            kind, note_id = self._note_marks.unread_notes.popleft()
            note = self._note_by_id.get((kind, note_id))
            if note is None:
                self._archive.problems["notes and comments"] += 1
                continue
            text = " ".join(block.line for block in self._read_part(self._related_name(kind), note))
            mark = self._note_marks.mark(kind, note_id)
            if text and kind == "comments":
                blocks_by_kind[kind].append(WordBlock("paragraph", (f"Comment [{mark}]: {text}",)))
            elif text:
                blocks_by_kind[kind].append(WordBlock("item", (text,), label=f"[{mark}]"))
        for blocks in blocks_by_kind.values():
            yield from blocks

    def _running_texts(self, kind: str) -> Iterator[WordBlock]:
        """Yield the different headers or footers that have words."""
        names = sorted({relation.name for relation in self._relations.values() if relation.kind == kind})
        texts: dict[str, None] = {}
        for name in names:
            tree = self._archive.try_read_tree(name)
            if tree is not None:
                texts[" ".join(block.line for block in self._read_part(name, tree))] = None
        yield from (WordBlock("paragraph", (text,)) for text in texts if any(map(str.isalpha, text)))


class _BlockReader:
    """Reads the blocks of one part, in their order."""

    def __init__(
        self,
        archive: OfficeArchive,
        relations: dict[str, Relation],
        styles: WordStyles,
        numbers: ListNumbers,
        paragraphs: ParagraphReader,
    ) -> None:
        self._archive = archive
        self._relations = relations
        self._styles = styles
        self._numbers = numbers
        self._paragraphs = paragraphs
        self._prefix = ""  # text that the next paragraph continues

    def read(self, container: Element) -> list[WordBlock]:
        """Return the blocks of an element."""
        blocks: list[WordBlock] = []
        pending = list(reversed(shown_children(container)))
        while pending:
            element = pending.pop()
            if element.tag in ("p", "r", "hyperlink"):
                blocks += self._read_paragraph(element)
            elif element.tag == "tbl":
                blocks += self._read_table(element)
            elif element.tag == "oMath":
                blocks.append(WordBlock("paragraph", (formula_text(element),)))
            elif element.tag == "altChunk":
                blocks += self._read_embedded(element)
            elif element.tag not in _SKIPPED:
                pending += reversed(shown_children(element))
        if self._prefix and container.tag == "body":
            blocks.append(WordBlock("paragraph", (self._prefix,)))
        return blocks

    def _read_paragraph(self, paragraph: Element) -> list[WordBlock]:
        properties = paragraph.find("pPr")
        style = self._styles.find(child_value(properties, "pStyle"))
        text = self._paragraphs.read(paragraph, style)
        boxes = [block for box in text.text_boxes for block in self.read(box)]
        is_mark_removed = _has_mark(properties, "del", "moveFrom")
        position = self._list_position(properties, style)
        lines = text.lines
        if not lines:
            if position and not is_mark_removed and not _has_mark(properties, "vanish"):
                self._numbers.next_label(position)  # an empty item counts, but has nothing to say
            return boxes
        if self._prefix:
            lines = [self._prefix + lines[0], *lines[1:]]
            self._prefix = ""
        is_initial = properties is not None and properties.find("framePr[@dropCap]") is not None
        if (is_mark_removed or is_initial) and len(lines[0]) < _MAX_PREFIX:
            self._prefix = " ".join(lines) + ("" if is_initial and len(text.line) == 1 else " ")
            return boxes
        level = read_outline_level(properties)
        level = style.heading_level if level is None else level
        label = self._numbers.next_label(position) if position else None
        self._archive.count_written(label or "")
        if level or style.is_title:
            level = 0 if style.is_title else level
            block = WordBlock("heading", (" ".join(filter(None, (label, *lines))),), level)
        elif position and label is not None:
            block = WordBlock("item", tuple(lines), position.level, label)
        else:
            block = WordBlock("paragraph", tuple(lines))
        return [block, *boxes]

    def _list_position(self, properties: Element | None, style: WordStyle) -> NumberedLevel | None:
        list_properties = None if properties is None else properties.find("numPr")
        own_list_id = child_value(list_properties, "numId")
        list_id = own_list_id or style.list_id
        if not list_id or list_id == _NO_LIST:
            return None
        level = parse_count(child_value(list_properties, "ilvl"), -1)
        if level < 0 and not own_list_id:
            level_of_style = self._numbers.level_of_style(list_id, style.ids)
            level = (style.list_level or 0) if level_of_style is None else level_of_style
        return NumberedLevel(list_id, max(level, 0))

    def _read_table(self, table_element: Element) -> list[WordBlock]:
        """Return a table, or its blocks if it arranges the page."""
        rows: list[list[list[WordBlock]]] = []
        for row in outermost(table_element, "tr"):
            properties = row.find("trPr")
            if properties is not None and (properties.find("del") is not None or is_switched_on(properties, "hidden")):
                continue
            cells: list[list[WordBlock]] = [[]] * min(parse_count(child_value(properties, "gridBefore"), 0), _MAX_SPAN)
            for cell in outermost(row, "tc"):
                cell_properties = cell.find("tcPr")
                span = parse_count(child_value(cell_properties, "gridSpan"), 1)
                blocks = self.read(cell)
                cells += [[] if _continues_cell(cell_properties) else blocks, *[[]] * min(span - 1, _MAX_SPAN)]
            rows.append(cells)
        return table_blocks(rows)

    def _read_embedded(self, reference: Element) -> list[WordBlock]:
        """Return the blocks of a page of HTML that the document includes."""
        relation = self._relations.get(reference.get("r:id", ""))
        try:
            content = self._archive.read(relation.name if relation else "")
            page = decode_text(content, may_declare=True)[0]
        except UnreadablePart:
            self._archive.problems["embedded documents"] += 1
            return []
        return [WordBlock("markdown", (self._archive.count_written(text),)) for text in html_as_markdown(page)]


def _continues_cell(properties: Element | None) -> bool:
    """Return True if a cell is merged into the one above or before it: Word does not show what it holds."""
    merges = () if properties is None else (properties.find("vMerge"), properties.find("hMerge"))
    return any(merge is not None and merge.get("val", "continue") == "continue" for merge in merges)


def table_blocks(rows: Sequence[Sequence[Sequence[WordBlock]]]) -> list[WordBlock]:
    """Return a table, or the blocks of its cells if it arranges the page.

    A table that contains tables arranges the page. So does one with headings, unless they are the heads of its rows
    and columns: no cell has more than one block, and two rows or more have two cells or more.
    """
    blocks = [block for row in rows for cell in row for block in cell]
    kinds = {block.kind for block in blocks}
    is_grid = all(len(cell) <= 1 for row in rows for cell in row) and sum(sum(map(bool, row)) > 1 for row in rows) > 1
    if kinds - {"paragraph", "item", "heading"} or ("heading" in kinds and not is_grid):
        return blocks
    texts = [tuple(" ".join(block.line for block in cell) for cell in row) for row in rows]
    texts = [row for row in texts if any(row)]
    return [WordBlock("table", rows=tuple(texts))] if texts else []


def rank_titles(blocks: Iterable[WordBlock]) -> list[WordBlock]:
    """Return the blocks with titles at level 1. If a title is the first heading, the others are below it.

    Titles that follow each other are the lines of one title.
    """
    joined: list[WordBlock] = []
    for block in blocks:
        is_title = block.kind == "heading" and not block.level
        if is_title and joined and joined[-1].kind == "heading" and not joined[-1].level:
            joined[-1] = replace(joined[-1], lines=joined[-1].lines + block.lines)
        else:
            joined.append(block)
    first_level = next((block.level for block in joined if block.kind == "heading"), None)
    shift = 1 if first_level == 0 else 0
    return [replace(block, level=block.level + shift or 1) if block.kind == "heading" else block for block in joined]


def _has_mark(properties: Element | None, *names: str) -> bool:
    """Return True if the mark at the end of a paragraph has one of these properties."""
    mark = None if properties is None else properties.find("rPr")
    return any(is_switched_on(mark, name) for name in names)


def write_blocks(blocks: Iterable[WordBlock]) -> Iterator[str]:
    """Yield Markdown for each block; items that follow each other are one list."""
    items: list[WordBlock] = []
    for block in blocks:
        if block.kind == "item":
            items.append(block)
            continue
        if items:
            yield _write_list(items)
            items = []
        if block.kind == "heading":
            yield heading(block.level, block.line)
        elif block.kind == "table":
            yield write_table(block.rows)
        elif block.kind == "markdown":
            yield block.line
        else:
            yield "\n".join(map(prose, block.lines))
    if items:
        yield _write_list(items)


def _write_list(items: Iterable[WordBlock]) -> str:
    """Return a list in Markdown. Numbers that Markdown does not know follow a bullet, such as "- (a) First"."""
    lines: list[str] = []
    open_items: list[tuple[int, int]] = []  # level and indent of the content
    for item in items:
        while open_items and open_items[-1][0] >= item.level:
            open_items.pop()
        indent = open_items[-1][1] if open_items else 0
        is_plain = _MARKDOWN_NUMBER.fullmatch(item.label) is not None
        marker = f"{item.label} " if is_plain else f"- {item.label} ".replace("  ", " ")
        open_items.append((item.level, indent + (len(marker) if is_plain else 2)))
        lines.append(" " * indent + marker + item.lines[0])
        lines += [" " * open_items[-1][1] + line for line in item.lines[1:]]
    return "\n".join(lines)
