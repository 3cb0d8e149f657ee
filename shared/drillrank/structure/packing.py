"""Pack blocks of a document into passages: the rules of `drillrank.structure.passages` for blocks from any source.

`pack_blocks` works in three steps, each in linear time:

1. Mark labels: a label stays with the list, table or code that follows it.
2. Fill passages with blocks, section by section. A block that is too long is cut at its lines, items or sentences.
3. Join short neighbors, across sections too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from drillrank.errors import check_positive
from drillrank.structure.cutting import Level, line_starts, sentence_starts, tile_text
from drillrank.text import word_starts

MAX_CHARACTERS = 1200
JOIN_BELOW = 0.7  # share of the size: neighbors that are shorter together are joined
MAX_TERM_CHARACTERS = 80  # a longer line without a colon is a sentence, not a label

_CAPTION = re.compile(r"\W{0,3}(?:Table|Tab\.|Figure|Fig\.|Listing|Algorithm|Tabelle|Abbildung|Abb\.|Tableau)\s?\d")
_EMPHASIZED_LINE = re.compile(r"(\*\*|__|\*|_)[^\n*_]{1,200}\1[:.]?")
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+•‣◦]|\d{1,9}[.)]|[a-z][.)])[ \t]", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_TABLE_RULE_CHARACTERS = frozenset(" \t\r|+:=-")


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """Block with text to pack.

    Attributes:
        text: Readable text, without line breaks at its beginning and white space at its end.
        kind: Kind of the block, as in `drillrank.structure.document.Block`.
        path: Headings from the root to the block's section.
        start: Offset of the first character in the source.
        end: Offset just after the last character.
        is_exact: True if the text is the source from `start` to `end`.
        gap: White space between the previous block and this one.
        origin: Anything by which the caller recognizes the block.
        line_spans: Start and end in the source of each line of the text, if the text is not exact. A part of the block
            has the span of its lines. Empty if the lines of the source differ: a part has the span of the block.
    """

    text: str
    kind: str
    path: tuple[str, ...]
    start: int
    end: int
    is_exact: bool = True
    gap: str = "\n\n"
    origin: Any = None
    line_spans: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class BlockPart:
    """Block, or a part of a long one.

    Attributes:
        text: Readable text.
        start: Offset of its first character in the source.
        end: Offset just after its last character.
        gap: White space between the previous part and this one.
        block: The block.
        is_label: True if the part stays with the next one.
        head: Head of a table, repeated if the part begins a passage.
    """

    text: str
    start: int
    end: int
    gap: str
    block: SourceBlock
    is_label: bool = False
    head: str = ""


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
class PackedPassage:
    """Passage of consecutive blocks.

    Attributes:
        parts: The blocks in order, or parts of them. Never empty.
    """

    parts: tuple[BlockPart, ...]

    @property
    def text(self) -> str:
        """Readable text. A later part of a table begins with the table's head."""
        first, *others = self.parts
        return first.head + first.text + "".join(part.gap + part.text for part in others)

    @property
    def start(self) -> int:
        """Offset of the first character in the source."""
        return self.parts[0].start

    @property
    def end(self) -> int:
        """Offset just after the last character."""
        return self.parts[-1].end

    @property
    def paragraphs(self) -> tuple[ParagraphSpan, ...]:
        """Spans of the blocks, without headings. If the passage has headings only, spans of these."""
        spans: dict[int, ParagraphSpan] = {}
        kinds: dict[int, str] = {}
        text_end = len(self.parts[0].head)
        for index, part in enumerate(self.parts):
            text_start = text_end + (len(part.gap) if index else 0)
            text_end = text_start + len(part.text)
            span = ParagraphSpan(part.start, part.end, text_start, text_end)
            first = spans.get(id(part.block), span)
            spans[id(part.block)] = span._replace(start=first.start, text_start=first.text_start)
            kinds[id(part.block)] = part.block.kind
        texts = [span for block, span in spans.items() if kinds[block] != "heading"]
        return tuple(texts or spans.values())

    @property
    def headings(self) -> tuple[tuple[str, ...], ...]:
        """Heading path of every section with a block in the passage, each path once."""
        return tuple(dict.fromkeys(part.block.path for part in self.parts if part.block.path))


