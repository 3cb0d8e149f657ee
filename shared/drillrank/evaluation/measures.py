"""Measures of a comparison, for each question: those of ir-measures, and some of our own.

| measure | value |
|---|---|
| `Success@k`, `P@k`, `RR`, `nDCG@k`, `AP`, ... | measures of ir-measures, by its names |
| `R@k` | share of the evidence in the first k results (see below) |
| `AllR@k` | 1 if all evidence is there (PromptRank's R@k) |
| `F1@k` | evidence F1 of the first k results, with the annotator who agrees best |
| `F1` | evidence F1 of all results (QASPER's), for components that choose how many they return |
| `SpanR@n` | share of the gold spans' characters in the first n words of the results |
| `AnswerR@k` | 1 if one of the first k texts contains an answer |
| `EM` | 1 if the LLM's answer from the results is a right answer, word for word |
| `AnswerF1` | F1 of the words of that answer and of the most similar right one |

For ir-measures, a result is relevant if it completes an item of the evidence that earlier results do not contain. A
result that completes several items counts as several results in a row. `EM` and `AnswerF1` are SQuAD's and QASPER's.

The questions and the corpus alone define the evidence, and the rank at which a ranking contains an item of it. The
items of a question are those of the first column that it has:

| column | items | an item is in the first k results if |
|---|---|---|
| `gold` | the ids | one of them has the id |
| `spans` | the texts | together, they contain at least half of its characters |
| `answers` | one: any of them | one of them contains an answer as whole words |

Spans and answers judge chunks of any size. A character of a span counts as found if it is in a run of five words of the
passage (or of the whole span or passage, if that is shorter). Titles and ids are not searched.

A heading is not part of the paragraph below it. A span that contains a heading is judged without it, and a span that is
only a heading means the first paragraph below. A heading without text below it counts as text.

If all annotators agree that a question has no evidence, only `F1`, `F1@k` and the measures of answers have a value.
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

MIN_SHARE = 0.5  # of a span's characters
RUN = 5  # words; shorter runs that a span and a passage share are chance

_MARKUP = re.compile(r"</?[a-z][^<>]*>|\\[a-z]+", re.IGNORECASE)

EvidenceRanks = Sequence[float]
"""Rank of each item of the evidence in a ranking, starting at 1; infinity if the ranking does not contain the item."""


class GoldLabels(NamedTuple):
    """Evidence of a question. Its items are of the first kind that is not empty; there are none without any.

    Attributes:
        ids: Ids of passages.
        spans: Words of each text.
        answers: Right answers, any of which will do.
    """

    ids: tuple[str, ...] = ()
    spans: tuple[tuple[str, ...], ...] = ()
    answers: tuple[str, ...] = ()

    def ranks(self, ranking: Sequence[Passage]) -> tuple[float, ...]:
        """Return the rank of each item in a ranking, starting at 1; infinity for an item that is not in it.

        >>> GoldLabels(spans=(("the", "rhine", "flows"),)).ranks([Passage("Basel."), Passage("There the Rhine flows.")])
        (2,)
        """
        if self.ids:
            rank_by_id = {passage.id: rank for rank, passage in reversed([*enumerate(ranking, start=1)])}
            return tuple(rank_by_id.get(id_, math.inf) for id_ in self.ids)
        if self.spans:
            share_lists = ([*_cumulative_shares(span, (passage.text for passage in ranking))] for span in self.spans)
            return tuple(
                next((rank for rank, share in enumerate(shares, 1) if share >= MIN_SHARE), math.inf)
                for shares in share_lists
            )
        if not self.answers:
            return ()
        hits = (rank for rank, passage in enumerate(ranking, 1) if exact_match([passage.text], self.answers, 1))
        return (next(hits, math.inf),)

    def span_recall(self, ranking: Sequence[Passage], n_words: int) -> float:
        """Return the share of the spans' characters in the first `n_words` words of the passages.

        >>> GoldLabels(spans=(("four", "five", "six"), ("eight",))).span_recall([Passage("Four five six seven.")], 100)
        0.6875
        """
        texts = [passage.text for passage in ranking]
        n_covered = sum(
            max(_cumulative_shares(span, texts, n_words), default=0.0) * _n_characters(span) for span in self.spans
        )
        return n_covered / sum(map(_n_characters, self.spans))


def _cumulative_shares(span: tuple[str, ...], texts: Iterable[str], n_words: float = math.inf) -> Iterator[float]:
    """Yield, after each text, the share of a span's characters in the first `n_words` words of all texts so far."""
    covered_indices: set[int] = set()
    for text in texts:
        covered_indices |= _covered_word_indices(span, text, n_words)
        n_words -= _n_words(words_of(text)) if n_words < math.inf else 0
        yield sum(len(span[index]) for index in covered_indices) / _n_characters(span)


