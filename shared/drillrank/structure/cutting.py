"""Long paragraphs, such as pages without blank lines: cut into parts at their sentences, nothing lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from drillrank.passages import Passage
from drillrank.structure.sentences import sentences
from drillrank.text import TokenCount, count_tokens, word_starts

LONG = 1980  # tokens: half of what a prompt of 4,000 leaves beside D3's instruction


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
    if (
        "start" in location
        and paragraph.text == shown.text
        and len(paragraph.text) == location["end"] - location["start"]
    ):
        offset, document = location["start"], location["document"]
        return [
            (part, part)
            for start, end in spans
            for part in [
                replace(
                    paragraph,
                    text=paragraph.text[start:end],
                    id=f"{document}:{offset + start}",
                    metadata={**location, "start": offset + start, "end": offset + end},
                )
            ]
        ]
    above = f"{location['part']}." if "part" in location else ""
    return [
        (part, part)
        for number, (start, end) in enumerate(spans)
        for part in [
            replace(
                paragraph,
                text=shown.text[start:end],
                id=f"{paragraph.id}:{number}",
                metadata={**location, "part": f"{above}{number}"},
            )
        ]
    ]


def cut(text: str, limit: int, count: TokenCount) -> list[tuple[int, int]]:
    """Spans that tile a text, each of at most `limit` tokens: as many sentences as fit; of long ones words, characters.

    A single character may have more tokens.

    >>> text = "One. Two two two. Three."
    >>> [text[start:end] for start, end in cut(text, 2, lambda text: len(text.split()))]
    ['One. Two ', 'two two. ', 'Three.']
    """
    splits = _splits(text, 0, len(text), limit, count, (_sentences, word_starts))
    sizes = [count(text[start:end]) for start, end in splits]
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(splits):
        end, left = at + 1, limit - sizes[at]
        while end < len(splits) and sizes[end] <= left:
            left -= sizes[end]
            end += 1
        # Rare: more than its parts have.
        while end > at + 1 and count(text[splits[at][0] : splits[end - 1][1]]) > limit:
            end -= 1
        spans.append((splits[at][0], splits[end - 1][1]))
        at = end
    return spans


_Level = Callable[[str], list[int]]  # from a text to the offsets at which to cut it, rising


def _sentences(text: str) -> list[int]:
    return [start for start, _ in sentences(text)[1:]]


def _splits(
    text: str, start: int, end: int, limit: int, count: TokenCount, levels: Sequence[_Level]
) -> list[tuple[int, int]]:
    if count(text[start:end]) <= limit or end - start <= 1:
        return [(start, end)]
    if levels:
        cuts = [start + at for at in levels[0](text[start:end])]
    else:  # a long word: at once into parts of about the size, then these into halves
        cuts = list(range(start + limit, end, limit)) if end - start > limit else [(start + end) // 2]
    spans = pairwise([start, *cuts, end])
    return [split for first, last in spans for split in _splits(text, first, last, limit, count, levels[1:])]
