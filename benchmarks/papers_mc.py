"""MC-indexing, tables 2, 3, 5, 6 and 9 on QASPER: five retrievers, views by statistics and by two real models.

A cell is recall of the evidence at k = 1.5, 3, 5 and 10 as the data's README defines it; the union takes the first 1,
2, 3 and 7 of each view, as the paper does. `--questions` says how many papers; by default the sample of 60 for which
the README has MiniLM's figures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import UPR
from drillrank.llm import run
from drillrank.views import VIEWS, Chunk, Chunker, View, ViewWriter, section_chunks

from .kept import MODELS, KeptModel, KeptWriter, named
from .measure import gain
from .minilm import INSTALLED, Embed, minilm, minilm_folder
from .static_embeddings import distilled
from .view_arrangements import ARRANGEMENTS, WHOLE, Chunks, Paper, load, ours
from .views import Dense, Retriever, Scores, asked, bm25, chunking_errors, first_chunks, tfidf, union

PAPERS = 60
WRITTEN_TOKENS = {"keyword extractor": 64, "summarization": 128}
READ_TOKENS = 600  # of a section, by the likelihood of the question
UNITED: dict[str, tuple[View, ...]] = {
    "raw": ("raw",),
    "keywords": ("keywords",),
    "summary": ("summary",),
    "three views": VIEWS,
    "without raw": ("keywords", "summary"),
    "without keywords": ("raw", "summary"),
    "without summaries": ("raw", "keywords"),
}


class Likely:
    """The mean log-likelihood of the question, given a text: UPR as a first stage."""

    def __init__(self, lm: KeptModel) -> None:
        self._upr = UPR(lm, max_passage_tokens=READ_TOKENS)

    def __call__(self, texts: Sequence[str], queries: Sequence[str]) -> Scores:
        return np.array([[found.mean for found in self._upr.likelihoods(query, texts)] for query in queries])


def _encoder(folder: Path) -> Embed:
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder)
    return lambda texts: model.encode([*texts, ""])[:-1]  # it refuses an empty list


def sample(count: int) -> list[Paper]:
    """The papers whose identifiers have the smallest SHA-1."""
    return sorted(load("longdoc/qasper"), key=lambda paper: hashlib.sha1(paper.id.encode()).hexdigest())[:count]


def main(model: str = ",".join(MODELS), questions: int | None = None) -> None:
    models = named(model)
    papers = sample(PAPERS if questions is None else questions)
    retrievers: dict[str, Retriever] = {"BM25": bm25, "TF-IDF": tfidf}
    if INSTALLED:
        with TemporaryDirectory() as temporary:
            distilled(minilm_folder(), Path(temporary))
            retrievers |= {"MiniLM": Dense(minilm()), "m2v": Dense(_encoder(Path(temporary)))}
    by_likelihood = {f"P(q | text), {name}": Likely(KeptModel(name)) for name in models[:1]}
    console = Console(width=220)
    count = f"{sum(len(paper.questions) for paper in papers)} questions, {len(papers)} papers"
    held = {f"fixed {size}": [ARRANGEMENTS[f"fixed {size}"](paper) for paper in papers] for size in (100, 200, 300)}
    cut = [WHOLE(paper.document) for paper in papers]
    held |= {name: [arranged(*one, views) for one in zip(papers, cut, strict=True)] for name, views in UNITED.items()}
    table = Table("found by", *retrievers, *by_likelihood, "mean", title=f"MC-indexing, tables 2, 3 and 9: {count}")
    means = {}
    for name, chunks in held.items():
        retrieved = [asked(papers, chunks, one) for one in (*retrievers.values(), *by_likelihood.values())]
        recalls = [union(one)[0].mean(axis=1) for one in retrieved]
        means[name] = np.mean(recalls, axis=0)
        table.add_row(name, *map(_cell, recalls), _cell(means[name]))
    console.print(table)
    more = " ".join(f"{100 * gain:+.1f} %" for gain in means["three views"] / means["fixed 300"] - 1)
    console.print(
        f"Three views over fixed 300 at k = 1.5, 3, 5, 10: {more} (paper, eight retrievers: +42.8 +30.0 +23.9 +16.3)"
    )
    by_writer = Table("written by", "views", *retrievers, "mean", title=f"Table 5: who writes the views, {count}")
    for writer in (None, *models):
        texts = None if writer is None else written(writer, cut)
        for name in ("keywords", "summary", "three views", "without raw"):
            chunks = [
                arranged(paper, own, UNITED[name], texts and texts[place])
                for place, (paper, own) in enumerate(zip(papers, cut, strict=True))
            ]
            recalls = [union(asked(papers, chunks, one))[0].mean(axis=1) for one in retrievers.values()]
            label = writer or "sentences and statistics"
            by_writer.add_row(label, name, *map(_cell, recalls), _cell(np.mean(recalls, axis=0)))
    console.print(by_writer)
    console.print(*compare_with_fixed(papers, {"BM25": bm25, "TF-IDF": tfidf}))
    print_chunking_errors(papers)


def print_chunking_errors(papers: Sequence[Paper]) -> None:
    """Print table 6 with the paper's columns: fixed chunks, fixed chunks cut at sections, and sections."""
    print(
        "Table 6; the paper's FLC, FLC-content: 66.4 to 75.3, 50.8 to 60.9 % (100 words); 41.4 to 46.6, 23.2 to 28.7 %"
    )
    print("(200); 26.4 to 32.2, 13.5 to 15.0 % (300); sections 0")
    sizes = {f"fixed {n} words, cut at sections": n for n in (100, 200, 300)}
    chunkers = {name: Chunker("content_aware_fixed", n, None, tokens=count_words) for name, n in sizes.items()}
    chunking_errors(papers, {name: ours(chunker) for name, chunker in chunkers.items()})


