"""D3 with an LLM, without one and with both, on QASPER: is the LLM's judgment of a paragraph worth a term of the score?

For the best paragraphs by likelihood, the LLM reads the prompt of the strategy `"paragraph"` (`BOOLEAN_PROMPT`). Two
numbers of one reading are kept: the log-odds of "yes", and the log-likelihood of the question after the paragraph.
Weights are chosen on papers of the tuning half (`qasper_tune`) and reported on papers of the other half, drawn with a
seed. Rows of D3 as the paper has it come from the answers that `papers_d3` keeps.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from drillrank import D3
from drillrank.drilldown.prompts import BOOLEAN_PROMPT
from drillrank.passages import Passage
from drillrank.vectors import Floats

from .kept import WRITERS, KeptReader
from .long_documents import Paper, papers

MODEL = "qwen-1.5b"
TUNING, REPORTED, SEED, N_READ, MAX_WORDS = 40, 200, 15, 8, 120


@dataclass(frozen=True)
class Question:
    """A question with its best paragraphs, the likeliest first.

    Attributes:
        ids: Ids of all paragraphs, the likeliest first.
        totals: S of all paragraphs.
        log_odds: Log-odds of "yes" of the best paragraphs.
        log_likelihoods: Log-likelihood of the question after each of them.
        n_tokens: Tokens that the LLM read.
        annotations: Ids of each annotator's evidence.
    """

    ids: list[str]
    totals: Floats
    log_odds: Floats
    log_likelihoods: Floats
    n_tokens: int
    annotations: list[set[str]]


def load(name: str, n_questions: int, reader: KeptReader, *, n_read: int = N_READ) -> list[Question]:
    """Return questions of drawn papers. The reader reads what it has not kept."""
    d3 = D3(settings={"unit": "paragraph"})
    asked = [(paper, question) for paper in papers(name, d3, n_questions, seed=SEED) for question in paper.questions]

    def read(pair: tuple[Paper, Any]) -> Question:
        paper, question = pair
        ranking = d3.retrieve(question.text, paper.ready, top_n=10**6)
        prompts = [prompt(question.text, item.passage) for item in list(ranking)[:n_read]]
        values = reader.read(prompts)
        return Question(
            [item.passage.id for item in ranking], np.array([item.details["total"] for item in ranking]),
            values[:, 0], values[:, 1], int(values[:, 2].sum()), question.annotations,
        )  # fmt: skip

    with ThreadPoolExecutor(WRITERS) as threads:
        return list(threads.map(read, asked))


def prompt(question: str, passage: Passage) -> tuple[str, str, str]:
    """Return the text before the question, the question, and the text after it."""
    words = passage.text.split(" ")
    text = " ".join(words[:MAX_WORDS])
    before, _, after = BOOLEAN_PROMPT.partition("{question}")
    return before.replace("{paragraphs}", f"[1] {text}"), question, after
