"""D3 with an LLM, without one and with both, on QASPER: is the LLM's judgment of a paragraph worth a term of the score?

For the best paragraphs by likelihood, the LLM reads the prompt of the strategy `"paragraph"` (`BOOLEAN_PROMPT`). Two
numbers of one reading are kept: the log-odds of "yes", and the log-likelihood of the question after the paragraph.
Weights are chosen on papers of the tuning half (`qasper_tune`) and reported on papers of the other half, drawn with a
seed. In the step `"judge"`, `D3(settings={"judge": Relevance(..., preset=...)})` reads, with two presets.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3, Relevance
from drillrank.drilldown.paragraph_scores import maximize_expected_f1
from drillrank.drilldown.prompts import BOOLEAN_PROMPT, ListedText, NumbersPrompt
from drillrank.errors import DrillrankWarning
from drillrank.evaluation.metrics import evidence_f1
from drillrank.passages import Passage
from drillrank.text import count_tokens
from drillrank.vectors import Floats

from .kept import WRITERS, KeptModel, KeptReader, KeptWriter, named
from .long_documents import Paper, papers
from .measure import gain

MODEL = "qwen-1.5b"
TUNING, REPORTED, SEED, N_READ, MAX_WORDS, LIST_TOKENS, JUDGED_TOKENS = 40, 200, 15, 8, 120, 24, 160
NO_LLM = "likelihood, no LLM"


@dataclass(frozen=True)
class Question:
    """A question with its best paragraphs, the likeliest first.

    Attributes:
        ids: Ids of all paragraphs, the likeliest first.
        totals: S of all paragraphs.
        log_odds: Log-odds of "yes" of the best paragraphs.
        log_likelihoods: Log-likelihood of the question after each of them.
        n_tokens: Tokens that the LLM read to judge one by one.
        chosen: Ids that the LLM chose from a list of the best paragraphs, the likeliest first.
        n_list_tokens: Tokens of that list.
        annotations: Ids of each annotator's evidence.
    """

    ids: list[str]
    totals: Floats
    log_odds: Floats
    log_likelihoods: Floats
    n_tokens: int
    chosen: list[str]
    n_list_tokens: int
    annotations: list[set[str]]


def load(name: str, n_questions: int, model: str, *, lists: bool = True) -> list[Question]:
    """Return questions of drawn papers. The model is asked for what is not kept.

    Args:
        name: Data set.
        n_questions: Number of questions.
        model: Directory of the model.
        lists: True to ask the model to choose from a list too.
    """
    reader, writer = KeptReader(model), KeptWriter(model, LIST_TOKENS)
    d3 = D3(settings={"unit": "paragraph"})
    asked = [(paper, question) for paper in papers(name, d3, n_questions, seed=SEED) for question in paper.questions]

    def read(pair: tuple[Paper, Any]) -> Question:
        paper, question = pair
        ranking = d3.retrieve(question.text, paper.ready, top_n=10**6)
        best = [truncate(item.passage) for item in list(ranking)[:N_READ]]
        values = reader.read([judgment_prompt(question.text, text) for text in best])
        listed = [ListedText(text) for text in best]
        shown = NumbersPrompt().render(question.text, listed)
        chosen = NumbersPrompt().parse(writer(shown), listed).positions if lists else []
        ids = [item.passage.id for item in ranking]
        return Question(
            ids, np.array([item.details["total"] for item in ranking]), values[:, 0], values[:, 1],
            int(values[:, 2].sum()), [ids[i] for i in chosen], count_tokens(shown), question.annotations,
        )  # fmt: skip

    with ThreadPoolExecutor(12 if lists else WRITERS) as threads:
        return list(threads.map(read, asked))


def truncate(passage: Passage) -> str:
    """Return the first words of a paragraph."""
    return " ".join(passage.text.split(" ")[:MAX_WORDS])


def judgment_prompt(question: str, text: str) -> tuple[str, str, str]:
    """Return the text before the question, the question, and the text after it."""
    before, _, after = BOOLEAN_PROMPT.partition("{question}")
    return before.replace("{paragraphs}", f"[1] {text}"), question, after


@dataclass(frozen=True)
class Choice:
    """Weights of the terms of a paragraph's score, and the temperature of its posterior.

    Attributes:
        odds: Weight of the log-odds of "yes".
        likelihood: Weight of the log-likelihood of the question.
        chosen: What a paragraph gains if the LLM chose it from the list of the best.
        temperature: T of the posterior, which decides how many paragraphs are evidence.
    """

    odds: float = 0.0
    likelihood: float = 0.0
    chosen: float = 0.0
    temperature: float = 2.0

    def select(self, question: Question) -> list[str]:
        """Return the ids of the evidence. Unread paragraphs gain as little as any that was read."""
        n_read = len(question.log_odds)
        gains = self.odds * question.log_odds + self.likelihood * question.log_likelihoods
        gains = gains + self.chosen * np.isin(question.ids[:n_read], question.chosen)
        totals = question.totals + gains.min()
        totals[:n_read] = question.totals[:n_read] + gains
        order = np.argsort(-totals, kind="stable")
        return [question.ids[i] for i in order[: maximize_expected_f1(totals, temperature=self.temperature)]]


TEMPERATURES = (1.5, 2.0, 2.5, 3.0, 4.0)
ODDS, LIKELIHOODS, CHOSEN = (0.25, 0.5, 1.0, 1.5, 2.0), (0.1, 0.2, 0.35, 0.5, 0.75, 1.0), (1.0, 2.0, 4.0, 8.0)
CANDIDATES: dict[str, list[Choice]] = {
    "plus log-odds of yes": [Choice(o, 0, 0, t) for o, t in product(ODDS, TEMPERATURES)],
    "plus log-likelihood": [Choice(0, w, 0, t) for w, t in product(LIKELIHOODS, TEMPERATURES)],
    "plus both": [Choice(o, w, 0, t) for o, w, t in product(ODDS, LIKELIHOODS, TEMPERATURES)],
    "plus the LLM's choice": [Choice(0, 0, c, t) for c, t in product(CHOSEN, TEMPERATURES)],
    "plus all three": [Choice(o, w, c, t) for o, w, c, t in product(ODDS, LIKELIHOODS, CHOSEN, TEMPERATURES)],
}


def measure(questions: Sequence[Question], select: Callable[[Question], Sequence[str]]) -> Floats:
    """Return the evidence F1 of each question."""
    return np.array([evidence_f1(select(question), question.annotations) for question in questions])


def main(model: str = MODEL, questions: int | None = None, steps: str = "yes,lists") -> None:
    """Print the evidence F1 of each way to use the model, and what it gains.

    Args:
        model: Directory of a model.
        questions: Number of questions that are reported.
        steps: `"yes"`: judgments one by one. `"lists"`: choices from a list too. `"judge"`: `D3` with a judge too.
    """
    warnings.simplefilter("ignore", DrillrankWarning)
    name, lists = named(model)[0], "lists" in steps
    tuning = load("qasper_tune", TUNING, name, lists=lists)
    reported = load("qasper", questions or REPORTED, name, lists=lists)
    table = Table(
        "score", "tuning F1", "F1", "minus no LLM, 95 %", "tokens", "chosen",
        title=f"QASPER: {name}, {len(tuning)} questions to choose by, {len(reported)} others reported",
    )  # fmt: skip
    alone = measure(reported, Choice().select)

    def add_row(label: str, select: Callable[[Question], Sequence[str]], tokens: str, chosen: str = "") -> None:
        f1 = measure(reported, select)
        table.add_row(
            label, f"{measure(tuning, select).mean():.3f}", f"{f1.mean():.3f}",
            "" if label == NO_LLM else gain(f1 - alone), tokens, chosen,
        )  # fmt: skip

    judged, shown = (
        f"{mean(count):,.0f}" for count in zip(*((q.n_tokens, q.n_list_tokens) for q in reported), strict=True)
    )
    add_row(NO_LLM, Choice().select, "0")
    add_row("those with more yes than no, or the best", select_judged, judged)
    if lists:
        add_row("chosen from the list, or the best", lambda question: question.chosen or question.ids[:1], shown)
    for label, choices in CANDIDATES.items():
        if not lists and any(choice.chosen for choice in choices):
            continue
        best = max(choices, key=lambda choice: measure(tuning, choice.select).mean())
        uses = [judged] * bool(best.odds or best.likelihood) + [shown] * bool(best.chosen)
        add_row(label, best.select, " + ".join(uses), str(best))
    if "judge" in steps:
        for preset in ("d3", "yes-no"):
            f1 = judge_by_d3("qasper", questions or REPORTED, name, preset)
            table.add_row(
                f"D3 with judge, {preset}", "", f"{f1.mean():.3f}", gain(f1 - alone), f"of {N_READ} paragraphs"
            )
    Console(width=190).print(table)


def judge_by_d3(data: str, n_questions: int, model: str, preset: str) -> Floats:
    """Return the evidence F1 of `D3` with a judge for each question of `load`."""
    judge = Relevance(KeptModel(model, dtype="bfloat16"), preset=preset, max_passage_tokens=JUDGED_TOKENS)
    d3 = D3(settings={"unit": "paragraph", "judge": judge, "read": N_READ})
    results = [
        (d3.retrieve(question.text, paper.ready), question.annotations)
        for paper in papers(data, d3, n_questions, seed=SEED)
        for question in paper.questions
    ]
    return np.array([evidence_f1([item.passage.id for item in result], gold) for result, gold in results])


def select_judged(question: Question) -> list[str]:
    """Return the paragraphs that the LLM calls relevant, or the one that comes closest."""
    relevant = [id_ for id_, odds in zip(question.ids, question.log_odds, strict=False) if odds > 0]
    return relevant or [question.ids[int(np.argmax(question.log_odds))]]
