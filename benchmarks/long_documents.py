"""QASPER papers as Markdown documents, their questions with the ids of the gold paragraphs, and plain rankings."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drillrank import D3, parse_document
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.vectors import BM25Index, top

from .data import read


@dataclass(frozen=True)
class Question:
    """A question with each annotator's evidence.

    Attributes:
        annotations: Ids of each annotator's paragraphs.
        gold: Ids of all annotators' paragraphs; empty if the paper does not answer the question.
        answers: Each annotator's answer.
        types: Each annotator's type of answer: `"extractive"`, `"abstractive"`, `"boolean"` or `"unanswerable"`.
    """

    text: str
    annotations: list[set[str]]
    gold: set[str]
    answers: list[str]
    types: list[str]


@dataclass(frozen=True)
class Paper:
    """A paper, made ready once, and its questions."""

    ready: PreparedDocuments
    questions: list[Question]


def papers(
    name: str,
    d3: D3,
    questions: int | None = None,
    change: Callable[[str], str] = lambda text: text,
    *,
    seed: int | None = None,
    with_unanswerable: bool = False,
) -> list[Paper]:
    """Return prepared papers with at most `questions` questions.

    Args:
        name: `"qasper"` or `"qasper_tune"`.
        d3: Prepares the papers.
        questions: Number of questions; None returns all.
        change: Rewrites the Markdown of a paper, such as its headings.
        seed: Draws whole papers with this seed; None takes them in the order of the file.
        with_unanswerable: True to keep questions without evidence.
    """
    found: list[Paper] = []
    left = questions if questions is not None else 10**9
    rows = read(f"longdoc/{name}")
    for item in rows if seed is None else random.Random(seed).sample(rows, len(rows)):
        if left <= 0:
            break
        document = parse_document(change(item["markdown"]), "markdown")
        ready = d3.prepare([document])
        places = [(i, j) for i, section in enumerate(item["sections"]) for j in range(len(section["paragraphs"]))]
        starts = [block.start for _, block in document.paragraphs() if block.kind != "heading"]
        known = {one.source.metadata["start"]: one.source.id for one in ready.outline.paragraphs}
        ids = {place: known[start] for place, start in zip(places, starts, strict=True)}
        asked = [_question(row, ids) for row in item["questions"]]
        asked = [question for question in asked if question.gold or with_unanswerable][:left]
        left -= len(asked)
        found.append(Paper(ready, asked))
    return found


def _question(item: dict[str, Any], ids: dict[tuple[int, int], str]) -> Question:
    annotations = [{ids[tuple(place)] for place in evidence} for evidence in item["evidence"]]
    answers = [", ".join(answer or []) or "Unanswerable" for answer in item["answers"]]
    return Question(item["question"], annotations, set().union(*annotations), answers, item["answer_types"])


def bm25(question: str, ready: PreparedDocuments) -> list[str]:
    """BM25 over the paragraphs of the paper."""
    passages = [paragraph.passage for paragraph in ready.outline.paragraphs]
    scores = BM25Index([passage.text for passage in passages]).scores(question)
    return [passages[index].id for index in top(scores, 10)]


def dense(question: str, ready: PreparedDocuments) -> list[str]:
    """Cosine of the embeddings that the paper was made ready with."""
    passages = [paragraph.passage for paragraph in ready.outline.paragraphs]
    scores = ready.scorer.score(question, range(len(passages)))
    order = sorted(range(len(passages)), key=lambda index: scores.details(index)["cosine"], reverse=True)
    return [passages[index].id for index in order]
