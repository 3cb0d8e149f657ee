"""Measures of a comparison, question by question: by ir-measures where it has them, else our own.

| measure | what it is |
|---|---|
| `Success@k`, `P@k`, `RR`, `nDCG@k`, `AP`, ... | of ir-measures, by its names |
| `R@k` | share of the evidence that is found at k (`drillrank.evaluation.evidence`) |
| `AllR@k` | 1 if all evidence is (PromptRank's R@k) |
| `F1@k` | evidence F1 of the first k, with the annotator who agrees best |
| `SpanR@n` | share of the gold spans' characters that stand in the first n words returned |
| `AnswerR@k` | 1 if an answer stands in one of the first k texts |

To ir-measures a result is relevant if it completes an item of the evidence that those before it do not; one that
completes several counts as if they came one after the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput, require
from drillrank.evaluation.evidence import Evidence
from drillrank.evaluation.exact_match import exact_match
from drillrank.evaluation.metrics import evidence_f1
from drillrank.evaluation.questions import Question
from drillrank.evaluation.statistics import Floats
from drillrank.passages import Passage

BY_IDS = ("nDCG@10", "RR", "AP", "Success@1", "Success@5", "R@5", "R@10", "AllR@10", "F1@5")
BY_TEXT = {"spans": ("SpanR@500",), "answers": ("AnswerR@5",)}
_OWN = re.compile(r"(R|AllR|F1|SpanR|AnswerR)@([1-9]\d*)")


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
            _try(_third_party(name), name)
            continue
        needed = {"SpanR": "spans", "AnswerR": "answers"}.get(own[1])
        for question in questions if needed else ():
            if not getattr(question, needed or ""):
                raise InvalidInput(f"{name} needs {needed}, and {question.place or question.id} has none.")


def _third_party(name: str) -> Any:
    library = require("ir_measures", "compare")
    try:
        return library.parse_measure(name)
    except (NameError, ValueError, SyntaxError, TypeError, KeyError) as problem:
        raise InvalidInput(
            f"There is no measure {name!r:.200}: take one of ir-measures (ir-measur.es), such as nDCG@10, or AllR@k, "
            "F1@k, SpanR@n, AnswerR@k."
        ) from problem


def _try(measure: Any, name: str) -> None:
    """Compute it once: what its library lacks or does not take shows only then."""
    if measure.params.get("cutoff", 1) < 1:  # at which trec_eval ends the process
        raise InvalidInput(f"The measure {name!r:.200} cannot be computed: it looks at less than one result.")
    try:
        list(require("ir_measures", "compare").iter_calc([measure], {"0": {"0": 1}}, {"0": {"0": 1.0}}))
    except Exception as problem:  # the providers behind it raise whatever they like
        raise InvalidInput(f"The measure {name!r:.200} cannot be computed: {problem}") from problem


def values(
    names: Sequence[str],
    questions: Sequence[Question],
    evidence: Mapping[str, Evidence],
    rankings: Mapping[str, Sequence[Passage]],
    ranks: Mapping[str, Sequence[float]],
) -> dict[str, Floats]:
    """Each measure of each question, shape (questions,), in order.

    Args:
        names: Measures.
        questions: Those that were asked.
        evidence: Of each question, by its id.
        rankings: What was found, best first, by question.
        ranks: At which rank each item of the evidence is found, by question (`Evidence.ranks`).
    """
    found = {name: np.zeros(len(questions)) for name in names}
    third_party: dict[Any, list[str]] = {}
    for name in names:
        if not _OWN.fullmatch(name):
            third_party.setdefault(_third_party(name), []).append(name)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for place, question in enumerate(questions if third_party else ()):
        slots: list[int] = []
        for rank in sorted(rank for rank in ranks[question.id] if rank < math.inf):
            slots.append(max(int(rank), slots[-1] + 1 if slots else 1))
        lost = [f"not found {number}" for number in range(len(ranks[question.id]) - len(slots))]
        results = max(len(rankings[question.id]), *slots[-1:], 0)
        qrels[str(place)] = dict.fromkeys([*map(str, slots), *lost], 1)
        run[str(place)] = {str(rank): -float(rank) for rank in range(1, results + 1)}
    for item in require("ir_measures", "compare").iter_calc(list(third_party), qrels, run) if third_party else ():
        for name in third_party[item.measure]:
            found[name][int(item.query_id)] = item.value
    for name in found.keys() - {name for same in third_party.values() for name in same}:
        for place, question in enumerate(questions):
            id_ = question.id
            found[name][place] = _own(name, question, evidence[id_], rankings[id_], ranks[id_])
    return found


def _own(
    name: str, question: Question, evidence: Evidence, ranking: Sequence[Passage], ranks: Sequence[float]
) -> float:
    kind, _, number = name.partition("@")
    k = int(number)
    if kind == "SpanR":
        return evidence.span_recall(ranking, k)
    if kind == "AnswerR":
        return exact_match([passage.text for passage in ranking], question.answers, k)
    if kind == "F1" and question.annotations:
        return evidence_f1([passage.id for passage in ranking[:k]], question.annotations)
    found = sum(rank <= k for rank in ranks)
    if kind == "AllR":
        return float(found == len(ranks))
    recall = found / len(ranks)
    if kind == "R" or not found:
        return recall
    precision = len({rank for rank in ranks if rank <= k}) / len(ranking[:k])
    return 2 * precision * recall / (precision + recall)
