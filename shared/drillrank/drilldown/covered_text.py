"""The sections of a text of which stored chunks hold stretches: no paragraph says more than they hold."""

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
_NEIGHBOURS = 8  # overlapping stretches that are looked at for one that holds a whole paragraph


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a stored chunk holds of a text.

    Attributes:
        start: Offset in the text.
        end: Offset just behind it.
        piece: Number of the chunk among those of its document.
    """

    start: int
    end: int
    piece: int


@dataclass(frozen=True)
class Excerpts:
    r"""A text, and the stretches of it that are held.

    Attributes:
        text: Chunks joined where they continue each other, with a blank line where what stands between them is not
            known; or the original that they were cut from.
        stretches: Rising by start; they may overlap.
        shifts: By offset in the text from which on it holds, what added to it gives the offset in the document; empty
            where that is not known.
        path: Headings above the text, as its chunks name them; the last may be the heading that it begins with.
        above: Whether the last is never that heading.
        named: Headings that chunks of an original name, and that may be shown though no stretch holds them.
        original: Whether the text is the original. Then headings that no chunk holds or names are not shown.
        whole: Number of the chunk that is all of the text; what no other holds is its.
        breaks: Whether lines with two spaces at the end are the ends of paragraphs.
        format: As `parse_document` takes it.
        metadata: Likewise.
    """

    text: str
    stretches: tuple[Stretch, ...]
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
        return [stretch.start for stretch in self.stretches]

    @cached_property
    def _held(self) -> list[tuple[int, int]]:
        """Spans that are held without a gap; white space of an original between two chunks is none."""
        if self.whole is not None:
            return [(0, len(self.text))]
        held: list[tuple[int, int]] = []
        last = -1
        for stretch in self.stretches:
            if held and (stretch.start <= held[-1][1] or self._only_space(held[-1][1], stretch, last)):
                held[-1] = held[-1][0], max(held[-1][1], stretch.end)
            else:
                held.append((stretch.start, stretch.end))
            last = stretch.piece
        return held

    def _only_space(self, end: int, stretch: Stretch, last: int) -> bool:
        return self.original and stretch.piece != last and self.text[end : stretch.start].isspace()

    @cached_property
    def _held_starts(self) -> list[int]:
        return [start for start, _ in self._held]

    def held_of(self, block: Block) -> Iterator[tuple[int, int]]:
        """The spans of a block that are held, without white space around them."""
        at = max(bisect_right(self._held_starts, block.start) - 1, 0)
        for start, end in self._held[at:]:
            if start >= block.end:
                return
            start, end = max(start, block.start), min(end, block.end)
            inside = self.text[start:end]
            if inside.strip():
                whole = (start, end) == (block.start, block.end)
                lead = 0 if whole else len(inside) - len(inside.lstrip())
                yield start + lead, start + len(inside if whole else inside.rstrip())

    def stretch_of(self, start: int, end: int) -> Stretch:
        """The stretch that holds a span, or else its beginning."""
        at = bisect_right(self._starts, start) - 1
        around = range(at, max(at - _NEIGHBOURS, -1), -1)
        for position in around:
            if self.stretches[position].end >= end:
                return self.stretches[position]
        if self.whole is not None:
            return Stretch(0, len(self.text), self.whole)
        return next((self.stretches[p] for p in around if self.stretches[p].end > start), self.stretches[max(at, 0)])

    def offset(self, at: int) -> int | None:
        """The offset in the document of an offset in the text."""
        if not self.shifts:
            return None
        return at + self.shifts[bisect_right(self.shifts, at, key=lambda shift: shift[0]) - 1][1]


def excerpted(number: int, group: str, excerpts: Excerpts) -> list[OutlineSection]:
    r"""The sections of a text, with the paragraphs that its chunks hold.

    Metadata of a paragraph are `document`, `section_path`, `piece` (the chunk that holds it), and `start` and `end` in
    the document; where these are not known, `part`, its offset in the chunk.

    Args:
        number: Of the document.
        group: What tells this text from the document's others; empty if it is the only one.
        excerpts: The text and what is held of it.

    >>> text = "# Sea\n\nIt is deep.\n\n"
    >>> held = Stretch(0, 18, 0), Stretch(20, 29, 1)
    >>> [sea] = excerpted(0, "", Excerpts(text + "And blue.", held, ((0, 0), (20, 80))))
    >>> [(p.text, p.metadata["piece"], p.metadata["start"]) for p in sea.paragraphs]
    [('It is deep.', 0, 7), ('And blue.', 1, 100)]
    """
    shape = _LINE_BREAK.sub("\n\n\n", excerpts.text) if excerpts.breaks else excerpts.text
    document = parse_document(shape, excerpts.format, metadata=excerpts.metadata)
    shown: set[HeadingPath] = set()
    sections = []
    for section in document.sections():
        blocks = document.blocks(section)
        headings = [block for block in blocks if block.kind == "heading"]
        hidden = excerpts.original and not any(any(excerpts.held_of(heading)) for heading in headings)
        if section.path and (not hidden or section.heading in excerpts.named):
            shown.add(section.path)
        inside = tuple(
            heading
            for depth, heading in enumerate(section.path, start=1)
            if not excerpts.original or section.path[:depth] in shown or heading in excerpts.named
        )
        path = _joined(excerpts, inside)
        place = {"document": number, "section_path": path}
        title = breadcrumb(path)
        paragraphs, readable = [], []
        for block in blocks[len(headings) :]:
            for start, end in excerpts.held_of(block):
                passage = _passage(excerpts, start, end, f"{number}:{group}", title, place)
                rendered = block.rendering if (start, end) == (block.start, block.end) else None
                seen = passage.text if rendered is None else rendered
                if seen.strip():
                    paragraphs.append(passage)
                    readable.append(passage if seen == passage.text else replace(passage, text=seen))
        if paragraphs:
            text = "\n\n".join(passage.text for passage in readable)
            own = Passage(text, id=f"{number}:{group}{section.start}", title=title, metadata=place)
            sections.append(OutlineSection(own, tuple(paragraphs), tuple(readable)))
    return sections


def _joined(excerpts: Excerpts, inside: HeadingPath) -> HeadingPath:
    path = excerpts.path
    if path and inside and not excerpts.above and breadcrumb(path[-1:]) == breadcrumb(inside[:1]):
        path = path[:-1]
    return (*path, *inside)


def _passage(excerpts: Excerpts, start: int, end: int, prefix: str, title: str, place: Mapping[str, Any]) -> Passage:
    stretch = excerpts.stretch_of(start, end)
    offset = excerpts.offset(start)
    where: dict[str, Any] = {"piece": stretch.piece}
    if offset is None:
        where["part"] = str(start - stretch.start)
    else:
        where |= {"start": offset, "end": offset + end - start}
    id_ = f"{prefix}{start if offset is None else offset}"
    return Passage(excerpts.text[start:end], id=id_, title=title, metadata={**place, **where})