def compare_with_fixed(papers: Sequence[Paper], retrievers: Mapping[str, Retriever]) -> list[Table]:
    """Return tables 4 and 8: fixed chunks of 300 and 200 words, cut at sections, with three views, and both.

    A union returns more chunks than k. So the last columns compare it with raw text of as many chunks of the same kind.
    """
    tables = []
    for size in (300, 200):
        kinds = {
            f"fixed {size} words": (Chunker("fixed", size, None, tokens=count_words), 1),
            "… cut at sections": (Chunker("content_aware_fixed", size, None, tokens=count_words), 1),
            "… three views": (Chunker("fixed", size, None, tokens=count_words), 3),
            "… cut at sections, three views": (Chunker("content_aware_fixed", size, None, tokens=count_words), 3),
            "sections, three views": (WHOLE, 3),
        }
        table = Table(
            "chunks", "recall at k = 1.5, 3, 5, 10", "chunks returned", "minus fixed, 95 %, each k",
            "three views minus raw text of as many chunks, 95 %, each k",
            title=f"MC-indexing, table {4 if size == 300 else 8}; mean of {', '.join(retrievers)}",
        )  # fmt: skip
        base: np.ndarray | None = None
        for name, (chunker, n_views) in kinds.items():
            chunks = [ours(chunker, VIEWS)(paper) for paper in papers]
            recalls, counts, same = [], [], []
            for retriever in retrievers.values():
                questions = asked(papers, chunks, retriever)
                raw = [({"raw": rankings["raw"]}, covered, own) for rankings, covered, own in questions]
                of_retriever, of_counts = union(questions if n_views > 1 else raw)
                recalls.append(of_retriever)
                counts.append(of_counts)
                same.append([
                    [sum(covered[i] for i in first_chunks(rankings["raw"], count))
                     for (rankings, covered, _), count in zip(raw, at_k, strict=True)] for at_k in of_counts
                ])  # fmt: skip
            mean = np.mean(recalls, axis=0)  # [n_k, n_questions]
            base = mean if base is None else base
            table.add_row(
                name, _cell(mean.mean(axis=1)), " ".join(f"{n:.2f}" for n in np.mean(counts, axis=(0, 2))),
                "" if mean is base else "; ".join(gain(one) for one in mean - base),
                "" if n_views == 1 else "; ".join(gain(one) for one in mean - np.mean(same, axis=0)),
            )  # fmt: skip
        tables.append(table)
    return tables


def count_words(text: str) -> int:
    """Return the number of words between white space, the paper's unit."""
    return len(text.split())


def written(name: str, cut: Sequence[list[Chunk]]) -> list[Mapping[View, list[str]]]:
    """Keywords and summaries of each paper's chunks, by a model."""
    writers = {kind: KeptWriter(name, tokens) for kind, tokens in WRITTEN_TOKENS.items()}

    def llm(prompt: str) -> str:
        return next(writer for kind, writer in writers.items() if kind in prompt)(prompt)

    found: list[Mapping[View, list[str]]] = run(ViewWriter().write(list(cut)), llm, workers=256)
    return found


def arranged(
    paper: Paper, cut: list[Chunk], views: tuple[View, ...], texts: Mapping[View, list[str]] | None = None
) -> Chunks:
    """The sections of a paper, found through some of their views."""
    made = section_chunks(paper.document, paper.id, VIEWS, chunker=lambda _: cut, texts=texts)
    raw = [chunk for chunk in made if chunk.view == "raw"]
    place = {chunk.id: position for position, chunk in enumerate(raw)}
    found = {view: [(place[c.section_id], c.indexed_text) for c in made if c.view == view] for view in views}
    return Chunks([(chunk.start, chunk.end) for chunk in raw], [len(chunk.text.split()) for chunk in raw], found)


def _cell(recalls: np.ndarray) -> str:
    return " ".join(f"{recall:.3f}"[1:] for recall in recalls)
