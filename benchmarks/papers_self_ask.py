"""D3, table 2: self-ask on HotpotQA, the paper's figures next to ours.

The paper asks about two long documents. Here a document has the passages that come with the question, one per section,
about ten of which two are gold. Questions are drawn with a seed, each type as often as in the data. The model
continues the transcript without its chat template, in which it never asks a follow-up question. What it wrote is kept
(`kept.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3, SelfAsk
from drillrank.drilldown.answering import ANSWER_PROMPT, answer
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.self_ask import SELF_ASK_PROMPT
from drillrank.errors import DrillrankWarning
from drillrank.evaluation.metrics import answer_f1, answer_match

from .data import multihop_pool, read, stratified
from .kept import KeptWriter, named
from .papers_d3 import ANSWER_TOKENS, CHOICE_TOKENS, MODEL, interval, paper_settings

QUESTIONS, FOLLOW_UP_TOKENS = 40, 32
# Answer F1, tokens and calls by gpt-3.5-turbo.
PAPER = {
    "gold": "47.01",
    "base": "23.55 / 3,141 / 2.1",
    "self-ask+base": "43.45 / 5,376 / 5.2",
    "self-ask+likelihood": "40.36 / 720 / 1.6 (MonoT5)",
}


@dataclass(frozen=True)
class Result:
    """Answer to a question, and the tokens and calls that it took."""

    text: str
    tokens: int
    calls: int


def main(model: str = MODEL, questions: int | None = None, steps: str = ",".join(PAPER)) -> None:
    """Print the table. `steps` are rows, separated by commas; the model is asked for what is not kept."""
    name = named(model)[0]
    warnings.simplefilter("ignore", DrillrankWarning)
    asked = stratified(read("multihop/hotpotqa"), questions or QUESTIONS)
    passages = {passage.id: passage for passage in multihop_pool("hotpotqa")}
    chooser, reader = KeptWriter(name, CHOICE_TOKENS), KeptWriter(name, ANSWER_TOKENS)
    continuing = KeptWriter(name, FOLLOW_UP_TOKENS, chat=False, stop="\nIntermediate")
    examples, _, _ = SELF_ASK_PROMPT.partition("{question}")
    by_llm, alone = D3(chooser, settings=paper_settings()), D3(settings=paper_settings())
    documents = [
        alone.prepare(["# Passages\n\n" + "\n\n".join(
            f"## {passages[id_].title}\n\n{passages[id_].text}" for id_ in row["candidates"]
        )])
        for row in asked
    ]  # fmt: skip

    def read_gold(row: dict[str, Any], _: PreparedDocuments) -> Result:
        text = answer(row["question"], [passages[id_] for id_ in row["gold"]], reader, prompt=ANSWER_PROMPT).text
        return Result(text, 0, 1)

    def drill(row: dict[str, Any], document: PreparedDocuments) -> Result:
        result = by_llm.retrieve(row["question"], document)
        found = [item.passage for item in result]
        text = answer(row["question"], found, reader, prompt=ANSWER_PROMPT).text if found else ""
        return Result(text, result.usage.prompt_tokens, result.usage.calls)

    def ask_itself(d3: D3, row: dict[str, Any], document: PreparedDocuments) -> Result:
        def llm(prompt: str) -> str:
            return (continuing if prompt.startswith(examples) else reader)(prompt)

        result = SelfAsk(llm, lambda question: d3.retrieve(question, document)).answer(row["question"])
        return Result(result.answer, result.usage.prompt_tokens, result.usage.calls)

    ways: dict[str, Callable[[dict[str, Any], PreparedDocuments], Result]] = {
        "gold": read_gold,
        "base": drill,
        "self-ask+base": partial(ask_itself, by_llm),
        "self-ask+likelihood": partial(ask_itself, alone),
    }
    table = Table(
        "answers by", "paper: F1 / tokens / calls", "F1, 95 %", "minus base, 95 %", "exact match", "bridge F1",
        "comparison F1", "tokens", "calls", title=f"D3, table 2: {name}, {len(asked)} questions of HotpotQA",
    )  # fmt: skip
    f1_by_label: dict[str, list[float]] = {}
    for label in steps.split(","):
        results = reader.together(
            [partial(ways[label], row, document) for row, document in zip(asked, documents, strict=True)]
        )
        f1 = [answer_f1(result.text, [row["answer"]]) for result, row in zip(results, asked, strict=True)]
        f1_by_label[label] = f1
        difference = interval(np.subtract(f1, f1_by_label["base"])) if "base" in f1_by_label else ""
        exact = [answer_match(result.text, [row["answer"]]) for result, row in zip(results, asked, strict=True)]
        of_type = [
            mean(value for value, row in zip(f1, asked, strict=True) if row["type"] == kind)
            for kind in ("bridge", "comparison")
        ]
        table.add_row(
            label, PAPER[label], interval(f1), difference, f"{mean(exact):.3f}", *(f"{value:.3f}" for value in of_type),
            f"{mean(result.tokens for result in results):,.0f}", f"{mean(result.calls for result in results):.1f}",
        )  # fmt: skip
    Console(width=180).print(table)