def _n_characters(span: Sequence[str]) -> int:
    return sum(map(len, span)) or 1  # a span without a word is never covered


def _n_words(padded_text: str) -> int:
    return padded_text.count(" ") - 1


@lru_cache(maxsize=20_000)  # rerankers return the same passages
def _covered_word_indices(span: tuple[str, ...], text: str, n_words: float) -> frozenset[int]:
    """Return the indices of a span's words that are in runs which the first words of a text contain."""
    text = words_of(text)
    run_length = min(RUN, len(span), _n_words(text))
    if n_words < _n_words(text):
        text = f" {' '.join(text.split()[: int(n_words)])} " if n_words > 0 else ""
    starts = [start for start, run in enumerate(_list_runs(span, run_length)) if run in text]
    return frozenset(index for start in starts for index in range(start, start + run_length))


@lru_cache(maxsize=1_000)
def _list_runs(span: tuple[str, ...], run_length: int) -> list[str]:
    return [f" {' '.join(span[start : start + run_length])} " for start in range(len(span) - run_length + 1)]


@lru_cache(maxsize=10_000)
def words_of(text: str) -> str:
    """Return the words of a text in lower case, without markup, between blanks. Scripts without spaces: each character.

    >>> words_of("The <b>heater</b>: 2 years."), words_of("\u4e24\u5e74")
    (' the heater 2 years ', ' \u4e24 \u5e74 ')
    """
    return " ".join(["", *words(_MARKUP.sub(" ", text).casefold()), ""])


def gold_labels(questions: Sequence[Question], documents: Iterable[Document] = ()) -> dict[str, GoldLabels]:
    """Return the evidence of each question, by the question's id.

    Args:
        questions: The questions.
        documents: Documents that contain the spans.
    """
    texts = [_read_words(document) for document in documents] if any(question.spans for question in questions) else []
    labels = {}
    for question in questions:
        if question.annotations and not question.gold:
            labels[question.id] = GoldLabels()
            continue
        spans = (tuple(_without_headings(words_of(span), texts).split()) for span in question.spans)
        labels[question.id] = GoldLabels(question.gold, tuple(dict.fromkeys(spans)), question.answers)
    return labels


class _DocumentWords(NamedTuple):
    """Words of a document.

    Attributes:
        text: All words, between blanks.
        headings: Words of each heading that has text below it.
        paragraph_spans: Start and end of each paragraph in the text.
    """

    text: str
    headings: set[str]
    paragraph_spans: list[tuple[int, int]]


def _read_words(document: Document) -> _DocumentWords:
    paragraphs = {block for _, block in document.paragraphs()}  # including headings without text below them
    text, headings, spans = " ", set(), []
    for block in (block for section in document.sections() for block in document.blocks(section)):
        block_words, start = words_of(document.readable(block)), len(text)
        text += block_words[1:]
        if block in paragraphs:
            spans.append((start, len(text) - 1))
        elif block.kind == "heading":
            headings.add(block_words)
    return _DocumentWords(text, headings, spans)


