"""What is evidence for a question, and at which rank a ranking has brought it: one definition for everything.

Evidence is fixed by the questions and the corpus before anything is asked. Its items are those of the first column that
a question has:

| column | items | an item is found at k if |
|---|---|---|
| `gold` | the ids | a passage with the id is among the first k |
| `spans` | the texts | the first k passages together hold at least half of its characters |
| `answers` | one: any of them | one of the first k passages holds an answer as whole words |

Spans and answers do not care how the corpus was cut. A character of a span is held where it stands in a run of five
words that the passage holds (of the whole span or passage, where that has fewer). Titles and ids are not text.

A heading is no part of the paragraph under it: a span that begins with one, or holds one, is judged without it, and a
span that is nothing else stands for the first paragraph below. It counts as it is only where nothing stands under it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from drillrank.evaluation.metrics import exact_match
from drillrank.evaluation.questions import Question
from drillrank.passages import Passage
from drillrank.structure import Document
from drillrank.text import words

FOUND = 0.5  # share of a span's characters
RUN = 5  # words; shorter ones that a span and a passage share are chance

_MARKUP = re.compile(r"</?[a-z][^<>]*>|\\[a-z]+", re.IGNORECASE)


class Evidence(NamedTuple):
    """What is right for a question; its items are of the first kind that there is.

    Attributes:
        ids: Of passages.
        spans: The words of each text.
        answers: Any of which will do.
    """

    ids: tuple[str, ...] = ()
    spans: tuple[tuple[str, ...], ...] = ()
    answers: tuple[str, ...] = ()

    def ranks(self, ranking: Sequence[Passage]) -> tuple[float, ...]:
        """The rank, from 1 on, at which each item is found; infinity where it is not.

        >>> Evidence(spans=(("the", "rhine", "flows"),)).ranks([Passage("Basel."), Passage("There the Rhine flows.")])
        (2,)
        """
        if self.ids:
            places = {passage.id: rank for rank, passage in reversed([*enumerate(ranking, start=1)])}
            return tuple(places.get(id_, math.inf) for id_ in self.ids)
        if self.spans:
            shares = ([*_shares(span, (passage.text for passage in ranking))] for span in self.spans)
            return tuple(
                next((rank for rank, share in enumerate(some, 1) if share >= FOUND), math.inf) for some in shares
            )
        hits = (rank for rank, passage in enumerate(ranking, 1) if exact_match([passage.text], self.answers, 1))
        return (next(hits, math.inf),)

    def span_recall(self, ranking: Sequence[Passage], words: int) -> float:
        """Share of the spans' characters that stand in the first so many words of the passages.

        >>> Evidence(spans=(("four", "five", "six"), ("eight",))).span_recall([Passage("Four five six seven.")], 100)
        0.6875
        """
        texts = [passage.text for passage in ranking]
        covered = sum(max(_shares(span, texts, words), default=0.0) * _length(span) for span in self.spans)
        return covered / sum(map(_length, self.spans))


def _shares(span: tuple[str, ...], texts: Iterable[str], words: float = math.inf) -> Iterator[float]:
    """The share of a span's characters that the texts hold together, from the first one on, in their first words."""
    covered: set[int] = set()
    for text in texts:
        covered |= _places(span, text, words)
        words -= _count(words_of(text)) if words < math.inf else 0
        yield sum(len(span[location]) for location in covered) / _length(span)


def _length(span: Sequence[str]) -> int:
    return sum(map(len, span)) or 1  # a span without a word is never held


def _count(text: str) -> int:
    return text.count(" ") - 1


@lru_cache(maxsize=20_000)  # rerankers return the same passages
def _places(span: tuple[str, ...], text: str, words: float) -> frozenset[int]:
    """Places of the words of a span that the first words of a text hold in runs."""
    text = words_of(text)
    run = min(RUN, len(span), _count(text))
    if words < _count(text):
        text = f" {' '.join(text.split()[: int(words)])} " if words > 0 else ""
    starts = [start for start, part in enumerate(_runs(span, run)) if part in text]
    return frozenset(location for start in starts for location in range(start, start + run))


@lru_cache(maxsize=1_000)
def _runs(span: tuple[str, ...], run: int) -> list[str]:
    return [f" {' '.join(span[start : start + run])} " for start in range(len(span) - run + 1)]


@lru_cache(maxsize=10_000)
def words_of(text: str) -> str:
    """The words of a text in small letters, without markup, between blanks; of scripts without spaces each character.

    >>> words_of("The <b>heater</b>: 2 years."), words_of("\u4e24\u5e74")
    (' the heater 2 years ', ' \u4e24 \u5e74 ')
    """
    return " ".join(["", *words(_MARKUP.sub(" ", text).casefold()), ""])


def evidence_of(questions: Sequence[Question], documents: Iterable[Document] = ()) -> dict[str, Evidence]:
    """The evidence of each question, by its id.

    Args:
        questions: As they were read.
        documents: Those that spans are marked in.
    """
    texts = [_words(document) for document in documents] if any(question.spans for question in questions) else []
    found = {}
    for question in questions:
        spans = (tuple(_without_headings(words_of(span), texts).split()) for span in question.spans)
        found[question.id] = Evidence(question.gold, tuple(dict.fromkeys(spans)), question.answers)
    return found


class _Words(NamedTuple):
    """The words of a document, of its headings that count for nothing, and where its paragraphs stand among them."""

    text: str
    headings: set[str]
    paragraphs: list[tuple[int, int]]


def _words(document: Document) -> _Words:
    paragraphs = {block for _, block in document.paragraphs()}  # with a heading that nothing stands under
    text, headings, places = " ", set(), []
    for block in (block for section in document.sections() for block in document.blocks(section)):
        words, at = words_of(document.readable(block)), len(text)
        text += words[1:]
        if block in paragraphs:
            places.append((at, len(text) - 1))
        elif block.kind == "heading":
            headings.add(words)
    return _Words(text, headings, places)


def _without_headings(span: str, documents: Sequence[_Words]) -> str:
    """The words of a span as the first document with it has them: without headings, or else the paragraph below."""
    for text, headings, counting in documents:
        start = text.find(span) if any(heading in span for heading in headings) else -1
        if start >= 0:
            end = start + len(span)
            inside = [text[max(a, start) : min(b, end)] for a, b in counting if a < end and start < b]
            return " ".join(inside) or next((text[a:b] for a, b in counting if a >= end), span)
    return span