def pack_blocks(sections: Iterable[Sequence[SourceBlock]], max_characters: int = MAX_CHARACTERS) -> list[PackedPassage]:
    """Pack consecutive blocks into passages.

    Every block is in exactly one passage, unless it is cut because it is too long.

    Args:
        sections: Blocks with text of each section, in order. No section is empty.
        max_characters: Largest length of a passage's text.

    Raises:
        InvalidInput: `max_characters` is below 1.

    >>> blocks = [SourceBlock(text, "paragraph", ("Kettle",), 0, 0, is_exact=False) for text in ("Boils.", "Rinse it.")]
    >>> [passage.text for passage in pack_blocks([blocks], 12)]
    ['Boils.', 'Rinse it.']
    """
    check_positive(max_characters=max_characters)
    parts_by_section = (_list_parts(blocks, max_characters) for blocks in sections)
    filled = _fill_passages(parts_by_section, max_characters)
    joined = _join_short(filled, int(JOIN_BELOW * max_characters))
    return [PackedPassage(tuple(run.pieces)) for run in joined]


def join_headings(headings: Iterable[tuple[str, ...]]) -> str:
    """Return every heading of some paths once, on one line, parents first.

    >>> join_headings([("Oak", "Bark"), ("Oak", "Wood")])
    'Oak > Bark > Wood'
    """
    prefixes = (path[:depth] for path in headings for depth in range(1, len(path) + 1))
    return " > ".join(" ".join(prefix[-1].split()) for prefix in dict.fromkeys(prefixes))


# --- 1. Parts


class _Run:
    """Pieces of one passage, with the length of their text."""

    def __init__(self, pieces: Iterable[BlockPart] = ()) -> None:
        self.pieces: list[BlockPart] = []
        self.length = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: BlockPart) -> None:
        self.length = self.length_with(piece)
        self.pieces.append(piece)

    def length_with(self, piece: BlockPart) -> int:
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


def _list_parts(blocks: Sequence[SourceBlock], size: int) -> list[BlockPart]:
    """Return the blocks of a section, with the labels marked."""
    parts: list[BlockPart] = []
    for block, next_block in zip_longest(blocks, blocks[1:]):
        parts += _mark_label(BlockPart(block.text, block.start, block.end, block.gap, block), next_block, size)
    return parts


def _mark_label(piece: BlockPart, next_block: SourceBlock | None, size: int) -> list[BlockPart]:
    """Return the piece, marked if it is a label. The last sentence of a long paragraph is a label of its own."""
    if piece.block.kind == "heading":
        return [replace(piece, is_label=True)]
    if next_block is None or not _is_label(piece, next_block):
        return [piece]
    starts = sentence_starts(piece.text) if len(piece.text) > size // 4 else []
    *body, label = _split_piece(piece, starts[-1:])
    return [*body, replace(label, is_label=True)]


def _is_label(piece: BlockPart, next_block: SourceBlock) -> bool:
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


def _fill_passages(pieces_by_section: Iterable[list[BlockPart]], size: int) -> Iterator[_Run]:
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


def _stays_with(headings: Sequence[BlockPart], first: BlockPart) -> bool:
    """Return True if all pieces are headings above the section of the first piece."""
    return not headings or (
        len(headings[-1].block.path) < len(first.block.path)
        and all(piece.block.kind == "heading" for piece in headings)
    )


def _add_piece(run: _Run, piece: BlockPart, size: int) -> list[_Run]:
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


def _cut_piece(piece: BlockPart, room: int, size: int) -> list[BlockPart]:
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


def _split_piece(piece: BlockPart, offsets: Iterable[int]) -> list[BlockPart]:
    """Split a piece at offsets in its text. Every part has text; the white space between two is the later one's gap."""
    parts: list[BlockPart] = []
    # A piece that was split before keeps the span of its lines.
    line_spans = piece.block.line_spans if piece.text == piece.block.text else ()
    end = line = 0
    for start, stop in pairwise([0, *offsets, len(piece.text)]):
        text = piece.text[start:stop].rstrip()
        if not text:
            continue
        gap = piece.text[end:start] if parts else piece.gap
        span = (piece.start, piece.end)
        if piece.block.is_exact:
            span = (piece.start + start, piece.start + start + len(text))
        elif line_spans:
            first_line = line + piece.text.count("\n", end, start)
            line = first_line + text.count("\n")
            span = (line_spans[first_line][0], line_spans[line][1])
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
