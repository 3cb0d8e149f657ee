"""Build a document with sections from the blocks and headings that a format's scanner finds in a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from drillrank import limits
from drillrank.structure.cutting import trimmed_end
from drillrank.structure.document import Block, BlockKind, Document, Section


class Heading(NamedTuple):
    """Heading of a section.

    Attributes:
        level: Depth, starting at 1.
        title: Text as a reader sees it.
        confidence: Certainty, from 0 to 1, that it is a heading; not a probability.
    """

    level: int
    title: str
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Scan:
    """The blocks of a text in order, before they are sorted into sections.

    Attributes:
        blocks: Blocks in order, without overlap. Text between them is kept as blocks of kind `other`.
        headings: Headings by the start offset of their block; one for every block of kind `heading`.
        marks: Number of constructs that only this format has. `parse_document` guesses the format by it.
        warnings: What could not be read, one sentence each. The reader puts the document's name before them.
    """

    blocks: list[Block]
    headings: dict[int, Heading] = field(default_factory=dict)
    marks: int = 0
    warnings: tuple[str, ...] = ()


def assemble(text: str, scan: Scan, format: str) -> Document:
    """Sort the blocks into sections that tile the text.

    A section runs from its heading to the next one. Text before the first heading is a section with an empty path;
    white space there belongs to the first section. A text of white space is one section without blocks, an empty
    text has no sections. Depth and length of paths are within `drillrank.limits`: deeper headings become paragraphs.
    """
    builder = _SectionBuilder()
    for block in fill_gaps(text, scan.blocks):
        if block.kind == "heading":
            block = builder.open_section(block, scan.headings[block.start])
        builder.add(block)
    return builder.build(text, format)


class _SectionBuilder:
    """Collects sections and their blocks in order."""

    def __init__(self) -> None:
        self._sections: list[Section] = []  # their ends are set by `build`
        self._blocks: list[list[Block]] = []
        self._branch: list[tuple[int, str]] = []  # level and title of the open headings, levels rising

    def open_section(self, block: Block, heading: Heading) -> Block:
        """Begin a section with its heading, and return the block. A heading that is too deep becomes a paragraph."""
        while self._branch and self._branch[-1][0] >= heading.level:
            self._branch.pop()
        if len(self._branch) >= limits.HEADING_DEPTH:
            return replace(block, kind="paragraph")
        room = limits.PATH_CHARACTERS - sum(len(title) for _, title in self._branch)
        self._branch.append((heading.level, heading.title[: room // 2]))  # paths are repeated with every paragraph
        self._begin(heading.level, block.start, heading.confidence)
        return block

    def add(self, block: Block) -> None:
        """Add a block to the last section."""
        if not self._sections:
            self._begin(0, 0)
        self._blocks[-1].append(block)

    def build(self, text: str, format: str) -> Document:
        """Return the document."""
        if text and not self._sections:
            self._begin(0, 0)
        ends = [section.start for section in self._sections[1:]] + [len(text)]
        sections = [replace(section, end=end) for section, end in zip(self._sections, ends, strict=False)]
        return Document(text, tuple(sections), tuple(map(tuple, self._blocks)), format)

    def _begin(self, level: int, start: int, confidence: float = 1.0) -> None:
        path = tuple(title for _, title in self._branch)
        self._sections.append(Section(path, level, start if self._sections else 0, 0, confidence))
        self._blocks.append([])


def fill_gaps(text: str, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, and a block of kind `other` for all text between them."""
    end = 0
    for block in (*blocks, Block("other", len(text), len(text))):
        start = block.start - len(text[end : block.start].lstrip())
        if start < block.start:
            yield Block("other", start, trimmed_end(text, start, block.start))
        if block.start < block.end:
            yield block
        end = block.end


class VisibleBlock(NamedTuple):
    """Block of a format with markup that shows some text.

    Attributes:
        start: Offset of its first character, markup included.
        kind: Kind of block.
        rendering: Its text as a reader sees it.
        level: Level of a heading, starting at 1; 0 for other blocks.
    """

    start: int
    kind: BlockKind
    rendering: str
    level: int = 0


def tile_visible_blocks(text: str, visible_blocks: Sequence[VisibleBlock]) -> Scan:
    """Extend each visible block to the start of the next one, so that all markup belongs to a block.

    Args:
        text: The source.
        visible_blocks: The visible blocks in order.
    """
    blocks: list[Block] = []
    headings: dict[int, Heading] = {}
    ends = [block.start for block in visible_blocks[1:]] + [len(text)]
    start = len(text) - len(text.lstrip())
    for block, end in zip(visible_blocks, ends, strict=False):
        blocks.append(Block(block.kind, start, trimmed_end(text, start, end), block.rendering))
        if block.kind == "heading":
            headings[start] = Heading(block.level, " ".join(block.rendering.split()))
        start = end
    if not visible_blocks and text.strip():
        blocks.append(Block("other", start, trimmed_end(text, start, len(text)), ""))
    return Scan(blocks, headings)


class Rendering:
    r"""Collector of a block's text. It folds white space, except in raw lines, and omits empty lines.

    >>> rendering = Rendering()
    >>> rendering.add("One  line,")
    >>> rendering.add(" still one.")
    >>> rendering.line("- ")
    >>> rendering.add("item")
    >>> rendering.text()
    'One line, still one.\n- item'
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all text."""
        self._lines: list[str] = []
        self._cells: list[str] = []
        self._parts: list[str] = []
        self._prefix = ""
        self._raw = False

    def add(self, text: str) -> None:
        """Add text that continues the line."""
        self._parts.append(text)

    def cell(self) -> None:
        """End a cell of a table row."""
        self._cells.append(self._take())

    def line(self, prefix: str | None = None, raw: bool = False) -> None:
        """Begin a line. A prefix, such as a list marker, is written with the next line that has text."""
        self._flush()
        if prefix is not None:
            self._prefix = prefix
        self._raw = raw

    def text(self) -> str:
        """Return all lines so far."""
        self._flush()
        return "\n".join(self._lines)

    def _take(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text.strip("\n") if self._raw else " ".join(text.split())

    def _flush(self) -> None:
        cells = [*self._cells, self._take()]
        self._cells.clear()
        if any(cell.strip() for cell in cells):
            self._lines.append(self._prefix + " | ".join(cells))
            self._prefix = ""