def _without_headings(span: str, documents: Sequence[_DocumentWords]) -> str:
    """Return the words of a span without headings, or of the paragraph below, from the first document that has them."""
    for text, headings, paragraph_spans in documents:
        start = text.find(span) if any(heading in span for heading in headings) else -1
        if start >= 0:
            end = start + len(span)
            inside = [text[max(a, start) : min(b, end)] for a, b in paragraph_spans if a < end and start < b]
            return " ".join(inside) or next((text[a:b] for a, b in paragraph_spans if a >= end), span)
    return span


# Measures

RANKING_MEASURES = ("nDCG@10", "RR", "AP", "Success@1", "Success@5", "R@5", "R@10", "AllR@10", "F1@5")
ANSWER_MEASURES = ("EM", "AnswerF1")
UNANSWERABLE = "Unanswerable"  # as in QASPER's evaluator
_OWN = re.compile(r"(R|AllR|F1|SpanR|AnswerR)@([1-9]\d*)|F1|EM|AnswerF1")
_NEEDED_COLUMN = {"SpanR": "spans", "AnswerR": "answers", "EM": "answers", "AnswerF1": "answers"}


def default_measures(questions: Sequence[Question], *, has_llm: bool = False) -> tuple[str, ...]:
    """Return every measure for which all questions have labels; those of answers if an LLM writes answers.

    If some questions have no evidence, these are the measures of QASPER: evidence F1 and those of answers.

    >>> from drillrank.evaluation.questions import Question
    >>> default_measures([Question("1", "Who wrote Emma?", answers=("Jane Austen",))])[-1]
    'AnswerR@5'
    """
    of_answers = ANSWER_MEASURES if has_llm and all(question.answers for question in questions) else ()
    if any(question.annotations and not question.gold for question in questions):
        return ("F1", *of_answers)
    of_spans = ("SpanR@500",) if all(question.spans for question in questions) else ()
    of_texts = ("AnswerR@5",) if all(question.answers for question in questions) else ()
    return (*RANKING_MEASURES, *of_spans, *of_texts, *of_answers)


def check_measures(names: Sequence[str], questions: Sequence[Question], *, has_llm: bool = False) -> None:
    """Check that each measure exists and that all questions have labels for it.

    Raises:
        InvalidInput: A measure cannot be computed. The message names the first such measure.
        MissingExtra: ir-measures is not installed.
    """
    for name in names:
        if not _OWN.fullmatch(name):
            _parse_measure(name)
            continue
        column = _NEEDED_COLUMN.get(name.partition("@")[0])
        for question in questions if column else ():
            if not getattr(question, column or "") and not (column == "spans" and question.annotations):
                raise InvalidInput(f"{name} needs {column}, and {question.row_name or question.id} has none.")
        if name in ANSWER_MEASURES and not has_llm:
            raise InvalidInput(f"{name} judges answers: pass an LLM that writes them from the results (llm).")


@lru_cache(maxsize=100)
def _parse_measure(name: str) -> Any:
    """Return a measure of ir-measures. Compute it once, which shows if a provider or an argument is missing."""
    library = require("ir_measures", "compare")
    try:
        measure = library.parse_measure(name)
        if measure.params.get("cutoff", 1) < 1:  # trec_eval ends the process
            raise ValueError("its cutoff must be at least 1")
        list(library.iter_calc([measure], {"0": {"0": 1}}, {"0": {"0": 1.0}}))
    except Exception as error:  # the providers behind it raise errors of any type
        raise InvalidInput(
            f"The measure {name!r:.200} does not exist or cannot be computed: {error!s:.200}. Use one of ir-measures "
            "(ir-measur.es), such as nDCG@10, or AllR@k, F1@k, F1, SpanR@n, AnswerR@k, EM, AnswerF1."
        ) from error
    return measure


