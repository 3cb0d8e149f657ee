"""What a format's scanner finds in a text, and the document made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from drillrank import limits
from drillrank.structure.document import Block, BlockKind, Document, Section
from drillrank.structure.lines import trimmed_end


@dataclass(frozen=True, slots=True)
class Scan:
    """The blocks of a text in order, before they are sorted into sections.

    Attributes:
        blocks: Ordered and disjoint. Text between them is kept as blocks of kind `other`.
        headings: Level and readable text of every block of kind `heading`, in the same order.
        confidences: How certain each heading is, from 0 to 1; all are if there are none.
        marks: How many things were found that only this format has, so that it may be chosen without being named.
    """

    blocks: list[Block]
    headings: list[tuple[int, str]] = field(default_factory=list)
    marks: int = 0
    confidences: Sequence[float] = ()


class Shown(NamedTuple):
    """A visible block of a format with markup.

    Attributes:
        start: Offset of its first character, markup included.
        kind: What the block is.
        rendering: Its readable text.
        level: Level of a heading, from 1 on.
    """

    start: int
    kind: BlockKind
    rendering: str
    level: int = 0


def spread(text: str, shown: Sequence[Shown]) -> Scan:
    """Give each visible block the source up to the next one, so that no markup stands alone.

    Args:
        text: The source.
        shown: The visible blocks, starts rising.
    """
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    ends = [block.start for block in shown[1:]] + [len(text)]
    start = len(text) - len(text.lstrip())
    for block, end in zip(shown, ends, strict=False):
        blocks.append(Block(block.kind, start, trimmed_end(text, start, end), block.rendering))
        if block.kind == "heading":
            headings.append((block.level, " ".join(block.rendering.split())))
        start = end
    if not shown and text.strip():
        blocks.append(Block("other", start, trimmed_end(text, start, len(text)), ""))
    return Scan(blocks, headings)


def assemble(text: str, scan: Scan, format: str, max_depth: int | None = None) -> Document:
    """Sort the blocks into sections that tile the text.

    A section runs from its heading to the next one. Text before the first heading is a section with an empty path;
    white space there belongs to the first section. A text of white space is one section without blocks, an empty
    text has no sections. Headings below `max_depth` open no section and become paragraphs. Depth and length of paths
    are within `drillrank.limits`.
    """
    opened: list[tuple[tuple[str, ...], int, int]] = []  # path, level, start
    certain: list[float] = []
    blocks: list[list[Block]] = []
    branch: list[tuple[int, str]] = []  # the open headings, levels rising
    deepest = min(max_depth or limits.HEADING_DEPTH, limits.HEADING_DEPTH)
    headings = zip(scan.headings, scan.confidences or [1.0] * len(scan.headings), strict=True)
    for block in _with_gaps(text, scan.blocks):
        if block.kind == "heading":
            (level, title), confidence = next(headings)
            while branch and branch[-1][0] >= level:
                branch.pop()
            if len(branch) < deepest:
                room = limits.PATH_CHARACTERS - sum(len(name) for _, name in branch)
                branch.append((level, title[: room // 2]))  # paths are repeated with every paragraph
                opened.append((tuple(name for _, name in branch), level, block.start if opened else 0))
                certain.append(confidence)
                blocks.append([block])
                continue
            block = replace(block, kind="paragraph")
        if not opened:
            opened.append(((), 0, 0))
            certain.append(1.0)
            blocks.append([])
        blocks[-1].append(block)
    if text and not opened:
        opened.append(((), 0, 0))
        certain.append(1.0)
        blocks.append([])
    ends = [start for _, _, start in opened[1:]] + [len(text)]
    sections = (Section(*head, end, sure) for head, end, sure in zip(opened, ends, certain, strict=False))
    return Document(text, tuple(sections), tuple(map(tuple, blocks)), format)


def _with_gaps(text: str, blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, and a block of kind `other` for all text between them."""
    at = 0
    for block in (*blocks, Block("other", len(text), len(text))):
        start = block.start - len(text[at : block.start].lstrip())
        if start < block.start:
            yield Block("other", start, trimmed_end(text, start, block.start))
        if block.start < block.end:
            yield block
        at = block.end
