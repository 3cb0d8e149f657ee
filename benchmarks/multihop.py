"""HotpotQA, 2Wiki and MuSiQue in open pools: path search, what each of its steps adds, and simpler rankings.

`--model hf:...` scores the paths with any language model, `--model st:...` with words and meaning (`--vectors` keeps
the vectors for the next run); simpler rankings stay the same.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, PathSearch, PromptRank, load_language_model
from drillrank.evaluation.metrics import exact_match, recall_all
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import LanguageModel
from drillrank.multihop.links import RetrievedLinks, passage_links
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.multihop.prior import PathPrior
from drillrank.vectors import BM25Index, TfidfIndex, top

from .data import multihop_pool, read
from .minilm import INSTALLED, minilm

DATASETS = ("hotpotqa", "2wiki", "musique")
FIRST_STAGE = 100
SHARES, CUTS, ANSWERS = (2, 5), (2, 10, 20), (2, 10, 20)
NOBODY_NAMED = PathPrior(named=1e-12)

TITLES: dict[str, Any] = {"links": passage_links}
PAPER: dict[str, Any] = TITLES | {"preset": "paper"}
TWO_HOPS: dict[str, Any] = TITLES | {"hops": 2}
NAMES = [passage_links, TitleMentions(), NameMentions()]
SEARCHES: dict[str, dict[str, Any]] = {
    "path search as in the paper (K1 = 5, L = 3)": PAPER,
    "  K1 = 10, L = 8": TWO_HOPS | {"pairs": 0, "link_prior": None},
    "  + pairs, no prior": TWO_HOPS | {"link_prior": None},
    "  + prior, blind to names, no pairs": TWO_HOPS | {"pairs": 0, "link_prior": NOBODY_NAMED},
    "  + prior, no pairs": TWO_HOPS | {"pairs": 0},
    "  + prior, blind to names, + pairs": TWO_HOPS | {"link_prior": NOBODY_NAMED},
    "  + prior + pairs": TWO_HOPS,
    "path search (default)": {},
    "  K1 = 5, L = 3": {"beam": 5, "branch": 3},
    "  one hop": {"hops": 1},
    "  three hops, needed or not": {"hops": 3},
    "  four hops": {"hops": 4},
    "  first instruction only": {"instructions": 1},
    "  mean over instructions": {"ensemble": "mean"},
    "  + second retrieval": {"links": [*NAMES, RetrievedLinks()]},
    "  titles alone": TITLES,
    "  names alone": {"links": NameMentions()},
}
NEURAL_ONLY = ("  first instruction only", "  mean over instructions")  # to a unigram model, instructions say nothing


def main(model: str = "unigram", questions: int | None = None, vectors: str | None = None) -> None:
    """Print recall, answer recall, time and size of every method."""
    embed = minilm() if INSTALLED else None
    console = Console(width=120)
    for dataset in DATASETS:
        directory = Path(vectors) / dataset if vectors and model.startswith("st:") else None
        lm = load_language_model(model, **({"directory": directory} if directory else {}))
        asked = read(f"multihop/{dataset}")[:questions]
        pool = multihop_pool(dataset)
        table = Table(
            "method", *(f"recall@{k}" for k in SHARES), *(f"R@{k}" for k in CUTS), *(f"AR@{k}" for k in ANSWERS), "ms",
            title=f"{dataset}: {len(asked)} questions, {len(pool):,} passages; paths scored by {lm.spec}",
        )  # fmt: skip
        for name, ranking in methods(lm, pool, asked, embed):
            started = time.perf_counter()
            rankings = [ranking(item["question"]) for item in asked]
            seconds = time.perf_counter() - started
            table.add_row(name, *figures(asked, rankings), f"{1000 * seconds / len(asked):.1f}")
        console.print(table, f"The index of path search: {bytes_a_passage(lm, pool, directory):,.0f} bytes a passage.")


def bytes_a_passage(lm: LanguageModel, pool: list[Passage], vectors: Path | None) -> float:
    """What a search keeps beside the passages themselves, as pickle counts it, and the files of its vectors."""
    search = path_search(lm.fitted([passage.titled_text for passage in pool]), pool)
    held = len(pickle.dumps((search, pool))) - len(pickle.dumps(pool))
    kept = sum(file.stat().st_size for file in vectors.glob("*")) if vectors else 0
    return (held + kept) / len(pool)


def methods(
    lm: LanguageModel, pool: list[Passage], asked: list[dict[str, Any]], embed: Callable[..., Any] | None
) -> Any:
    """Names and functions from a question to passages, best first; built one after the other."""
    texts = [passage.titled_text for passage in pool]
    tfidf, bm25 = TfidfIndex(texts), BM25Index(texts)
    upr = UPR(lm.fitted(texts))

    def best(index: BM25Index | TfidfIndex, question: str) -> list[Passage]:
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
    prompts = PromptRank(lm).instructions[:instructions]
    prompt_rank = PromptRank(lm, instructions=prompts, ensemble=ensemble)  # type: ignore[arg-type]
    return PathSearch(prompt_rank, pool, **keyword_arguments(PathSearch, options))


def found_by(search: PathSearch, question: str) -> list[Passage]:
    return [item.passage for item in search.search(question)]


def recall_share(ranking: Sequence[str], gold: Sequence[str], k: int) -> float:
    return len(set(ranking[:k]) & set(gold)) / len(set(gold))


def figures(asked: Sequence[dict[str, Any]], rankings: Sequence[Sequence[Passage]]) -> list[str]:
    """recall@k, the mean share of gold; R@k, the share of questions with all of it; AR@k over answers in words."""
    spans = [
        (item, ranking)
        for item, ranking in zip(asked, rankings, strict=True)
        if "comparison" not in item["type"] and item["answer"].lower() not in ("yes", "no")
    ]
    pairs = [([p.id for p in ranking], item["gold"]) for item, ranking in zip(asked, rankings, strict=True)]
    shares = [sum(recall_share(ids, gold, k) for ids, gold in pairs) / len(asked) for k in SHARES]
    recalls = [sum(recall_all(ids, gold, k) for ids, gold in pairs) / len(asked) for k in CUTS]
    answered = [
        sum(
            exact_match([p.titled_text for p in ranking[:k]], [item["answer"], *item.get("answer_aliases", ())], k)
            for item, ranking in spans
        )
        / max(len(spans), 1)
        for k in ANSWERS
    ]
    return [f"{value:.3f}" for value in (*shares, *recalls, *answered)]
