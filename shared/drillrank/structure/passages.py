"""Cut documents into passages: the unit of evidence.

A passage is a run of consecutive blocks with up to about 1,200 characters. `cut_passages` works in three steps, each in
linear time:

1. List the pieces: every block that shows text, in order.
2. Fill passages with pieces, section by section. A label stays with the list, table or code that follows it. A block
   that is too long is cut at its lines, items or sentences.
3. Join short neighbors, across sections too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import NamedTuple

from drillrank.errors import check_positive
from drillrank.structure.cutting import Level, line_starts, sentence_starts, tile_text
from drillrank.structure.document import Block, Document, Section
from drillrank.text import word_starts

MAX_CHARACTERS = 1200
JOIN_BELOW = 0.7  # share of the size: neighbors that are shorter together are joined
MAX_TERM_CHARACTERS = 80  # a longer line without a colon is a sentence, not a label

_CAPTION = re.compile(r"\W{0,3}(?:Table|Tab\.|Figure|Fig\.|Listing|Algorithm|Tabelle|Abbildung|Abb\.|Tableau)\s?\d")
_EMPHASIZED_LINE = re.compile(r"(\*\*|__|\*|_)[^\n*_]{1,200}\1[:.]?")
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+•‣◦]|\d{1,9}[.)]|[a-z][.)])[ \t]", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_TABLE_RULE_CHARACTERS = frozenset(" \t\r|+:=-")


class ParagraphSpan(NamedTuple):
    """Position of a paragraph in the document's text and in the text of its passage.

    Attributes:
        start: Offset of the paragraph's first character in the document's text.
        end: Offset just after its last character.
        text_start: Offset of its first character in the passage's text.
        text_end: Offset just after its last character there.
    """

    start: int
    end: int
    text_start: int
    text_end: int


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
        end: Offset just after the last character. Parts of a block with markup (HTML, LaTeX) have the span of the whole
            block.
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
        prefixes = (path[:depth] for path in self.headings for depth in range(1, len(path) + 1))
        return " > ".join(" ".join(prefix[-1].split()) for prefix in dict.fromkeys(prefixes))


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
        pieces_by_section = _list_pieces(document, neighbors, max_characters)
        filled = _fill_passages(pieces_by_section, max_characters)
        joined = _join_short(filled, int(JOIN_BELOW * max_characters))
        passages += [_build_passage(document, run) for run in joined]
    return passages


# --- 1. Pieces


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block that shows text, or a part of a long one.

    Attributes:
        text: Readable text.
        start: Offset of its first character in the document's text.
        end: Offset just after its last character.
        gap: White space between the previous piece and this one.
        block: The block.
        section: The section of the block.
        is_label: True if the piece stays with the next one.
        head: Head of a table, repeated if the piece begins a passage.
    """

    text: str
    start: int
    end: int
    gap: str
    block: Block
    section: Section
    is_label: bool = False
    head: str = ""


class _Run:
    """Pieces of one passage, with the length of their text."""

    def __init__(self, pieces: Iterable[_Piece] = ()) -> None:
        self.pieces: list[_Piece] = []
        self.length = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: _Piece) -> None:
        self.length = self.length_with(piece)
        self.pieces.append(piece)

    def length_with(self, piece: _Piece) -> int:
        """Return the length of the text with one more piece."""
        before = piece.gap if self.pieces else piece.head
        return self.length + len(before) + len(piece.text)

    def split_trailing_labels(self) -> tuple[_Run, _Run]:
        """Split the run before the labels at its end."""
        n_labels = 0
        while n_labels < len(self.pieces) and self.pieces[-n_labels - 1].is_label:
            n_labels += 1
        n_others = len(self.pieces) - n_labels
        return _Run(self.pieces[:n_others]), _Run(self.pieces[n_others:])


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


def _list_pieces(document: Document, sections: Iterable[Section], size: int) -> Iterator[list[_Piece]]:
    """Yield the pieces of each section that shows text."""
    previous: _Piece | None = None
    for section in sections:
        blocks = [block for block in document.blocks(section) if document.readable(block).strip()]
        pieces: list[_Piece] = []
        for block, next_block in zip_longest(blocks, blocks[1:]):
            text = document.readable(block)
            leading = len(text) - len(text.lstrip("\r\n"))
            text, start = text[leading:].rstrip(), block.start + (leading if block.rendering is None else 0)
            end = start + len(text) if block.rendering is None else block.end
            piece = _Piece(text, start, end, _gap(document, previous, block, start), block, section)
            new_pieces = _mark_label(piece, next_block, size)
            pieces += new_pieces
            previous = new_pieces[-1]
        if pieces:
            yield pieces


