"""A run of text of a stored document: the spans of it that chunks contain, and their offsets in the document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter, itemgetter

from drillrank.structure.stored_chunks import HeadingPath

_MAX_NEIGHBORS = 8  # overlapping spans among which one is searched that contains a whole paragraph
_MAX_STRIPPED = 8  # characters between two chunks that a splitter may have stripped


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """Span of a text that a chunk contains.

    Attributes:
        start: Offset in the text.
        end: Offset just after the span.
        chunk_index: Index of the chunk among those of its document.
    """

    start: int
    end: int
    chunk_index: int


@dataclass(frozen=True)
class StoredRun:
    r"""Text of a document, joined from chunks, or the original that they were cut from.

    Attributes:
        text: Chunks joined where they continue each other, with a blank line where the text between them is unknown.
            Or the original.
        spans: Spans of the chunks, rising by start. They may overlap.
        shifts: Pairs of an offset in the text and the number that, from this offset on, leads to the offset in the
            document. Empty if that is not known.
        path: Headings above the text: joined, if drillrank cut the chunks, or a tuple. The last may be the heading that
            the text begins with.
        is_below_path: True if the last is never that heading.
        rendered_end: Offset in the document just after a text that is a rendering of the source. None if the text is
            the source.
        named_headings: Headings that chunks of an original name, and that may be shown though no chunk contains them.
            None if the text is not an original.
        rest_chunk: Index of the chunk that is all of the text. Text that no other chunk contains is its.
        metadata: Metadata, as for `parse_document`.
    """

    text: str
    spans: tuple[ChunkSpan, ...]
    shifts: tuple[tuple[int, int], ...] = ()
    path: str | HeadingPath = ()
    is_below_path: bool = False
    rendered_end: int | None = None
    named_headings: frozenset[str] | None = None
    rest_chunk: int | None = None
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def is_section(self) -> bool:
        """True if drillrank cut the text, or if it is a whole document. Then its offsets are known."""
        return isinstance(self.path, str)

    @property
    def is_original(self) -> bool:
        """True if the text is the original. Then headings that no chunk contains or names are not shown."""
        return self.named_headings is not None

    @property
    def is_rendering(self) -> bool:
        """True if the text is not the source."""
        return self.rendered_end is not None

    @property
    def ends_paragraphs_with_spaces(self) -> bool:
        """True if two spaces at the end of a line end a paragraph, as LangChain's splitters by headings write."""
        return bool(self.path) and not self.is_below_path and not self.shifts

    @property
    def start(self) -> int | None:
        """Offset of the first character in the document. None if it is not known."""
        return self.find_offset(0)

    @property
    def end(self) -> int | None:
        """Offset in the document just after the text. None if it is not known."""
        return self.find_end(len(self.text))

    @cached_property
    def _gapless_spans(self) -> list[tuple[int, int]]:
        """Spans without a gap between chunks. White space of an original between two chunks is not a gap."""
        if self.rest_chunk is not None:
            return [(0, len(self.text))]
        gapless: list[tuple[int, int]] = []
        last_chunk = -1
        for span in self.spans:
            if gapless and (span.start <= gapless[-1][1] or self._is_white_space(gapless[-1][1], span, last_chunk)):
                gapless[-1] = gapless[-1][0], max(gapless[-1][1], span.end)
            else:
                gapless.append((span.start, span.end))
            last_chunk = span.chunk_index
        return gapless

    def _is_white_space(self, end: int, span: ChunkSpan, last_chunk: int) -> bool:
        return self.is_original and span.chunk_index != last_chunk and self.text[end : span.start].isspace()

    def list_stored_spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a span of the text that chunks contain, without white space around them."""
        index = max(bisect_right(self._gapless_spans, start, key=itemgetter(0)) - 1, 0)
        for gapless_start, gapless_end in self._gapless_spans[index:]:
            if gapless_start >= end:
                return
            part_start, part_end = max(gapless_start, start), min(gapless_end, end)
            part = self.text[part_start:part_end]
            if part.strip():
                is_complete = (part_start, part_end) == (start, end)
                n_leading = 0 if is_complete else len(part) - len(part.lstrip())
                yield part_start + n_leading, part_start + len(part if is_complete else part.rstrip())

    def find_chunk_span(self, start: int, end: int) -> ChunkSpan:
        """Return the span of a chunk that contains a part of the text, or else its beginning."""
        index = bisect_right(self.spans, start, key=attrgetter("start")) - 1
        neighbors = [self.spans[i] for i in range(index, max(index - _MAX_NEIGHBORS, -1), -1)]
        for span in neighbors:
            if span.end >= end:
                return span
        if self.rest_chunk is not None:
            return ChunkSpan(0, len(self.text), self.rest_chunk)
        return next((span for span in neighbors if span.end > start), self.spans[max(index, 0)])

    def find_offset(self, offset: int) -> int | None:
        """Return the offset in the document of an offset in the text. None if that is not known."""
        if not self.shifts:
            return None
        return offset + self.shifts[bisect_right(self.shifts, offset, key=itemgetter(0)) - 1][1]

    def find_end(self, end: int) -> int | None:
        """Return the offset in the document just after a part that ends at an offset in the text."""
        if self.rendered_end is not None:
            return self.rendered_end
        last = self.find_offset(end - 1)
        return None if last is None else last + 1

    def is_adjacent(self, end: int, start: int) -> bool:
        """Return True if only white space is between an end and a start in the document.

        Splitters strip white space around chunks: a few characters between two of them are taken for it.
        """
        if self.text[end:start].strip():
            return False
        return self.is_original or self._count_between(end, start) <= max(start - end, _MAX_STRIPPED)

    def find_gap(self, end: int, start: int) -> str:
        """Return the white space between an end and a start in the document.

        Splitters strip it, and only its length is known: a line break, or a blank line for two characters or more.
        """
        between = self.text[end:start]
        if between.strip():
            return "\n\n"
        n_stripped = self._count_between(end, start)
        return between if n_stripped == start - end else "\n" * min(max(n_stripped, 0), 2)

    def _count_between(self, end: int, start: int) -> int:
        """Return the number of characters between an end and a start in the document."""
        document_end, document_start = self.find_end(end), self.find_offset(start)
        return start - end if document_end is None or document_start is None else document_start - document_end
