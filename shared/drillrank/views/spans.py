"""Spans of a document, split at lines, sentences and words, and packed into chunks of limited size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from drillrank.structure import Block, Document, Section
from drillrank.structure.cutting import Level, line_starts, pack_neighbors, sentence_starts, tile_text
from drillrank.text import TokenCount, word_starts


@dataclass(frozen=True, slots=True)
class Span:
    """A block or a part of one.

    Attributes:
        block: The block.
        start: Offset of the first character in the document's text. Text between two blocks belongs to the first.
        end: Offset just after the last character.
        rendering: Readable text, or None if the source is readable. With a rendering, the span is that of the whole
            block.
        header: First lines of a table, repeated in front of the span if it begins a chunk. Empty for other blocks.
    """

    block: Block
    start: int
    end: int
    rendering: str | None
    header: str = ""


Spans = Sequence[Span]
"""Neighboring spans that stay together."""


def concatenate(groups: Iterable[Spans]) -> Spans:
    """Return the spans of all groups as one group."""
    return list(chain.from_iterable(groups))


def is_heading_only(spans: Spans) -> bool:
    """Return True if all spans are headings."""
    return all(span.block.kind == "heading" for span in spans)


@dataclass(frozen=True, slots=True)
class SpanSplitter:
    """Splits the blocks of a document into parts and packs the parts into chunks.

    Args:
        document: The document.
        limit: Largest number of tokens of a chunk. None splits nothing.
        count: Function that counts tokens.
    """

    document: Document
    limit: int | None
    count: TokenCount

    def blocks(self, section: Section) -> list[Spans]:
        """Return each block of a section with the white space after it. The spans tile the section."""
        blocks = self.document.blocks(section)
        starts = [section.start, *(block.start for block in blocks[1:]), section.end]
        starts_and_ends = zip(blocks, pairwise(starts), strict=True) if blocks else ()
        return [[Span(block, start, end, block.rendering)] for block, (start, end) in starts_and_ends]

    def text(self, spans: Spans) -> str:
        """Return readable text. If the spans begin inside a table, its header comes first."""
        return spans[0].header + self._bare_text(spans) if spans else ""

    def fits(self, spans: Spans) -> bool:
        """Return True if the text, without white space around it, is within the limit."""
        return self.limit is None or self.count(self.text(spans).strip()) <= self.limit

    def split_long(self, groups: Iterable[Spans]) -> list[Spans]:
        """Split each group that is too long into as few parts as its lines, sentences or words allow.

        A heading goes with the first part of a block that is split after it.
        """
        result: list[Spans] = []
        for spans in groups:
            if self.fits(spans):
                result.append(spans)
                continue
            parts = self.split(spans)
            if result and is_heading_only(result[-1]):
                parts.insert(0, result.pop())
            result += self.pack_chunks(parts)
        return result

    def pack_chunks(self, groups: Sequence[Spans]) -> list[Spans]:
        """Join neighbors, from the first one, as long as they fit. A group that is too long stays alone."""
        # A space mostly belongs to the next word's token, a line break does not.
        sizes = [self.count(self._bare_text(spans).rstrip(" \t")) for spans in groups]
        header_sizes = [self.count(spans[0].header) for spans in groups]
        ranges = pack_neighbors(
            sizes, self.limit or 0, lambda start, end: self.fits(concatenate(groups[start:end])), header_sizes
        )
        return [concatenate(groups[start:end]) for start, end in ranges]

    def split(self, spans: Spans) -> list[Spans]:
        """Split spans at lines (tables, code and lists) or sentences. Split what is too long at words or characters."""
        limit = self.limit or 0
        parts: list[Spans] = []
        for span in spans:
            text = self._bare_text([span])
            header, header_end = self._table_header(text, span) if span.block.kind == "table" else ("", 0)
            levels = _LEVELS.get(span.block.kind, (sentence_starts, word_starts))
            for start, end in tile_text(text, limit - self.count(header), self._count_stripped, levels):
                repeated_header = header if start >= header_end else ""
                if span.rendering is None:
                    part = Span(span.block, span.start + start, span.start + end, None, repeated_header)
                else:
                    part = Span(span.block, span.start, span.end, text[start:end], repeated_header)
                parts.append([part])
        return parts

    def _count_stripped(self, text: str) -> int:
        return self.count(text.strip())

    def _bare_text(self, spans: Spans) -> str:
        if all(span.rendering is None for span in spans):
            return self.document.text[spans[0].start : spans[-1].end]
        texts = [spans[0].rendering or ""]
        for previous, span in pairwise(spans):
            texts += ["" if previous.block is span.block or not span.rendering else "\n\n", span.rendering or ""]
        return "".join(texts)

    def _table_header(self, text: str, span: Span) -> tuple[str, int]:
        """Return the lines to repeat and their end: a Markdown table's header and rule, or the first row.

        The header is empty if it takes more than half of the limit.
        """
        n_blank = span.block.start - span.start if span.rendering is None else 0  # blank lines before the table
        header_end = n_blank + line_starts(text[n_blank:])[2 if span.rendering is None else 1]
        header = text[n_blank:header_end]
        return header if 2 * self.count(header) <= (self.limit or 0) else "", header_end


def _find_inner_lines(text: str) -> list[int]:
    return [start for start in line_starts(text) if 0 < start < len(text)]


_LEVELS: dict[str, tuple[Level, ...]] = {
    "table": (_find_inner_lines, sentence_starts, word_starts),
    "list": (_find_inner_lines, sentence_starts, word_starts),
    "code": (_find_inner_lines, word_starts),
}
