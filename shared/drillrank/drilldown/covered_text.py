"""Rebuild the sections of a text from the spans of it that chunks of other splitters contain."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any

from drillrank.corpus.documents import Unit
from drillrank.drilldown.outline import OutlineSection
from drillrank.drilldown.stored_chunks import HeadingPath
from drillrank.drilldown.stored_passages import pack_sections
from drillrank.passages import Passage
from drillrank.structure import Section, breadcrumb, parse_document
from drillrank.structure.document import Block
from drillrank.structure.packing import PackedPassage, SourceBlock

_LINE_BREAK = re.compile(r"  \n")
_MAX_NEIGHBORS = 8  # overlapping spans among which one is searched that contains a whole paragraph
_MAX_STRIPPED = 8  # characters between two chunks that a splitter may have stripped


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """Span of a text that a stored chunk contains.

    Attributes:
        start: Offset in the text.
        end: Offset just after the span.
        chunk: Index of the chunk among those of its document.
    """

    start: int
    end: int
    chunk: int


@dataclass(frozen=True)
class CoveredText:
    r"""Text with the spans that stored chunks contain.

    Attributes:
        text: Chunks joined where they continue each other, with a blank line where the text between them is unknown. Or
            the original that they were cut from.
        held_spans: Spans of the chunks, rising by start. They may overlap.
        shifts: Pairs of an offset in the text and the number that, from this offset on, leads to the offset in the
            document. Empty if that is not known.
        path: Headings above the text, as its chunks name them. The last may be the heading that it begins with.
        above: True if the last is never that heading.
        named: Headings that chunks of an original name, and that may be shown though no chunk contains them.
        original: True if the text is the original. Then headings that no chunk contains or names are not shown.
        rest_chunk: Index of the chunk that is all of the text. Text that no other chunk contains is its.
        breaks: True if lines with two spaces at the end are the ends of paragraphs.
        format: Format, as for `parse_document`.
        metadata: Metadata, as for `parse_document`.
    """

    text: str
    held_spans: tuple[HeldSpan, ...]
    shifts: tuple[tuple[int, int], ...] = ()
    path: HeadingPath = ()
    above: bool = False
    named: frozenset[str] = frozenset()
    original: bool = False
    rest_chunk: int | None = None
    breaks: bool = False
    format: str = "auto"
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    @cached_property
    def _gapless_spans(self) -> list[tuple[int, int]]:
        """Spans without a gap between chunks. White space of an original between two chunks is not a gap."""
        if self.rest_chunk is not None:
            return [(0, len(self.text))]
        gapless: list[tuple[int, int]] = []
        last_chunk = -1
        for span in self.held_spans:
            if gapless and (span.start <= gapless[-1][1] or self._is_white_space(gapless[-1][1], span, last_chunk)):
                gapless[-1] = gapless[-1][0], max(gapless[-1][1], span.end)
            else:
                gapless.append((span.start, span.end))
            last_chunk = span.chunk
        return gapless

    def _is_white_space(self, end: int, span: HeldSpan, last_chunk: int) -> bool:
        return self.original and span.chunk != last_chunk and self.text[end : span.start].isspace()

    def list_stored_parts(self, block: Block) -> Iterator[tuple[int, int]]:
        """Yield the spans of a block that chunks contain, without white space around them."""
        index = max(bisect_right(self._gapless_spans, block.start, key=itemgetter(0)) - 1, 0)
        for start, end in self._gapless_spans[index:]:
            if start >= block.end:
                return
            start, end = max(start, block.start), min(end, block.end)
            part = self.text[start:end]
            if part.strip():
                is_complete = (start, end) == (block.start, block.end)
                n_leading = 0 if is_complete else len(part) - len(part.lstrip())
                yield start + n_leading, start + len(part if is_complete else part.rstrip())

    def find_span(self, start: int, end: int) -> HeldSpan:
        """Return the span of a chunk that contains a part of the text, or else its beginning."""
        index = bisect_right(self.held_spans, start, key=attrgetter("start")) - 1
        neighbors = [self.held_spans[i] for i in range(index, max(index - _MAX_NEIGHBORS, -1), -1)]
        for span in neighbors:
            if span.end >= end:
                return span
        if self.rest_chunk is not None:
            return HeldSpan(0, len(self.text), self.rest_chunk)
        return next((span for span in neighbors if span.end > start), self.held_spans[max(index, 0)])

    def find_offset(self, offset: int) -> int | None:
        """Return the offset in the document of an offset in the text. None if that is not known."""
        if not self.shifts:
            return None
        return offset + self.shifts[bisect_right(self.shifts, offset, key=itemgetter(0)) - 1][1]

    def find_end(self, end: int) -> int | None:
        """Return the offset in the document just after a part that ends at an offset in the text."""
        last = self.find_offset(end - 1)
        return None if last is None else last + 1

    def is_adjacent(self, end: int, start: int) -> bool:
        """Return True if only white space is between an end and a start in the document.

        Splitters strip white space around chunks: a few characters between two of them are taken for it.
        """
        if self.text[end:start].strip():
            return False
        document_end, document_start = self.find_end(end), self.find_offset(start)
        if self.original or document_end is None or document_start is None:
            spans = self._gapless_spans
            return self.original or bisect_right(spans, end - 1, key=itemgetter(0)) == bisect_right(
                spans, start, key=itemgetter(0)
            )
        return document_start - document_end <= max(start - end, _MAX_STRIPPED)

    def find_gap(self, end: int, start: int) -> str:
        """Return the white space between an end and a start in the document.

        Splitters strip it, and only its length is known: a line break, or a blank line for two characters or more.
        """
        between = self.text[end:start]
        if between.strip():
            return "\n\n"
        document_end, document_start = self.find_end(end), self.find_offset(start)
        if self.original or document_end is None or document_start is None:
            return between
        n_stripped = document_start - document_end
        return between if n_stripped == start - end else "\n" * min(max(n_stripped, 0), 2)


def covered_sections(
    document_index: int, prefix: str, covered: CoveredText, unit: Unit = "paragraph"
) -> list[OutlineSection]:
    r"""Return the sections of a text, with the paragraphs that its chunks contain.

    The metadata of a paragraph have `document`, `section_path`, `chunk` (the chunk that contains it), and `start` and
    `end` in the document. If these are not known, they have `part`, its offset in the chunk.

    Args:
        document_index: Index of the document in the input.
        prefix: Beginning of the ids of this text's paragraphs. Empty if it is the only one of the document.
        covered: The text and the spans of its chunks.
        unit: Unit of evidence.

    >>> text = "# Sea\n\nIt is deep.\n\n"
    >>> spans = HeldSpan(0, 18, 0), HeldSpan(20, 29, 1)
    >>> [sea] = covered_sections(0, "", CoveredText(text + "And blue.", spans, ((0, 0), (20, 80))))
    >>> [(p.text, p.metadata["chunk"], p.metadata["start"]) for p in sea.paragraphs]
    [('It is deep.', 0, 7), ('And blue.', 1, 100)]
    """
    return _CoveredSections(document_index, f"{document_index}:{prefix}", covered).build(unit)


class _CoveredSections:
    """Sections of one covered text."""

    def __init__(self, document_index: int, id_prefix: str, covered: CoveredText) -> None:
        self._document_index = document_index
        self._id_prefix = id_prefix
        self._covered = covered
        text = _LINE_BREAK.sub("\n\n\n", covered.text) if covered.breaks else covered.text
        self._document = parse_document(text, covered.format, metadata=covered.metadata)

    def build(self, unit: Unit) -> list[OutlineSection]:
        """Return the sections with paragraphs or passages."""
        visible_paths: set[HeadingPath] = set()
        paths: dict[Section, HeadingPath] = {}
        for section in self._document.sections():
            paths[section] = self._find_path(section, visible_paths)
        if unit == "passage":
            groups = self._group_blocks(paths)
            return pack_sections(self._document_index, groups, self._locate)
        sections = (self._list_paragraphs(section, path) for section, path in paths.items())
        return [section for section in sections if section is not None]

    def _find_path(self, section: Section, visible_paths: set[HeadingPath]) -> HeadingPath:
        """Return the headings of a section that may be shown, below those of the text."""
        covered = self._covered
        headings = [block for block in self._document.blocks(section) if block.kind == "heading"]
        is_hidden = covered.original and not any(any(covered.list_stored_parts(block)) for block in headings)
        if section.path and (not is_hidden or section.heading in covered.named):
            visible_paths.add(section.path)
        inner_path = tuple(
            heading
            for depth, heading in enumerate(section.path, start=1)
            if not covered.original or section.path[:depth] in visible_paths or heading in covered.named
        )
        path = covered.path
        is_repeated = path and inner_path and breadcrumb(path[-1:]) == breadcrumb(inner_path[:1])
        if is_repeated and not covered.above:
            path = path[:-1]
        return (*path, *inner_path)

    # --- Paragraphs

    def _list_paragraphs(self, section: Section, path: HeadingPath) -> OutlineSection | None:
        metadata = {"document": self._document_index, "section_path": path}
        title = breadcrumb(path)
        blocks = self._document.blocks(section)
        n_headings = sum(block.kind == "heading" for block in blocks)
        paragraphs, readable = [], []
        for block in blocks[n_headings:]:
            for start, end in self._covered.list_stored_parts(block):
                id_, position = self._find_position(start, end)
                text = self._covered.text[start:end]
                passage = Passage(text, id=id_, title=title, metadata={**metadata, **position})
                is_rendered = block.rendering is not None and (start, end) == (block.start, block.end)
                readable_text = (block.rendering or "") if is_rendered else text
                if readable_text.strip():
                    paragraphs.append(passage)
                    readable.append(passage if readable_text == text else replace(passage, text=readable_text))
        if not paragraphs:
            return None
        text = "\n\n".join(passage.text for passage in readable)
        section_passage = Passage(text, id=f"{self._id_prefix}{section.start}", title=title, metadata=metadata)
        return OutlineSection(section_passage, tuple(paragraphs), tuple(readable))

    def _find_position(self, start: int, end: int) -> tuple[str, dict[str, Any]]:
        """Return the id of a part of the text, and metadata about its position."""
        span = self._covered.find_span(start, end)
        offset, offset_end = self._covered.find_offset(start), self._covered.find_end(end)
        position: dict[str, Any] = {"chunk": span.chunk}
        if offset is None:
            position["part"] = str(start - span.start)
        else:
            position |= {"start": offset, "end": offset_end}
        return f"{self._id_prefix}{start if offset is None else offset}", position

    # --- Passages

    def _group_blocks(self, paths: Mapping[Section, HeadingPath]) -> list[list[list[SourceBlock]]]:
        """Return the blocks of each section, in groups without a missing text between them."""
        groups: list[list[list[SourceBlock]]] = []
        last: SourceBlock | None = None
        for section, path in paths.items():
            starts_section = True
            for block in self._list_blocks(section, path):
                if last is None or not self._covered.is_adjacent(last.end, block.start):
                    groups.append([[]])
                elif starts_section:
                    groups[-1].append([])
                if last is not None and last.is_exact and block.is_exact:
                    block = replace(block, gap=self._covered.find_gap(last.end, block.start))
                groups[-1][-1].append(block)
                last, starts_section = block, False
        return groups

    def _list_blocks(self, section: Section, path: HeadingPath) -> Iterator[SourceBlock]:
        """Yield the parts of blocks that chunks contain. A heading counts only as a whole."""
        for block in self._document.blocks(section):
            for start, end in self._covered.list_stored_parts(block):
                is_complete = (start, end) == (block.start, block.end)
                if block.kind == "heading" and self._covered.text[block.start : block.end].strip() != (
                    self._covered.text[start:end].strip()
                ):
                    continue
                is_exact = block.rendering is None or not is_complete
                text = self._covered.text[start:end] if is_exact else block.rendering or ""
                n_leading = len(text) - len(text.lstrip("\r\n")) if is_exact else 0
                text, start = text.strip("\r\n").rstrip(), start + n_leading
                if text.strip():
                    end = start + len(text) if is_exact else end
                    yield SourceBlock(text, block.kind, path, start, end, is_exact, origin=section.start)

    def _locate(self, packed: PackedPassage) -> tuple[str, str, dict[str, Any]]:
        id_, position = self._find_position(packed.start, packed.end)
        return id_, self._covered.text[packed.start : packed.end], position
