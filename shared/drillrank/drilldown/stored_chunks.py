"""Rebuild the sections of a document from stored sections, or parts of sections, with their paths and offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from drillrank.corpus.documents import Unit
from drillrank.drilldown.outline import OutlineSection, outline
from drillrank.drilldown.stored_passages import pack_sections
from drillrank.passages import Passage
from drillrank.structure import Document, breadcrumb, parse_document
from drillrank.structure.packing import PackedPassage, SourceBlock
from drillrank.structure.passages import list_source_blocks

HeadingPath = tuple[str, ...]
_BLANK_LINES = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A document, a section of one, or a part of a section, as it is stored.

    Attributes:
        text: The source, or a rendering of it.
        path: Headings from the root, joined. Empty for a whole document.
        start: Offset of the first character in the document.
        end: Offset just after the last character, which distinguishes a rendering from the source. None if the text is
            the source.
        metadata: Metadata of the document, as for `parse_document`.
    """

    text: str
    path: str = ""
    start: int = 0
    end: int | None = None
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def stop(self) -> int:
        """Offset just after the last character."""
        return self.start + len(self.text) if self.end is None else self.end

    @property
    def is_source(self) -> bool:
        """True if the text is not a rendering."""
        return len(self.text) == self.stop - self.start


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive chunks of one section, joined.

    Attributes:
        chunk: The joined text with the path of the section.
        members: Start of each chunk in the document and its index, rising by start.
    """

    chunk: StoredChunk
    members: tuple[tuple[int, int], ...]

    def find_chunk(self, offset: int) -> int:
        """Return the index of the chunk that contains an offset in the document."""
        return self.members[max(bisect_right(self.members, offset, key=itemgetter(0)) - 1, 0)][1]


class ChunkAssembler:
    """Builds the sections of one document from its chunks.

    Args:
        document_index: Index of the document in the input.
        separator: Text between the headings of a chunk's path.
        unit: Unit of evidence.
    """

    def __init__(self, document_index: int, separator: str, unit: Unit = "paragraph") -> None:
        self._document_index = document_index
        self._separator = separator
        self._unit = unit
        # Heading paths by their joined form: a heading may contain the separator.
        self._paths: dict[str, HeadingPath] = {}

    def build_sections(self, chunks: Sequence[StoredChunk]) -> list[OutlineSection]:
        """Return the sections in document order. Equal chunks count once."""
        runs = _join_runs(chunks)
        format = "auto"
        if len(runs) > 1:
            texts = "\n\n".join(run.chunk.text for run in runs)
            format = parse_document(texts, metadata=runs[0].chunk.metadata).format
        if self._unit == "passage":
            groups = [self._list_group(group, format) for group in _group_adjacent(runs)]
            return pack_sections(self._document_index, groups, _PassageLocator(self._document_index, runs).locate)
        return self._list_paragraphs(runs, format)

    # --- Paragraphs

    def _list_paragraphs(self, runs: Sequence[_Run], format: str) -> list[OutlineSection]:
        sections: list[OutlineSection] = []
        end = -1
        for run in runs:
            run_sections, own_paths = self._parse_run(run, format)
            # An empty section is shown by its heading, unless the next run continues below it. A run with an equal
            # heading of its own begins another section.
            continues = bool(run_sections and sections) and run.chunk.start == end
            if (
                continues
                and sections[-1].path[1:] not in own_paths
                and _has_only_heading(sections[-1], run_sections[0])
            ):
                sections.pop()
            sections += run_sections
            end = run.chunk.stop
        return sections

    def _parse_run(self, run: _Run, format: str) -> tuple[list[OutlineSection], set[HeadingPath]]:
        """Return the sections of a run, and the paths of all headings in it."""
        if not run.chunk.is_source:
            return self._split_rendering(run), set()
        document, stored_path = self._parse(run, format)
        sections = self._drop_own_heading(outline([document]), run.chunk.path)
        run = replace(run, chunk=replace(run.chunk, path=stored_path))
        own_paths = {self._join_paths(run.chunk.path, section.path) for section in document.sections() if section.path}
        return [self._move_section(section, run) for section in sections], own_paths

    def _parse(self, run: _Run, format: str) -> tuple[Document, str]:
        """Parse a run, and return the path above its sections: empty if its headings are the whole path.

        The heading paths of all its sections are remembered: others may be below empty ones.
        """
        document = parse_document(run.chunk.text, format, metadata=run.chunk.metadata)
        stored_path = run.chunk.path
        paths = [section.path for section in document.sections()]
        if (
            paths
            and paths[0]
            and any(len(path) > 1 and breadcrumb(path, self._separator) == stored_path for path in paths)
        ):
            stored_path = ""
        for section_path in paths:
            path = self._join_paths(stored_path, section_path)
            self._paths.setdefault(breadcrumb(path, self._separator), path)
        return document, stored_path

    def _drop_own_heading(self, sections: list[OutlineSection], stored_path: str) -> list[OutlineSection]:
        """Drop the first paragraph if it is the chunk's own heading, which only the whole document marks as one."""
        first = sections[0].paragraphs[0] if sections and not sections[0].passage.title else None
        if first is None or not self._is_own_heading(first.text, stored_path):
            return sections
        top = replace(sections[0], paragraphs=sections[0].paragraphs[1:], readable=sections[0].readable[1:])
        return [top, *sections[1:]] if top.paragraphs else sections[1:]

    def _is_own_heading(self, text: str, stored_path: str) -> bool:
        heading = self._separator + breadcrumb([text], self._separator)
        return f"{self._separator}{stored_path}".endswith(heading)

    def _move_section(self, section: OutlineSection, run: _Run) -> OutlineSection:
        """Return a section of a chunk as a section of the document."""
        path = self._join_paths(run.chunk.path, section.passage.metadata["section_path"])

        def move(passage: Passage) -> Passage:
            metadata: dict[str, Any] = {"document": self._document_index, "section_path": path}
            for key in ("start", "end"):
                if key in passage.metadata:
                    metadata[key] = passage.metadata[key] + run.chunk.start
            start = int(passage.id.rpartition(":")[2]) + run.chunk.start
            metadata["chunk"] = run.find_chunk(start)
            return replace(passage, id=f"{self._document_index}:{start}", title=breadcrumb(path), metadata=metadata)

        return OutlineSection(
            move(section.passage), tuple(map(move, section.paragraphs)), tuple(map(move, section.readable))
        )

    def _split_rendering(self, run: _Run) -> list[OutlineSection]:
        """Return the section of a rendering, whose paragraphs have the span of the chunk."""
        chunk, path = run.chunk, self._split_path(run.chunk.path)
        _, blocks = self._split_blocks(chunk)
        if not blocks:
            return []
        metadata = {"document": self._document_index, "section_path": path, "chunk": run.members[0][1]}
        title, id_ = breadcrumb(path), f"{self._document_index}:{chunk.start}"
        span = {"start": chunk.start, "end": chunk.stop}
        paragraphs = tuple(
            Passage(block, id=f"{id_}:{part}", title=title, metadata={**metadata, **span, "part": part})
            for part, block in enumerate(blocks)
        )
        passage = Passage("\n\n".join(blocks), id=id_, title=title, metadata=metadata)
        return [OutlineSection(passage, paragraphs, paragraphs)]

    def _split_blocks(self, chunk: StoredChunk) -> tuple[list[str], list[str]]:
        """Return the heading of a rendering, if it begins with it, and its other blocks."""
        path = self._split_path(chunk.path)
        blocks = [block.strip("\n") for block in _BLANK_LINES.split(chunk.text) if block.strip()]
        n_headings = int(bool(blocks and path) and breadcrumb(blocks[:1]) == breadcrumb(path[-1:]))
        return blocks[:n_headings], blocks[n_headings:]

    # --- Passages

    def _list_group(self, runs: Sequence[_Run], format: str) -> list[list[SourceBlock]]:
        """Return the blocks of each section of neighboring runs, with the white space between the runs."""
        text = "".join(run.chunk.text for run in runs) if all(run.chunk.is_source for run in runs) else None
        start = runs[0].chunk.start
        sections: list[list[SourceBlock]] = []
        for run in runs:
            run_sections = self._list_blocks(run, format)
            if text is not None and sections and run_sections:
                last, first = sections[-1][-1], run_sections[0][0]
                between = text[last.end - start : first.start - start]
                if last.is_exact and first.is_exact and not between.strip():
                    run_sections[0][0] = replace(first, gap=between)
            sections += run_sections
        return sections

    def _list_blocks(self, run: _Run, format: str) -> list[list[SourceBlock]]:
        """Return the blocks of each section of a run, with offsets in the document."""
        chunk = run.chunk
        if not chunk.is_source:
            headings, blocks = self._split_blocks(chunk)
            path = self._split_path(chunk.path)
            texts = [(text, "heading") for text in headings] + [(text, "paragraph") for text in blocks]
            rendered = [
                SourceBlock(text.rstrip(), kind, path, chunk.start, chunk.stop, is_exact=False, origin=chunk.start)
                for text, kind in texts
            ]
            return [rendered] if rendered else []
        document, stored_path = self._parse(run, format)
        sections = []
        for index, blocks_of_section in enumerate(list_source_blocks(document, document.sections())):
            first = blocks_of_section[0]
            if index == 0 and not first.path and self._is_own_heading(first.text, chunk.path):
                blocks_of_section[0] = replace(first, kind="heading")
            sections.append([self._move_block(block, stored_path, chunk.start) for block in blocks_of_section])
        return sections

    def _move_block(self, block: SourceBlock, stored_path: str, offset: int) -> SourceBlock:
        _, section = block.origin
        return replace(
            block,
            path=self._join_paths(stored_path, section.path),
            start=block.start + offset,
            end=block.end + offset,
            origin=section.start + offset,
        )

    # --- Heading paths

    def _join_paths(self, stored_path: str, inner_path: HeadingPath) -> HeadingPath:
        """Return the path of a section inside a chunk. The chunk's path may end with the section's own heading."""
        heading = breadcrumb(inner_path[:1], self._separator)
        if inner_path and stored_path == heading:
            return inner_path
        if inner_path and stored_path.endswith(self._separator + heading):
            stored_path = stored_path[: -len(self._separator + heading)]
        return (*self._split_path(stored_path), *inner_path)

    def _split_path(self, stored_path: str) -> HeadingPath:
        return self._paths.get(stored_path) or tuple(filter(None, stored_path.split(self._separator)))


