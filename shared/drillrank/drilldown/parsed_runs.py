"""Paragraphs and blocks of a run of text, as far as stored chunks contain them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from drillrank.drilldown.heading_paths import HeadingPaths
from drillrank.drilldown.outline import OutlineSection
from drillrank.passages import Passage
from drillrank.structure import Block, Document, Section, breadcrumb, parse_document
from drillrank.structure.cutting import split_long_paragraph
from drillrank.structure.packing import PackedPassage, SourceBlock
from drillrank.structure.stored_chunks import HeadingPath
from drillrank.structure.stored_runs import StoredRun

_BLANK_LINES = re.compile(r"\n\s*\n")
_SPACES_AT_LINE_END = re.compile(r"  \n")


@dataclass(frozen=True, slots=True)
class _Part:
    """Block with readable text, or the part of it that chunks contain.

    Attributes:
        kind: Kind of the block.
        start: Offset in the text of the run.
        end: Offset just after the part.
        source: Text of the run from `start` to `end`.
        text: Readable text.
        is_exact: True if the readable text is the source.
    """

    kind: str
    start: int
    end: int
    source: str
    text: str
    is_exact: bool


class BlockOrigin(NamedTuple):
    """Run and section of a block.

    Attributes:
        run: The run.
        section_id: Id of the section.
    """

    run: ParsedRun
    section_id: str


@dataclass(frozen=True, eq=False)
class ParsedRun:
    """A run of text with its sections.

    Attributes:
        run: The run.
        document: The parsed text.
        paths: Heading path of each section.
        own_heading: First block of the run, if it is its heading, which only the whole document marks as one.
        document_index: Index of the document in the input.
        id_prefix: Beginning of the ids of its sections and paragraphs.
    """

    run: StoredRun
    document: Document
    paths: Mapping[Section, HeadingPath]
    own_heading: Block | None
    document_index: int
    id_prefix: str

    # --- Paragraphs

    def list_sections(self) -> Iterator[OutlineSection]:
        """Yield the sections with their paragraphs.

        A section that drillrank cut and that has only a heading, with no section below it, is shown by its heading.
        """
        sections = self.document.sections()
        for section, next_section in zip_longest(sections, sections[1:]):
            parts = list(self._list_parts(section))
            body = [part for part in parts if part.kind != "heading"]
            if not body and self.run.is_section and not self.run.is_rendering and section.path:
                is_last = next_section is None or len(next_section.path) <= len(section.path)
                body = parts if is_last else []
            if body:
                yield self._build_section(section, body)

    def _build_section(self, section: Section, parts: list[_Part]) -> OutlineSection:
        path = self.paths[section]
        title, metadata = breadcrumb(path), {"document": self.document_index, "section_path": path}
        pairs = []
        for index, part in enumerate(parts):
            id_, position = self._find_position(part.start, part.end)
            source_text = part.source
            if self.run.is_rendering:
                id_, source_text, position["part"] = f"{id_}:{index}", part.text, index
            source = Passage(source_text, id=id_, title=title, metadata={**metadata, **position})
            readable = source if part.text == source_text else replace(source, text=part.text)
            pairs += split_long_paragraph(source, readable) if self.run.is_section else [(source, readable)]
        text = "\n\n".join(readable.text for _, readable in pairs)
        if self.run.is_section and not self.run.is_rendering:
            text = self.document.body(section).strip()
        passage = Passage(text, id=self._section_id(section), title=title, metadata=metadata)
        return OutlineSection(passage, tuple(source for source, _ in pairs), tuple(readable for _, readable in pairs))

    def _section_id(self, section: Section) -> str:
        return f"{self.id_prefix}{section.start + self.packing_offset}"

    def _find_position(self, start: int, end: int) -> tuple[str, dict[str, Any]]:
        """Return the id of a part of the text, and metadata about its position."""
        span = self.run.find_chunk_span(start, end)
        offset, offset_end = self.run.find_offset(start), self.run.find_end(end)
        position: dict[str, Any] = {"chunk": span.chunk_index}
        if offset is None:
            position["part"] = str(start - span.start)
        else:
            position |= {"start": offset, "end": offset_end}
        return f"{self.id_prefix}{start if offset is None else offset}", position

    def _list_parts(self, section: Section) -> Iterator[_Part]:
        """Yield the parts of blocks that chunks contain and that show text. A heading counts only as a whole."""
        for block in self.document.blocks(section):
            for start, end in self.run.list_stored_spans(block.start, block.end):
                source = self.run.text[start:end]
                is_exact = block.rendering is None or (start, end) != (block.start, block.end)
                text = source if is_exact else block.rendering or ""
                is_partial = self.run.text[block.start : block.end].strip() != source.strip()
                if text.strip() and not (block.kind == "heading" and is_partial):
                    kind = "heading" if block is self.own_heading else block.kind
                    yield _Part(kind, start, end, source, text, is_exact)

    # --- Blocks of passages

    @property
    def packing_offset(self) -> int:
        """Number from an offset in the text to that of `list_blocks`: passages of sections may have several runs."""
        return self.run.start or 0 if self.run.is_section else 0

    def list_blocks(self) -> list[list[list[SourceBlock]]]:
        """Return the blocks of each section, in groups without a missing text between them.

        The offsets of sections that drillrank cut are those in the document, others are those in the text.
        """
        groups: list[list[list[SourceBlock]]] = []
        previous: _Part | None = None
        for section, path in self.paths.items():
            is_first = True
            for part in map(_strip, self._list_parts(section)):
                gap = "\n\n"
                if previous is None or not (self.run.is_section or self.run.is_adjacent(previous.end, part.start)):
                    groups.append([[]])
                elif is_first:
                    groups[-1].append([])
                if previous is not None and previous.is_exact and part.is_exact:
                    gap = self.run.find_gap(previous.end, part.start)
                start, end = part.start + self.packing_offset, part.end + self.packing_offset
                end = end if self.run.rendered_end is None else self.run.rendered_end
                origin = BlockOrigin(self, self._section_id(section))
                groups[-1][-1].append(SourceBlock(part.text, part.kind, path, start, end, part.is_exact, gap, origin))
                previous, is_first = part, False
        return groups

    def locate(self, packed: PackedPassage) -> tuple[str, dict[str, Any], str]:
        """Return the id of a passage that begins in this run, metadata about its position, and its source text.

        The metadata have `paragraph_spans`, with None for offsets that are not known; see `ParagraphSpan`.
        """
        run, start, end = self.run, packed.start - self.packing_offset, packed.end - self.packing_offset
        id_, position = self._find_position(start, end)
        if not run.is_section:
            position["paragraph_spans"] = tuple(
                (run.find_offset(span.start), run.find_end(span.end), span.text_start, span.text_end)
                for span in packed.paragraphs
            )
            return id_, position, run.text[start:end]
        position |= {"end": packed.end, "paragraph_spans": tuple(map(tuple, packed.paragraphs))}
        if not all(part.block.is_exact for part in packed.parts):
            return id_, position, packed.text
        ends_in_run = end <= len(run.text)
        return id_, position, run.text[start:end] if ends_in_run else packed.text.removeprefix(packed.parts[0].head)


def _strip(part: _Part) -> _Part:
    """Return the part without line breaks around it."""
    n_leading = len(part.text) - len(part.text.lstrip("\r\n")) if part.is_exact else 0
    text, start = part.text.strip("\r\n").rstrip(), part.start + n_leading
    return replace(part, text=text, start=start, end=start + len(text) if part.is_exact else part.end)


def parse_run(
    run: StoredRun, paths: HeadingPaths, format: str, document_index: int = 0, id_prefix: str = "0:"
) -> ParsedRun:
    """Parse a run of text.

    Args:
        run: The run.
        paths: Finds the heading paths of its sections.
        format: Format of the text, as for `parse_document`.
        document_index: Index of the document in the input.
        id_prefix: Beginning of the ids of its sections and paragraphs.
    """
    if run.is_rendering:
        return _split_rendering(run, paths, document_index, id_prefix)
    text = _SPACES_AT_LINE_END.sub("\n\n\n", run.text) if run.ends_paragraphs_with_spaces else run.text
    document = parse_document(text, format, metadata=run.metadata)
    first_section = document.sections()[:1]
    blocks = [block for section in first_section if not section.path for block in document.blocks(section)]
    first = next((block for block in blocks if document.readable(block).strip()), None)
    is_heading = first is not None and paths.is_last_heading(document.readable(first), run.path)
    own_heading = first if is_heading else None
    return ParsedRun(run, document, paths.find_paths(run, document), own_heading, document_index, id_prefix)


def _split_rendering(run: StoredRun, paths: HeadingPaths, document_index: int, id_prefix: str) -> ParsedRun:
    """Return a rendering as one section. Each block has the span of the whole run."""
    path = paths.split(str(run.path))
    texts = [text.strip("\n") for text in _BLANK_LINES.split(run.text) if text.strip()]
    has_heading = bool(texts and path) and breadcrumb(texts[:1]) == breadcrumb(path[-1:])
    blocks = tuple(
        Block("heading" if has_heading and index == 0 else "paragraph", 0, len(run.text), text)
        for index, text in enumerate(texts)
    )
    section = Section(path, len(path), 0, len(run.text))
    document = Document(run.text, (section,), (blocks,))
    return ParsedRun(run, document, {section: path}, None, document_index, id_prefix)