def _gap(document: Document, previous: _Piece | None, block: Block, start: int) -> str:
    if previous is None or previous.block.rendering is not None or block.rendering is not None:
        return "\n\n"
    between = document.text[previous.end : start]
    return "\n\n" if between.strip() else between


def _mark_label(piece: _Piece, next_block: Block | None, size: int) -> list[_Piece]:
    """Return the piece, marked if it is a label. The last sentence of a long paragraph is a label of its own."""
    if piece.block.kind == "heading":
        return [replace(piece, is_label=True)]
    if next_block is None or not _is_label(piece, next_block):
        return [piece]
    starts = sentence_starts(piece.text) if len(piece.text) > size // 4 else []
    *body, label = _split_piece(piece, starts[-1:])
    return [*body, replace(label, is_label=True)]


def _is_label(piece: _Piece, next_block: Block) -> bool:
    """Return True if a block introduces the next one: it ends in a colon, is a caption, a term or an emphasized line.

    A line of at most 80 characters without a full stop is a term.
    """
    if piece.block.kind not in ("paragraph", "other"):
        return False
    if piece.text[-10:].rstrip("*_` ").endswith((":", "：")) or (
        len(piece.text) < 210 and _EMPHASIZED_LINE.fullmatch(piece.text)
    ):
        return True
    if next_block.kind not in ("list", "table", "code"):
        return False
    is_term = len(piece.text) <= MAX_TERM_CHARACTERS and not piece.text.endswith((".", "!", "?", "。", ";", ","))
    return bool(_CAPTION.match(piece.text)) or (is_term and "\n" not in piece.text)


# --- 2. Passages


def _fill_passages(pieces_by_section: Iterable[list[_Piece]], size: int) -> Iterator[_Run]:
    """Yield runs of pieces that fit in a passage and end with their section.

    A heading without text of its own begins the passage of the section below it.
    """
    run = _Run()
    for pieces in pieces_by_section:
        if not _stays_with(run.pieces, pieces[0]):
            yield run
            run = _Run()
        for piece in pieces:
            *complete_runs, run = _add_piece(run, piece, size)
            yield from complete_runs
    if run.pieces:
        yield run


def _stays_with(headings: Sequence[_Piece], first: _Piece) -> bool:
    """Return True if all pieces are headings above the section of the first piece."""
    return not headings or (
        len(headings[-1].section.path) < len(first.section.path)
        and all(piece.block.kind == "heading" for piece in headings)
    )


def _add_piece(run: _Run, piece: _Piece, size: int) -> list[_Run]:
    """Add a piece to a run. Return the runs that are complete, and the one that goes on as the last."""
    if run.length_with(piece) <= size:
        run.add(piece)
        return [run]
    body, labels = run.split_trailing_labels()
    if labels.length_with(piece) <= size:
        labels.add(piece)
        return [body, labels] if body.pieces else [labels]
    # The block is too long alone or with its labels. It begins in this passage if that is not half full.
    runs = [run]
    if body.pieces and run.length > size // 2:
        runs = [body, labels]
    if runs[-1].length + len(piece.gap) > size // 2:
        runs.append(_Run())
    room = size - runs[-1].length - len(piece.gap) if runs[-1].pieces and labels.pieces else size
    for part in _cut_piece(piece, room, size):
        if runs[-1].length_with(part) > size:
            runs.append(_Run())
        runs[-1].add(part)
    return [filled for filled in runs if filled.pieces]


def _cut_piece(piece: _Piece, room: int, size: int) -> list[_Piece]:
    """Cut a piece at its lines, items or sentences, or at words and characters where these are too long."""
    head = _table_head(piece.text) if piece.block.kind == "table" else ""
    if 2 * len(head) > size:
        head = ""
    limit = max(min(room, size - len(head)), 1)
    spans = tile_text(piece.text, limit, lambda text: len(text.strip()), _LEVELS.get(piece.block.kind, _PROSE))
    parts = _split_piece(piece, [start for start, _ in spans[1:]])
    n_head_characters = 0
    for index, part in enumerate(parts):
        if head and n_head_characters >= len(head):
            parts[index] = replace(part, head=head)
        n_head_characters += len(part.gap if index else "") + len(part.text) + 1
    return parts


