"""The sections of a text of which stored chunks hold spans: no paragraph says more than they hold."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from drillrank.drilldown.outline import OutlineSection
from drillrank.passages import Passage
from drillrank.structure import breadcrumb, parse_document
from drillrank.structure.document import Block

HeadingPath = tuple[str, ...]

_LINE_BREAK = re.compile(r"  \n")
_NEIGHBOURS = 8  # overlapping spans that are looked at for one that holds a whole paragraph


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """What a stored chunk holds of a text.

    Attributes:
        start: Offset in the text.
        end: Offset just after it.
        chunk: Number of the chunk among those of its document.
    """

    start: int
    end: int
    chunk: int


@dataclass(frozen=True)
class CoveredText:
    r"""A text, and the spans of it that stored chunks hold.

    Attributes:
        text: Chunks joined where they continue each other, with a blank line where what stands between them is not
            known; or the original that they were cut from.
        held_spans: What chunks hold of it, rising by start; they may overlap.
        shifts: By offset in the text from which on it holds, what added to it gives the offset in the document; empty
            where that is not known.
        path: Headings above the text, as its chunks name them; the last may be the heading that it begins with.
        above: Whether the last is never that heading.
        named: Headings that chunks of an original name, and that may be shown though no chunk holds them.
        original: Whether the text is the original. Then headings that no chunk holds or names are not shown.
        whole: Number of the chunk that is all of the text; what no other holds is its.
        breaks: Whether lines with two spaces at the end are the ends of paragraphs.
        format: As `parse_document` takes it.
        metadata: Likewise.
    """

    text: str
    held_spans: tuple[HeldSpan, ...]
    shifts: tuple[tuple[int, int], ...] = ()
    path: HeadingPath = ()
    above: bool = False
    named: frozenset[str] = frozenset()
    original: bool = False
    whole: int | None = None
    breaks: bool = False
    format: str = "auto"
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    @cached_property
    def _starts(self) -> list[int]:
        return [held_span.start for held_span in self.held_spans]

    @cached_property
    def _gapless_spans(self) -> list[tuple[int, int]]:
        """Spans that are held without a gap; white space of an original between two chunks is none."""
        if self.whole is not None:
            return [(0, len(self.text))]
        gapless: list[tuple[int, int]] = []
        last = -1
        for held_span in self.held_spans:
            if gapless and (held_span.start <= gapless[-1][1] or self._only_space(gapless[-1][1], held_span, last)):
                gapless[-1] = gapless[-1][0], max(gapless[-1][1], held_span.end)
            else:
                gapless.append((held_span.start, held_span.end))
            last = held_span.chunk
        return gapless

    def _only_space(self, end: int, held_span: HeldSpan, last: int) -> bool:
        return self.original and held_span.chunk != last and self.text[end : held_span.start].isspace()

    @cached_property
    def _held_starts(self) -> list[int]:
        return [start for start, _ in self._gapless_spans]

    def held_of(self, block: Block) -> Iterator[tuple[int, int]]:
        """The spans of a block that are held, without white space around them."""
        at = max(bisect_right(self._held_starts, block.start) - 1, 0)
        for start, end in self._gapless_spans[at:]:
            if start >= block.end:
                return
            start, end = max(start, block.start), min(end, block.end)
            inside = self.text[start:end]
            if inside.strip():
                whole = (start, end) == (block.start, block.end)
                lead = 0 if whole else len(inside) - len(inside.lstrip())
                yield start + lead, start + len(inside if whole else inside.rstrip())

    def held_span_of(self, start: int, end: int) -> HeldSpan:
        """What holds a span, or else its beginning."""
        at = bisect_right(self._starts, start) - 1
        around = range(at, max(at - _NEIGHBOURS, -1), -1)
        for position in around:
            if self.held_spans[position].end >= end:
                return self.held_spans[position]
        if self.whole is not None:
            return HeldSpan(0, len(self.text), self.whole)
        return next((self.held_spans[p] for p in around if self.held_spans[p].end > start), self.held_spans[max(at, 0)])

    def offset(self, at: int) -> int | None:
        """The offset in the document of an offset in the text."""
        if not self.shifts:
            return None
        return at + self.shifts[bisect_right(self.shifts, at, key=lambda shift: shift[0]) - 1][1]


def covered_sections(number: int, group: str, covered: CoveredText) -> list[OutlineSection]:
    r"""The sections of a text, with the paragraphs that its chunks hold.

    Metadata of a paragraph are `document`, `section_path`, `chunk` (the chunk that holds it), and `start` and `end` in
    the document; where these are not known, `part`, its offset in the chunk.

    Args:
        number: Of the document.
        group: What tells this text from the document's others; empty if it is the only one.
        covered: The text and what is held of it.

    >>> text = "# Sea\n\nIt is deep.\n\n"
    >>> spans = HeldSpan(0, 18, 0), HeldSpan(20, 29, 1)
    >>> [sea] = covered_sections(0, "", CoveredText(text + "And blue.", spans, ((0, 0), (20, 80))))
    >>> [(p.text, p.metadata["chunk"], p.metadata["start"]) for p in sea.paragraphs]
    [('It is deep.', 0, 7), ('And blue.', 1, 100)]
    """
    shape = _LINE_BREAK.sub("\n\n\n", covered.text) if covered.breaks else covered.text
    document = parse_document(shape, covered.format, metadata=covered.metadata)
    shown: set[HeadingPath] = set()
    sections = []
    for section in document.sections():
        blocks = document.blocks(section)
        headings = [block for block in blocks if block.kind == "heading"]
        hidden = covered.original and not any(any(covered.held_of(heading)) for heading in headings)
        if section.path and (not hidden or section.heading in covered.named):
            shown.add(section.path)
        inside = tuple(
            heading
            for depth, heading in enumerate(section.path, start=1)
            if not covered.original or section.path[:depth] in shown or heading in covered.named
        )
        path = _joined(covered, inside)
        location = {"document": number, "section_path": path}
        title = breadcrumb(path)
        paragraphs, readable = [], []
        for block in blocks[len(headings) :]:
            for start, end in covered.held_of(block):
                passage = _passage(covered, start, end, f"{number}:{group}", title, location)
                rendered = block.rendering if (start, end) == (block.start, block.end) else None
                seen = passage.text if rendered is None else rendered
                if seen.strip():
                    paragraphs.append(passage)
                    readable.append(passage if seen == passage.text else replace(passage, text=seen))
        if paragraphs:
            text = "\n\n".join(passage.text for passage in readable)
            section_passage = Passage(text, id=f"{number}:{group}{section.start}", title=title, metadata=location)
            sections.append(OutlineSection(section_passage, tuple(paragraphs), tuple(readable)))
    return sections


def _joined(covered: CoveredText, inside: HeadingPath) -> HeadingPath:
    path = covered.path
    if path and inside and not covered.above and breadcrumb(path[-1:]) == breadcrumb(inside[:1]):
        path = path[:-1]
    return (*path, *inside)


def _passage(
    covered: CoveredText, start: int, end: int, prefix: str, title: str, location: Mapping[str, Any]
) -> Passage:
    held_span = covered.held_span_of(start, end)
    offset = covered.offset(start)
    where: dict[str, Any] = {"chunk": held_span.chunk}
    if offset is None:
        where["part"] = str(start - held_span.start)
    else:
        where |= {"start": offset, "end": offset + end - start}
    id_ = f"{prefix}{start if offset is None else offset}"
    return Passage(covered.text[start:end], id=id_, title=title, metadata={**location, **where})
