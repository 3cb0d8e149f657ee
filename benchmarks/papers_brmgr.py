"""BRMGR, tables I, II and III and figure 3 on NQ: ten passages of BM25 and ten that a model wrote for each question.

Exact match is that an answer stands in one of the first K texts, where K counts passages, or pairs, as the paper's
table I seems to; and that it stands in what a small reader answers from the first five, which are sentences where the
paper's reader was trained to write the answer alone. What the models wrote and scored is kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import BRMGR, UPR, LanguageModel, Passage, load_language_model
from drillrank.drilldown.answering import ANSWER_PROMPT, answer
from drillrank.errors import DrillrankWarning
from drillrank.evaluation.metrics import exact_match
from drillrank.generation import generated_passages
from drillrank.llm import run
from drillrank.passages import Ranked

from .data import read, rerank_pool
from .kept import INSTRUCTED, MODELS, KeptModel, KeptWriter, named
from .measure import gain

QUESTIONS, EACH, WRITTEN_TOKENS, ANSWER_TOKENS, READ = 200, 10, 100, 24, 5
FEWER = 5  # passages that a larger model writes
# The row from which each row differs by one step.
_BASELINES = {
    "Retri-Rerank": "Retri-Origin",
    "Gen-Rerank, p(lp | q)": "Gen-Origin",
    "Gen-Rerank, p(q | lp)": "Gen-Rerank, p(lp | q)",
    "Origin-Combi, pairs": "Retri-Origin",
    "BRMGR, pairs": "Origin-Combi, pairs",
    "BRMGR, passages": "Retri-Rerank",
}
Groups = list[list[Passage]]  # passages that are found together: one, or those of a pair


def main(model: str = ",".join(MODELS), questions: int | None = None) -> None:
    models = named(model)
    asked = read("rerank/nq")[: questions or QUESTIONS]
    texts = [item["question"] for item in asked]
    pool = {passage.id: passage for passage in rerank_pool("nq")}
    retrieved = [[pool[id_] for id_ in item["bm25_top"][:EACH]] for item in asked]
    writer = KeptWriter(models[0], WRITTEN_TOKENS)
    n_generated = FEWER if models[0] in INSTRUCTED else EACH
    with warnings.catch_warnings(action="ignore", category=DrillrankWarning):
        generated = writer.together(
            [partial(run, generated_passages(text, n_generated), writer, workers=EACH) for text in texts]
        )
    console = Console(width=170)
    each = sum(map(len, generated)) / len(generated)
    console.print(f"{len(asked)} questions, 10 retrieved by BM25, {each:.1f} different ones written by {models[0]}")
    scorers: dict[str, LanguageModel] = {
        "unigram": load_language_model("unigram").fitted(passage.titled_text for passage in pool.values()),
        **{name: KeptModel(name) for name in models},
    }
    reader = KeptWriter(models[0], ANSWER_TOKENS)
    table = Table(
        "scored by", "NQ", "paper: top-3 / 5, FiD", "top-1", "3", "5", f"read by {models[0]}",
        "top-3 minus another row, 95 %",
        title="BRMGR, tables I and II",
    )  # fmt: skip
    kinds = Table("scored by", "paper, T5-base", "top-1", "3", "5", "8", title="Table III: generated passages alone")
    kinds.add_row("none", "39.34 53.25 58.22 62.49", *_shares(list(map(_alone, generated)), asked, (1, 3, 5, 8)))
    for name, lm in scorers.items():
        by_upr = UPR(lm, prior=None).rank_many(texts, retrieved)
        merged = BRMGR(lm, preset="paper").rank_many(texts, retrieved, generated)
        by_question = BRMGR(lm, preset="paper", settings={"generated_score": "question"})
        asked_of = by_question.rank_many(texts, retrieved, generated)
        rows: Mapping[str, tuple[str, list[Groups]]] = {
            "Retri-Origin": ("63.35 / 68.78, 50.8", list(map(_alone, retrieved))),
            "Retri-Rerank": ("65.48 / 70.97, 54.4", [_alone(_passages(ranking)) for ranking in by_upr]),
            "Gen-Origin": ("54.63 / 59.92, 52.6", list(map(_alone, generated))),
            "Gen-Rerank, p(lp | q)": ("56.62 / 61.58, 54.6", [_alone(_of_kind(one, "generated")) for one in merged]),
            "Gen-Rerank, p(q | lp)": ("worse (figure 3)", [_alone(_of_kind(one, "generated")) for one in asked_of]),
            "Origin-Combi, pairs": ("75.68 / 79.78, 53.8", list(map(_paired, generated, retrieved))),
            "BRMGR, pairs": ("77.01 / 81.44, 55.9", list(map(_by_pair, merged))),
            "BRMGR, passages": ("", [_alone(_passages(ranking)) for ranking in merged]),
        }
        baselines = {
            label: _matches(groups, asked, 3) for label, (_, groups) in rows.items() if label in _BASELINES.values()
        }
        for label, (published, groups) in rows.items():
            if name != "unigram" and "Origin" in label:
                continue
            answers = _answers(reader, texts, groups)
            right = [exact_match([said], item["answers"], 1) for said, item in zip(answers, asked, strict=True)]
            read_right = f"{100 * sum(right) / len(right):.1f}"
            table.add_row(
                "" if "Origin" in label else name,
                label,
                published,
                *_shares(groups, asked, (1, 3, 5)),
                read_right,
                f"{gain(_matches(groups, asked, 3) - baselines[_BASELINES[label]])} {_BASELINES[label]}"
                if label in _BASELINES
                else "",
            )
        published = "40.11 55.24 59.63 62.96 (T0-3B 40.07 55.25 59.68 62.94)"
        kinds.add_row(name, published, *_shares(rows["Gen-Rerank, p(lp | q)"][1], asked, (1, 3, 5, 8)))
    console.print(table, kinds)


def _answers(reader: KeptWriter, questions: Sequence[str], groups: Sequence[Groups]) -> list[str]:
    def ask(question: str, of_question: Groups) -> str:
        first = [passage for group in of_question for passage in group][:READ]
        return answer(question, first, reader, prompt=ANSWER_PROMPT).text if first else ""

    return reader.together([partial(ask, *pair) for pair in zip(questions, groups, strict=True)])


def _shares(found: Sequence[Groups], asked: Sequence[dict[str, Any]], ks: Sequence[int]) -> list[str]:
    return [f"{100 * _matches(found, asked, k).mean():.1f}" for k in ks]


def _matches(found: Sequence[Groups], asked: Sequence[dict[str, Any]], k: int) -> Any:
    """Return for each question 1 if an answer is in the first k groups, else 0."""
    texts = [[passage.text for group in groups[:k] for passage in group] for groups in found]
    return np.array([exact_match(one, item["answers"], 10**6) for one, item in zip(texts, asked, strict=True)])


def _alone(passages: Sequence[Passage]) -> Groups:
    return [[passage] for passage in passages]


def _paired(generated: Sequence[Passage], retrieved: Sequence[Passage]) -> Groups:
    return [[one for one in pair if one is not None] for pair in zip_longest(generated, retrieved)]


def _passages(ranking: Sequence[Ranked[Passage]]) -> list[Passage]:
    return [item.passage for item in ranking]


def _of_kind(ranking: Sequence[Ranked[Passage]], kind: str) -> list[Passage]:
    return [item.passage for item in ranking if item.details["origin"] == kind]


def _by_pair(ranking: Sequence[Ranked[Passage]]) -> Groups:
    groups: dict[int, list[Passage]] = {}
    for item in ranking:
        groups.setdefault(item.details["pair"], []).append(item.passage)
    return list(groups.values())
