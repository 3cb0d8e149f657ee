"""Cut documents into chunks: sections, parts of sections, passages, paragraphs, or texts of fixed length.

Implements sections 3.2 and 5.6 of MC-indexing. By default, sections of more than 512 tokens are cut, because most
encoders read 512 tokens, and small sections are joined. `drillrank.text.token_counter` counts the tokens. White space
around a chunk does not count.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from typing import Literal

from drillrank.errors import InvalidInput, check_limits
from drillrank.settings import check_one_of
from drillrank.structure import Document, Section
from drillrank.structure.packing import MAX_CHARACTERS
from drillrank.structure.passages import cut_passages
from drillrank.text import TokenCount, Tokens, token_counter
from drillrank.views.spans import Spans, SpanSplitter, concatenate, is_heading_only

Chunking = Literal["section", "passage", "paragraph", "content_aware_fixed", "fixed"]

SizeLimit = int | Literal["default"] | None
"""Number of tokens; None for no limit, "default" for the default of a component or of its preset."""

MAX_TOKENS = 512  # what most encoders read
MIN_TOKENS = 64
_HEADING_NUMBER = re.compile(r"^(?:[\d.]+|[IVX]+\.)\s+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A section, a part of a section, or several small sections.

    Attributes:
        text: Readable text: the source of the span, or its rendering if markup hides the text. A later part of a table
            begins with the table's first lines, which are not in its span.
        body: The text without the heading at its beginning and without white space around it. If nothing comes after
            the heading, the body is the heading.
        path: Headings from the root, own heading included.
        level: Depth of the heading as written; 0 without a heading.
        start: Offset of the first character in the document's text.
        end: Offset just after the last character.
        ordinal: Index of the section, or of the first one, in `document.sections()`.
        part: 0 for the first chunk that begins in that section, 1 for the second, and so on.
        depth: Number of headings from the root to the section, or to the first one, own heading included.
    """

    text: str
    body: str
    path: tuple[str, ...]
    level: int
    start: int
    end: int
    ordinal: int
    part: int
    depth: int