def _split_piece(piece: _Piece, offsets: Iterable[int]) -> list[_Piece]:
    """Split a piece at offsets in its text. Every part has text; the white space between two is the later one's gap."""
    parts: list[_Piece] = []
    end = 0
    for start, stop in pairwise([0, *offsets, len(piece.text)]):
        text = piece.text[start:stop].rstrip()
        if not text:
            continue
        gap = piece.text[end:start] if parts else piece.gap
        span = (piece.start, piece.end)
        if piece.block.rendering is None:
            span = (piece.start + start, piece.start + start + len(text))
        parts.append(replace(piece, text=text, start=span[0], end=span[1], gap=gap))
        end = start + len(text)
    return parts


def _table_head(text: str) -> str:
    """Return the first row of a table and the rule below it, and a rule above it."""
    lines = text.split("\n", 5)
    n_lines = 1
    if _is_table_rule(lines[0]):
        n_lines += next((index for index, line in enumerate(lines[1:5], start=1) if _is_table_rule(line)), 1)
    elif len(lines) > 1 and _is_table_rule(lines[1]):
        n_lines += 1
    return "".join(f"{line}\n" for line in lines[:n_lines]) if len(lines) > n_lines else ""


def _is_table_rule(line: str) -> bool:
    return ("-" in line or "=" in line) and _TABLE_RULE_CHARACTERS.issuperset(line)


def _find_lines(text: str) -> list[int]:
    return [start for start in line_starts(text) if 0 < start < len(text)]


def _find_list_items(text: str) -> list[int]:
    return [match.start() for match in _LIST_ITEM.finditer(text) if match.start()]


def _find_code_paragraphs(text: str) -> list[int]:
    return [match.end() for match in _BLANK_LINES.finditer(text) if match.end() < len(text)]


_PROSE: tuple[Level, ...] = (sentence_starts, _find_lines, word_starts)
_LEVELS: dict[str, tuple[Level, ...]] = {
    "list": (_find_list_items, _find_lines, sentence_starts, word_starts),
    "table": (_find_lines, sentence_starts, word_starts),
    "code": (_find_code_paragraphs, _find_lines, word_starts),
}


# --- 3. Joined neighbors


def _join_short(runs: Iterable[_Run], limit: int) -> list[_Run]:
    """Join each run to the one before it if both are shorter than `limit` characters together."""
    joined: list[_Run] = []
    for run in runs:
        gap, head = run.pieces[0].gap, run.pieces[0].head
        if joined and joined[-1].length + len(gap) + run.length - len(head) < limit:
            for piece in run.pieces:
                joined[-1].add(piece)
        else:
            joined.append(run)
    return joined


def _build_passage(document: Document, run: _Run) -> DocumentPassage:
    pieces = run.pieces
    first, last = pieces[0], pieces[-1]
    sections = tuple(dict.fromkeys(piece.section for piece in pieces))
    return DocumentPassage(
        text=first.head + first.text + "".join(piece.gap + piece.text for piece in pieces[1:]),
        headings=tuple(dict.fromkeys(section.path for section in sections if section.path)),
        section_path=first.section.path,
        sections=sections,
        start=first.start,
        end=last.end,
        blocks=tuple(dict.fromkeys(piece.block for piece in pieces)),
        pages=document.page_numbers(first.start, last.end),
        paragraphs=_list_paragraph_spans(pieces),
    )


def _list_paragraph_spans(pieces: Sequence[_Piece]) -> tuple[ParagraphSpan, ...]:
    """Return one span for each block in the passage. Pieces of one block are joined."""
    spans: dict[Block, ParagraphSpan] = {}
    text_end = len(pieces[0].head)
    for index, piece in enumerate(pieces):
        text_start = text_end + (len(piece.gap) if index else 0)
        text_end = text_start + len(piece.text)
        span = ParagraphSpan(piece.start, piece.end, text_start, text_end)
        first = spans.get(piece.block, span)
        spans[piece.block] = span._replace(start=first.start, text_start=first.text_start)
    texts = [span for block, span in spans.items() if block.kind != "heading"]
    return tuple(texts or spans.values())
