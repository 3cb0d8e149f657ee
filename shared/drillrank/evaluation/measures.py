"""Measures of a comparison, question by question: by ir-measures where it has them, else our own.

| measure | what it is |
|---|---|
| `Success@k`, `R@k`, `P@k`, `RR`, `nDCG@k`, `AP`, ... | of ir-measures, by its names |
| `AllR@k` | 1 if all gold passages are among the first k (PromptRank's R@k) |
| `F1@k` | evidence F1 of the first k, with the annotator who agrees best |
| `SpanR@n` | share of the gold spans' words that stand in the first n words returned |
| `AnswerR@k` | 1 if an answer stands in one of the first k texts |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput, require
from drillrank.evaluation.exact_match import exact_match, normalised
from drillrank.evaluation.metrics import evidence_f1, recall_all
from drillrank.evaluation.questions import Question
from drillrank.evaluation.statistics import Floats
from drillrank.passages import Passage
from drillrank.text import words as words_of

BY_IDS = ("nDCG@10", "RR", "AP", "Success@1", "Success@5", "R@5", "R@10", "AllR@10", "F1@5")
BY_TEXT = {"spans": ("SpanR@500",), "answers": ("AnswerR@5",)}
_OWN = re.compile(r"(AllR|F1|SpanR|AnswerR)@([1-9]\d*)")
_RUN = 5  # words; shorter ones that a span and a passage share are chance


def default_measures(questions: Sequence[Question]) -> tuple[str, ...]:
    """Every measure that something is known for in each question.

    >>> from drillrank.evaluation.questions import Question
    >>> default_measures([Question("1", "Who wrote Emma?", answers=("Jane Austen",))])[-1]
    'AnswerR@5'
    """
    known = [name for kind, names in BY_TEXT.items() if all(getattr(q, kind) for q in questions) for name in names]
    return (*BY_IDS, *known)


def check_measures(names: Sequence[str], questions: Sequence[Question]) -> None:
    """Refuse measures that there are not, or that the questions say nothing for.

    Raises:
        InvalidInput: names the first one.
        MissingExtra: ir-measures is not installed.
    """
    for name in names:
        own = _OWN.fullmatch(name)
        if own is None:
            _try(_foreign(name), name)
            continue
        needed = {"SpanR": "spans", "AnswerR": "answers"}.get(own[1])
        for question in questions if needed else ():
            if not getattr(question, needed or ""):
                raise InvalidInput(f"{name} needs {needed}, and {question.place or question.id} has none.")


def _foreign(name: str) -> Any:
    library = require("ir_measures", "compare")
    try:
        return library.parse_measure(name)
    except (NameError, ValueError, SyntaxError, TypeError, KeyError) as problem:
        raise InvalidInput(
            f"There is no measure {name!r}: take one of ir-measures (ir-measur.es), such as nDCG@10, or AllR@k, F1@k, "
            "SpanR@n, AnswerR@k."
        ) from problem


def _try(measure: Any, name: str) -> None:
    """Compute it once: what its library lacks or does not take shows only then."""
    if measure.params.get("cutoff", 1) < 1:  # at which trec_eval ends the process
        raise InvalidInput(f"The measure {name!r} cannot be computed: it looks at less than one result.")
    try:
        list(require("ir_measures", "compare").iter_calc([measure], {"0": {"0": 1}}, {"0": {"0": 1.0}}))
    except Exception as problem:  # the providers behind it raise whatever they like
        raise InvalidInput(f"The measure {name!r} cannot be computed: {problem}") from problem


def gold_ids(question: Question, passages: Mapping[str, Passage]) -> set[str]:
    """Ids of the passages that are evidence: those named, else those that hold a span, else those with an answer.

    >>> passages = {"1": Passage("Jane Austen wrote Emma.", id="1"), "2": Passage("Basel lies on the Rhine.", id="2")}
    >>> gold_ids(Question("1", "Who wrote Emma?", answers=("Jane Austen",)), passages)
    {'1'}
    """
    if question.gold:
        return set(question.gold)
    if question.spans:
        spans = [normalised(span) for span in question.spans]
        return {id_ for id_, p in passages.items() if any(_holds(normalised(p.text), span) for span in spans)}
    return {id_ for id_, p in passages.items() if exact_match([p.text], question.answers, 1)}


def _holds(text: str, span: str) -> bool:
    return bool(text) and bool(span) and (f" {span} " in f" {text} " or f" {text} " in f" {span} ")


def values(
    names: Sequence[str],
    questions: Sequence[Question],
    gold: Mapping[str, set[str]],
    rankings: Mapping[str, Sequence[str]],
    texts: Mapping[str, Sequence[str]],
) -> dict[str, Floats]:
    """Each measure of each question, shape (questions,), in order; a question without evidence counts 0.

    Args:
        names: Measures.
        questions: Those that were asked.
        gold: Ids of the evidence, by question.
        rankings: Ids, best first, by question.
        texts: Their texts, by question; needed for measures of texts alone.
    """
    rankings = {id_: list(dict.fromkeys(ids)) for id_, ids in rankings.items()}
    found = {name: np.zeros(len(questions)) for name in names}
    foreign = {name: _foreign(name) for name in names if not _OWN.fullmatch(name)}
    if foreign:
        qrels: dict[str, dict[str, int]] = {}
        run: dict[str, dict[str, float]] = {}
        for place, question in enumerate(questions):
            if gold[question.id]:  # ids as numbers: the library takes no half characters, and ends at a NUL
                numbers = {id_: str(number) for number, id_ in enumerate(rankings[question.id])}
                lost = len(gold[question.id] - numbers.keys())
                found_gold = [numbers[id_] for id_ in rankings[question.id] if id_ in gold[question.id]]
                qrels[str(place)] = dict.fromkeys([*found_gold, *(f"not found {n}" for n in range(lost))], 1)
                run[str(place)] = {number: -float(number) for number in numbers.values()}
        called: dict[Any, list[str]] = {}
        for name, measure in foreign.items():
            called.setdefault(measure, []).append(name)
        library = require("ir_measures", "compare")
        for item in library.iter_calc(list(called), qrels, run) if qrels else ():
            for name in called[item.measure]:
                found[name][int(item.query_id)] = item.value
    for name in found.keys() - foreign.keys():
        for place, question in enumerate(questions):
            id_ = question.id
            found[name][place] = _own(name, question, gold[id_], rankings[id_], texts.get(id_, ()))
    return found


def _own(name: str, question: Question, gold: set[str], ranking: Sequence[str], texts: Sequence[str]) -> float:
    kind, _, number = name.partition("@")
    k = int(number)
    if kind == "SpanR":
        return span_recall(texts, question.spans, k)
    if kind == "AnswerR":
        return exact_match(texts, question.answers, k)
    if not gold:
        return 0.0
    return recall_all(ranking, gold, k) if kind == "AllR" else evidence_f1(ranking[:k], question.annotations or [gold])


def span_recall(texts: Sequence[str], spans: Sequence[str], words: int) -> float:
    """Share of the spans' words that stand in the first `words` words of the texts, in runs of five or whole spans.

    >>> span_recall(["One two three four five six seven."], ["four five six seven", "eight nine"], 100)
    0.6666666666666666
    """
    read: list[list[str]] = []
    left = words
    for text in texts:
        if left <= 0:
            break
        read.append(words_of(text.lower())[:left])
        left -= len(read[-1])
    covered = total = 0
    for span in spans:
        wanted = words_of(span.lower())
        held = [False] * len(wanted)
        for text_words in read:
            for start, _, size in SequenceMatcher(None, wanted, text_words, autojunk=False).get_matching_blocks():
                if size >= min(_RUN, len(wanted)):
                    held[start : start + size] = [True] * size
        covered, total = covered + sum(held), total + len(wanted)
    return covered / total if total else 0.0
