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
from functools import cached_property, partial
from statistics import mean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.drilldown.answering import ANSWER_PROMPT, answer
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning, InvalidInput, LLMFailure
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
STEPS = ("plan", *PAPER, "likelihood", "oracle", "gold", "summaries", "names", "sizes")
READ_SPEED, WRITE_SPEED = 250, 1  # tokens and short answers per second, on two idle cores
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
    """Print the tables of the first of the models. Rows that need an answer that is not kept ask the model.

    Args:
        model: Directory of a model.
        questions: Number of questions.
        steps: Rows, separated by commas: `"plan"` prints what each strategy costs, from an oracle's choices. Strategies
            of `PAPER`; `"summaries"`, base with the model's summaries; `"names"`, base with UUIDs for headings (table
            4); `"sizes"`, chunks of several sizes (figure 4); `"likelihood"`, `"oracle"` and `"gold"`, to compare with.
    """
    warnings.simplefilter("ignore", DrillrankWarning)  # unusable answers are counted
    report = Report(named(model)[0], questions or QUESTIONS)
    report.table.title = f"D3, tables 1, 3 and 4, figure 4: {report.name}, {report.describe()}"
    for step in steps.split(","):
        report.add_step(step)
    Console(width=210).print(report.table)


class Report:
    """Rows about the same questions.

    Args:
        name: Directory of a model.
        n_questions: Number of questions.
    """

    def __init__(self, name: str, n_questions: int) -> None:
        self.name, self.writer = name, KeptWriter(name, CHOICE_TOKENS)
        self._d3 = D3(settings=paper_settings())
        self._load: Callable[..., list[Paper]] = partial(
            papers, "qasper", self._d3, n_questions, seed=SEED, with_unanswerable=True
        )
        self.read = self._load()
        self.types = [set(question.types) for _, question in asked_questions(self.read)]
        self.table = Table(
            "paragraphs by", "paper: F1 / tokens / calls / answer F1", "F1, 95 %", "minus no LLM, 95 %", "tokens",
            "calls", "unusable", "answer EM", "answer F1", *TYPES,
        )  # fmt: skip

    def describe(self) -> str:
        """Return how many questions of which types there are."""
        counts = ", ".join(f"{sum(kind in of for of in self.types)} {kind}" for kind in TYPES)
        return f"{len(self.types)} questions of {len(self.read)} QASPER papers ({counts})"

    @cached_property
    def likelihood(self) -> Row:
        """The evidence without an LLM."""
        return self._ask(lambda _: self._d3)

    def add_step(self, step: str) -> None:
        """Add the rows of a step. A row says so if an answer is not kept and the model is not there to be asked.

        Raises:
            InvalidInput: There is no such step.
        """
        if step not in STEPS:
            raise InvalidInput(f"steps must be of {', '.join(STEPS)}, got {step!r:.100}.")
        try:
            self._add_rows(step)
        except (InvalidInput, LLMFailure) as missing:
            self.table.add_row(step, f"not complete: {missing}")

    def _add_rows(self, step: str) -> None:
        drill_with = partial(drill, self.writer, self.read)
        if step == "plan":
            self._add_plan()
        elif step in PAPER:
            self._add(step, PAPER[step], drill_with(paragraphs=step, max_prompt_tokens=CHUNKS[-1]))
        elif step == "summaries":
            summarizer = WrittenSummaries(KeptWriter(self.name, SUMMARY_TOKENS))
            self._add("base, the model's summaries", PAPER["base"], drill_with(summarizer=summarizer))
        elif step == "names":
            bare = drill(self.writer, self._load(change=without_names))
            self._add("base, UUIDs for headings", "43.11 (headings: 49.92)", bare)
        elif step == "sizes":
            for size in CHUNKS:
                row = drill_with(paragraphs="chunk", max_prompt_tokens=size)
                self._add(f"chunk, {size} tokens", "", row, answered=False)
        elif step == "likelihood":
            self._add("likelihood, no LLM", "", self.likelihood)
        elif step == "oracle":
            self._add("base, by an oracle", "", self._by_oracle("base"), answered=False)
        else:
            gold = gold_passages(self.read)
            none = [0] * len(gold)
            ids = [[passage.id for passage in of] for of in gold]
            self._add("gold evidence", "57.99", Row([1.0] * len(gold), none, none, ids, gold, [False] * len(gold)))

    def _add(self, label: str, published: str, row: Row, *, answered: bool = True) -> None:
        cells: list[str] = []
        if answered and (scores := self._answer(row)):
            cells = [f"{mean(values):.3f}" for values in zip(*scores, strict=True)]
            for kind in TYPES:
                of_kind = [f1 for (_, f1), of in zip(scores, self.types, strict=True) if kind in of]
                cells.append(f"{mean(of_kind):.3f}" if of_kind else "")
        self.table.add_row(
            label, published, interval(row.f1), interval(np.subtract(row.f1, self.likelihood.f1)),
            f"{mean(row.tokens):,.0f}", f"{mean(row.calls):.1f}", f"{mean(row.unusable):.2f}", *cells,
        )  # fmt: skip

    def _answer(self, row: Row) -> list[tuple[float, float]]:
        """Return exact match and F1 of each answer; nothing if an answer is not kept and the model is not there."""
        try:
            return answers(self.name, self.read, row.passages)
        except (InvalidInput, LLMFailure):
            return []

    def _add_plan(self) -> None:
        for strategy in PAPER:
            row = self._by_oracle(strategy)
            seconds = sum(row.tokens) / READ_SPEED + sum(row.calls) / WRITE_SPEED
            self.table.add_row(
                strategy, f"plan: {seconds / 60:.0f} minutes or less", *[""] * 2, f"{mean(row.tokens):,.0f}"
            )

    def _by_oracle(self, strategy: str) -> Row:
        settings = paper_settings(paragraphs=strategy, max_prompt_tokens=CHUNKS[-1])
        return self._ask(lambda question: D3(Oracle(question[0].ready, question[1].gold), settings=settings))

    def _ask(self, make: Callable[[tuple[Paper, Question]], D3]) -> Row:
        asked = asked_questions(self.read)
        return measure(self.read, [make(pair).retrieve(pair[1].text, pair[0].ready) for pair in asked])


def interval(values: Sequence[float] | np.ndarray) -> str:
    """Return a mean and its 95 % interval by bootstrap."""
    values = np.asarray(values, dtype=float)
    draws = np.random.default_rng(SEED).integers(0, len(values), (10_000, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"
