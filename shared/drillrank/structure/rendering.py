"""Readable text of a block, built line by line."""

from __future__ import annotations

from drillrank.structure.document import BlockKind
from drillrank.structure.scan import Shown


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


class Writer(Rendering):
    """Writes the visible blocks of a source one after the other.

    Attributes:
        shown: The blocks so far that show something, and all headings; levels are not set.
        hidden: Whether text is left out for now.
        kind: Kind of the block that is being written.
    """

    def __init__(self, hidden: bool = False) -> None:
        super().__init__()
        self.shown: list[Shown] = []
        self.hidden = hidden
        self.kind: BlockKind = "paragraph"
        self._start = -1

    def begin(self, kind: BlockKind) -> None:
        """End the block so far, and begin another where it is touched first."""
        text = self.text()
        if text or self.kind == "heading":
            self.shown.append(Shown(self._start, self.kind, text))
        self.clear()
        self.kind = kind
        self._start = -1

    def touch(self, at: int) -> None:
        """The block begins here at the latest."""
        if self._start < 0:
            self._start = at

    def add(self, text: str) -> None:
        """Text that continues the line, unless it is hidden."""
        if not self.hidden:
            super().add(text)
