"""OpenDocument texts and presentations as Markdown.

Headings have an outline level. Numbers of headings and lists are counted by their list styles. Each slide is a section
and a page. Deleted and hidden text is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from drillrank.errors import InvalidInput
from drillrank.structure.docx import WordBlock, rank_titles, table_blocks, write_blocks
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading
from drillrank.structure.odt_styles import ListLabels, OpenDocumentStyles, TextFormat
from drillrank.structure.office_archive import (
    OfficeArchive,
    convert_office,
    descendants,
    join_part_name,
    outermost,
    parse_count,
)
from drillrank.structure.office_text import Run, folded_lines, join_runs, on_one_line
from drillrank.structure.pages import Pages, join_pages

_UNSEEN = frozenset({
    "tracked-changes", "forms", "sequence-decls", "variable-decls", "user-field-decls", "ruby-text", "notes", "number",
    "event-listeners", "index-title-template", "table-of-content-source", "alphabetical-index-source", "dde-connection",
    "illustration-index-source", "table-index-source", "user-index-source", "bibliography-source", "hidden-text",
})  # fmt: skip
_CHARACTERS = {"s": " ", "tab": " ", "line-break": "\n", "soft-page-break": " "}
_SHAPES = frozenset({"text-box", "custom-shape", "rect", "ellipse", "circle", "caption", "polygon", "path", "object"})
_MAX_REPEATS = 64  # columns, or rows, that one element stands for


def convert_odt(content: bytes) -> ConvertedText:
    """Convert an OpenDocument text or presentation to Markdown.

    Raises:
        InvalidInput: The file is broken, protected by a password, or passes a limit; the message continues its name.
    """
    return convert_office(content, "OpenDocument", lambda archive: _OpenDocument(archive).markdown())


class _OpenDocument:
    """Reads the blocks of a document in their order, and collects its notes."""

    def __init__(self, archive: OfficeArchive) -> None:
        self._archive = archive
        self._content = archive.read_tree("content.xml")
        style_sheet = archive.try_read_tree("styles.xml") if "styles.xml" in archive else None
        self._style_sheet = Element("styles") if style_sheet is None else style_sheet
        self._styles = OpenDocumentStyles([self._style_sheet, self._content])
        self._labels = ListLabels(self._styles)
        self._note_items: list[WordBlock] = []
        self._comments: list[WordBlock] = []

    def markdown(self) -> tuple[str, Pages | None]:
        """Return the whole document as Markdown, and the slides as pages."""
        body = self._content.find("body")
        if body is None:
            raise InvalidInput("it has no body of text")
        slides = [page for page in outermost(body, "page") if not self._styles.find(page).is_hidden]
        if slides:
            return join_pages((self._slide(slide, number), number) for number, slide in enumerate(slides, start=1))
        blocks = rank_titles(self._read(body))
        blocks = [*self._running_texts("header"), *blocks, *self._note_items, *self._comments]
        return "\n\n".join([*write_blocks(blocks), *write_blocks(self._running_texts("footer"))]), None

    def _running_texts(self, *names: str) -> list[WordBlock]:
        """Return the different headers or footers that have words."""
        lines = (" ".join(block.line for block in self._read(part)) for part in descendants(self._style_sheet, *names))
        return [WordBlock("paragraph", (line,)) for line in dict.fromkeys(lines) if any(map(str.isalpha, line))]

    def _slide(self, slide: Element, number: int) -> str:
        frames = [frame for frame in descendants(slide, "frame", "custom-shape") if frame.get("class") == "title"]
        title_blocks = self._read(frames[0]) if frames else []
        title = " ".join(block.line for block in title_blocks)
        if title:
            frames[0].clear()
        blocks = self._read(slide)
        blocks += [block for page in outermost(slide, "notes") for block in self._read(page)]
        blocks += [*self._note_items, *self._comments]
        self._note_items, self._comments = [], []
        return "\n\n".join([heading(1, title or f"Slide {number}"), *write_blocks(_below_title(blocks))])

    def _read(self, container: Element) -> list[WordBlock]:
        """Return the blocks of an element."""
        blocks: list[WordBlock] = []
        pending = list(reversed(container))
        while pending:
            element = pending.pop()
            if _is_unseen(element):
                continue
            if element.tag in ("p", "h"):
                blocks += self._paragraph(element)
            elif element.tag == "list":
                blocks += self._list(element)
            elif element.tag == "table":
                blocks += self._table(element)
            elif element.tag == "object":
                blocks += self._object(element)
            elif element.tag in ("desc", "title") and element.text:
                blocks.append(WordBlock("paragraph", (on_one_line(element.text),)))
            else:
                pending += reversed(element)
        return blocks

    def _paragraph(self, element: Element, label: str | None = None) -> list[WordBlock]:
        """Return a paragraph or heading, and the shapes anchored in it."""
        style = self._styles.find(element)
        shapes: list[Element] = []
        if style.text.is_hidden:
            return []
        lines = folded_lines(self._archive.count_written(join_runs(self._runs(element, style.text, shapes))))
        blocks = [
            block
            for shape in shapes
            for block in ([*self._object(shape)] if shape.tag == "object" else self._read(shape))
        ]
        level = parse_count(element.get("outline-level"), 1) if element.tag == "h" else style.outline_level
        if level and label is None:
            label = self._labels.next_heading_label(element, level) if lines else ""
        if not lines:
            return blocks
        if level or style.is_title:
            line = " ".join(filter(None, (label, *lines)))
            return [WordBlock("heading", (line,), 0 if style.is_title else level), *blocks]
        return [WordBlock("paragraph", tuple(lines)), *blocks]

    def _runs(self, paragraph: Element, base: TextFormat, shapes: list[Element]) -> Iterator[Run]:
        """Yield the text of a paragraph; the shapes in it are added to a list."""
        pending = list(reversed(_contents(paragraph, base)))
        while pending:
            node, text_format = pending.pop()
            if isinstance(node, str):
                yield Run(node, text_format.script)
            elif _is_unseen(node):
                continue
            elif node.tag in _CHARACTERS:
                yield Run(_CHARACTERS[node.tag], text_format.script)
            elif node.tag in ("note", "annotation"):
                yield Run(self._note(node))
            elif node.tag in _SHAPES:
                shapes.append(node)
            elif node.tag in ("desc", "title") and not len(node):
                yield Run(f" {node.text or ''} ")
            else:
                text_format = self._styles.text_format(node, text_format)
                if not text_format.is_hidden:
                    pending += reversed(_contents(node, text_format))

    def _note(self, note: Element) -> str:
        """Keep a note or comment for the end, and return its mark."""
        if note.tag == "annotation":
            mark = str(len(self._comments) + 1)
            text = " ".join(
                block.line for child in note if child.tag in ("p", "list") for block in self._read_one(child)
            )
            self._comments.append(WordBlock("paragraph", (f"Comment [{mark}]: {text}",)))
        else:
            mark = on_one_line("".join(note.findtext("note-citation") or "*"))
            text = " ".join(block.line for body in note.findall("note-body") for block in self._read(body))
            self._note_items.append(WordBlock("item", (text,), label=f"[{mark}]"))
        return f"[{mark}]"

    def _read_one(self, element: Element) -> list[WordBlock]:
        holder = Element("holder")
        holder.append(element)
        return self._read(holder)

    def _list(self, element: Element) -> list[WordBlock]:
        """Return the items of a list; further paragraphs of an item are its lines."""
        blocks: list[WordBlock] = []
        with self._labels.open_list(element) as level:
            for item in element:
                label = self._labels.next_label(item) if item.tag == "list-item" else None
                is_first = True
                for child in item:
                    if child.tag not in ("p", "h"):
                        blocks += self._read_one(child)
                        continue
                    for block in self._paragraph(child, label or ""):
                        if block.kind != "paragraph" or label is None:
                            blocks.append(block)
                        elif is_first:
                            blocks.append(WordBlock("item", block.lines, level, label))
                        elif blocks[-1].kind == "item":
                            blocks[-1] = replace(blocks[-1], lines=blocks[-1].lines + block.lines)
                        else:
                            blocks.append(block)
                        is_first = False
        return blocks

    def _table(self, element: Element) -> list[WordBlock]:
        rows: list[list[list[WordBlock]]] = []
        for row in outermost(element, "table-row"):
            if row.get("visibility", "visible") != "visible":
                continue
            cells: list[list[WordBlock]] = []
            n_characters = 0
            for cell in outermost(row, "table-cell", "covered-table-cell"):
                blocks = self._read(cell) if cell.tag == "table-cell" else []
                n_copies = min(parse_count(cell.get("number-columns-repeated"), 1), _MAX_REPEATS)
                n_characters += n_copies * sum(len(block.line) for block in blocks)
                cells += [blocks] * n_copies
            n_copies = min(parse_count(row.get("number-rows-repeated"), 1), _MAX_REPEATS) if any(cells) else 1
            self._archive.count_characters(n_copies * n_characters)
            rows += [cells] * n_copies
        width = max((index + 1 for cells in rows for index, cell in enumerate(cells) if cell), default=0)
        return table_blocks([cells[:width] for cells in rows])

    def _object(self, reference: Element) -> list[WordBlock]:
        """Return a formula, or the tables behind a chart, that is a document of its own."""
        name = join_part_name("", f"{reference.get('href', '')}/content.xml")
        tree = self._archive.try_read_tree(name, "embedded documents") if name in self._archive else reference
        assert tree is not None
        formula = next((tree for tree in (tree, *descendants(tree, "math")) if tree.tag == "math"), None)
        if formula is None:
            return [block for table in outermost(tree, "table") for block in self._table(table)]
        source = next(descendants(formula, "annotation"), None)
        text = on_one_line(" ".join(formula.itertext()) if source is None else source.text or "")
        return [WordBlock("paragraph", (self._archive.count_written(text),))] if text else []


def _contents(element: Element, text_format: TextFormat) -> list[tuple[Element | str, TextFormat]]:
    """Return the texts and elements within an element, in their order."""
    nodes: list[tuple[Element | str, TextFormat]] = [(element.text or "", text_format)]
    for child in element:
        nodes += [(child, text_format), (child.tail or "", text_format)]
    return nodes


def _is_unseen(element: Element) -> bool:
    is_hidden = element.get("is-hidden") == "true" or element.get("display") == "none"
    return is_hidden or element.tag in _UNSEEN


def _below_title(blocks: list[WordBlock]) -> list[WordBlock]:
    """Return the blocks of a slide, whose own headings are below its title."""
    return [replace(block, level=block.level + 1) if block.kind == "heading" else block for block in blocks]
