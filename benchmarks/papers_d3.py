"""D3, tables 1, 3 and 4 and figure 4: questions of QASPER with `preset="paper"`, the paper's figures next to ours.

Whole papers are drawn with a seed, with their unanswerable questions. Evidence F1 compares with each annotator's
paragraphs and takes the best, as the paper does. The model that chose the evidence answers from it, and from the gold
evidence, with the paper's prompt. What a model wrote is kept (`kept.py`).
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.drilldown.answering import ANSWER_PROMPT, answer
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning
from drillrank.evaluation.metrics import answer_f1, answer_match, evidence_f1
from drillrank.passages import Passage
from drillrank.views import summaries

from .kept import KeptWriter, named
from .long_documents import Paper, Question, papers
from .oracle import Oracle

MODEL = "qwen-1.5b"
QUESTIONS, SEED, CHOICE_TOKENS, ANSWER_TOKENS, SUMMARY_TOKENS, SUMMARY_WORDS = 40, 15, 48, 48, 64, 36
# Evidence F1, tokens, calls and answer F1 by gpt-3.5-turbo.
PAPER = {
    "base": "49.92 / 1981 / 2.0 / 47.45",
    "hierbase": "50.09 / 2126 / 2.9 / 49.48",
    "chunk": "35.59 / 5411 / 2.4 / 49.00",
    "map-reduce-optimised": "50.11 / 7492 / 3.7 / 50.13",
    "paragraph": "32.02 / 8519 / 47.2 / 47.92",
    "map-reduce": "12.84 / 12730 / 48.2 / 39.26",
}
STEPS = (*PAPER, "summaries", "names", "sizes")
CHUNKS = (1000, 2000, 3500)
TYPES = ("extractive", "abstractive", "boolean", "unanswerable")
SUMMARY_PROMPT = "Summarize the following text in one or two sentences.\n\n{text}"
_HEADING = re.compile(r"^(#+ ).*$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """Figures of each question, in the order of the questions.

    Attributes:
        f1: Evidence F1.
        tokens: Tokens of the prompts that chose the evidence.
        calls: Number of these prompts.
        ids: Ids of the chosen paragraphs.
        passages: The chosen paragraphs.
        unusable: True if likelihood had to choose instead of the LLM.
    """

    f1: list[float]
    tokens: list[int]
    calls: list[int]
    ids: list[list[str]]
    passages: list[list[Passage]]
    unusable: list[bool]


def without_names(markdown: str) -> str:
    """Return the text with a UUID in place of every heading but the title (section 5.3.4)."""
    title, line, rest = markdown.partition("\n")
    return title + line + _HEADING.sub(lambda match: f"{match[1]}{uuid.uuid5(uuid.NAMESPACE_URL, match[0])}", rest)


def sentences(texts: Sequence[str]) -> list[str]:
    """Return one summary per text, of its own sentences."""
    return summaries(texts, SUMMARY_WORDS, SUMMARY_WORDS)


@dataclass(frozen=True)
class WrittenSummaries:
    """Summarizer that asks a model for two sentences per text, in place of bart-large-cnn."""

    writer: KeptWriter

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return one summary per text."""
        return self.writer.together([partial(self.writer, SUMMARY_PROMPT.format(text=text)) for text in texts])


def asked_questions(read: Sequence[Paper]) -> list[tuple[Paper, Question]]:
    """Return each question with its paper."""
    return [(paper, question) for paper in read for question in paper.questions]


def paper_settings(**settings: Any) -> D3Settings:
    """Return the paper's settings, with summaries of sentences. QASPER's section names do not include the title."""
    fixed = {"preset": "paper", "whole_paths": False, "summarizer": sentences, "max_calls": 10**6, "workers": 8}
    return D3Settings(**{**fixed, **settings})


def drill(writer: KeptWriter, read: Sequence[Paper], **settings: Any) -> Row:
    """Return what the model chooses for each question. If an answer is unusable, likelihood chooses."""
    d3 = D3(writer, settings=paper_settings(**settings))
    asks = [partial(d3.retrieve, question.text, paper.ready) for paper, question in asked_questions(read)]
    return measure(read, writer.together(asks))


