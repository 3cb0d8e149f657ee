"""A parsed document: sections and blocks as exact spans of the unchanged source text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Literal

from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.cutting import trimmed_end
from drillrank.structure.pages import Pages

BlockKind = Literal["heading", "paragraph", "list", "table", "code", "other"]


@dataclass(frozen=True, slots=True)
class Section:
    """One heading with its *own* text, up to the next heading of any level.

    Attributes:
        path: Headings from the root to this section, its own included; very long ones are truncated
            (`limits.PATH_CHARACTERS`). Empty for text before the first heading.
        level: Depth of the heading as written (1 for `#`); 0 for text before the first heading.
        start: Offset of the first character of the heading's line in the document's text; 0 for the first section.
        end: Offset just after the section's last character.
        confidence: Certainty, from 0 to 1, that the heading is one; not a probability. 1 if markup says so; see
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
        kind: Kind of block.
        start: Offset of its first character in the document's text.
        end: Offset just after its last character.
        rendering: Its text as a reader sees it, without markup; None if the source itself is readable.
    """

    kind: BlockKind
    start: int
    end: int
    rendering: str | None = None


@dataclass(frozen=True)
class Document:
    r"""The unchanged text with its section tree, flattened in pre-order.

    The sections tile the text: joined in order they equal it. The blocks are in order, do not overlap and do not cross
    a section border. Every character that is not white space is in a block. Markup that shows nothing, in HTML and
    LaTeX, belongs to the block next to it.

    Attributes:
        text: The source, unchanged; all offsets count its characters.
        format: Name of the format of the text, such as `"markdown"`, `"html"` or `"csv"`.
        pages: Offsets and numbers of its pages; None if it has no pages.

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
        """Return the blocks of a section of this document, its heading first.

        Raises:
            InvalidInput: `section` does not belong to this document.
        """
        try:
            return list(self._blocks_of[section])
        except (KeyError, TypeError):
            raise InvalidInput(f"{section!r:.200} is not a section of this document.") from None

    def paragraphs(self) -> list[tuple[Section, Block]]:
        r"""Return the blocks that show text, each with its section.

        A heading is among them only if its section has no other text and no subsections.

        >>> from drillrank.structure import parse_document
        >>> document = parse_document("# Kettle\n\n## Warranty\n\nTwo years.\n\n## Notes\n")
        >>> [(section.heading, document.readable(block)) for section, block in document.paragraphs()]
        [('Warranty', 'Two years.'), ('Notes', '## Notes')]
        """
        paragraphs: list[tuple[Section, Block]] = []
        next_sections = [*self._sections[1:], None][: len(self._sections)]
        for section, blocks, next_section in zip(self._sections, self._blocks, next_sections, strict=True):
            text_blocks = [block for block in blocks if block.kind != "heading" and self.readable(block).strip()]
            if not text_blocks and (next_section is None or len(next_section.path) <= len(section.path)):
                text_blocks = [block for block in blocks if block.kind == "heading"]
            paragraphs += [(section, block) for block in text_blocks]
        return paragraphs

    def slice(self, span: Section | Block) -> str:
        """Return the source text of a section or block."""
        return self.text[span.start : span.end]

    def readable(self, span: Section | Block) -> str:
        """Return a section or block as a reader sees it.

        For Markdown and plain text this is the source text. For other formats it is the text without markup: a blank
        line between the blocks of a section, one line for each list item and table row, ` | ` between cells.

        Raises:
            InvalidInput: the section does not belong to this document.
        """
        return self._read([span] if isinstance(span, Block) else self.blocks(span), span.start, span.end)

    def body(self, section: Section) -> str:
        """Return a section as a reader sees it, without its heading; see `readable`.

        Raises:
            InvalidInput: the section does not belong to this document.
        """
        blocks = self.blocks(section)
        heading = [block for block in blocks if block.kind == "heading"]
        return self._read(blocks[len(heading) :], heading[0].end if heading else section.start, section.end)

    def _read(self, blocks: Sequence[Block], start: int, end: int) -> str:
        if all(block.rendering is None for block in blocks):
            return self.text[start:end]
        texts = (self.slice(block) if block.rendering is None else block.rendering for block in blocks)
        return "\n\n".join(text for text in texts if text)

    def page_numbers(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the numbers of the first and the last page of a span; None if the document has no pages."""
        return None if self.pages is None else self.pages.between(start, trimmed_end(self.text, start, end))


def has_title(paths: Sequence[Sequence[str]]) -> bool:
    """Return True if one heading is above all others: it names the document and distinguishes no section.

    Args:
        paths: Paths of the sections that contain text.

    >>> has_title([("Kettle",), ("Kettle", "Care")]), has_title([("Care",), ("Use",)]), has_title([("Kettle",)])
    (True, False, False)
    """
    return len(paths) > 1 and len({path[0] for path in paths if path}) == 1


def breadcrumb(path: Sequence[str], separator: str = " > ") -> str:
    r"""Join the headings of a path on one line, for display. It cannot be split again if a heading has the separator.

    >>> breadcrumb(("Results", "Speed\nand size"))
    'Results > Speed and size'
    """
    return separator.join(filter(None, (" ".join(heading.split()) for heading in path)))


def document_to_json(document: Document) -> str:
    r"""Serialize a document.

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
    """Read a document that `document_to_json` wrote.

    Raises:
        InvalidInput: The text is something else.
    """
    saved = read_json(text, "The saved document")
    try:
        sections = tuple(Section(tuple(path), *fields) for path, *fields in saved["sections"])
        blocks = tuple(tuple(Block(*fields) for fields in section_blocks) for section_blocks in saved["blocks"])
        _check_spans(sections, blocks, len(saved["text"]))
        pages = None if saved["pages"] is None else Pages.from_json(saved["pages"])
        return Document(saved["text"], sections, blocks, saved["format"], pages)
    except (ValueError, TypeError, KeyError) as cause:
        raise InvalidInput(
            f"The text must be a document saved by document_to_json, got {text[:80]!r} ({cause})."
        ) from cause


def _check_spans(sections: Sequence[Section], blocks: Sequence[Sequence[Block]], length: int) -> None:
    """Raise a ValueError if sections do not tile the text or blocks are outside their section."""
    end = 0
    for section, section_blocks in zip(sections, blocks, strict=True):
        block_offsets = [offset for block in section_blocks for offset in (block.start, block.end)]
        offsets = [section.start, *block_offsets, section.end]
        if section.start != end or offsets != sorted(offsets) or any(type(offset) is not int for offset in offsets):
            raise ValueError("sections do not follow on each other, or blocks are outside them")
        end = section.end
    if end != length:
        raise ValueError("sections do not end where the text ends")
