"""Cut documents into passages: the unit of evidence.

A passage is a run of consecutive blocks with up to about 1,200 characters. It ends where a section ends, unless short
neighbors are joined (`drillrank.structure.packing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from drillrank.errors import check_positive
from drillrank.structure.document import Block, Document, Section
from drillrank.structure.packing import (
    MAX_CHARACTERS,
    PackedPassage,
    ParagraphSpan,
    SourceBlock,
    join_headings,
    pack_blocks,
)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A run of consecutive blocks of a document.

    Attributes:
        text: Readable text of the blocks, their headings included. A later part of a table begins with the table's
            head. For Markdown and plain text, the text behind that head is `document.text[start:end]`.
        headings: Heading path of every section with a block in the passage, each path once. They are scored with the
            text.
        section_path: Headings from the root to the section of the first block.
        sections: The sections with a block in the passage, in order.
        start: Offset of the first character in the document's text.
        end: Offset just after the last character. Parts of a block with markup have the span of their lines, or of the
            whole block if its text has other lines than its source (HTML, LaTeX).
        blocks: The blocks, in order. A long block is in several passages.
        pages: Numbers of the first and the last page. None if the document's pages are not known.
        paragraphs: Spans of the blocks, without headings. If the passage has headings only, spans of these.
    """

    text: str
    headings: tuple[tuple[str, ...], ...]
    section_path: tuple[str, ...]
    sections: tuple[Section, ...]
    start: int
    end: int
    blocks: tuple[Block, ...]
    pages: tuple[int, int] | None
    paragraphs: tuple[ParagraphSpan, ...]

    @property
    def title(self) -> str:
        r"""Every heading once, on one line, parents first.

        >>> from drillrank.structure import parse_document
        >>> [passage] = cut_passages(parse_document("# Oak\n\n## Bark\n\nThick.\n\n## Wood\n\nHard.\n"))
        >>> passage.title
        'Oak > Bark > Wood'
        """
        return join_headings(self.headings)


def cut_passages(
    document: Document, max_characters: int = MAX_CHARACTERS, sections: Sequence[Section] | None = None
) -> list[DocumentPassage]:
    r"""Cut a document into passages.

    Every block that shows text is in exactly one passage, unless it is cut because it is too long.

    Args:
        document: A parsed document.
        max_characters: Largest length of a passage's text.
        sections: Sections to read, in order. None reads all. Sections on both sides of a skipped one are not joined.

    Returns:
        The passages in document order. Empty if the document shows no text.

    Raises:
        InvalidInput: `max_characters` is below 1, or a section does not belong to the document.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Kettle\n\nBoils water.\n\n# Care\n\nOnce a month:\n\n- Descale.\n- Rinse.\n")
    >>> [passage.text for passage in cut_passages(document, 45)]
    ['# Kettle\n\nBoils water.', '# Care\n\nOnce a month:\n\n- Descale.\n- Rinse.']
    >>> [passage.headings for passage in cut_passages(document)]
    [(('Kettle',), ('Care',))]
    """
    check_positive(max_characters=max_characters)
    passages: list[DocumentPassage] = []
    for neighbors in _group_adjacent(document.sections() if sections is None else sections):
        packed = pack_blocks(list_source_blocks(document, neighbors), max_characters)
        passages += [_build_passage(document, passage) for passage in packed]
    return passages


def _group_adjacent(sections: Sequence[Section]) -> Iterator[list[Section]]:
    """Yield the sections in groups without a skipped section inside."""
    group: list[Section] = []
    for section in sections:
        if group and group[-1].end != section.start:
            yield group
            group = []
        group.append(section)
    if group:
        yield group


def list_source_blocks(document: Document, sections: Iterable[Section]) -> Iterator[list[SourceBlock]]:
    """Yield the blocks of each section that shows text. Their `origin` is the block and its section."""
    previous: SourceBlock | None = None
    for section in sections:
        blocks: list[SourceBlock] = []
        for block in document.blocks(section):
            text = document.readable(block)
            if not text.strip():
                continue
            is_exact = block.rendering is None
            leading = len(text) - len(text.lstrip("\r\n"))
            text, start = text[leading:].rstrip(), block.start + (leading if is_exact else 0)
            end = start + len(text) if is_exact else block.end
            gap = _find_gap(document, previous, is_exact, start)
            line_spans = () if is_exact else _align_lines(text, document.text[start:end], start)
            previous = SourceBlock(
                text, block.kind, section.path, start, end, is_exact, gap, (block, section), line_spans
            )
            blocks.append(previous)
        if blocks:
            yield blocks


def _find_gap(document: Document, previous: SourceBlock | None, is_exact: bool, start: int) -> str:
    if previous is None or not previous.is_exact or not is_exact:
        return "\n\n"
    between = document.text[previous.end : start]
    return "\n\n" if between.strip() else between


def _align_lines(text: str, source: str, start: int) -> list[tuple[int, int]]:
    """Return the span in the source of each line of a text without markup; empty if the lines differ.

    Args:
        text: Readable text.
        source: Its source.
        start: Offset of the source.
    """
    lines, source_lines = text.split("\n"), source.rstrip().split("\n")
    if len(lines) != len(source_lines):
        return []
    spans = []
    for line, source_line in zip(lines, source_lines, strict=True):
        first_word = _WORD.search(line)
        if first_word is not None and first_word.group() not in source_line:
            return []
        spans.append((start, start + len(source_line.rstrip())))
        start += len(source_line) + 1
    return spans


def _build_passage(document: Document, packed: PackedPassage) -> DocumentPassage:
    origins = [part.block.origin for part in packed.parts]
    sections = tuple(dict.fromkeys(section for _, section in origins))
    return DocumentPassage(
        text=packed.text,
        headings=packed.headings,
        section_path=sections[0].path,
        sections=sections,
        start=packed.start,
        end=packed.end,
        blocks=tuple(dict.fromkeys(block for block, _ in origins)),
        pages=document.page_numbers(packed.start, packed.end),
        paragraphs=packed.paragraphs,
    )
