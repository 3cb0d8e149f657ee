"""A parsed document: sections and blocks as exact spans of the unchanged source text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.cutting import trimmed_end
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
            `drillrank.structure.plain`.
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
    def _blocks_of(self) -> dict[Section, tuple[Block, ...]]:
        return dict(zip(self._sections, self._blocks, strict=True))

    def sections(self) -> list[Section]:
        """All sections in pre-order."""
        return list(self._sections)

    def blocks(self, section: Section) -> list[Block]:
        """The blocks of one of this document's sections, its heading first.

        Raises:
            InvalidInput: `section` does not belong to this document.
        """
        try:
            return list(self._blocks_of[section])
        except (KeyError, TypeError):
            raise InvalidInput(f"{section!r:.200} is not a section of this document.") from None

    def paragraphs(self) -> list[tuple[Section, Block]]:
        r"""What there is to read, under its section: what shows some text, and a heading that nothing stands under.

        >>> from drillrank.structure import parse_document
        >>> document = parse_document("# Kettle\n\n## Warranty\n\nTwo years.\n\n## Notes\n")
        >>> [(section.heading, document.readable(block)) for section, block in document.paragraphs()]
        [('Warranty', 'Two years.'), ('Notes', '## Notes')]
        """
        found: list[tuple[Section, Block]] = []
        for section, blocks, after in zip(self._sections, self._blocks, [*self._sections[1:], None], strict=False):
            below = [block for block in blocks if block.kind != "heading" and self.readable(block).strip()]
            if not below and (after is None or len(after.path) <= len(section.path)):
                below = [block for block in blocks if block.kind == "heading"]
            found += [(section, block) for block in below]
        return found

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
        return self._read([span] if isinstance(span, Block) else self.blocks(span), span.start, span.end)

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


def has_title(paths: Sequence[Sequence[str]]) -> bool:
    """Whether one heading stands above all others: it names the document, and tells no section apart.

    Args:
        paths: Of the sections that hold something to read.

    >>> has_title([("Kettle",), ("Kettle", "Care")]), has_title([("Care",), ("Use",)]), has_title([("Kettle",)])
    (True, False, False)
    """
    return len(paths) > 1 and len({path[0] for path in paths if path}) == 1


def breadcrumb(path: Sequence[str], separator: str = " > ") -> str:
    r"""The headings on one line, for reading: it cannot be split again where a heading holds the separator.

    >>> breadcrumb(("Results", "Speed\nand size"))
    'Results > Speed and size'
    """
    return separator.join(filter(None, (" ".join(heading.split()) for heading in path)))


class Heading(NamedTuple):
    """What a block of kind `heading` says: level from 1 on, readable text, and how certain it is, from 0 to 1."""

    level: int
    title: str
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Scan:
    """The blocks of a text in order, before they are sorted into sections.

    Attributes:
        blocks: Ordered and disjoint. Text between them is kept as blocks of kind `other`.
        headings: Of every block of kind `heading`, by its start.
        marks: How many things were found that only this format has, so that it may be chosen without being named.
    """

    blocks: list[Block]
    headings: dict[int, Heading] = field(default_factory=dict)
    marks: int = 0


def assemble(text: str, scan: Scan, format: str) -> Document:
    """Sort the blocks into sections that tile the text.

    A section runs from its heading to the next one. Text before the first heading is a section with an empty path;
    white space there belongs to the first section. A text of white space is one section without blocks, an empty
    text has no sections. Depth and length of paths are within `drillrank.limits`: deeper headings become paragraphs.
    """
    sections: list[tuple[tuple[str, ...], int, int, float]] = []  # path, level, start, confidence
    blocks: list[list[Block]] = []
    branch: list[tuple[int, str]] = []  # the open headings, levels rising

    def begin(level: int, start: int, confidence: float = 1.0) -> None:
        sections.append((tuple(name for _, name in branch), level, start if sections else 0, confidence))
        blocks.append([])

    for block in _with_gaps(text, scan.blocks):
        if block.kind == "heading":
            level, title, confidence = scan.headings[block.start]
            while branch and branch[-1][0] >= level:
                branch.pop()
            if len(branch) < limits.HEADING_DEPTH:
                room = limits.PATH_CHARACTERS - sum(len(name) for _, name in branch)
                branch.append((level, title[: room // 2]))  # paths are repeated with every paragraph
                begin(level, block.start, confidence)
            else:
                block = replace(block, kind="paragraph")
        if not sections:
            begin(0, 0)
        blocks[-1].append(block)
    if text and not sections:
        begin(0, 0)
    ends = [start for _, _, start, _ in sections[1:]] + [len(text)]
    found = tuple(
        Section(path, level, start, end, sure) for (path, level, start, sure), end in zip(sections, ends, strict=False)
    )
    return Document(text, found, tuple(map(tuple, blocks)), format)


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
    headings: dict[int, Heading] = {}
    ends = [block.start for block in shown[1:]] + [len(text)]
    start = len(text) - len(text.lstrip())
    for block, end in zip(shown, ends, strict=False):
        blocks.append(Block(block.kind, start, trimmed_end(text, start, end), block.rendering))
        if block.kind == "heading":
            headings[start] = Heading(block.level, " ".join(block.rendering.split()))
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


def document_to_json(document: Document) -> str:
    r"""All that a document holds.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Sea\n\nDeep.")
    >>> document_from_json(document_to_json(document)) == document
    True
    """
    sections = document.sections()
    return json.dumps(
        {
            "text": document.text,
            "format": document.format,
            "sections": [astuple(section) for section in sections],
            "blocks": [[astuple(block) for block in document.blocks(section)] for section in sections],
            "pages": None if document.pages is None else document.pages.as_json(),
        }
    )


def document_from_json(text: str) -> Document:
    """The document that `document_to_json` wrote.

    Raises:
        InvalidInput: it is something else.
    """
    saved = read_json(text, "The saved document")
    try:
        sections = tuple(Section(tuple(path), *location) for path, *location in saved["sections"])
        blocks = tuple(tuple(Block(*block) for block in blocks) for blocks in saved["blocks"])
        end = 0
        for section, inside in zip(sections, blocks, strict=True):
            offsets = [section.start, *(at for block in inside for at in (block.start, block.end)), section.end]
            if section.start != end or offsets != sorted(offsets) or any(type(at) is not int for at in offsets):
                raise ValueError("sections do not follow on each other, or blocks lie outside them")
            end = section.end
        if end != len(saved["text"]):
            raise ValueError("sections do not end where the text ends")
        pages = None if saved["pages"] is None else Pages.from_json(saved["pages"])
        return Document(saved["text"], sections, blocks, saved["format"], pages)
    except (ValueError, TypeError, KeyError) as cause:
        raise InvalidInput(f"This is no saved document ({cause}): {text[:80]!r:.200}.") from cause
