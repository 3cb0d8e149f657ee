"""Reassemble a document from its stored chunks, whether drillrank or another splitter cut them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Generic

from drillrank.structure.stored_chunks import DocumentName, HeadingPath, RecordT, StoredChunk
from drillrank.structure.stored_runs import ChunkSpan, StoredRun


@dataclass(frozen=True)
class ReassembledDocument(Generic[RecordT]):
    """The text of a document, as far as stored chunks contain it.

    Attributes:
        name: Namespace and id.
        chunks: Its chunks, each once.
        original: Record that is the whole document, if there is one and it contains all chunks.
        original_spans: Spans of the chunks in the original, rising by start.
        shows_rest: True if the text of the original that no chunk contains may be shown, too.
        is_separate: True if other chunks of this name cannot be of the same document.
    """

    name: DocumentName
    chunks: tuple[StoredChunk[RecordT], ...]
    original: StoredChunk[RecordT] | None = None
    original_spans: tuple[ChunkSpan, ...] = ()
    shows_rest: bool = False
    is_separate: bool = False

    @cached_property
    def runs(self) -> tuple[StoredRun, ...]:
        """Runs of text: chunks joined where they continue each other, or the original."""
        if self.original is None:
            return tuple(_list_runs(self.chunks))
        headings = frozenset(
            heading for chunk in self.chunks if isinstance(chunk.path, tuple) for heading in chunk.path
        )
        rest_chunk = len(self.chunks) if self.shows_rest else None
        return (
            StoredRun(
                self.original.text,
                self.original_spans,
                ((0, 0),),
                named_headings=headings,
                rest_chunk=rest_chunk,
                metadata=self.metadata,
            ),
        )

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Metadata of the first chunk in document order. With an original, those of the original or of a chunk."""
        if self.original is not None:
            return (self.original if self.shows_rest else self.chunks[0]).metadata
        return min(self.chunks, key=_sort_key).metadata if self.chunks else {}

    @property
    def has_offsets(self) -> bool:
        """True if the offsets in the document are known of all its chunks."""
        return self.original is not None or _is_cut_by_drillrank(self.chunks) or all(map(_has_offsets, self.chunks))

    @property
    def is_contradictory(self) -> bool:
        """True if two chunks have different texts at the same offset: of two versions, or of two owners."""
        if self.original is not None:
            return False
        if _is_cut_by_drillrank(self.chunks):
            return _overlap(self.chunks)
        if any(
            chunk.is_below_path for chunk in self.chunks
        ):  # cut again: offsets may count from a part of the document
            return False
        return not all(map(_agree, _group_by_page(self.chunks)))

    @property
    def key(self) -> Hashable:
        """Key for a cache of what is made of the runs. It needs no runs: equal chunks have equal ones."""
        original = self.original and (self.original.text, repr(self.original.metadata), self.shows_rest)
        return original, tuple(
            (
                *(chunk.text, chunk.path, chunk.start, chunk.end, chunk.page, chunk.kind),
                *(chunk.is_below_path, bool(chunk.aliases), repr(chunk.metadata)),
            )
            for chunk in self.chunks
        )

    def find_chunk(self, index: int) -> StoredChunk[RecordT]:
        """Return a chunk by the index that runs have, which is that of the original after those of all chunks."""
        if index == len(self.chunks) and self.original is not None:
            return self.original
        return self.chunks[index]


def reassemble(
    chunks: Iterable[StoredChunk[RecordT]],
    original: StoredChunk[RecordT] | None = None,
    *,
    name: DocumentName | None = None,
    shows_rest: bool = False,
    is_separate: bool = False,
) -> ReassembledDocument[RecordT]:
    r"""Put the chunks of one document together. Their text is joined when the document's runs are first used.

    Args:
        chunks: Chunks in any order. Repeated ones count once, and views only without their raw section.
        original: Record that is the whole document: gives structure and offsets. It is ignored if it does not contain
            the text of each chunk.
        name: Name of the document. None takes that of the first chunk. A single chunk that may be a whole document
            has its own name.
        shows_rest: True if the text of the original that no chunk contains may be shown, too.
        is_separate: True if other chunks of this name cannot be of the same document.

    >>> sea = StoredChunk(1, "1", "# Sea\n\nDeep.\n", ("", "a"), "section", "raw", path="Sea", start=0, end=13)
    >>> fish = StoredChunk(2, "2", "Cod.", ("", "a"), "section", "raw", path="Sea", start=13, end=17)
    >>> [(run.text, run.path, run.shifts) for run in reassemble([fish, sea]).runs]
    [('# Sea\n\nDeep.\nCod.', 'Sea', ((0, 0),))]
    """
    distinct = tuple(deduplicate_records(chunks))
    name = name or (distinct[0].document if distinct else ("", ""))
    if len(distinct) == 1 and distinct[0].may_be_whole and distinct[0].aliases:
        name = (name[0], distinct[0].aliases[0])
    spans = None if original is None else find_chunk_spans(original.text, distinct)
    if spans is None:
        return ReassembledDocument(name, distinct, is_separate=is_separate)
    return ReassembledDocument(name, distinct, original, tuple(spans), shows_rest, is_separate)


