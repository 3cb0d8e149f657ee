"""Cut blocks at lines, sentences and words, and pack the parts again as far as a size limit allows.

A limit is a number of tokens as `count` counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from drillrank.structure import Block, Document, Section, sentences
from drillrank.structure.lines import line_starts
from drillrank.text import TokenCount, word_starts


@dataclass(frozen=True, slots=True)
class Span:
    """A block or a part of one.

    Attributes:
        block: The block.
        start: Offset of the first character in the document's text. What lies between two blocks belongs to the first.
        end: Offset just after the last one.
        rendering: The text as a reader sees it, where that is not the source; the span is the whole block's then.
        header: What a reader needs before it if nothing of the block stands there: a table's first lines.
    """

    block: Block
    start: int
    end: int
    rendering: str | None
    header: str = ""


Run = Sequence[Span]
"""Neighbouring spans that stay together."""


def block_runs(document: Document, section: Section) -> list[Run]:
    """The blocks of a section, each a run; with the white space between them they tile the section."""
    blocks = document.blocks(section)
    if not blocks:
        return []
    starts = [section.start, *(block.start for block in blocks[1:]), section.end]
    return [
        [Span(block, start, end, block.rendering)] for block, (start, end) in zip(blocks, pairwise(starts), strict=True)
    ]


def text_of(document: Document, run: Run) -> str:
    """The readable text of a run, a table's header repeated where the run begins inside the table."""
    return run[0].header + _bare_text(document, run) if run else ""


def body_of(document: Document, run: Run) -> str:
    """As `text_of`, without the heading that a run may begin with."""
    return text_of(document, [span for span in run if span.block.kind != "heading"])


def fits(document: Document, run: Run, limit: int, count: TokenCount) -> bool:
    """Whether a run has at most `limit` tokens, white space around it not counted."""
    return count(text_of(document, run).strip()) <= limit


def fitted(document: Document, runs: Iterable[Run], limit: int, count: TokenCount) -> list[Run]:
    """The runs, those that are too long cut: each into as few as its lines, sentences or words allow.

    A heading goes with the first part of a block that is cut after it.
    """
    found: list[Run] = []
    for run in runs:
        if fits(document, run, limit, count):
            found.append(run)
            continue
        parts = atoms(document, run, limit, count)
        if found and all(span.block.kind == "heading" for span in found[-1]):
            parts.insert(0, found.pop())
        found += packed(document, parts, limit, count)
    return found


def packed(document: Document, runs: Sequence[Run], limit: int, count: TokenCount) -> list[Run]:
    """Join neighbours, from the first on, as long as they fit; a run that is too long alone stays alone."""
    sizes = [_size(_bare_text(document, run), count) for run in runs]
    groups: list[Run] = []
    at = 0
    while at < len(runs):
        end, left = at, limit - count(runs[at][0].header)
        while end == at or (end < len(runs) and sizes[end] <= left):
            left -= sizes[end]
            end += 1
        group = [span for run in runs[at:end] for span in run]
        while end > at + 1 and not fits(
            document, group, limit, count
        ):  # rare: the whole can have more tokens than its parts
            end -= 1
            group = [span for run in runs[at:end] for span in run]
        groups.append(group)
        at = end
    return groups


def atoms(document: Document, run: Run, limit: int, count: TokenCount) -> list[Run]:
    """The lines (of tables, code and lists) or sentences of a run; where one is too long its words, then characters."""
    found: list[Run] = []
    for span in run:
        text = _bare_text(document, [span])
        kind = span.block.kind
        header, behind = _table_header(text, span, limit, count) if kind == "table" else ("", 0)
        for begin, stop in _split(text, limit - count(header), _LEVELS.get(kind, _OF_PROSE), count):
            repeated = header if begin >= behind else ""
            if span.rendering is None:
                found.append([Span(span.block, span.start + begin, span.start + stop, None, repeated)])
            else:
                found.append([Span(span.block, span.start, span.end, text[begin:stop], repeated)])
    return found


def _size(text: str, count: TokenCount) -> int:
    """Tokens of a text that others follow: a space mostly belongs to the next word's token, a line break does not."""
    return count(text.rstrip(" \t"))


def _bare_text(document: Document, run: Run) -> str:
    if all(span.rendering is None for span in run):
        return document.text[run[0].start : run[-1].end]
    parts = [run[0].rendering or ""]
    for before, span in pairwise(run):
        parts += ["" if before.block is span.block or not span.rendering else "\n\n", span.rendering or ""]
    return "".join(parts)


def _table_header(text: str, span: Span, limit: int, count: TokenCount) -> tuple[str, int]:
    """The lines to repeat and where they end: a Markdown table's header and the rule below it, or the first row.

    Nothing is repeated where the lines alone take more than half of the limit.
    """
    lead = span.block.start - span.start if span.rendering is None else 0  # blank lines before the table
    behind = lead + line_starts(text[lead:])[2 if span.rendering is None else 1]
    header = text[lead:behind]
    return (header, behind) if 2 * count(header) <= limit else ("", 0)


_Level = Callable[[str], list[int]]  # from a text to the offsets at which to cut it, rising


def _lines(text: str) -> list[int]:
    return [start for start in line_starts(text) if 0 < start < len(text)]


def _sentences(text: str) -> list[int]:
    return [start for start, _ in sentences(text)[1:]]


_LEVELS: dict[str, tuple[_Level, ...]] = {
    "table": (_lines, _sentences, word_starts),
    "list": (_lines, _sentences, word_starts),
    "code": (_lines, word_starts),
}
_OF_PROSE: tuple[_Level, ...] = (_sentences, word_starts)


def _split(text: str, limit: int, levels: Sequence[_Level], count: TokenCount) -> list[tuple[int, int]]:
    """Spans that tile the text: what the first level cuts, and inside of those that are too long, the next one."""
    if not levels:  # one long word; a character has at most four bytes, thus four tokens
        cuts = range(0, len(text), max(limit // 4, 1))[1:]
        return list(pairwise([0, *cuts, len(text)]))
    spans = []
    for start, end in pairwise([0, *levels[0](text), len(text)]):
        if count(text[start:end].strip()) > limit:
            spans += [(start + a, start + b) for a, b in _split(text[start:end], limit, levels[1:], count)]
        else:
            spans.append((start, end))
    return spans
