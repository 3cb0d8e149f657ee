"""Texts that are too long for a prompt: paragraphs cut into parts, nothing lost; anything else without its middle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from drillrank.drilldown.outline import OutlineSection
from drillrank.structure.cutting import parts
from drillrank.text import TokenCount

LEAST = 32  # tokens that any prompt needs for texts
_GAP = " … "
_LONG_TOKEN = 8  # characters; of text with longer tokens, `shortened` keeps less than it could


def bounded(section: OutlineSection, limit: int, count: TokenCount) -> OutlineSection:
    """The section, those of its paragraphs that have more than `limit` tokens as a reader sees them cut into parts."""
    pairs = zip(section.paragraphs, section.readable, strict=True)
    cut = [part for paragraph, shown in pairs for part in parts(paragraph, shown, limit, count)]
    if len(cut) == len(section.paragraphs):
        return section
    return replace(section, paragraphs=tuple(source for source, _ in cut), readable=tuple(shown for _, shown in cut))


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