@dataclass(frozen=True)
class Chunker:
    r"""Cuts documents into chunks: `chunker(document)` is the list of its chunks, in order.

    Code is cut only if it is too long alone, between lines. The same applies to tables, whose later parts repeat the
    first lines. If a block's text is a rendering (HTML, LaTeX), each part of it has the span of the whole block.

    Args:
        chunking: `"section"`: sections. Those of more than `max_tokens` are cut between blocks, then between lines,
            sentences and words. `"passage"`: consecutive blocks of up to 1,200 characters, as
            `drillrank.structure.passages.cut_passages` makes them. The path is that of the first section. If a passage
            has more than `max_tokens`, all passages of the document are made smaller. `"paragraph"`: paragraphs, lists,
            tables and code blocks, the first one of a section with its heading. `"content_aware_fixed"`: as many
            sentences of one section (or lines of tables, lists and code) as fit. `"fixed"`: the same without regard to
            sections; paths are empty.
        max_tokens: Largest size of a chunk. None sets no limit, which both chunkings of fixed length refuse.
        min_tokens: Size up to which sections are joined. A section of fewer tokens joins the previous one if that is
            its parent, or has the same parent and is as small, until they have `min_tokens` together. Sections with
            others below them join nothing. The joined chunk has the parent's path. A heading without text of its own
            goes with the first section below it. None joins nothing. A document of at most `max_tokens` stays as it
            is: joining would save little.
        tokens: How tokens are counted: see `drillrank.text.token_counter`.
        exclude: Names of sections to leave out with all sections below them, such as "References". Case and numbers in
            front of a heading do not matter.

    Raises:
        InvalidInput: the chunking is unknown, a limit is below 1, or the arguments exclude each other.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Trees\n\n## Oak\n\nTall.\n\n## Elm\n\nTaller.\n\n## Ash\n\nTallest.\n")
    >>> [chunk.path for chunk in Chunker(min_tokens=None, exclude=["elm"])(document)]
    [('Trees',), ('Trees', 'Oak'), ('Trees', 'Ash')]
    >>> [(chunk.path, chunk.text) for chunk in Chunker(max_tokens=None, min_tokens=9)(document)]
    [(('Trees',), '# Trees\n\n## Oak\n\nTall.\n\n## Elm\n\nTaller.\n\n'), (('Trees', 'Ash'), '## Ash\n\nTallest.\n')]
    >>> text = "# Oak\n\nOaks grow tall in the old forests of the north. Their wood is hard and heavy, and dear.\n"
    >>> [chunk.text for chunk in Chunker("content_aware_fixed", 18)(parse_document(text))]
    ['# Oak\n\nOaks grow tall in the old forests of the north. ', 'Their wood is hard and heavy, and dear.\n']
    """

    chunking: Chunking = "section"
    max_tokens: int | None = MAX_TOKENS
    min_tokens: int | None = MIN_TOKENS
    tokens: Tokens = None
    exclude: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_one_of(Chunking, chunking=self.chunking)
        check_limits(max_tokens=self.max_tokens, min_tokens=self.min_tokens)
        token_counter(self.tokens)
        if self.max_tokens is None and "fixed" in self.chunking:
            raise InvalidInput(
                f"chunking={self.chunking!r:.200} needs max_tokens, the length of a chunk, got None. Set max_tokens."
            )
        if isinstance(self.exclude, str) or not all(isinstance(name, str) for name in self.exclude):
            raise InvalidInput(f"exclude must be a list of section names, got {self.exclude!r:.200}.")
        if self.exclude and self.chunking == "fixed":
            raise InvalidInput(
                f"exclude={self.exclude!r:.200} requires chunks with sections, got chunking='fixed'. Remove exclude or "
                "use chunking='section'."
            )
        if self.min_tokens in (None, MIN_TOKENS):
            return
        if self.chunking != "section":
            raise InvalidInput(
                f"min_tokens={self.min_tokens} joins small sections, which requires chunking='section', got "
                f"{self.chunking!r:.200}. Remove min_tokens."
            )
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidInput(
                f"min_tokens must be at most max_tokens, got min_tokens={self.min_tokens} and "
                f"max_tokens={self.max_tokens}. Lower min_tokens."
            )

    def __call__(self, document: Document) -> list[Chunk]:
        """Return the chunks of a document that show text."""
        splitter = SpanSplitter(document, self.max_tokens, token_counter(self.tokens))
        joins_small = self._joins_small_sections(splitter)
        if self.chunking == "passage":
            chunks = self._cut_passages(splitter)
        elif self.chunking == "fixed":
            blocks = [spans for section in document.sections() for spans in splitter.blocks(section)]
            chunks = _build_chunks(splitter, self._cut_blocks(splitter, blocks), has_sections=False)
        else:
            groups = self._cut_sections(splitter, self._select_sections(document), joins_small)
            chunks = _build_chunks(splitter, groups, has_sections=True)
        if joins_small:
            least = min(self.min_tokens or 0, self.max_tokens or sys.maxsize)
            chunks = _SectionJoiner(document.text, document.sections(), self.max_tokens, least, splitter.count).join(
                chunks
            )
        sections = document.sections()
        return [_with_heading_as_body(sections, chunk) for chunk in chunks]

    def _joins_small_sections(self, splitter: SpanSplitter) -> bool:
        if not self.min_tokens or self.chunking != "section":
            return False
        return self.max_tokens is None or splitter.count(splitter.document.text) > self.max_tokens

    def _select_sections(self, document: Document) -> list[Section]:
        """Return the sections that `exclude` does not name."""
        excluded_names = set(map(_normalize_heading, self.exclude))
        return [
            section
            for section in document.sections()
            if excluded_names.isdisjoint(map(_normalize_heading, section.path))
        ]

    def _cut_passages(self, splitter: SpanSplitter) -> list[Chunk]:
        """Cut the document into passages. Halve their size until all are within the limit of tokens."""
        document = splitter.document
        sections, size = self._select_sections(document), MAX_CHARACTERS
        passages = cut_passages(document, size, sections)
        while self.max_tokens and size > 1 and any(splitter.count(p.text) > self.max_tokens for p in passages):
            size //= 2
            passages = cut_passages(document, size, sections)
        ordinal_by_section = {section: ordinal for ordinal, section in enumerate(document.sections())}
        chunks: list[Chunk] = []
        for passage in passages:
            first_section, body = passage.sections[0], passage.text
            for heading in takewhile(lambda block: block.kind == "heading", passage.blocks):
                body = body.removeprefix(document.readable(heading).strip()).lstrip()
            ordinal, path = ordinal_by_section[first_section], passage.section_path
            part = chunks[-1].part + 1 if chunks and chunks[-1].ordinal == ordinal else 0
            span = (passage.start, passage.end)
            chunks.append(Chunk(passage.text, body.strip(), path, first_section.level, *span, ordinal, part, len(path)))
        return chunks

    def _cut_sections(self, splitter: SpanSplitter, sections: Sequence[Section], joins_small: bool) -> list[Spans]:
        """Cut each section. If small sections are joined, headings without text go with the next section."""
        result: list[Spans] = []
        headings_above: list[Spans] = []
        for section, next_section in zip_longest(sections, sections[1:]):
            blocks = [*headings_above, *splitter.blocks(section)]
            headings_above = []
            is_parent = (
                next_section and next_section.start == section.end and len(next_section.path) > len(section.path)
            )
            if joins_small and is_parent and all(is_heading_only(spans[:1]) for spans in blocks):
                headings_above = blocks
            elif blocks:
                result += self._cut_blocks(splitter, blocks)
        return result

    def _cut_blocks(self, splitter: SpanSplitter, blocks: list[Spans]) -> list[Spans]:
        """Cut the blocks of a section, or of all sections, into chunks."""
        if "fixed" in self.chunking:
            return splitter.pack_chunks([part for spans in blocks for part in splitter.split(spans)])
        n_first = len(blocks)
        if self.chunking == "paragraph":
            n_first = 2 if is_heading_only(blocks[0][:1]) else 1
        first_blocks, other_blocks = blocks[:n_first], blocks[n_first:]
        if self.max_tokens is None:
            return [concatenate(first_blocks), *other_blocks]
        return [*splitter.pack_chunks(splitter.split_long(first_blocks)), *splitter.split_long(other_blocks)]