def deduplicate_records(chunks: Iterable[StoredChunk[RecordT]]) -> list[StoredChunk[RecordT]]:
    """Return each chunk once, and views only of sections without a raw record."""
    chunks = list(chunks)
    if any(chunk.kind != "section" and chunk.path and chunk.start is None for chunk in chunks):
        # Splitters by headings know no offsets. Those of the others may count from a chunk of such a splitter.
        chunks = [chunk if chunk.start is None else replace(chunk, start=None, end=None) for chunk in chunks]
    raw_ids = {chunk.id for chunk in chunks if chunk.is_raw}
    # The first of equal records counts, at the position of the last: hits come before all chunks in document order.
    kept = [chunk for chunk in chunks if chunk.is_raw or chunk.id not in raw_ids]
    chunk_by_key = {(chunk.id, chunk.text): chunk for chunk in reversed(kept)}
    return list(reversed(chunk_by_key.values()))


def find_chunk_spans(text: str, chunks: Sequence[StoredChunk[Any]]) -> list[ChunkSpan] | None:
    """Return the spans of chunks in the text that they were cut from, or None if it does not contain one of them.

    >>> find_chunk_spans("A fox. A hen.", [StoredChunk(0, "1", "A hen.", ("", "a"))])
    [ChunkSpan(start=7, end=13, chunk_index=0)]
    """
    spans: list[ChunkSpan] = []
    search_start = 0
    for index, chunk in sorted(enumerate(chunks), key=lambda pair: pair[1].start or 0):
        is_at_start = chunk.start is not None and chunk.start >= 0 and text.startswith(chunk.text, chunk.start)
        start = chunk.start or 0 if is_at_start else text.find(chunk.text, search_start)
        start = text.find(chunk.text) if start < 0 else start
        if start < 0:
            return None
        spans.append(ChunkSpan(start, start + len(chunk.text), index))
        search_start = start + 1
    return sorted(spans, key=lambda span: span.start)


# --- Chunks that continue each other


def _sort_key(chunk: StoredChunk[Any]) -> tuple[int, bool, int]:
    """Return the page and the offset of a chunk, to compare. Chunks without them are before and after the others."""
    return chunk.page if isinstance(chunk.page, int) else -1, chunk.start is None, chunk.start or 0


def _is_cut_by_drillrank(chunks: Sequence[StoredChunk[Any]]) -> bool:
    """Return True if chunks are sections, or the whole document."""
    is_whole = len(chunks) == 1 and chunks[0].may_be_whole
    return is_whole or any(chunk.kind == "section" for chunk in chunks)


def _has_offsets(chunk: StoredChunk[Any]) -> bool:
    """Return True if the offsets of a chunk of another splitter are known. A whole page begins where the page does."""
    return chunk.has_exact_offsets or (chunk.has_no_position and chunk.page is not None)


def _list_runs(chunks: Sequence[StoredChunk[Any]]) -> Iterator[StoredRun]:
    index_by_chunk = {id(chunk): index for index, chunk in enumerate(chunks)}
    if _is_cut_by_drillrank(chunks):
        for group in _group_sections(chunks):
            first = group[0]
            rendered_end = None if _is_source(first) else first.end
            run = _join(group, index_by_chunk, _joined_path(first))
            yield run if rendered_end is None else replace(run, rendered_end=rendered_end)
        return
    for page in _group_by_page(chunks):
        for group in _group_by_path(page):
            path = group[0].path if isinstance(group[0].path, tuple) else ()
            run = _join(group, index_by_chunk, path)
            yield run if _has_offsets(group[0]) else replace(run, shifts=())


