"""What is indexed as one thing: sections, parts of them, paragraphs, or chunks of fixed length.

MC-indexing, sections 3.2 and 5.6. By default sections of more than 512 tokens, which is what most encoders read, are
cut, and small ones joined. Sizes are tokens as `drillrank.text.token_counter` counts them; white space around
a chunk does not count.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile, zip_longest
from typing import Literal

from drillrank.errors import InvalidInput, check_limits
from drillrank.settings import check_one_of
from drillrank.structure import Block, Document, Section
from drillrank.structure.cutting import Level, line_starts, packed, sentence_starts, tile_text
from drillrank.text import TokenCount, Tokens, token_counter, word_starts

Chunking = Literal["section", "paragraph", "content_aware_fixed", "fixed"]

MAX_TOKENS = 512  # what most encoders read
MIN_TOKENS = 64
_NUMBER = re.compile(r"^(?:[\d.]+|[IVX]+\.)\s+")  # in front of a heading


@dataclass(frozen=True, slots=True)
class Chunk:
    """A section, a part of one, or several small ones.

    Attributes:
        text: As a reader sees it: the source of the span, or its rendering where markup hides that. A later part of a
            table begins with the table's first lines, which are not in its span.
        body: The text without the heading that it begins with, and without white space around it; of a heading with
            nothing under it, the heading.
        path: Headings from the root, own heading included.
        level: Depth of the heading as written; 0 without one.
        start: Offset of the first character in the document's text.
        end: Offset just after the last one.
        ordinal: Place of the section, or of the first one, in `document.sections()`.
        part: 0 for the first chunk that begins in that section, 1 for the second, ...
        depth: Number of headings on the way to it, or to the first of several, own heading included.
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
    r"""Cuts documents: `chunker(document)` is the list of its chunks, in order.

    Code is cut only where it is too long alone, between lines. So are tables, and the later parts repeat the first
    lines. Where a block's text is a rendering (HTML, LaTeX), each part of it has the span of the whole block.

    Args:
        chunking: `"section"`: sections, those of more than `max_tokens` cut between blocks, then between lines,
            sentences, words. `"paragraph"`: paragraphs, lists, tables and code blocks, the first of a section with its
            heading. `"content_aware_fixed"`: sentences of one section (lines of tables, lists and code), as many as
            fit. `"fixed"`: the same without regard to sections; paths are empty.
        max_tokens: Largest size of a chunk; None for no limit, which the two of fixed length cannot do without.
        min_tokens: A section of fewer tokens joins the one before it, if that is its parent or has the same parent and
            is as small, until they have as many together; sections with others below them join nothing. The chunk has
            the parent's path. A heading without text of its own goes with the first section below it. All sections stay
            apart with None, and in a document that is no longer than `max_tokens`: there is little to save.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`.
        exclude: Names of sections that are left out with all below them, such as "References"; neither case nor a
            number in front counts.

    Raises:
        InvalidInput: the chunking is unknown, a limit is below 1, or the limits do not go together or with it.

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
            raise InvalidInput(f"chunking={self.chunking!r:.200} needs max_tokens, the length of a chunk.")
        if isinstance(self.exclude, str) or not all(isinstance(name, str) for name in self.exclude):
            raise InvalidInput(f"exclude is a list of names of sections; not {self.exclude!r:.200}.")
        if self.exclude and self.chunking == "fixed":
            raise InvalidInput("exclude leaves out sections, and chunking='fixed' knows none.")
        if self.min_tokens in (None, MIN_TOKENS):
            return
        if self.chunking != "section":
            raise InvalidInput(
                f"min_tokens joins small sections: it goes with chunking='section', not {self.chunking!r:.200}."
            )
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidInput(f"min_tokens ({self.min_tokens}) is above max_tokens ({self.max_tokens}).")

    def __call__(self, document: Document) -> list[Chunk]:
        """The chunks of a document, without those that show no text."""
        splits = Splits(document, self.max_tokens, token_counter(self.tokens))
        sections = document.sections()
        starts = [section.start for section in sections]
        left_out = set(map(_plain, self.exclude))
        wanted = [section for section in sections if left_out.isdisjoint(map(_plain, section.path))]
        joins = self.min_tokens and self.chunking == "section"
        joins = joins and (self.max_tokens is None or splits.count(document.text) > self.max_tokens)
        if self.chunking == "fixed":
            runs = self._cut(splits, [run for section in sections for run in splits.blocks(section)])
        else:
            runs = self._runs(splits, wanted, bool(joins))
        chunks: list[Chunk] = []
        for run in runs:
            text = body = splits.text(run)
            if not text.strip():
                continue
            section_start = run[0].start  # of the section that it shows, behind the headings above
            if self.chunking != "fixed":
                body = splits.text([span for span in run if span.block.kind != "heading"])
                section_start = [run[0], *takewhile(lambda span: span.block.kind == "heading", run)][-1].start
            ordinal = bisect_right(starts, section_start) - 1
            section = sections[ordinal]
            path, level = (section.path, section.level) if self.chunking != "fixed" else ((), 0)
            part = chunks[-1].part + 1 if chunks and chunks[-1].ordinal == ordinal else 0
            start, end = run[0].start, run[-1].end
            chunks.append(Chunk(text, body.strip(), path, level, start, end, ordinal, part, len(path)))
        if joins:
            chunks = self._joined(document, chunks, splits.count)
        return [
            replace(chunk, body=chunk.path[-1])
            if chunk.path and not chunk.body and _is_leaf(sections, chunk)
            else chunk
            for chunk in chunks
        ]

    def _runs(self, splits: Splits, sections: Sequence[Section], joins: bool) -> list[Run]:
        runs: list[Run] = []
        above: list[Run] = []  # headings without text of their own
        for section, below in zip_longest(sections, sections[1:]):
            blocks = [*above, *splits.blocks(section)]
            above = []
            is_parent = below and below.start == section.end and len(below.path) > len(section.path)
            if joins and is_parent and all(run[0].block.kind == "heading" for run in blocks):
                above = blocks
            elif blocks:
                runs += self._cut(splits, blocks)
        return runs

    def _cut(self, splits: Splits, blocks: list[Run]) -> list[Run]:
        """The blocks of a section, or of all, as chunks have them."""
        if "fixed" in self.chunking:
            return splits.packed([piece for run in blocks for piece in splits.parts_of(run)])
        together = len(blocks)
        if self.chunking == "paragraph":
            together = 2 if blocks[0][0].block.kind == "heading" else 1
        first, others = blocks[:together], blocks[together:]
        if self.max_tokens is None:
            return [[span for run in first for span in run], *others]
        return [*splits.packed(splits.fitted(first)), *splits.fitted(others)]

    def _joined(self, document: Document, chunks: Sequence[Chunk], count: TokenCount) -> list[Chunk]:
        """Neighbours that are small, joined under their parent."""
        sections = document.sections()
        least = min(self.min_tokens or 0, self.max_tokens or sys.maxsize)
        cut = {chunk.ordinal for chunk in chunks if chunk.part}
        sizes = {chunk.ordinal: count(chunk.text.strip()) for chunk in chunks if chunk.ordinal not in cut}

        def joins(group: Sequence[Chunk], chunk: Chunk) -> bool:
            first, parent = group[0], chunk.path[:-1]
            siblings = first.path[:-1] == parent and first.depth == chunk.depth and _is_leaf(sections, first)
            return (
                chunk.depth > 0
                and group[-1].end == chunk.start
                and all(len(section.path) >= chunk.depth for section in sections[first.ordinal + 1 : chunk.ordinal])
                and (siblings or first.path == parent)
                and _is_leaf(sections, chunk)
                and all(sizes.get(member.ordinal, least) < least for member in (*group, chunk))
                and sum(sizes[member.ordinal] for member in group) < least
                and (self.max_tokens is None or count(_text(document, [*group, chunk]).strip()) <= self.max_tokens)
            )

        groups: list[list[Chunk]] = []
        for chunk in chunks:
            if groups and joins(groups[-1], chunk):
                groups[-1].append(chunk)
            else:
                groups.append([chunk])
        levels = {section.path: section.level for section in sections}
        joined = []
        for group in groups:
            first, path = group[0], group[-1].path[:-1]
            if len(group) > 1:
                text = _text(document, group)
                body = text if first.path != path else f"{first.body}\n\n{text[len(first.text) :].strip()}"
                first = replace(first, text=text, body=body.strip(), path=path, level=levels.get(path, 0))
            joined.append(replace(first, end=group[-1].end))
        return joined


def _plain(heading: str) -> str:
    """A heading without its number, as names of sections are compared."""
    return _NUMBER.sub("", " ".join(heading.split())).strip(" .:").casefold()


def _is_leaf(sections: Sequence[Section], chunk: Chunk) -> bool:
    following = sections[chunk.ordinal + 1 : chunk.ordinal + 2]
    return not following or len(following[0].path) <= chunk.depth


def _text(document: Document, group: Sequence[Chunk]) -> str:
    if all(chunk.text == document.text[chunk.start : chunk.end] for chunk in group):
        return document.text[group[0].start : group[-1].end]
    return "\n\n".join(chunk.text for chunk in group)


@dataclass(frozen=True, slots=True)
class Span:
    """A block or a part of one.

    Attributes:
        block: The block.
        start: Offset of the first character in the document's text. What lies between two blocks belongs to the first.
        end: Offset just after the last one.
        rendering: The text as a reader sees it, where that is not the source; the span is the whole block's then.
        header: What a reader needs before it if nothing of the block stands there: a table's first lines.
    """

    block: Block
    start: int
    end: int
    rendering: str | None
    header: str = ""


Run = Sequence[Span]
"""Neighbouring spans that stay together."""


@dataclass(frozen=True, slots=True)
class Splits:
    """A document's blocks, split at lines, sentences and words, and packed again as far as the limit allows.

    Args:
        document: The document.
        limit: Most tokens of a run; None if nothing is to be split.
        count: Counts them.
    """

    document: Document
    limit: int | None
    count: TokenCount

    def blocks(self, section: Section) -> list[Run]:
        """The blocks of a section, each a run; with the white space between them they tile the section."""
        blocks = self.document.blocks(section)
        starts = [section.start, *(block.start for block in blocks[1:]), section.end]
        spans = zip(blocks, pairwise(starts), strict=True) if blocks else ()
        return [[Span(block, start, end, block.rendering)] for block, (start, end) in spans]

    def text(self, run: Run) -> str:
        """The readable text of a run, a table's header repeated where the run begins inside the table."""
        return run[0].header + self._bare_text(run) if run else ""

    def fits(self, run: Run) -> bool:
        """Whether a run is no longer than the limit, white space around it not counted."""
        return self.limit is None or self.count(self.text(run).strip()) <= self.limit

    def fitted(self, runs: Iterable[Run]) -> list[Run]:
        """The runs, those that are too long cut: each into as few as its lines, sentences or words allow.

        A heading goes with the first part of a block that is cut after it.
        """
        found: list[Run] = []
        for run in runs:
            if self.fits(run):
                found.append(run)
                continue
            parts = self.parts_of(run)
            if found and all(span.block.kind == "heading" for span in found[-1]):
                parts.insert(0, found.pop())
            found += self.packed(parts)
        return found

    def packed(self, runs: Sequence[Run]) -> list[Run]:
        """Join neighbours, from the first on, as long as they fit; a run that is too long alone stays alone."""
        # A space mostly belongs to the next word's token, a line break does not.
        sizes = [self.count(self._bare_text(run).rstrip(" \t")) for run in runs]
        headers = [self.count(run[0].header) for run in runs]

        def together(start: int, end: int) -> list[Span]:
            return [span for run in runs[start:end] for span in run]

        groups = packed(sizes, self.limit or 0, lambda start, end: self.fits(together(start, end)), headers)
        return [together(start, end) for start, end in groups]

    def parts_of(self, run: Run) -> list[Run]:
        """The lines (of tables, code and lists) or sentences of a run; where one is too long its words, characters."""
        limit = self.limit or 0
        found: list[Run] = []
        for span in run:
            text = self._bare_text([span])
            header, behind = self._table_header(text, span) if span.block.kind == "table" else ("", 0)
            levels = _LEVELS.get(span.block.kind, (sentence_starts, word_starts))
            for begin, stop in tile_text(text, limit - self.count(header), self._bare_count, levels):
                repeated = header if begin >= behind else ""
                if span.rendering is None:
                    found.append([Span(span.block, span.start + begin, span.start + stop, None, repeated)])
                else:
                    found.append([Span(span.block, span.start, span.end, text[begin:stop], repeated)])
        return found

    def _bare_count(self, text: str) -> int:
        return self.count(text.strip())

    def _bare_text(self, run: Run) -> str:
        if all(span.rendering is None for span in run):
            return self.document.text[run[0].start : run[-1].end]
        parts = [run[0].rendering or ""]
        for before, span in pairwise(run):
            parts += ["" if before.block is span.block or not span.rendering else "\n\n", span.rendering or ""]
        return "".join(parts)

    def _table_header(self, text: str, span: Span) -> tuple[str, int]:
        """The lines to repeat and where they end: a Markdown table's header and the rule below it, or the first row.

        Nothing is repeated where the lines alone take more than half of the limit.
        """
        lead = span.block.start - span.start if span.rendering is None else 0  # blank lines before the table
        behind = lead + line_starts(text[lead:])[2 if span.rendering is None else 1]
        header = text[lead:behind]
        return header if 2 * self.count(header) <= (self.limit or 0) else "", behind


def _lines(text: str) -> list[int]:
    return [start for start in line_starts(text) if 0 < start < len(text)]


_LEVELS: dict[str, tuple[Level, ...]] = {
    "table": (_lines, sentence_starts, word_starts),
    "list": (_lines, sentence_starts, word_starts),
    "code": (_lines, word_starts),
}
