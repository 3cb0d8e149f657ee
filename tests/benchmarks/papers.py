"""Each paper's main table, its own numbers beside ours on data and models that can be had.

Absolute numbers differ with data and models: the papers search all of Wikipedia with models of billions of parameters.
What is to be compared is what a step gains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from drillrank import BRMGR, UPR, LanguageModel, Passage, PromptRank, load_language_model
from drillrank.evaluation.metrics import exact_match, recall_all
from drillrank.passages import Path, Ranked
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS

from .data import multihop_pool, read

RETRIEVED = 10
Groups = list[list[str]]  # texts that are found together: one, or those of a pair


def main(model: str = "unigram", questions: int | None = None) -> None:
    """Print the tables; a neural model takes seconds a question, so give it some `questions` alone."""
    lm = load_language_model(model)
    Console(width=150).print(brmgr(lm, questions), promptrank(lm, questions))


def brmgr(lm: LanguageModel, questions: int | None) -> Table:
    """BRMGR, table I: an answer is in the first K passages, or in those of the first K pairs."""
    asked = read("rerank/nq")[:questions]
    pool = {p["id"]: Passage(p["text"], id=p["id"], title=p["title"]) for p in read("rerank/nq_passages")}
    retrieved = [[pool[id_] for id_ in item["bm25_top"][:RETRIEVED]] for item in asked]
    generated = [[Passage(text) for text in item["generated"]] for item in asked]
    texts = [item["question"] for item in asked]
    by_upr = UPR(lm, prior=None).rank_many(texts, retrieved)
    settings = {"paper": BRMGR(lm, preset="paper"), "default": BRMGR(lm, prior=None)}
    merged = {name: ranker.rank_many(texts, retrieved, generated) for name, ranker in settings.items()}
    figures: dict[str, tuple[str, list[Groups]]] = {
        "retrieved": ("63.35 / 68.78", _alone(retrieved)),
        "retrieved, reranked (preset paper)": ("65.48 / 70.97", _alone([_passages(ranking) for ranking in by_upr])),
        "generated": ("54.63 / -", _alone(generated)),
        "plain pairs": ("75.68 / 79.78", [_pairs(*one) for one in zip(retrieved, generated, strict=True)]),
        **{
            f"BRMGR, {name}, pairs": ("77.01 / 81.44", list(map(_by_pair, rankings)))
            for name, rankings in merged.items()
        },
        "BRMGR, default, passages": ("", _alone([_passages(ranking) for ranking in merged["default"]])),
    }
    table = Table(
        "NQ", "paper, top-3 / 5", "top-1", "top-3", "top-5",
        title=f"BRMGR, table I: {lm.spec}, {len(asked)} questions, 10 retrieved by BM25, 1 generated",
    )  # fmt: skip
    for name, (paper, found) in figures.items():
        shares = [
            sum(exact_match([text for group in groups[:k] for text in group], item["answers"], 10**6)
                for groups, item in zip(found, asked, strict=True)) / len(asked)
            for k in (1, 3, 5)
        ]  # fmt: skip
        table.add_row(name, paper, *(f"{100 * share:.2f}" for share in shares))
    return table


def promptrank(lm: LanguageModel, questions: int | None) -> Table:
    """PromptRank, headline and table 4: R@2 among a question's own passages, all paths of one and two of them."""
    asked = read("multihop/hotpotqa")[: questions or 100]
    pool = {passage.id: passage for passage in multihop_pool("hotpotqa")}
    first = PROMPTRANK_INSTRUCTIONS[:1]
    rows: dict[str, tuple[str, Callable[[], PromptRank], Literal["paths", "alone"]]] = {
        "each document alone, no instruction": ("22.8", lambda: _ranker(lm, ["{path} Question:"]), "alone"),
        "paths, no instruction": ("42.8", lambda: _ranker(lm, ["{path} Question:"]), "paths"),
        "paths, instruction": ("47.8", lambda: PromptRank(lm, instructions=first), "paths"),
        "temperature 1.4": (
            "49.7",
            lambda: PromptRank(lm, instructions=PROMPTRANK_INSTRUCTIONS[:1], temperature=1.4),
            "paths",
        ),
        "five instructions": ("51.3", lambda: PromptRank(lm, temperature=1.4), "paths"),
    }
    if not lm.reads_instructions:
        rows = {name: rows[name] for name in ("each document alone, no instruction", "paths, instruction")}
    table = Table(
        "HotpotQA", "paper, R@2", "R@2", title=f"PromptRank: {lm.spec}, {len(asked)} questions, closed setting"
    )
    fitted = lm.fitted([passage.titled_text for passage in pool.values()])
    for name, (paper, make, kind) in rows.items():
        ranker = make().with_model(fitted)
        found = []
        for item in asked:
            passages = [pool[id_] for id_ in item["candidates"]]
            pairs = [] if kind == "alone" else [Path((a, b)) for a in passages for b in passages if b.id in a.links]
            ranking = ranker.rank(item["question"], [*(Path((passage,)) for passage in passages), *pairs])
            order = list(dict.fromkeys(id_ for entry in ranking for id_ in entry.passage.ids))
            found.append(recall_all(order, item["gold"], 2))
        table.add_row(name, paper, f"{100 * sum(found) / len(found):.1f}")
    return table


def _ranker(lm: LanguageModel, instructions: Sequence[str]) -> PromptRank:
    return PromptRank(lm, instructions=instructions) if lm.reads_instructions else PromptRank(lm)


def _alone(lists: Sequence[Sequence[Passage]]) -> list[Groups]:
    return [[[passage.text] for passage in passages] for passages in lists]


def _pairs(retrieved: Sequence[Passage], generated: Sequence[Passage]) -> Groups:
    kinds = (generated, retrieved)
    return [[kind[at].text for kind in kinds if at < len(kind)] for at in range(max(map(len, kinds)))]


def _passages(ranking: Sequence[Ranked[Passage]]) -> list[Passage]:
    return [item.passage for item in ranking]


def _by_pair(ranking: Sequence[Ranked[Passage]]) -> Groups:
    groups: dict[Any, list[str]] = {}
    for item in ranking:
        groups.setdefault(item.details["pair"], []).append(item.passage.text)
    return list(groups.values())
