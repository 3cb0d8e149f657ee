"""What a format's scanner finds in a text, and the document made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drillrank.structure.document import Block, Document, Section
from drillrank.structure.lines import trimmed_end


@dataclass(frozen=True, slots=True)
class Scan:
    """The blocks of a text in order, before they are sorted into sections.

    Attributes:
        blocks: Ordered and disjoint. Text between them is kept as blocks of kind `other`.
        headings: Level and readable text of every block of kind `heading`, in the same order.
        evident: The text shows marks of the scanner's format, so that `format="auto"` may choose it.
    """

    blocks: list[Block]
    headings: list[tuple[int, str]] = field(default_factory=list)
    evident: bool = True


def assemble(text: str, scan: Scan) -> Document:
    """Sort the blocks into sections that tile the text.

    A section runs from its heading to the next one. Text before the first heading is a section with an empty path;
    white space there belongs to the first section. A text of white space is one section without blocks, an empty
    text has no sections.
    """
    opened: list[tuple[tuple[str, ...], int, int]] = []  # path, level, start
    blocks: list[list[Block]] = []
    branch: list[tuple[int, str]] = []  # the open headings, levels rising
    headings = iter(scan.headings)
    for block in _with_gaps(text, scan.blocks):
        if block.kind == "heading":
            level, title = next(headings)
            while branch and branch[-1][0] >= level:
                branch.pop()
            branch.append((level, title))
            opened.append((tuple(name for _, name in branch), level, block.start if opened else 0))
            blocks.append([])
        elif not opened:
            opened.append(((), 0, 0))
            blocks.append([])
        blocks[-1].append(block)
    if text and not opened:
        opened.append(((), 0, 0))
        blocks.append([])
    ends = [start for _, _, start in opened[1:]] + [len(text)]
    sections = (Section(*head, end) for head, end in zip(opened, ends, strict=False))
    return Document(text, tuple(sections), tuple(map(tuple, blocks)))


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
