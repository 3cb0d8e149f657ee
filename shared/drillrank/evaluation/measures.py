"""Measures of a comparison, question by question: by ir-measures where it has them, else our own.

| measure | what it is |
|---|---|
| `Success@k`, `P@k`, `RR`, `nDCG@k`, `AP`, ... | of ir-measures, by its names |
| `R@k` | share of the evidence that is found at k (`drillrank.evaluation.evidence`) |
| `AllR@k` | 1 if all evidence is (PromptRank's R@k) |
| `F1@k` | evidence F1 of the first k, with the annotator who agrees best |
| `SpanR@n` | share of the gold spans' characters that stand in the first n words returned |
| `AnswerR@k` | 1 if an answer stands in one of the first k texts |
| `EM` | 1 if what an LLM answers from the results is a right answer, word for word |
| `AnswerF1` | F1 of the words of its answer and of the right one that is nearest |

To ir-measures a result is relevant if it completes an item of the evidence that those before it do not; one that
completes several counts as if they came one after the other. `EM` and `AnswerF1` are SQuAD's and QASPER's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput, require
from drillrank.evaluation.evidence import Evidence
from drillrank.evaluation.metrics import answer_f1, answer_match, evidence_f1, exact_match
from drillrank.evaluation.questions import Question
from drillrank.evaluation.statistics import Floats
from drillrank.passages import Passage

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