class _PassageLocator:
    """Finds the chunk and the source text of passages.

    Args:
        document_index: Index of the document in the input.
        runs: All runs of the document, rising by start.
    """

    def __init__(self, document_index: int, runs: Sequence[_Run]) -> None:
        self._document_index = document_index
        self._runs = runs
        self._starts = [run.chunk.start for run in runs]

    def locate(self, packed: PackedPassage) -> tuple[str, str, dict[str, Any]]:
        """Return the id of a passage, its source text, and its position."""
        first_run = max(bisect_right(self._starts, packed.start) - 1, 0)
        position: dict[str, Any] = {"start": packed.start, "end": packed.end}
        position["chunk"] = self._runs[first_run].find_chunk(packed.start)
        texts = list(self._slice_runs(first_run, packed)) if all(part.block.is_exact for part in packed.parts) else []
        return f"{self._document_index}:{packed.start}", "".join(texts) or packed.text, position

    def _slice_runs(self, run_index: int, packed: PackedPassage) -> Iterator[str]:
        for run in self._runs[run_index:]:
            if run.chunk.start >= packed.end:
                return
            yield run.chunk.text[max(packed.start - run.chunk.start, 0) : packed.end - run.chunk.start]


def _has_only_heading(section: OutlineSection, next_section: OutlineSection) -> bool:
    """Return True if a section has only its heading, which is above the next section."""
    depth = len(section.path)
    return not section.passage.text and len(next_section.path) > depth and next_section.path[:depth] == section.path


