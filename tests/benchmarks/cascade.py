"""What a cascade costs and gains: the unigram model prunes the paths, a neural one scores the rest.

Recall is that of a perfect model, which prefers every path with more gold passages: what it loses under a cascade is
lost to the pruning. Time is that of a T5 of flan-t5-small's shape with random weights.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank, load_language_model
from drillrank.evaluation.metrics import recall_all
from drillrank.likelihood import LanguageModel, Likelihood, Request
from drillrank.prompts import TruncatableText

from . import random_models
from .data import multihop_pool, read
from .measure import mean_of, medians
from .multihop import DATASETS

CASCADES = (None, 50, 30, 20, 10)
TIMED_QUESTIONS = 1


class PerfectModel(LanguageModel):
    """Knows every question's gold passages; counts the requests."""

    def __init__(self, gold: dict[str, set[str]]) -> None:
        self._gold = gold
        self.requests = 0

    @property
    def spec(self) -> str:
        return "perfect"

    def log_likelihood_batch(
        self, requests: Sequence[Request], _temperature: float, _include_eos: bool
    ) -> list[Likelihood]:
        self.requests += len(requests)
        return [self._likelihood(request) for request in requests]

    def _likelihood(self, request: Request) -> Likelihood:
        texts = {part.text for part in request.prompt if isinstance(part, TruncatableText)}
        missing = len(self._gold[request.target] - texts) + 0.1 * len(texts - self._gold[request.target])
        return Likelihood([request.target], np.array([-1000.0 * missing]), -1000.0 * missing)


def main(questions: int | None = None) -> None:
    """Print recall under a perfect model, the paths scored, and the time of a random T5."""
    table = Table(
        "data", "questions", "cascade", "R@2", "R@10", "paths scored", title="Cascades under a perfect model"
    )  # fmt: skip
    for dataset in DATASETS:
        asked, pool = read(f"multihop/{dataset}")[:questions], multihop_pool(dataset)
        texts = {passage.id: passage.titled_text for passage in pool}
        model = PerfectModel({item["question"]: {texts[name] for name in item["gold"]} for item in asked})
        for cascade in CASCADES:
            model.requests = 0
            search = PathSearch(PromptRank(model, instructions=["{path} "]), pool, settings={"cascade": cascade})
            rankings = [[item.passage.id for item in search.search(one["question"])] for one in asked]
            figures = [f"{mean_of(recall_all, rankings, asked, k):.3f}" for k in (2, 10)]
            table.add_row(dataset, str(len(asked)), str(cascade), *figures, f"{model.requests / len(asked):.0f}")
    console = Console(width=120)
    console.print(table)
    console.print(_times())


def _times() -> Table:
    asked, pool = read("multihop/hotpotqa")[:TIMED_QUESTIONS], multihop_pool("hotpotqa")
    with tempfile.TemporaryDirectory() as folder:
        spec = random_models.save_t5(Path(folder), [passage.text for passage in pool])
        ranker = PromptRank(load_language_model(f"hf:{spec}"))
        searches = {cascade: PathSearch(ranker, pool, settings={"cascade": cascade}) for cascade in CASCADES}
        seconds = medians(
            {str(cascade): partial(_ask, search, asked) for cascade, search in searches.items()}, repeats=3
        )
    table = Table("cascade", "s a question", "ratio", title="Time, T5-small's shape, five instructions, HotpotQA")
    for cascade, taken in seconds.items():
        table.add_row(cascade, f"{taken / len(asked):.2f}", f"{seconds['None'] / taken:.1f}x")
    return table


def _ask(search: PathSearch, asked: list[dict[str, object]]) -> list[list[Passage]]:
    return [[item.passage for item in search.search(str(one["question"]))] for one in asked]
