"""Measures of a comparison, question by question: by ir-measures where it has them, else our own.

| measure | what it is |
|---|---|
| `Success@k`, `P@k`, `RR`, `nDCG@k`, `AP`, ... | of ir-measures, by its names |
| `R@k` | share of the evidence that is found at k (below) |
| `AllR@k` | 1 if all evidence is (PromptRank's R@k) |
| `F1@k` | evidence F1 of the first k, with the annotator who agrees best |
| `SpanR@n` | share of the gold spans' characters that stand in the first n words returned |
| `AnswerR@k` | 1 if an answer stands in one of the first k texts |
| `EM` | 1 if what an LLM answers from the results is a right answer, word for word |
| `AnswerF1` | F1 of the words of its answer and of the right one that is nearest |

To ir-measures a result is relevant if it completes an item of the evidence that those before it do not; one that
completes several counts as if they came one after the other. `EM` and `AnswerF1` are SQuAD's and QASPER's.

What is evidence, and at which rank a ranking has brought it, is one definition for everything: it is fixed by the
questions and the corpus before anything is asked. Its items are those of the first column that a question has:

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from drillrank.errors import InvalidInput, require
from drillrank.evaluation.metrics import answer_f1, answer_match, evidence_f1, exact_match
from drillrank.evaluation.questions import Question
from drillrank.passages import Passage
from drillrank.structure import Document
from drillrank.text import words
from drillrank.vectors import Floats

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


# Measures

BY_IDS = ("nDCG@10", "RR", "AP", "Success@1", "Success@5", "R@5", "R@10", "AllR@10", "F1@5")
OF_ANSWERS = ("EM", "AnswerF1")
UNANSWERABLE = "Unanswerable"  # as QASPER's evaluator has it
_OWN = re.compile(r"(R|AllR|F1|SpanR|AnswerR)@([1-9]\d*)|EM|AnswerF1")
_NEEDED = {"SpanR": "spans", "AnswerR": "answers", "EM": "answers", "AnswerF1": "answers"}


def default_measures(questions: Sequence[Question], *, answered: bool = False) -> tuple[str, ...]:
    """Every measure that something is known for in each question; those of answers where an LLM gives them.

    >>> from drillrank.evaluation.questions import Question
    >>> default_measures([Question("1", "Who wrote Emma?", answers=("Jane Austen",))])[-1]
    'AnswerR@5'
    """
    of_answers = ("AnswerR@5", *(OF_ANSWERS if answered else ()))
    known = {"spans": ("SpanR@500",), "answers": of_answers}
    return (*BY_IDS, *(n for kind, names in known.items() if all(getattr(q, kind) for q in questions) for n in names))


def check_measures(names: Sequence[str], questions: Sequence[Question], *, answered: bool = False) -> None:
    """Refuse measures that there are not, or that the questions say nothing for.

    Raises:
        InvalidInput: names the first one.
        MissingExtra: ir-measures is not installed.
    """
    for name in names:
        if not _OWN.fullmatch(name):
            _third_party(name)
            continue
        needed = _NEEDED.get(name.partition("@")[0])
        for question in questions if needed else ():
            if not getattr(question, needed or ""):
                raise InvalidInput(f"{name} needs {needed}, and {question.location or question.id} has none.")
        if name in OF_ANSWERS and not answered:
            raise InvalidInput(f"{name} is of answers: give an LLM that reads them from what is found (llm).")


@lru_cache(maxsize=100)
def _third_party(name: str) -> Any:
    """A measure of ir-measures, computed once: what its library lacks or does not take shows only then."""
    library = require("ir_measures", "compare")
    try:
        measure = library.parse_measure(name)
        if measure.params.get("cutoff", 1) < 1:  # at which trec_eval ends the process
            raise ValueError("it looks at less than one result")
        list(library.iter_calc([measure], {"0": {"0": 1}}, {"0": {"0": 1.0}}))
    except Exception as problem:  # the providers behind it raise whatever they like
        raise InvalidInput(
            f"There is no measure {name!r:.200}, or it cannot be computed: {problem!s:.200}. Take one of ir-measures "
            "(ir-measur.es), such as nDCG@10, or AllR@k, F1@k, SpanR@n, AnswerR@k, EM, AnswerF1."
        ) from problem
    return measure


def values(
    names: Sequence[str],
    questions: Sequence[Question],
    evidence: Mapping[str, Evidence],
    rankings: Mapping[str, Sequence[Passage]],
    ranks: Mapping[str, Sequence[float]],
    answers: Mapping[str, str] = {},
) -> dict[str, Floats]:
    """Each measure of each question, shape (questions,), in order.

    Args:
        names: Measures.
        questions: Those that were asked.
        evidence: Of each question, by its id.
        rankings: What was found, best first, by question.
        ranks: At which rank each item of the evidence is found, by question (`Evidence.ranks`).
        answers: Of an LLM, by question; a question without one is answered wrongly.
    """
    found = {name: np.zeros(len(questions)) for name in names}
    third_party = {name: _third_party(name) for name in names if not _OWN.fullmatch(name)}
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for location, question in enumerate(questions):
        id_, slots = question.id, [0]
        for name in found.keys() - third_party:
            found[name][location] = _value(name, question, evidence[id_], rankings[id_], ranks[id_], answers.get(id_))
        for rank in sorted(rank for rank in ranks[id_] if rank < math.inf):
            slots.append(max(int(rank), slots[-1] + 1))
        missing = [f"not found {number}" for number in range(len(ranks[id_]) - len(slots) + 1)]
        qrels[str(location)] = dict.fromkeys([*map(str, slots[1:]), *missing], 1)
        run[str(location)] = {str(rank): -float(rank) for rank in range(1, max(len(rankings[id_]), slots[-1]) + 1)}
    if third_party:
        for item in require("ir_measures", "compare").iter_calc([*{*third_party.values()}], qrels, run):
            for name, measure in third_party.items():
                if measure == item.measure:
                    found[name][int(item.query_id)] = item.value
    return found


def _value(
    name: str,
    question: Question,
    evidence: Evidence,
    ranking: Sequence[Passage],
    ranks: Sequence[float],
    answer: str | None,
) -> float:
    kind, _, number = name.partition("@")
    if kind in OF_ANSWERS:
        measure = answer_match if kind == "EM" else answer_f1
        return 0.0 if answer is None else measure(answer or UNANSWERABLE, question.answers)
    k = int(number)
    found = [rank for rank in ranks if rank <= k]
    share = len(found) / len(ranks)
    if kind == "F1" and question.annotations:
        return evidence_f1([passage.id for passage in ranking[:k]], question.annotations)
    if kind == "F1":
        precision = len({*found}) / max(len(ranking[:k]), 1)
        return 2 * precision * share / (precision + share) if found else 0.0
    if kind == "SpanR":
        return evidence.span_recall(ranking, k)
    if kind == "AnswerR":
        return exact_match([passage.text for passage in ranking], question.answers, k)
    return share if kind == "R" else float(share == 1)