def compute_measures(
    names: Sequence[str],
    questions: Sequence[Question],
    labels_by_id: Mapping[str, GoldLabels],
    rankings: Mapping[str, Sequence[Passage]],
    ranks_by_id: Mapping[str, EvidenceRanks],
    answers: Mapping[str, str] = {},
) -> dict[str, Floats]:
    """Return the values of each measure, shape `(questions,)`; NaN where the measure has no value.

    Args:
        names: Names of measures.
        questions: Questions that were asked.
        labels_by_id: Evidence of each question, by the question's id.
        rankings: Results, best first, by question.
        ranks_by_id: Rank of each item of the evidence, by question (`GoldLabels.ranks`).
        answers: Answers of an LLM, by question. A question without an answer is answered wrongly.
    """
    values_by_name = {name: np.zeros(len(questions)) for name in names}
    third_party = {name: _parse_measure(name) for name in names if not _OWN.fullmatch(name)}
    for name in values_by_name.keys() - third_party:
        for index, question in enumerate(questions):
            id_ = question.id
            values_by_name[name][index] = _compute_own_measure(
                name, question, labels_by_id[id_], rankings[id_], ranks_by_id[id_], answers.get(id_)
            )
    if third_party:
        qrels, run = _build_trec_input([ranks_by_id[q.id] for q in questions], [len(rankings[q.id]) for q in questions])
        for item in require("ir_measures", "compare").iter_calc([*{*third_party.values()}], qrels, run):
            for name, measure in third_party.items():
                if measure == item.measure:
                    values_by_name[name][int(item.query_id)] = item.value
        has_no_evidence = [not ranks_by_id[question.id] for question in questions]
        for name in third_party:
            values_by_name[name][has_no_evidence] = np.nan
    return values_by_name


def _build_trec_input(
    rank_lists: Sequence[EvidenceRanks], n_results: Sequence[int]
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return relevance judgments and a run for ir-measures. Results are named by their ranks, questions by indices."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for index, (ranks, n) in enumerate(zip(rank_lists, n_results, strict=True)):
        slots = [0]  # a result that completes several items takes as many ranks
        for rank in sorted(rank for rank in ranks if rank < math.inf):
            slots.append(max(int(rank), slots[-1] + 1))
        missing = [f"missing {number}" for number in range(len(ranks) - len(slots) + 1)]
        qrels[str(index)] = dict.fromkeys([*map(str, slots[1:]), *missing], 1)
        run[str(index)] = {str(rank): -float(rank) for rank in range(1, max(n, slots[-1]) + 1)}
    return qrels, run


def _compute_own_measure(
    name: str,
    question: Question,
    labels: GoldLabels,
    ranking: Sequence[Passage],
    ranks: EvidenceRanks,
    answer: str | None,
) -> float:
    kind, _, cutoff = name.partition("@")
    if kind in ANSWER_MEASURES:
        measure = answer_match if kind == "EM" else answer_f1
        return 0.0 if answer is None else measure(answer or UNANSWERABLE, question.answers)
    k = int(cutoff) if cutoff else len(ranking)
    if kind == "AnswerR":
        return exact_match([passage.text for passage in ranking], question.answers, k)
    if kind == "F1" and question.annotations:
        return evidence_f1([passage.id for passage in ranking[:k]], question.annotations)
    if not ranks:
        return math.nan
    if kind == "SpanR":
        return labels.span_recall(ranking, k) if labels.spans else math.nan
    ranks_within = [rank for rank in ranks if rank <= k]
    share = len(ranks_within) / len(ranks)
    if kind == "F1":
        precision = len({*ranks_within}) / max(len(ranking[:k]), 1)
        return 2 * precision * share / (precision + share) if ranks_within else 0.0
    return share if kind == "R" else float(share == 1)


def answer_type(question: Question, answer: str | None) -> str:
    """Return the type under which a question counts; empty if unknown.

    A question with one type for each right answer counts under that of the answer with the highest F1, as in QASPER's
    evaluator.

    >>> question = Question("1", "Is it deep?", answers=("Yes", "It is 9 m deep"), types=("yes/no", "abstractive"))
    >>> answer_type(question, "9 m deep"), answer_type(question, "Yes.")
    ('abstractive', 'yes/no')
    """
    if len(question.types) < 2:
        return question.types[0] if question.types else ""
    scores = [answer_f1(answer or UNANSWERABLE, [right]) for right in question.answers]
    return question.types[max(range(len(scores)), key=scores.__getitem__)]