def _build_chunks(splitter: SpanSplitter, groups: Sequence[Spans], has_sections: bool) -> list[Chunk]:
    """Build a chunk of each group of spans that shows text."""
    sections = splitter.document.sections()
    section_starts = [section.start for section in sections]
    chunks: list[Chunk] = []
    for spans in groups:
        text = body = splitter.text(spans)
        if not text.strip():
            continue
        section_start = spans[0].start
        if has_sections:
            body = splitter.text([span for span in spans if span.block.kind != "heading"])
            # The chunk belongs to the section whose text it shows, after the headings above it.
            section_start = [spans[0], *takewhile(lambda span: is_heading_only([span]), spans)][-1].start
        ordinal = bisect_right(section_starts, section_start) - 1
        section = sections[ordinal]
        path, level = (section.path, section.level) if has_sections else ((), 0)
        part = chunks[-1].part + 1 if chunks and chunks[-1].ordinal == ordinal else 0
        start, end = spans[0].start, spans[-1].end
        chunks.append(Chunk(text, body.strip(), path, level, start, end, ordinal, part, len(path)))
    return chunks


def _with_heading_as_body(sections: Sequence[Section], chunk: Chunk) -> Chunk:
    """Return the chunk with its heading as the body if nothing else is in it or below it."""
    if chunk.path and not chunk.body and _is_leaf(sections, chunk):
        return replace(chunk, body=chunk.path[-1])
    return chunk


@dataclass(frozen=True)
class _SectionJoiner:
    """Joins small neighboring sections under their parent.

    Args:
        text: The document's text.
        sections: The document's sections.
        limit: Largest number of tokens of a joined chunk; None sets no limit.
        least: Size from which a chunk is not small.
        count: Function that counts tokens.
    """

    text: str
    sections: Sequence[Section]
    limit: int | None
    least: int
    count: TokenCount

    def join(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the chunks, small neighbors joined."""
        cut_ordinals = {chunk.ordinal for chunk in chunks if chunk.part}
        size_by_ordinal = {
            chunk.ordinal: self.count(chunk.text.strip()) for chunk in chunks if chunk.ordinal not in cut_ordinals
        }
        groups: list[list[Chunk]] = []
        for chunk in chunks:
            if groups and self._can_join(groups[-1], chunk, size_by_ordinal):
                groups[-1].append(chunk)
            else:
                groups.append([chunk])
        level_by_path = {section.path: section.level for section in self.sections}
        return [self._merge(group, level_by_path) for group in groups]

    def _can_join(self, group: Sequence[Chunk], chunk: Chunk, size_by_ordinal: dict[int, int]) -> bool:
        sections = self.sections
        first, parent_path = group[0], chunk.path[:-1]
        are_siblings = first.path[:-1] == parent_path and first.depth == chunk.depth and _is_leaf(sections, first)
        return (
            chunk.depth > 0
            and group[-1].end == chunk.start
            and all(len(section.path) >= chunk.depth for section in sections[first.ordinal + 1 : chunk.ordinal])
            and (are_siblings or first.path == parent_path)
            and _is_leaf(sections, chunk)
            and all(size_by_ordinal.get(member.ordinal, self.least) < self.least for member in (*group, chunk))
            and sum(size_by_ordinal[member.ordinal] for member in group) < self.least
            and (self.limit is None or self.count(self._join_texts([*group, chunk]).strip()) <= self.limit)
        )

    def _merge(self, group: Sequence[Chunk], level_by_path: dict[tuple[str, ...], int]) -> Chunk:
        first, parent_path = group[0], group[-1].path[:-1]
        if len(group) == 1:
            return first
        text = self._join_texts(group)
        body = text if first.path != parent_path else f"{first.body}\n\n{text[len(first.text) :].strip()}"
        level = level_by_path.get(parent_path, 0)
        return replace(first, text=text, body=body.strip(), path=parent_path, level=level, end=group[-1].end)

    def _join_texts(self, group: Sequence[Chunk]) -> str:
        if all(chunk.text == self.text[chunk.start : chunk.end] for chunk in group):
            return self.text[group[0].start : group[-1].end]
        return "\n\n".join(chunk.text for chunk in group)


def _normalize_heading(heading: str) -> str:
    """Return a heading without its number and in lower case, to compare names of sections."""
    return _HEADING_NUMBER.sub("", " ".join(heading.split())).strip(" .:").casefold()


def _is_leaf(sections: Sequence[Section], chunk: Chunk) -> bool:
    """Return True if no section is below that of the chunk."""
    next_sections = sections[chunk.ordinal + 1 : chunk.ordinal + 2]
    return not next_sections or len(next_sections[0].path) <= chunk.depth
