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
from itertools import accumulate
from typing import NamedTuple

from drillrank.evaluation.exact_match import exact_match
from drillrank.evaluation.questions import Question
from drillrank.passages import Passage
from drillrank.structure import Document
from drillrank.structure.document import Block

FOUND = 0.5  # share of a span's characters
RUN = 5  # words; shorter ones that a span and a passage share are chance

_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts without spaces
_MARKUP = re.compile(r"</?[a-z][^<>]*>|\\[a-z]+", re.IGNORECASE)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class Evidence(NamedTuple):
    """What is right for a question; one of the three.

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
            return tuple(_rank(span, ranking) for span in self.spans)
        hits = (rank for rank, passage in enumerate(ranking, 1) if exact_match([passage.text], self.answers, 1))
        return (next(hits, math.inf),)


def _rank(span: tuple[str, ...], ranking: Sequence[Passage]) -> float:
    shares = _shares(span, (passage.text for passage in ranking))
    return next((rank for rank, share in enumerate(shares, start=1) if share >= FOUND), math.inf)


def _shares(span: tuple[str, ...], texts: Iterable[str], words: float = math.inf) -> Iterator[float]:
    """The share of a span's characters that the texts hold together, from the first one on, in their first words."""
    held: set[int] = set()
    for text in map(words_of, texts):
        held |= _held(span, text, words)
        words -= _count(text)
        yield sum(len(span[place]) for place in held) / _length(span)


def _length(span: Sequence[str]) -> int:
    return sum(map(len, span)) or 1  # a span without a word is never held


def _count(text: str) -> int:
    return text.count(" ") - 1


@lru_cache(maxsize=10_000)  # rerankers return the same passages
def _held(span: tuple[str, ...], text: str, words: float) -> frozenset[int]:
    """Places of the words of a span that the first words of a text hold in runs."""
    run = min(RUN, len(span), _count(text))
    if words < _count(text):
        text = f" {' '.join(text.split()[: int(words)])} " if words > 0 else ""
    starts = [start for start, part in enumerate(_runs(span, run)) if part in text]
    return frozenset(place for start in starts for place in range(start, start + run))


@lru_cache(maxsize=1_000)
def _runs(span: tuple[str, ...], run: int) -> list[str]:
    return [f" {' '.join(span[start : start + run])} " for start in range(len(span) - run + 1)]


@lru_cache(maxsize=10_000)
def words_of(text: str) -> str:
    """The words of a text in small letters, without markup, between blanks; of scripts without spaces each character.

    >>> words_of("The <b>heater</b>: 2 years."), words_of("\u4e24\u5e74")
    (' the heater 2 years ', ' \u4e24 \u5e74 ')
    """
    return f" {' '.join(_WORD.findall(_MARKUP.sub(' ', text).casefold()))} "


def span_recall(texts: Sequence[str], spans: Sequence[str], words: int) -> float:
    """Share of the spans' characters that stand in the first so many words of the texts.

    >>> span_recall(["One two three four five six seven."], ["four five six seven", "eight"], 100)
    0.75
    """
    wanted = [tuple(words_of(span).split()) for span in spans]
    held = sum(max(_shares(span, texts, words), default=0.0) * _length(span) for span in wanted)
    return held / sum(map(_length, wanted))


def paragraphs(document: Document) -> list[Block]:
    r"""The blocks of a document that can be evidence: all but headings, and a heading that nothing stands under.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Kettle\n\n## Warranty\n\nTwo years.\n\n## Notes\n")
    >>> [document.slice(block) for block in paragraphs(document)]
    ['Two years.', '## Notes']
    """
    found = []
    for section in document.sections():
        blocks = document.blocks(section)
        below = [block for block in blocks if block.kind != "heading" and document.readable(block).strip()]
        alone = not below and not document.children(section)
        found += [block for block in blocks if block.kind == "heading"] if alone else below
    return found


def evidence_of(questions: Sequence[Question], documents: Iterable[Document] = ()) -> dict[str, Evidence]:
    """The evidence of each question, by its id.

    Args:
        questions: As they were read.
        documents: Those that spans are marked in.
    """
    headings = _Headings(documents if any(question.spans and not question.gold for question in questions) else ())
    found = {}
    for question in questions:
        if question.gold:
            found[question.id] = Evidence(ids=question.gold)
        elif question.spans:
            spans = dict.fromkeys(tuple(headings.left_out(words_of(span)).split()) for span in question.spans)
            found[question.id] = Evidence(spans=tuple(spans))
        else:
            found[question.id] = Evidence(answers=question.answers)
    return found


class _Headings:
    """Headings of documents that something stands under."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = list(documents)
        self._places: dict[str, dict[int, None]] = {}  # of the documents that have a heading of these words
        for place, document in enumerate(self._documents):
            for section in document.sections():
                self._places.setdefault(words_of(section.heading), {})[place] = None
        self._longest = max((heading.count(" ") for heading in self._places), default=0)
        self._blocks: dict[int, tuple[str, list[tuple[int, int, bool]]]] = {}

    def left_out(self, span: str) -> str:
        """The words of a span without those of headings, as the first document that holds it has them."""
        words = span.split()
        ends = [(start, end) for start in range(len(words)) for end in range(start + 1, start + self._longest)]
        parts = dict.fromkeys(f" {' '.join(words[start:end])} " for start, end in ends)
        for place in dict.fromkeys(place for part in parts for place in self._places.get(part, ())):
            text, blocks = self._words(place)
            start = text.find(span)
            if start >= 0:
                end = start + len(span)
                counting = [(a, b) for a, b, counts in blocks if counts]
                inside = [text[max(a, start) : min(b, end)] for a, b in counting if a < end and start < b]
                below = (text[a:b] for a, b in counting if a >= end)
                return " ".join(inside) if any(map(str.strip, inside)) else next(below, span)
        return span

    def _words(self, place: int) -> tuple[str, list[tuple[int, int, bool]]]:
        """The words of a document, and for each block where its own stand and whether it can be evidence."""
        if place not in self._blocks:
            document = self._documents[place]
            counts = set(paragraphs(document))
            blocks = [block for section in document.sections() for block in document.blocks(section)]
            words = [words_of(document.readable(block)).lstrip() for block in blocks]
            ends = [*accumulate(map(len, words), initial=1)]
            spans = [(a, b - 1, block in counts) for a, b, block in zip(ends, ends[1:], blocks, strict=False)]
            self._blocks[place] = " " + "".join(words), spans
        return self._blocks[place]
