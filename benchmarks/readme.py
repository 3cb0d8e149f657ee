"""The tables of README.md, as Markdown: everything as it comes, beside BM25, MiniLM and the fusion of both.

`make figures` prints what differs from README.md. MiniLM is all-MiniLM-L6-v2, the fusion is by reciprocal ranks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from drillrank import D3, UPR, PathSearch, PromptRank, load_language_model
from drillrank.evaluation.metrics import evidence_f1, recall_all
from drillrank.likelihood.encoder import SentenceVectors

from .data import drawn, multihop_pool, read, rerank_pool
from .first_stage import first_stages, hits
from .long_documents import bm25, dense, papers
from .measure import mean_of
from .minilm import Embed, minilm, minilm_folder

SQUAD_QUESTIONS = 1500
DEPTH, CUTS = 50, (2, 10)
PASSAGES = ("data", "first stage", "alone", "`UPRRerank()`", "`prior=None`", '`prior="cosine"`', '`model="st:..."`')
CHAINS = ("data", "BM25", "MiniLM", "fusion", "`PromptRankRetriever`", "time per question (ms)")
PARAGRAPHS = ("method", "evidence F1", "paragraphs per question, mean")
DATA = {"squad": "SQuAD", "nq": "NQ", "hotpotqa": "HotpotQA", "2wiki": "2Wiki", "musique": "MuSiQue"}


def main(questions: int | None = None, vectors: str | None = None) -> None:
    """Print the three tables; `vectors` is a folder that keeps MiniLM's for the next run."""
    embed, kept = minilm(), Path(vectors) if vectors else None
    tables = (
        (PASSAGES, passages(questions, embed, kept)),
        (CHAINS, chains(questions, embed, kept)),
        (PARAGRAPHS, paragraphs(questions, embed)),
    )
    for head, rows in tables:
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for row in rows:
            print("| " + " | ".join(row) + " |", flush=True)
        print()


@contextmanager
def vectors_of(dataset: str, embed: Embed, kept: Path | None) -> Iterator[SentenceVectors]:
    """MiniLM's vectors, kept for the next run where a folder is named."""
    with TemporaryDirectory() as temporary:
        yield SentenceVectors(embed, (kept or Path(temporary)) / dataset)


def passages(questions: int | None, embed: Embed, kept: Path | None) -> Iterator[list[str]]:
    """Share of questions with the gold passage first of 50, the rankers as they come."""
    for dataset in ("squad", "nq"):
        asked, pool = drawn(dataset, questions or SQUAD_QUESTIONS), rerank_pool(dataset)
        with vectors_of(dataset, embed, kept) as known:
            meaning = load_language_model(f"st:{minilm_folder()}")
            for stage, found in first_stages(asked, pool, known).items():
                lists = [[passage.id for passage in passages[:DEPTH]] for passages, _ in found]
                shares = [lists]
                priors = {"retrieval": "unigram", None: "unigram", "cosine": "unigram", "meaning": meaning}
                for prior, model in priors.items():
                    if prior == "cosine" and stage != "MiniLM":
                        shares.append([])
                        continue
                    ranker = UPR(model, prior="retrieval" if prior == "meaning" else prior)
                    ranked = ranker.rank_many(
                        [item["question"] for item in asked],
                        [passages[:DEPTH] for passages, _ in found],
                        scores=[scores[:DEPTH] for _, scores in found] if ranker.prior else None,
                    )
                    shares.append([[item.passage.id for item in ranking] for ranking in ranked])
                cells = [f"{hits(one, asked)[0].mean():.3f}" if one else "" for one in shares]
                yield [f"{DATA[dataset]}: {len(asked):,} questions, {len(pool):,} passages", stage, *cells]


def chains(questions: int | None, embed: Embed, kept: Path | None) -> Iterator[list[str]]:
    """R@2 and R@10: the share of questions with all gold passages among the first so many."""
    for dataset in ("hotpotqa", "2wiki", "musique"):
        asked, pool = read(f"multihop/{dataset}")[:questions], multihop_pool(dataset)
        search = PathSearch(PromptRank(), pool)
        with vectors_of(dataset, embed, kept) as known:
            found = first_stages(asked, pool, known)
        started = time.process_time()
        paths = [[item.passage.id for item in search.search(item["question"], 10)] for item in asked]
        milliseconds = 1000 * (time.process_time() - started) / len(asked)
        rankings = [[[p.id for p in passages] for passages, _ in lists] for lists in found.values()]
        shares = [" / ".join(f"{mean_of(recall_all, ids, asked, k):.2f}" for k in CUTS) for ids in (*rankings, paths)]
        yield [f"{DATA[dataset]}: {len(asked):,} questions, {len(pool):,} passages", *shares, f"{milliseconds:.0f}"]


def paragraphs(questions: int | None, embed: Embed) -> Iterator[list[str]]:
    """Yield evidence F1 and the number of paragraphs on QASPER's papers, for each method."""
    without_encoder, with_encoder = (D3(embed=encoder, settings={"unit": "paragraph"}) for encoder in (None, embed))
    prepared = [papers("qasper", d3, questions) for d3 in (without_encoder, with_encoder)]
    f1s_by_method: dict[str, list[float]] = {}
    sizes_by_method: dict[str, list[int]] = {}
    for lexical, both in zip(*prepared, strict=True):
        for asked in both.questions:
            ids_by_method = {
                "BM25": bm25(asked.text, both.ready)[:3],
                "MiniLM": dense(asked.text, both.ready)[:3],
                "`D3Retriever`": [item.passage.id for item in without_encoder.retrieve(asked.text, lexical.ready)],
                "`D3Retriever` with `embed=` MiniLM": [
                    item.passage.id for item in with_encoder.retrieve(asked.text, both.ready)
                ],
            }
            for method, ids in ids_by_method.items():
                f1s_by_method.setdefault(method, []).append(evidence_f1(ids, asked.annotations))
                sizes_by_method.setdefault(method, []).append(len(ids))
    for method, f1s in f1s_by_method.items():
        yield [method, f"{mean(f1s):.3f}", f"{mean(sizes_by_method[method]):.1f}"]
