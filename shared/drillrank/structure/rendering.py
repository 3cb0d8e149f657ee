"""The visible blocks of a format with markup: where each stands, and its text line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from drillrank.structure.document import Block, BlockKind, Scan
from drillrank.structure.lines import trimmed_end


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


class Rendering:
    r"""Collects the text of a block. White space is folded, except in raw lines; empty lines are left out.

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
        """Text that continues the line."""
        self._parts.append(text)

    def cell(self) -> None:
        """End the cell of a table's row."""
        self._cells.append(self._take())

    def line(self, prefix: str | None = None, raw: bool = False) -> None:
        """Begin a line. A prefix, such as an item's marker, waits for the first line with text."""
        self._flush()
        if prefix is not None:
            self._prefix = prefix
        self._raw = raw

    def text(self) -> str:
        """All lines so far."""
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