def _join_runs(chunks: Sequence[StoredChunk]) -> list[_Run]:
    """Join chunks that continue each other in one section, in document order. Each text is copied once."""
    index_by_chunk: dict[tuple[int, str, str], int] = {}
    for index, chunk in enumerate(chunks):
        index_by_chunk.setdefault((chunk.start, chunk.path, chunk.text), index)
    groups: list[list[int]] = []
    for index in sorted(index_by_chunk.values(), key=lambda index: chunks[index].start):
        if groups and _continues(chunks[groups[-1][-1]], chunks[index]):
            groups[-1].append(index)
        else:
            groups.append([index])
    return [_join_run([chunks[index] for index in group], group) for group in groups]


def _join_run(chunks: Sequence[StoredChunk], indices: Sequence[int]) -> _Run:
    members = tuple((chunk.start, index) for chunk, index in zip(chunks, indices, strict=True))
    if len(chunks) == 1:
        return _Run(chunks[0], members)
    return _Run(replace(chunks[0], text="".join(chunk.text for chunk in chunks), end=chunks[-1].end), members)


def _continues(chunk: StoredChunk, next_chunk: StoredChunk) -> bool:
    """Return True if a chunk ends where the next one begins, in the same section, and both are the source."""
    are_sources = chunk.is_source and next_chunk.is_source
    return are_sources and next_chunk.path == chunk.path and chunk.stop == next_chunk.start


def _group_adjacent(runs: Sequence[_Run]) -> list[list[_Run]]:
    """Group runs without a missing text between them."""
    groups: list[list[_Run]] = []
    for run in runs:
        if groups and groups[-1][-1].chunk.stop == run.chunk.start:
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups
