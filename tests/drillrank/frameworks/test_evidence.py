"""Evidence retrieval over a record store that a third party writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3
from drillrank.frameworks.evidence import EvidenceRetrieval, RetrievedEvidence
from drillrank.frameworks.settings import BaseD3RetrieverSettings
from drillrank.llm import arun, run
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk, Where
from drillrank.text import terms

QUESTION = "Which fox hunts at night?"
WORDS = ["fox", "hunts", "night", "owl", "river", "sleeps", "Basel", "the"]
COLORS = {"warm": [1.0, 0.0], "cold": [0.0, 1.0], "red": [0.9, 0.1], "blue": [0.1, 0.9]}


class MemoryStore(RecordStore):
    """Store of chunks by id."""

    def __init__(self, chunks: Sequence[StoredChunk[Any]] = ()) -> None:
        self.chunks = {chunk.id: chunk for chunk in chunks}
        self.conditions: list[Where] = []

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        question_terms = set(terms(question))
        common = {id_: len(question_terms.intersection(terms(chunk.text))) for id_, chunk in self.chunks.items()}
        return [self.chunks[id_] for id_ in sorted(common, key=lambda id_: -common[id_])[:n]]

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Any]]:
        return [self.chunks[id_] for id_ in ids if id_ in self.chunks]

    def find(self, where: Where) -> list[StoredChunk[Any]]:
        self.conditions.append(where)
        return [chunk for chunk in self.chunks.values() if chunk.document[1] in where["source"]]


class ScoringStore(MemoryStore):
    """Store whose search returns scores and no vectors."""

    def __init__(self, chunks: Sequence[StoredChunk[Any]], score_by_id: Mapping[str, float], is_distance: bool) -> None:
        super().__init__(chunks)
        self.score_by_id, self.is_distance = score_by_id, is_distance

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        ids = sorted(self.score_by_id, key=self.score_by_id.__getitem__, reverse=not self.is_distance)
        return [replace(self.chunks[id_], score=self.score_by_id[id_]) for id_ in ids[:n]]


class VectorStore(MemoryStore):
    """Store with the vectors of texts about colors."""

    def question_vector(self, question: str) -> list[float] | None:
        return embed(question)


def embed(text: str) -> list[float] | None:
    return next((vector for word, vector in COLORS.items() if word in text.lower()), None)


def chunk(document: str, text: str, start: int = 0, **fields: Any) -> StoredChunk[dict[str, str]]:
    id_ = f"{document}:{start}"
    place: dict[str, Any] = {"start": start, "siblings": {"source": document}}
    return StoredChunk({"id": id_}, id_, text, ("", document), "chunk", **{**place, **fields})


def cut(document: str, text: str, size: int = 60) -> list[StoredChunk[dict[str, str]]]:
    return [chunk(document, text[start : start + size], start) for start in range(0, len(text), size)]


def make_retrieval(**settings: Any) -> EvidenceRetrieval[Any]:
    names = BaseD3RetrieverSettings(**settings)
    return EvidenceRetrieval(D3(settings=names), settings=names)


def retrieve(
    retrieval: EvidenceRetrieval[Any], question: str, store: RecordStore, top_n: int | None = None
) -> RetrievedEvidence[Any]:
    return run(retrieval.retrieve_requests(question, store, top_n=top_n))


def list_results(evidence: RetrievedEvidence[Any]) -> list[Any]:
    return [(p.id, p.text, p.score, p.start, p.end, p.chunk.record, p.metadata) for p in evidence.paragraphs]


changes = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.lists(st.sampled_from([*WORDS, "\n\n# Fox\n\n", ".\n\n"]), max_size=40)),
    min_size=1,
    max_size=8,
)


@given(changes, st.sampled_from(["passage", "paragraph"]))
def test_indexes_of_a_changing_store_equal_those_of_a_new_component(changes, unit):
    store, retrieval = MemoryStore(), make_retrieval(unit=unit, use_index_vectors=False)
    for document, words in changes:
        store.chunks = {id_: chunk for id_, chunk in store.chunks.items() if chunk.document[1] != document}
        store.chunks |= {chunk.id: chunk for chunk in cut(document, " ".join(words))}
        if any(chunk.text.strip() for chunk in store.chunks.values()):
            expected = list_results(retrieve(make_retrieval(unit=unit, use_index_vectors=False), QUESTION, store))
            assert list_results(retrieve(retrieval, QUESTION, store)) == expected


def test_a_changed_document_alone_is_indexed_again(monkeypatch):
    indexed = []
    retrieval = make_retrieval()
    index_sections = retrieval.d3.preparer.index

    def record(sections, names):
        indexed.append(sections[0].passage.text)
        return index_sections(sections, names)

    monkeypatch.setattr(retrieval.d3.preparer, "index", record)
    store = MemoryStore([chunk("a", "The fox hunts."), chunk("b", "The owl hunts.")])
    retrieve(retrieval, QUESTION, store)
    store.chunks["b:0"] = chunk("b", "The owl sleeps.")
    retrieve(retrieval, QUESTION, store)
    assert sorted(indexed) == ["The fox hunts.", "The owl hunts.", "The owl sleeps."]


def test_a_store_is_asked_once_for_all_documents():
    store = MemoryStore([chunk("a", "The fox hunts."), chunk("b", "The owl hunts.")])
    retrieve(make_retrieval(), QUESTION, store)
    assert store.conditions == [{"source": ("a", "b")}]


def test_asynchronous_retrieval_returns_the_same():
    store = MemoryStore([chunk("a", "The fox hunts."), chunk("b", "The owl hunts.")])
    retrieval = make_retrieval()
    expected = list_results(retrieve(retrieval, QUESTION, store, top_n=1))
    assert list_results(asyncio.run(arun(retrieval.retrieve_requests(QUESTION, store, top_n=1)))) == expected != []


# Vectors of the store


RED, BLUE = "The car is red today.", "The car is blue today."


def color_chunks(**fields: Any) -> list[StoredChunk[Any]]:
    return [chunk("red", RED, vector=embed(RED), **fields), chunk("blue", BLUE, vector=embed(BLUE), **fields)]


@pytest.mark.parametrize("unit", ["passage", "paragraph"])
@pytest.mark.parametrize(("question", "text"), [("Is a car warm?", RED), ("Is a car cold?", BLUE)])
def test_vectors_of_a_store_are_used(unit, question, text):
    evidence = retrieve(make_retrieval(unit=unit), question, VectorStore(color_chunks()), top_n=1)
    assert [paragraph.text for paragraph in evidence.paragraphs] == [text]
    lexical = make_retrieval(unit=unit, use_index_vectors=False)
    scores = [p.score for p in retrieve(lexical, question, VectorStore(color_chunks()), top_n=2).paragraphs]
    assert scores[0] == scores[1]


def test_an_encoder_replaces_the_vectors_of_a_store():
    settings = BaseD3RetrieverSettings()
    d3 = D3(embed=lambda texts: [[float("blue" in text or "warm" in text), 1.0] for text in texts], settings=settings)
    retrieval = EvidenceRetrieval(d3, settings=settings)
    evidence = retrieve(retrieval, "Is a car warm?", VectorStore(color_chunks()), top_n=1)
    assert evidence.paragraphs[0].text == BLUE


def test_the_cosine_of_a_passage_is_the_highest_among_its_records():
    texts = ["It is blue. ", "It is red. ", "It is green."]
    starts = [0, 12, 23]
    chunks = [chunk("a", text, start, vector=embed(text)) for text, start in zip(texts, starts, strict=True)]
    chunks.append(chunk("b", "It is blue.", vector=embed("blue")))
    retrieval = EvidenceRetrieval(D3(), explain=True)
    evidence = retrieve(retrieval, "Is it warm?", VectorStore(chunks), top_n=2)
    cosine_terms = [
        {term.name: term.value for term in p.explanation.terms}["cosine"] for p in evidence.paragraphs if p.explanation
    ]
    assert cosine_terms == pytest.approx([40 * 0.9 / 0.82**0.5, 40 * 0.1 / 0.82**0.5])


@pytest.mark.parametrize(("is_distance", "is_used"), [(False, True), (True, False)])
def test_scores_of_a_search_count_as_cosines_if_they_fall(is_distance, is_used):
    chunks = [chunk("a", "One car."), chunk("b", "One car more.")]
    store = ScoringStore(chunks, {"a:0": 0.2, "b:0": 0.8}, is_distance)
    evidence = retrieve(EvidenceRetrieval(D3(), explain=True), "A car?", store, top_n=2)
    names = {term.name for p in evidence.paragraphs if p.explanation for term in p.explanation.terms}
    assert ("cosine" in names) is is_used
    assert evidence.paragraphs[0].document == ("b" if is_used else "a")


def test_vectors_of_another_length_are_ignored():
    chunks = [replace(one, vector=[1.0, 2.0, 3.0]) for one in color_chunks()]
    lexical = retrieve(make_retrieval(use_index_vectors=False), "Is a car warm?", VectorStore(chunks))
    assert list_results(retrieve(make_retrieval(), "Is a car warm?", VectorStore(chunks))) == list_results(lexical)


def test_the_papers_preset_uses_no_vectors_unless_it_is_told_to():
    assert not BaseD3RetrieverSettings(preset="paper").uses_index_vectors
    assert BaseD3RetrieverSettings(preset="paper", use_index_vectors=True).uses_index_vectors