def measure(read: Sequence[Paper], results: Sequence[Any]) -> Row:
    """Return the figures of D3's results."""
    ids = [[item.passage.id for item in result] for result in results]
    questions = [question for _, question in asked_questions(read)]
    return Row(
        [evidence_f1(one, question.annotations) for one, question in zip(ids, questions, strict=True)],
        [result.usage.prompt_tokens for result in results],
        [result.usage.calls for result in results],
        ids,
        [[item.passage for item in result] for result in results],
        [any("chosen by likelihood" in problem for problem in result.problems) for result in results],
    )


def answers(name: str, read: Sequence[Paper], passages: Iterable[Sequence[Passage]]) -> list[tuple[float, float]]:
    """Return exact match and F1 of the model's answer to each question; without passages, it is "Unanswerable"."""
    writer = KeptWriter(name, ANSWER_TOKENS)

    def ask(question: Question, evidence: Sequence[Passage]) -> tuple[float, float]:
        text = answer(question.text, evidence, writer, prompt=ANSWER_PROMPT).text if evidence else ""
        text = text or "Unanswerable"
        return answer_match(text, question.answers), answer_f1(text, question.answers)

    pairs = zip(asked_questions(read), passages, strict=True)
    return writer.together([partial(ask, question, evidence) for (_, question), evidence in pairs])


def gold_passages(read: Sequence[Paper]) -> list[list[Passage]]:
    """Return the gold paragraphs of each question."""
    return [
        [one.passage for one in paper.ready.outline.paragraphs if one.passage.id in question.gold]
        for paper, question in asked_questions(read)
    ]


def main(model: str = MODEL, questions: int | None = None, steps: str = ",".join(STEPS)) -> None:
    """Print the tables of the first of the models.

    Args:
        model: Directory of a model.
        questions: Number of questions.
        steps: Strategies and tables, in this order, separated by commas. The model is asked for what is not kept.
    """
    name, chosen = named(model)[0], steps.split(",")
    warnings.simplefilter("ignore", DrillrankWarning)  # unusable answers are counted
    d3 = D3(settings=paper_settings())
    load: Callable[..., list[Paper]] = partial(
        papers, "qasper", d3, questions or QUESTIONS, seed=SEED, with_unanswerable=True
    )
    read = load()
    console = Console(width=200)
    writer = KeptWriter(name, CHOICE_TOKENS)
    types = [set(question.types) for _, question in asked_questions(read)]
    table = Table(
        "paragraphs by", "paper: F1 / tokens / calls / answer F1", "F1, 95 %", "minus no LLM", "tokens", "calls",
        "unusable", "answer EM", "F1", *TYPES,
        title=f"D3, tables 1 and 3: {name}, {len(types)} questions of {len(read)} QASPER papers",
    )  # fmt: skip
    likelihood = measure(read, [d3.retrieve(q.text, paper.ready) for paper, q in asked_questions(read)])

    def add_row(label: str, published: str, row: Row, by: str | None = name) -> None:
        scores = answers(by, read, row.passages) if by else []
        by_type = (
            [f"{mean(f1 for (_, f1), of in zip(scores, types, strict=True) if kind in of):.3f}" for kind in TYPES]
            if scores
            else []
        )
        table.add_row(
            label, published, interval(row.f1), interval(np.subtract(row.f1, likelihood.f1)),
            f"{mean(row.tokens):,.0f}", f"{mean(row.calls):.1f}", f"{mean(row.unusable):.2f}",
            *(f"{mean(values):.3f}" for values in zip(*scores, strict=True)), *by_type,
        )  # fmt: skip
        console.print(table)

    for strategy in PAPER:
        if strategy in chosen:
            add_row(strategy, PAPER[strategy], drill(writer, read, paragraphs=strategy, max_prompt_tokens=3500))
    add_row("likelihood, no LLM", "", likelihood)
    oracle = [
        D3(Oracle(paper.ready, question.gold), settings=paper_settings()).retrieve(question.text, paper.ready)
        for paper, question in asked_questions(read)
    ]
    add_row("base, by an oracle", "", measure(read, oracle), None)
    gold = gold_passages(read)
    add_row(
        "gold evidence",
        "",
        Row(
            [1.0] * len(gold),
            [0] * len(gold),
            [0] * len(gold),
            [[p.id for p in of] for of in gold],
            gold,
            [False] * len(gold),
        ),
    )


def interval(values: Sequence[float] | np.ndarray) -> str:
    """Return a mean and its 95 % interval by bootstrap."""
    values = np.asarray(values, dtype=float)
    draws = np.random.default_rng(SEED).integers(0, len(values), (10_000, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"
