"""Where a text may be cut: lines, paragraphs, sentences, words; and long paragraphs in parts, nothing lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from sentencex import get_sentence_boundaries

from drillrank.passages import Passage
from drillrank.text import TokenCount, count_tokens, without_surrogates, word_starts

LONG = 1980  # tokens: half of what a prompt of 4,000 leaves beside D3's instruction
# CommonMark 2.1. `str.splitlines` would also break at form feeds, U+2028 and others.
LINE_END = re.compile(r"\r\n?|\n")
# The library takes quadratic time on unbalanced quotation marks, so it never sees more than this at once.
_WINDOW = 5000
# It panics over "A" and a full stop with one of these between them.
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")

Level = Callable[[str], list[int]]
"""From a text to the offsets at which to cut it, rising."""


def line_starts(text: str) -> list[int]:
    r"""Offset of every line's first character, with the text's length as a last entry.

    >>> line_starts("a\r\nb\n")
    [0, 3, 5, 5]
    """
    if "\r" in text:
        return [0, *(match.end() for match in LINE_END.finditer(text)), len(text)]
    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1]), len(text)]  # three times as fast


def trimmed_end(text: str, start: int, end: int) -> int:
    """The offset after the last character of `text[start:end]` that is not white space; `start` if there is none."""
    return start + len(text[start:end].rstrip())


def paragraphs(text: str) -> list[tuple[int, int]]:
    r"""Spans of the runs of lines between blank lines, without the white space at their end.

    >>> paragraphs("One,\nstill one.\n \nTwo.\n")
    [(0, 15), (18, 22)]
    """
    spans: list[tuple[int, int]] = []
    begin = -1
    starts = line_starts(text)
    for start, end in pairwise(starts):
        if text[start:end].strip():
            if begin < 0:
                begin = start
        elif begin >= 0:
            spans.append((begin, trimmed_end(text, begin, start)))
            begin = -1
    if begin >= 0:
        spans.append((begin, trimmed_end(text, begin, len(text))))
    return spans


def sentences(text: str) -> list[tuple[int, int]]:
    r"""Split a text into sentences; blank lines end one too.

    Args:
        text: Any text.

    Returns:
        Start and end offsets of the sentences, in order and disjoint, without white space around them. All other
        characters lie in one of them.

    >>> text = "Dr. Smith agreed. He left!\n\nThe end"
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Smith agreed.', 'He left!', 'The end']
    """
    spans: list[tuple[int, int]] = []
    for start, end in paragraphs(text):
        paragraph = text[start:end]
        begin = 0
        for stop in _sentence_ends(paragraph):
            sentence = paragraph[begin:stop]
            inner = sentence.strip()
            if inner:
                first = start + begin + len(sentence) - len(sentence.lstrip())
                spans.append((first, first + len(inner)))
            begin = stop
    return spans


def _sentence_ends(paragraph: str) -> list[int]:
    """Rising offsets at which to cut the paragraph; the last is its length."""
    ends: list[int] = []
    at = 0
    while len(paragraph) - at > _WINDOW:
        # The window may cut its last sentence short: that one starts the next window.
        whole = _boundaries(paragraph[at : at + _WINDOW])[:-1]
        ends += [at + end for end in whole]
        at = ends[-1] if whole else at + _WINDOW
    return ends + [at + end for end in _boundaries(paragraph[at:])]


def _boundaries(window: str) -> list[int]:
    """Ends of the sentences of a short text, as the library sees them; what stands in for characters is as long."""
    found = get_sentence_boundaries("en", _WIDE_SPACE.sub(" ", without_surrogates(window)))
    return [boundary["end_index"] for boundary in found]


def sentence_starts(text: str) -> list[int]:
    """Offsets at which sentences begin, without that of the first one.

    >>> sentence_starts("One. Two.")
    [5]
    """
    return [start for start, _ in sentences(text)[1:]]


def tile_text(text: str, limit: int, count: TokenCount, levels: Sequence[Level]) -> list[tuple[int, int]]:
    """Spans that tile a text: what the first level cuts, and inside of those that are too long, the next one.

    >>> tile_text("One two. Three.", 1, lambda text: len(text.split()), [sentence_starts, word_starts])
    [(0, 4), (4, 9), (9, 15)]
    """
    if not levels:  # one long word; a character has at most four bytes, thus four tokens
        return list(pairwise([*range(0, len(text), max(limit // 4, 1)), len(text)]))
    spans: list[tuple[int, int]] = []
    for start, end in pairwise([0, *levels[0](text), len(text)]):
        if count(text[start:end]) > limit:
            spans += [(start + a, start + b) for a, b in tile_text(text[start:end], limit, count, levels[1:])]
        else:
            spans.append((start, end))
    return spans


def packed(
    sizes: Sequence[int], limit: int, fits: Callable[[int, int], bool], extra: Sequence[int] = ()
) -> Iterator[tuple[int, int]]:
    """Neighbours that fit together, from the first on; what is too long alone stays alone.

    Args:
        sizes: Of each.
        limit: Of those that stand together.
        fits: Whether those from one place to another do, which can have more tokens than their parts.
        extra: What each takes more as the first of its group.

    >>> list(packed([2, 2, 3, 9], 5, lambda start, end: True))
    [(0, 2), (2, 3), (3, 4)]
    """
    at = 0
    while at < len(sizes):
        end, left = at + 1, limit - sizes[at] - (extra[at] if extra else 0)
        while end < len(sizes) and sizes[end] <= left:
            left -= sizes[end]
            end += 1
        while end > at + 1 and not fits(at, end):  # rare
            end -= 1
        yield at, end
        at = end


def cut(text: str, limit: int, count: TokenCount) -> list[tuple[int, int]]:
    """Spans that tile a text, each of at most `limit` tokens: as many sentences as fit; of long ones words, characters.

    A single character may have more tokens.

    >>> text = "One. Two two two. Three."
    >>> [text[start:end] for start, end in cut(text, 2, lambda text: len(text.split()))]
    ['One. Two ', 'two two. ', 'Three.']
    """
    if count(text) <= limit:
        return [(0, len(text))]
    spans = tile_text(text, limit, count, (sentence_starts, word_starts))
    sizes = [count(text[start:end]) for start, end in spans]
    groups = packed(sizes, limit, lambda first, end: count(text[spans[first][0] : spans[end - 1][1]]) <= limit)
    return [(spans[first][0], spans[end - 1][1]) for first, end in groups]


def parts(
    paragraph: Passage, shown: Passage, limit: int = LONG, count: TokenCount = count_tokens
) -> list[tuple[Passage, Passage]]:
    """A paragraph, or its parts where it has more than `limit` tokens as a reader sees it; each as source and as shown.

    A part has an exact span of its own. Where the paragraph's span is not that of the text that is read, as in HTML
    and LaTeX, its parts are parts of the readable text, have the span of the whole paragraph, and are told apart by
    `part` in their metadata.
    """
    if len(shown.text.encode("utf-8", "surrogatepass")) <= limit:  # a token has at least one byte
        return [(paragraph, shown)]
    spans = cut(shown.text, limit, count)
    if len(spans) == 1:
        return [(paragraph, shown)]
    location = paragraph.metadata
    exact = "start" in location and len(paragraph.text) == location["end"] - location["start"]
    exact = exact and paragraph.text == shown.text
    above = f"{location['part']}." if "part" in location else ""
    found = []
    for number, (start, end) in enumerate(spans):
        if exact:
            id_ = f"{location['document']}:{location['start'] + start}"
            of_part = {"start": location["start"] + start, "end": location["start"] + end}
        else:
            id_, of_part = f"{paragraph.id}:{number}", {"part": f"{above}{number}"}
        found.append(replace(paragraph, text=shown.text[start:end], id=id_, metadata={**location, **of_part}))
    return [(part, part) for part in found]