def _join(group: Sequence[StoredChunk[Any]], index_by_chunk: Mapping[int, int], path: str | HeadingPath) -> StoredRun:
    """Join chunks in document order.

    Args:
        group: The chunks.
        index_by_chunk: Index of each chunk in its document, by its identity.
        path: Headings above the chunks.
    """
    texts: list[str] = []
    spans: list[ChunkSpan] = []
    shifts: list[tuple[int, int]] = []
    length = end = 0  # characters of the joined text, and where its last part ends in the document
    for chunk in group:
        start, text = chunk.start or 0, chunk.text
        if not spans or start > end:
            texts.append("\n\n" if texts else "")
            length += len(texts[-1])
            shifts.append((length, start - length))
            end = start
        span_start = length - (end - start)
        texts.append(text[end - start :])
        spans.append(ChunkSpan(span_start, span_start + len(text), index_by_chunk[id(chunk)]))
        length += len(texts[-1])
        end = max(end, start + len(text))
    first = group[0]
    return StoredRun("".join(texts), tuple(spans), tuple(shifts), path, first.is_below_path, metadata=first.metadata)


# --- Sections that drillrank cut, and whole documents


def _joined_path(chunk: StoredChunk[Any]) -> str:
    return chunk.path if isinstance(chunk.path, str) else ""


def _is_source(chunk: StoredChunk[Any]) -> bool:
    """Return True if the text of a section is not a rendering, which has another length than its span."""
    return chunk.end is None or len(chunk.text) == chunk.end - (chunk.start or 0)


def _group_sections(chunks: Iterable[StoredChunk[Any]]) -> list[list[StoredChunk[Any]]]:
    """Group chunks that continue each other in one section, in document order. Equal ones count once."""
    chunk_by_key: dict[tuple[int, str, str], StoredChunk[Any]] = {}
    for chunk in chunks:
        chunk_by_key.setdefault((chunk.start or 0, _joined_path(chunk), chunk.text), chunk)
    groups: list[list[StoredChunk[Any]]] = []
    end: tuple[int, str] | None = None  # offset and path at which a chunk continues the last one
    for (start, path, text), chunk in sorted(chunk_by_key.items(), key=lambda item: item[0][0]):
        if _is_source(chunk) and end == (start, path):
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
        end = (start + len(text), path) if _is_source(chunk) else None
    return groups


def _overlap(sections: Iterable[StoredChunk[Any]]) -> bool:
    """Return True if sections overlap, which those of one version never do. Ends that are not known are ignored.

    Parts of a long block that is rendered are an exception: each has the span of the block. Two versions of a section
    have the same id, and parts have different ids.
    """
    furthest: StoredChunk[Any] | None = None
    text_by_id: dict[str, str] = {}
    for section in sorted(sections, key=lambda section: section.start or 0):
        if text_by_id.setdefault(section.id, section.text) != section.text:
            return True
        if furthest is not None:
            start, previous_start = section.start or 0, furthest.start or 0
            is_part = not (_is_source(section) or _is_source(furthest)) and section.id != furthest.id
            overlaps = start < (furthest.end or 0) or (start == previous_start and section.text != furthest.text)
            if overlaps and not is_part:
                return True
        if furthest is None or (section.end or 0) >= (furthest.end or 0):
            furthest = section
    return False


# --- Chunks of other splitters


def _group_by_page(chunks: Iterable[StoredChunk[Any]]) -> list[list[StoredChunk[Any]]]:
    chunks_by_page: dict[int | str | None, list[StoredChunk[Any]]] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.page if isinstance(chunk.page, int) else -1):
        chunks_by_page.setdefault(chunk.page, []).append(chunk)
    return list(chunks_by_page.values())


def _sort_with_offsets(chunks: Iterable[StoredChunk[Any]]) -> list[StoredChunk[Any]]:
    """Return the chunks whose offsets are known, in document order."""
    return sorted((chunk for chunk in chunks if chunk.has_exact_offsets), key=lambda chunk: chunk.start or 0)


def _agree(chunks: Iterable[StoredChunk[Any]]) -> bool:
    """Return True if all chunks with the same offset have the same text there."""
    furthest: StoredChunk[Any] | None = None
    for chunk in _sort_with_offsets(chunks):
        if furthest is not None:
            offset = (chunk.start or 0) - (furthest.start or 0)
            n_shared = max(min(len(furthest.text) - offset, len(chunk.text)), 0)
            if furthest.text[offset : offset + n_shared] != chunk.text[:n_shared]:
                return False
            if n_shared == len(chunk.text):
                continue
        furthest = chunk
    return True


def _group_by_path(page: Sequence[StoredChunk[Any]]) -> list[list[StoredChunk[Any]]]:
    """Group neighbors below the same headings. Chunks without offsets are groups of their own."""
    with_offsets = _sort_with_offsets(page) if _agree(page) else []
    ids = set(map(id, with_offsets))
    groups = [list(group) for _, group in groupby(with_offsets, key=lambda chunk: chunk.path)]
    return groups + [[chunk] for chunk in page if id(chunk) not in ids]
