"""Texts that are too long for a prompt: paragraphs cut into parts, nothing lost; anything else without its middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from drillrank.drilldown.outline import OutlineSection
from drillrank.passages import Passage
from drillrank.structure import sentences
from drillrank.text import TokenCount, word_starts

LEAST = 32  # tokens that any prompt needs for texts
_GAP = " … "
_LONG_TOKEN = 8  # characters; of text with longer tokens, `shortened` keeps less than it could


def bounded(section: OutlineSection, limit: int, count: TokenCount) -> OutlineSection:
    """The section, those of its paragraphs that have more than `limit` tokens as a reader sees them cut into parts.

    A part has an exact span of its own. Where the paragraph's span is not that of the text that is read, as in HTML
    and LaTeX, its parts are parts of the readable text, have the span of the whole paragraph, and are told apart by
    `part` in their metadata.
    """
    parts = [
        part
        for paragraph, shown in zip(section.paragraphs, section.readable, strict=True)
        for part in _parts(paragraph, shown, limit, count)
    ]
    if len(parts) == len(section.paragraphs):
        return section
    return replace(section, paragraphs=tuple(own for own, _ in parts), readable=tuple(shown for _, shown in parts))


def _parts(paragraph: Passage, shown: Passage, limit: int, count: TokenCount) -> list[tuple[Passage, Passage]]:
    if len(shown.text.encode("utf-8", "surrogatepass")) <= limit:  # a token has at least one byte
        return [(paragraph, shown)]
    spans = cut(shown.text, limit, count)
    if len(spans) == 1:
        return [(paragraph, shown)]
    place = paragraph.metadata
    if "start" in place and paragraph.text == shown.text and len(paragraph.text) == place["end"] - place["start"]:
        offset, document = place["start"], place["document"]
        return [
            (part, part)
            for start, end in spans
            for part in [
                replace(
                    paragraph,
                    text=paragraph.text[start:end],
                    id=f"{document}:{offset + start}",
                    metadata={**place, "start": offset + start, "end": offset + end},
                )
            ]
        ]
    above = f"{place['part']}." if "part" in place else ""
    return [
        (part, part)
        for number, (start, end) in enumerate(spans)
        for part in [
            replace(
                paragraph,
                text=shown.text[start:end],
                id=f"{paragraph.id}:{number}",
                metadata={**place, "part": f"{above}{number}"},
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
    atoms = _atoms(text, 0, len(text), limit, count, (_sentences, word_starts))
    sizes = [count(text[start:end]) for start, end in atoms]
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(atoms):
        end, left = at + 1, limit - sizes[at]
        while end < len(atoms) and sizes[end] <= left:
            left -= sizes[end]
            end += 1
        while end > at + 1 and count(text[atoms[at][0] : atoms[end - 1][1]]) > limit:  # rare: more than its parts have
            end -= 1
        spans.append((atoms[at][0], atoms[end - 1][1]))
        at = end
    return spans


def shortened(text: str, limit: int, count: TokenCount) -> str:
    """The text, or its beginning and its end with a gap between them, of at most `limit` tokens together.

    >>> shortened("one two three four five six", 5, lambda text: len(text.split()))
    'one two  … five six'
    """
    if count(text) <= limit:
        return text
    few, many = 0, min(len(text) // 2, limit * _LONG_TOKEN) + 1  # characters at either end: `few` fit
    if count(_GAP) > limit:
        return ""
    while many - few > 1:
        middle = (few + many) // 2
        if count(f"{text[:middle]}{_GAP}{text[-middle:]}") <= limit:
            few = middle
        else:
            many = middle
    return f"{text[:few]}{_GAP}{text[-few:]}" if few else _GAP.strip()


def fitting(text: str, max_tokens: int, prompt: Callable[[str], str], count: TokenCount) -> str:
    """The text, without its middle if the prompt with it would have more than so many tokens."""
    limit, shown = count(text), text
    while (over := count(prompt(shown)) - max_tokens) > 0 and limit > 0:
        limit = min(limit, count(shown)) - over
        shown = shortened(text, limit, count)
    return shown


_Level = Callable[[str], list[int]]  # from a text to the offsets at which to cut it, rising


def _sentences(text: str) -> list[int]:
    return [start for start, _ in sentences(text)[1:]]


def _atoms(
    text: str, start: int, end: int, limit: int, count: TokenCount, levels: Sequence[_Level]
) -> list[tuple[int, int]]:
    if count(text[start:end]) <= limit or end - start <= 1:
        return [(start, end)]
    if levels:
        cuts = [start + at for at in levels[0](text[start:end])]
    else:  # a long word: at once into parts of about the size, then these into halves
        cuts = list(range(start + limit, end, limit)) if end - start > limit else [(start + end) // 2]
    spans = pairwise([start, *cuts, end])
    return [atom for first, last in spans for atom in _atoms(text, first, last, limit, count, levels[1:])]
