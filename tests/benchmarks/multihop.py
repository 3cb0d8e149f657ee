"""HotpotQA, 2Wiki and MuSiQue in open pools: path search, what each of its steps adds, and simpler rankings.

`--model hf:...` scores the paths with any language model; simpler rankings stay the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, PathSearch, PromptRank, load_language_model
from drillrank.evaluation.exact_match import exact_match
from drillrank.evaluation.metrics import recall_all
from drillrank.likelihood import LanguageModel
from drillrank.multihop.links import RetrievedLinks, given_links
from drillrank.multihop.prior import PathPrior
from drillrank.retrieval import BM25Index, TextIndex, TfidfIndex, top

from .data import multihop_pool, read
from .minilm import minilm

DATASETS = ("hotpotqa", "2wiki", "musique")
FIRST_STAGE = 100
NOBODY_NAMED = PathPrior(named=1e-12)

PAPER: dict[str, Any] = {"beam": 5, "branch": 3, "pairs": 0, "prior": None}
SEARCHES: dict[str, dict[str, Any]] = {
    "path search as in the paper (K1 = 5, L = 3)": PAPER,
    "  K1 = 10, L = 8": {"pairs": 0, "prior": None},
    "  + pairs, no prior": {"prior": None},
    "  + prior, blind to names, no pairs": {"pairs": 0, "prior": NOBODY_NAMED},
    "  + prior, no pairs": {"pairs": 0},
    "  + prior, blind to names, + pairs": {"prior": NOBODY_NAMED},
    "path search (default: + prior + pairs)": {},
    "  K1 = 5, L = 3": {"beam": 5, "branch": 3},
    "  one hop": {"hops": 1},
    "  three hops": {"hops": 3},
    "  first instruction only": {"instructions": 1},
    "  mean over instructions": {"ensemble": "mean"},
    "  + second retrieval": {"links": [given_links, RetrievedLinks()]},
}
NEURAL_ONLY = ("  first instruction only", "  mean over instructions")  # to a unigram model, instructions say nothing


def main(model: str = "unigram", questions: int | None = None) -> None:
    """Print recall, answer recall and time of every method."""
    lm = load_language_model(model)
    embed = minilm()
    for dataset in DATASETS:
        asked = read(f"multihop/{dataset}")[:questions]
        pool = multihop_pool(dataset)
        table = Table(
            "method", *(f"R@{k}" for k in (2, 10, 20)), *(f"AR@{k}" for k in (2, 10, 20)), "ms a question",
            title=f"{dataset}: {len(asked)} questions, {len(pool):,} passages; paths scored by {lm.spec}",
        )  # fmt: skip
        for name, ranking in methods(lm, pool, asked, embed):
            started = time.perf_counter()
            rankings = [ranking(item["question"]) for item in asked]
            seconds = time.perf_counter() - started
            table.add_row(name, *figures(asked, rankings), f"{1000 * seconds / len(asked):.1f}")
        Console(width=120).print(table)


def methods(
    lm: LanguageModel, pool: list[Passage], asked: list[dict[str, Any]], embed: Callable[..., Any] | None
) -> Any:
    """Names and functions from a question to passages, best first; built one after the other."""
    texts = [passage.titled_text for passage in pool]
    tfidf, bm25 = TfidfIndex(texts), BM25Index(texts)
    upr = UPR(lm.fitted(texts))

    def best(index: TextIndex, question: str) -> list[Passage]:
        return [pool[i] for i in top(index.scores(question), FIRST_STAGE)]

    def expanded(question: str) -> list[Passage]:
        """The paper's baseline: TF-IDF's first stage, the passages it links to, all ranked by BM25."""
        first = top(tfidf.scores(question), FIRST_STAGE)
        found = list(dict.fromkeys([*first, *(place[link] for i in first for link in pool[i].links)]))
        scores = bm25.scores(question)
        return [pool[i] for i in sorted(found, key=lambda i: -scores[i])]

    place = {passage.id: i for i, passage in enumerate(pool)}
    yield "BM25", partial(best, bm25)
    yield "TF-IDF", partial(best, tfidf)
    if embed is not None:
        vectors, encoded = embed(texts), embed([item["question"] for item in asked])
        by_question = {item["question"]: vector for item, vector in zip(asked, encoded, strict=True)}
        yield "MiniLM", lambda question: [pool[i] for i in top(vectors @ by_question[question], FIRST_STAGE)]
    yield "TF-IDF, links, BM25", expanded
    yield (
        "UPR over TF-IDF, each passage alone",
        lambda question: [r.passage for r in upr.rank(question, best(tfidf, question))],
    )
    for name, options in SEARCHES.items():
        if lm.reads_instructions or name not in NEURAL_ONLY:
            yield name, partial(found_by, path_search(lm, pool, **options))


def path_search(
    lm: LanguageModel, pool: list[Passage], *, instructions: int = 5, ensemble: str = "max", **options: Any
) -> PathSearch:
    prompts = PromptRank(lm).settings.instructions[:instructions]
    return PathSearch(PromptRank(lm, instructions=prompts, ensemble=ensemble), pool, **options)  # type: ignore[arg-type]


def found_by(search: PathSearch, question: str) -> list[Passage]:
    return [item.passage for item in search.search(question)]


def figures(asked: Sequence[dict[str, Any]], rankings: Sequence[Sequence[Passage]]) -> list[str]:
    """R@k over all questions; AR@k over those with an answer in words that compare nothing."""
    spans = [
        (item, ranking)
        for item, ranking in zip(asked, rankings, strict=True)
        if "comparison" not in item["type"] and item["answer"].lower() not in ("yes", "no")
    ]
    recalls = [
        sum(recall_all([p.id for p in ranking], item["gold"], k) for item, ranking in zip(asked, rankings, strict=True))
        / len(asked)
        for k in (2, 10, 20)
    ]
    answered = [
        sum(
            exact_match([p.titled_text for p in ranking[:k]], [item["answer"], *item.get("answer_aliases", ())], k)
            for item, ranking in spans
        )
        / max(len(spans), 1)
        for k in (2, 10, 20)
    ]
    return [f"{value:.3f}" for value in (*recalls, *answered)]
