"""Reassemble a document from its stored chunks, whether drillrank or another splitter cut them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Generic

from drillrank.structure.stored_chunks import DocumentName, RecordT, StoredChunk
from drillrank.structure.text_runs import ChunkSpan, TextRun


@dataclass(frozen=True)
class ReassembledDocument(Generic[RecordT]):
    """The text of a document, as far as stored chunks contain it.

    Attributes:
        name: Namespace and id.
        chunks: Its chunks, each once.
        runs: Runs of text of its chunks.
        original: Record that is the whole document, if there is one and it contains all chunks.
        is_separate: True if other chunks of this name cannot be of the same document.
    """

    name: DocumentName
    chunks: tuple[StoredChunk[RecordT], ...]
    runs: tuple[TextRun, ...]
    original: StoredChunk[RecordT] | None = None
    is_separate: bool = False

    @property
    def has_offsets(self) -> bool:
        """True if the offsets in the document are known of all its chunks."""
        return all(run.shifts for run in self.runs)

    @property
    def is_contradictory(self) -> bool:
        """True if two chunks have different texts at the same offset: of two versions, or of two owners."""
        if self.original is not None:
            return False
        if _has_sections(self.chunks):
            return _overlap(self.chunks)
        if any(
            chunk.is_below_path for chunk in self.chunks
        ):  # cut again: offsets may count from a part of the document
            return False
        return not all(map(_agree, _group_by_page(self.chunks)))

    @property
    def key(self) -> Hashable:
        """Key for a cache of what is made of the runs: equal for equal texts, offsets and metadata."""
        return tuple((run, repr(run.metadata)) for run in self.runs)

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
    r"""Join the chunks of one document where they continue each other, in time linear in their texts.

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
    if original is None or spans is None:
        return ReassembledDocument(name, distinct, tuple(_list_runs(distinct)), None, is_separate)
    run = TextRun(
        original.text,
        tuple(spans),
        ((0, 0),),
        named_headings=frozenset(heading for chunk in distinct if chunk.path for heading in chunk.path),
        rest_chunk=len(distinct) if shows_rest else None,
        metadata=(original if shows_rest else distinct[0]).metadata,
    )
    return ReassembledDocument(name, distinct, (run,), original, is_separate)


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


def _has_sections(chunks: Iterable[StoredChunk[Any]]) -> bool:
    return any(chunk.kind == "section" for chunk in chunks)


def _list_runs(chunks: Sequence[StoredChunk[Any]]) -> Iterator[TextRun]:
    index_by_chunk = {id(chunk): index for index, chunk in enumerate(chunks)}
    is_whole = len(chunks) == 1 and chunks[0].may_be_whole
    if is_whole or _has_sections(chunks):
        groups, has_sections = _group_sections(chunks), True
    else:
        groups, has_sections = [run for page in _group_by_page(chunks) for run in _group_by_path(page)], False
    for group in groups:
        text, spans, shifts = _join([(index_by_chunk[id(chunk)], chunk) for chunk in group])
        first = group[0]
        if has_sections:
            rendered_end = None if _is_source(first) else first.end
            path = _joined_path(first)
            yield TextRun(text, spans, shifts, path, rendered_end=rendered_end, metadata=first.metadata)
        else:
            # A whole page begins where the page does.
            has_shifts = first.has_exact_offsets or (first.has_no_place and first.page is not None)
            headings = first.path if isinstance(first.path, tuple) else ()
            yield TextRun(
                text, spans, shifts if has_shifts else (), headings, first.is_below_path, metadata=first.metadata
            )


def _join(
    group: Iterable[tuple[int, StoredChunk[Any]]],
) -> tuple[str, tuple[ChunkSpan, ...], tuple[tuple[int, int], ...]]:
    """Join chunks, each with its index, in document order. Return the text, the spans of the chunks, and the shifts."""
    texts: list[str] = []
    spans: list[ChunkSpan] = []
    shifts: list[tuple[int, int]] = []
    length = end = 0  # characters of the joined text, and where its last part ends in the document
    for index, chunk in group:
        start = chunk.start or 0
        if not spans or start > end:
            texts.append("\n\n" if texts else "")
            length += len(texts[-1])
            shifts.append((length, start - length))
            end = start
        span_start = length - (end - start)
        texts.append(chunk.text[end - start :])
        spans.append(ChunkSpan(span_start, span_start + len(chunk.text), index))
        length += len(texts[-1])
        end = max(end, start + len(chunk.text))
    return "".join(texts), tuple(spans), tuple(shifts)


# --- Sections that drillrank cut, and whole documents


def _joined_path(chunk: StoredChunk[Any]) -> str:
    return chunk.path if isinstance(chunk.path, str) else ""


def _end(chunk: StoredChunk[Any]) -> int:
    return (chunk.start or 0) + len(chunk.text) if chunk.end is None else chunk.end


def _is_source(chunk: StoredChunk[Any]) -> bool:
    """Return True if the text of a section is not a rendering, which has another length than its span."""
    return len(chunk.text) == _end(chunk) - (chunk.start or 0)


def _group_sections(chunks: Iterable[StoredChunk[Any]]) -> list[list[StoredChunk[Any]]]:
    """Group chunks that continue each other in one section, in document order. Equal ones count once."""
    chunk_by_key: dict[tuple[int, str, str], StoredChunk[Any]] = {}
    for chunk in chunks:
        chunk_by_key.setdefault((chunk.start or 0, _joined_path(chunk), chunk.text), chunk)
    groups: list[list[StoredChunk[Any]]] = []
    for chunk in sorted(chunk_by_key.values(), key=lambda chunk: chunk.start or 0):
        if groups and _continues(groups[-1][-1], chunk):
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
    return groups


def _continues(chunk: StoredChunk[Any], next_chunk: StoredChunk[Any]) -> bool:
    """Return True if a chunk ends where the next one begins, in the same section, and both are the source."""
    are_sources = _is_source(chunk) and _is_source(next_chunk)
    return are_sources and _joined_path(next_chunk) == _joined_path(chunk) and _end(chunk) == (next_chunk.start or 0)


def _overlap(sections: Iterable[StoredChunk[Any]]) -> bool:
    """Return True if sections overlap, which those of one version never do. Ends that are not known are ignored."""
    end, previous = -1, None
    for section in sorted(sections, key=lambda section: section.start or 0):
        start = section.start or 0
        has_same_start = previous is not None and start == (previous.start or 0)
        if start < end or (has_same_start and previous is not None and section.text != previous.text):
            return True
        end, previous = max(end, section.end or 0), section
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
