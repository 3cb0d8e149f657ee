"""A parsed document: sections and blocks as exact spans of the unchanged source text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Literal

from drillrank.errors import InvalidInput
from drillrank.structure.lines import trimmed_end
from drillrank.structure.pages import Pages

BlockKind = Literal["heading", "paragraph", "list", "table", "code", "other"]


@dataclass(frozen=True, slots=True)
class Section:
    """One heading with its *own* text, up to the next heading of any level.

    Attributes:
        path: Headings from the root, own heading included, cut where they are very long (`limits.PATH_CHARACTERS`);
            empty for text before the first heading.
        level: Depth of the heading as written (1 for `#`); 0 for text before the first heading.
        start: Offset of the first character of the heading's line in the document's text; 0 for the first section.
        end: Offset just after the section's last character.
        confidence: How certain it is that the heading is one: 1 where it is marked as such; see
            `drillrank.structure.flat`.
    """

    path: tuple[str, ...]
    level: int
    start: int
    end: int
    confidence: float = 1.0

    @property
    def heading(self) -> str:
        """The section's own heading, or an empty string."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, paragraph, list, table or code block: a span that is never cut when it fits.

    Attributes:
        kind: What the block is.
        start: Offset of its first character in the document's text.
        end: Offset just after its last character.
        rendering: Its text as a reader sees it, where markup hides that; None if the source itself is readable.
    """

    kind: BlockKind
    start: int
    end: int
    rendering: str | None = None


@dataclass(frozen=True)
class Document:
    r"""The unchanged text with its section tree, flattened in pre-order.

    The sections tile the text: joined in order they give it back byte for byte. The blocks are ordered, do not
    overlap, never cross a section border, and hold every character that is not white space. In HTML and LaTeX, markup
    that shows nothing belongs to the block next to it.

    Attributes:
        text: The source, unchanged; all offsets count its characters.
        format: What it was parsed as: `"markdown"`, `"html"`, `"latex"` or `"text"`.
        pages: Where its pages begin, if it is known to have pages.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("Intro.\n\n# A\n\nOne.\n\n## B\n\nTwo.\n")
    >>> [section.path for section in document.sections()]
    [(), ('A',), ('A', 'B')]
    >>> document.slice(document.sections()[1])
    '# A\n\nOne.\n\n'
    >>> [document.slice(block) for block in document.blocks(document.sections()[2])]
    ['## B', 'Two.']
    """

    text: str
    _sections: tuple[Section, ...] = field(repr=False)
    _blocks: tuple[tuple[Block, ...], ...] = field(repr=False)
    format: str = "text"
    pages: Pages | None = None

    @cached_property
    def _positions(self) -> dict[Section, int]:
        return {section: position for position, section in enumerate(self._sections)}

    def _position(self, section: Section) -> int:
        try:
            return self._positions[section]
        except (KeyError, TypeError):
            raise InvalidInput(f"{section!r} is not a section of this document.") from None

    def sections(self) -> list[Section]:
        """All sections in pre-order."""
        return list(self._sections)

    def blocks(self, section: Section) -> list[Block]:
        """The blocks of one of this document's sections, its heading first.

        Raises:
            InvalidInput: `section` does not belong to this document.
        """
        return list(self._blocks[self._position(section)])

    def paragraphs(self) -> list[tuple[Section, Block]]:
        r"""What there is to read, each under its section: the blocks that are no heading and show some text.

        >>> from drillrank.structure import parse_document
        >>> document = parse_document("# A\n\nOne.\n\nTwo.")
        >>> [(section.heading, document.readable(block)) for section, block in document.paragraphs()]
        [('A', 'One.'), ('A', 'Two.')]
        """
        return [
            (section, block)
            for section, blocks in zip(self._sections, self._blocks, strict=True)
            for block in blocks
            if block.kind != "heading" and self.readable(block).strip()
        ]

    def slice(self, span: Section | Block) -> str:
        """The source text of a section or block."""
        return self.text[span.start : span.end]

    def readable(self, span: Section | Block) -> str:
        """A section or block as a reader sees it.

        For Markdown and plain text this is the source text. For HTML and LaTeX it is the text without markup: blocks
        of a section stand apart by blank lines, items and table rows on lines of their own, cells between ` | `.

        Raises:
            InvalidInput: the section does not belong to this document.
        """
        if isinstance(span, Block):
            return self._read([span], span.start, span.end)
        return self._read(self.blocks(span), span.start, span.end)

    def body(self, section: Section) -> str:
        """As `readable`, without the section's heading.

        Raises:
            InvalidInput: the section does not belong to this document.
        """
        blocks = self.blocks(section)
        heading = [block for block in blocks if block.kind == "heading"]
        return self._read(blocks[len(heading) :], heading[0].end if heading else section.start, section.end)

    def _read(self, blocks: Sequence[Block], start: int, end: int) -> str:
        if all(block.rendering is None for block in blocks):
            return self.text[start:end]
        return "\n\n".join(block.rendering for block in blocks if block.rendering)

    def page_numbers(self, start: int, end: int) -> tuple[int, int] | None:
        """Numbers of the first and the last page of a span; None where pages are not known."""
        return None if self.pages is None else self.pages.between(start, trimmed_end(self.text, start, end))

    def children(self, section: Section) -> Sequence[Section]:
        """The sections directly below `section`, in order.

        Raises:
            InvalidInput: `section` does not belong to this document.
        """
        return [below for below in self.descendants(section) if len(below.path) == len(section.path) + 1]

    def descendants(self, section: Section) -> Sequence[Section]:
        """All sections below `section`, in pre-order; all others lie below the section with the empty path.

        Raises:
            InvalidInput: `section` does not belong to this document.
        """
        position = self._position(section)
        depth = len(section.path)
        following = (self._sections[at] for at in range(position + 1, len(self._sections)))
        return list(takewhile(lambda below: len(below.path) > depth, following))


def breadcrumb(path: Sequence[str], separator: str = " > ") -> str:
    r"""The headings on one line, for reading: it cannot be split again where a heading holds the separator.

    >>> breadcrumb(("Results", "Speed\nand size"))
    'Results > Speed and size'
    """
    return separator.join(filter(None, (" ".join(heading.split()) for heading in path)))
