"""Markdown of a PDF: the blocks of its pages under their headings, with the offset of each page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from drillrank.structure.markdown import heading, prose, table
from drillrank.structure.pages import Pages
from drillrank.structure.pdf_annotations import PageNote
from drillrank.structure.pdf_blocks import PrintedBlock, group_into_blocks
from drillrank.structure.pdf_headings import Bookmark, levels_by_font, match_bookmarks
from drillrank.structure.pdf_running_heads import remove_running_rows
from drillrank.structure.pdf_tables import align_cells
from drillrank.structure.pdf_text import LayoutRow
from drillrank.structure.pdf_words import WORDS, Vocabulary, append_line, ends_with_hyphen, join_row_words

_ENOUGH_BOOKMARKS = 0.2  # per page: then the bookmarks are all headings of the file
_MOST_COMPARED = 1_000  # blocks of a page that may be the nearest to an annotation
_CONTINUED = re.compile(r"(?<![\s\-–—])[\s\-–—]*\(?continued\)?$", re.IGNORECASE)
_BULLET = re.compile(r"[•●◦▪■·–—*-]\s+")


def render_pages(
    pages: Sequence[Sequence[LayoutRow]],
    labels: Sequence[str],
    bookmarks: Sequence[Bookmark],
    annotations: Sequence[Sequence[PageNote]],
) -> tuple[str, Pages]:
    """Return the Markdown of a file and its pages.

    Args:
        pages: Rows of each page in reading order.
        labels: Printed label of each page.
        bookmarks: Outline of the file.
        annotations: Annotations and form fields of each page; each follows the nearest block.
    """
    vocabulary = Vocabulary(row.text for rows in pages for row in rows)
    pages = remove_running_rows([[join_row_words(row, vocabulary.counts) for row in rows] for rows in pages])
    titles_by_row = match_bookmarks(bookmarks, pages)
    blocks = [group_into_blocks(rows, page_index, titles_by_row) for page_index, rows in enumerate(pages)]
    levels: dict[PrintedBlock, int] = {}
    if len(titles_by_row) < _ENOUGH_BOOKMARKS * len(pages):
        deepest = max((level for titles in titles_by_row.values() for level in titles.values()), default=0)
        levels = levels_by_font([block for page_blocks in blocks for block in page_blocks], deepest)
    writer = _MarkdownWriter(vocabulary)
    for page_blocks, page_annotations in zip(blocks, annotations, strict=True):
        writer.begin_page()
        annotations_by_block = _nearest_blocks(page_blocks, page_annotations)
        for note in annotations_by_block.get(None, ()):
            writer.add_note(note)
        for block in page_blocks:
            bookmark_titles = titles_by_row.get(block.rows[0], {})
            titles = bookmark_titles or ({block.text: levels[block]} if block in levels else {})
            for title, level in titles.items():
                writer.add_heading(level, title)
            is_heading_only = bool(titles) and (
                not bookmark_titles or (len(block.rows) == 1 and _repeats_title(block.text, bookmark_titles))
            )
            if not is_heading_only:
                writer.add_block(block)
            for note in annotations_by_block.get(block, ()):
                writer.add_note(note)
    return writer.finish(labels)


class _MarkdownWriter:
    """Writer of Markdown that knows on which page each part begins.

    Args:
        vocabulary: Words of the file.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._parts: list[str] = []  # each with the separator before it
        self._first_parts: list[int] = []  # index of the first part of each page
        self._last_block: PrintedBlock | None = None  # None after a heading
        self._last_heading = ""

    def begin_page(self) -> None:
        """Begin the next page."""
        self._first_parts.append(len(self._parts))

    def add_heading(self, level: int, title: str) -> None:
        """Add a heading, unless it repeats the last one because its section continues."""
        title = " ".join(title.split())
        title = _CONTINUED.sub("", title) or title
        if title != self._last_heading:
            self._parts.append(f"\n\n{heading(level, title)}")
            self._last_heading, self._last_block = title, None

    def add_block(self, block: PrintedBlock) -> None:
        """Add a block; a paragraph may continue the last one of the page before."""
        text = _block_markdown(block, self._vocabulary)
        if self._continues_in(block, text):
            append_line(self._parts, text, self._vocabulary)
        else:
            self._parts.append(f"\n\n{text}")
        self._last_block = block

    def _continues_in(self, block: PrintedBlock, text: str) -> bool:
        """Return True if the last paragraph continues in a block of the next page, or of the next column."""
        last = self._last_block
        if last is None or last.kind == "table" or block.kind != "paragraph" or not text[:1].islower():
            return False
        if ends_with_hyphen(self._parts[-1]):
            last_row, row = last.rows[-1], block.rows[0]
            return last.page_index != block.page_index or last_row.column_left != row.column_left
        return last.page_index != block.page_index and (self._parts[-1][-1].isalpha() or self._parts[-1][-1] == ",")

    def add_note(self, note: PageNote) -> None:
        """Add an annotation or form field as a paragraph."""
        self._parts.append(f"\n\n{prose(note.text)}")
        self._last_block = None

    def finish(self, labels: Sequence[str]) -> tuple[str, Pages]:
        """Return the Markdown and the pages, which have these labels."""
        parts = self._parts
        ends = list(accumulate(map(len, parts), initial=-2))  # the first part loses its two line ends
        result = f"{''.join(parts)[2:]}\n"
        offsets = [end + len(part) - len(part.lstrip()) for end, part in zip(ends, parts, strict=False)]
        offsets.append(len(result) - 1)  # a blank page begins where the next one does
        starts = tuple(min(offsets[first], len(result) - 1) for first in self._first_parts)
        return result, Pages(starts, tuple(range(1, len(starts) + 1)), tuple(labels))


def _nearest_blocks(
    blocks: Sequence[PrintedBlock], annotations: Iterable[PageNote]
) -> dict[PrintedBlock | None, list[PageNote]]:
    """Return the annotations of each block: the last one that begins above a note in its column, or the first one."""
    annotations_by_block: dict[PrintedBlock | None, list[PageNote]] = {}
    for note in annotations:
        nearest = blocks[0] if blocks else None
        for block in blocks[-_MOST_COMPARED:]:
            row = block.rows[0]
            if row.y <= note.y + row.size and row.column_left <= note.x + row.size:
                nearest = block
        annotations_by_block.setdefault(nearest, []).append(note)
    return annotations_by_block


def _block_markdown(block: PrintedBlock, vocabulary: Vocabulary) -> str:
    if block.kind == "table":
        return table(align_cells(block.rows))
    lines: list[str] = []
    for row in block.rows:
        has_cells = len(block.rows) == 1 and len(row.cells) > 1
        append_line(lines, " | ".join(row.cells) if has_cells else row.text, vocabulary)
    text = prose("".join(lines))
    return f"- {_BULLET.sub('', text, count=1)}" if block.kind == "item" and _BULLET.match(text) else text


def _repeats_title(text: str, titles: Iterable[str]) -> bool:
    """Return True if a row contains only the words of a title, or its first words."""
    words = WORDS.findall(text.casefold())
    return any(words == WORDS.findall(title.casefold())[: len(words)] for title in titles)
