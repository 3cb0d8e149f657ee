"""Split texts at lines, paragraphs, sentences and words, and split long paragraphs without losing text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from sentencex import get_sentence_boundaries

from drillrank.passages import Passage
from drillrank.text import TokenCount, count_tokens, without_surrogates, word_starts

MAX_PARAGRAPH_TOKENS = 1980  # half of what a prompt of 4,000 tokens has room for after D3's instruction
# CommonMark 2.1. `str.splitlines` would also break at form feeds, U+2028 and others.
LINE_END = re.compile(r"\r\n?|\n")
# The library takes quadratic time on unbalanced quotation marks, so it never sees more than this at once.
_WINDOW = 5000
# The library panics on "A", one of these characters and a full stop.
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")

Level = Callable[[str], list[int]]
"""Function from a text to the offsets at which to cut it, rising."""


def line_starts(text: str) -> list[int]:
    r"""Return the offset of every line's first character, and the text's length as the last entry.

    >>> line_starts("a\r\nb\n")
    [0, 3, 5, 5]
    """
    if "\r" in text:
        return [0, *(match.end() for match in LINE_END.finditer(text)), len(text)]
    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1]), len(text)]  # three times as fast


def trimmed_end(text: str, start: int, end: int) -> int:
    """Return the offset after the last visible character of `text[start:end]`, or `start` if there is none."""
    return start + len(text[start:end].rstrip())


def find_paragraph_spans(text: str) -> list[tuple[int, int]]:
    r"""Return the spans of the lines between blank lines, without the white space at their end.

    >>> find_paragraph_spans("One,\nstill one.\n \nTwo.\n")
    [(0, 15), (18, 22)]
    """
    spans: list[tuple[int, int]] = []
    paragraph_start = -1
    for line_start, line_end in pairwise(line_starts(text)):
        if text[line_start:line_end].strip():
            if paragraph_start < 0:
                paragraph_start = line_start
        elif paragraph_start >= 0:
            spans.append((paragraph_start, trimmed_end(text, paragraph_start, line_start)))
            paragraph_start = -1
    if paragraph_start >= 0:
        spans.append((paragraph_start, trimmed_end(text, paragraph_start, len(text))))
    return spans


def sentences(text: str) -> list[tuple[int, int]]:
    r"""Split a text into sentences. A blank line ends a sentence, too.

    Args:
        text: Any text.

    Returns:
        Start and end offsets of the sentences, in order and disjoint, without white space around them. Every other
        character is in one of them.

    >>> text = "Dr. Smith agreed. He left!\n\nThe end"
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Smith agreed.', 'He left!', 'The end']
    """
    spans: list[tuple[int, int]] = []
    for paragraph_start, paragraph_end in find_paragraph_spans(text):
        paragraph = text[paragraph_start:paragraph_end]
        start = 0
        for end in _find_sentence_ends(paragraph):
            sentence = paragraph[start:end]
            if stripped := sentence.strip():
                first = paragraph_start + start + len(sentence) - len(sentence.lstrip())
                spans.append((first, first + len(stripped)))
            start = end
    return spans


def _find_sentence_ends(paragraph: str) -> list[int]:
    """Return rising offsets at which to cut a paragraph. The last one is its length."""
    ends: list[int] = []
    start = 0
    while len(paragraph) - start > _WINDOW:
        # The window may cut its last sentence short: that one starts the next window.
        boundaries = _find_boundaries(paragraph[start : start + _WINDOW])[:-1]
        ends += [start + end for end in boundaries]
        start = ends[-1] if boundaries else start + _WINDOW
    return ends + [start + end for end in _find_boundaries(paragraph[start:])]


def _find_boundaries(window: str) -> list[int]:
    """Return the ends of the sentences of a short text, as the library finds them."""
    safe_window = _WIDE_SPACE.sub(" ", without_surrogates(window))  # as long as the window
    return [boundary["end_index"] for boundary in get_sentence_boundaries("en", safe_window)]


def sentence_starts(text: str) -> list[int]:
    """Return the offsets at which sentences begin, except the first one.

    >>> sentence_starts("One. Two.")
    [5]
    """
    return [start for start, _ in sentences(text)[1:]]


def tile_text(text: str, limit: int, count: TokenCount, levels: Sequence[Level]) -> list[tuple[int, int]]:
    """Cut a text at the first level, and pieces that are too long at the next one.

    Args:
        text: Any text.
        limit: Largest size of a piece.
        count: Function from a text to its size.
        levels: Where to cut, from coarse to fine.

    Returns:
        Spans that tile the text.

    >>> tile_text("One two. Three.", 1, lambda text: len(text.split()), [sentence_starts, word_starts])
    [(0, 4), (4, 9), (9, 15)]
    """
    if not levels:  # one long word; a character has at most four bytes, thus four tokens
        return list(pairwise([*range(0, len(text), max(limit // 4, 1)), len(text)]))
    spans: list[tuple[int, int]] = []
    for start, end in pairwise([0, *levels[0](text), len(text)]):
        if count(text[start:end]) > limit:
            finer_spans = tile_text(text[start:end], limit, count, levels[1:])
            spans += [(start + finer_start, start + finer_end) for finer_start, finer_end in finer_spans]
        else:
            spans.append((start, end))
    return spans


def pack_neighbors(
    sizes: Sequence[int], limit: int, fits: Callable[[int, int], bool], first_extras: Sequence[int] = ()
) -> Iterator[tuple[int, int]]:
    """Yield groups of neighbors that fit together, as start and end index. An item that is too long is alone.

    Args:
        sizes: Size of each item.
        limit: Largest size of a group.
        fits: Function that checks the group from a start to an end index. A group can have more tokens than its items.
        first_extras: Additional size of each item if it is the first of its group.

    >>> list(pack_neighbors([2, 2, 3, 9], 5, lambda start, end: True))
    [(0, 2), (2, 3), (3, 4)]
    """
    start = 0
    while start < len(sizes):
        end, room = start + 1, limit - sizes[start] - (first_extras[start] if first_extras else 0)
        while end < len(sizes) and sizes[end] <= room:
            room -= sizes[end]
            end += 1
        while end > start + 1 and not fits(start, end):  # rare
            end -= 1
        yield start, end
        start = end


def cut_text(text: str, limit: int, count: TokenCount) -> list[tuple[int, int]]:
    """Cut a text into parts of at most `limit` tokens: as many sentences as fit, or words, or characters.

    A single character may have more tokens.

    Returns:
        Spans that tile the text.

    >>> text = "One. Two two two. Three."
    >>> [text[start:end] for start, end in cut_text(text, 2, lambda text: len(text.split()))]
    ['One. Two ', 'two two. ', 'Three.']
    """
    if count(text) <= limit:
        return [(0, len(text))]
    spans = tile_text(text, limit, count, (sentence_starts, word_starts))
    sizes = [count(text[start:end]) for start, end in spans]
    groups = pack_neighbors(sizes, limit, lambda first, end: count(text[spans[first][0] : spans[end - 1][1]]) <= limit)
    return [(spans[first][0], spans[end - 1][1]) for first, end in groups]


def split_long_paragraph(
    source: Passage, readable: Passage, limit: int = MAX_PARAGRAPH_TOKENS, count: TokenCount = count_tokens
) -> list[tuple[Passage, Passage]]:
    """Split a paragraph whose readable text has more than `limit` tokens.

    Args:
        source: The paragraph with the text of the document.
        readable: The same paragraph with readable text.
        limit: Largest number of tokens of a part.
        count: Function that counts tokens.

    Returns:
        Pairs of source and readable text: the paragraph, or its parts. A part has an exact span if the source is
        readable itself. In HTML and LaTeX, parts have the span of the whole paragraph, and `part` in their metadata
        distinguishes them.
    """
    if len(readable.text.encode("utf-8", "surrogatepass")) <= limit:  # a token has at least one byte
        return [(source, readable)]
    spans = cut_text(readable.text, limit, count)
    if len(spans) == 1:
        return [(source, readable)]
    metadata = source.metadata
    is_exact = (
        "start" in metadata and len(source.text) == metadata["end"] - metadata["start"] and source.text == readable.text
    )
    prefix = f"{metadata['part']}." if "part" in metadata else ""
    parts = []
    for number, (start, end) in enumerate(spans):
        if is_exact:
            id_ = f"{metadata['document']}:{metadata['start'] + start}"
            position = {"start": metadata["start"] + start, "end": metadata["start"] + end}
        else:
            id_, position = f"{source.id}:{number}", {"part": f"{prefix}{number}"}
        parts.append(replace(source, text=readable.text[start:end], id=id_, metadata={**metadata, **position}))
    return [(part, part) for part in parts]
