"""D3 over an index uses the vectors in it, and embeds only the question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import matches
from langchain_ext._records import read_distinct_documents
from llama_index_ext._records import read_nodes
from tests.conformance.frameworks import LlamaIndex, both_frameworks

RED, BLUE = "# One\n\nIt is red here.", "# Two\n\nIt is blue here."


def color_of_text(text):
    return [float("red" in text) + 0.1, float("blue" in text) + 0.1]


def color_of_question(text):
    return [float("warm" in text), float("cold" in text)]


def filled(host, *more):
    model = host.embedding(color_of_text, color_of_question)
    records = host.sections(("red", RED), ("blue", BLUE), *more, views=["raw"])
    index = host.index(*records, embedding=model)
    model.texts.clear()
    return index, model


def drill(host, index, **fields):
    return host.ext.D3Retriever(source=index, top_n=1, **fields)


@both_frameworks
@pytest.mark.parametrize(("question", "color"), [("A warm one?", "red"), ("A cold one?", "blue")])
def test_an_index_is_hybrid_and_the_question_alone_is_embedded(host, question, color):
    index, model = filled(host)
    [found] = host.retrieve(drill(host, index), question)
    assert color in found.text
    assert (model.questions, model.texts) == ([question], [])
    assert host.ask(drill(host, index), question, asynchronous=True) == [found]
    assert model.questions == [question] * 2


@both_frameworks
def test_vectors_of_an_index_can_be_ignored(host):
    index, _ = filled(host)
    [lexical] = host.retrieve(drill(host, index, settings={"use_index_vectors": False}), "A warm one?")
    [hybrid] = host.retrieve(drill(host, index), "A warm one?")
    assert lexical.score < 0 < hybrid.score


@both_frameworks
def test_an_encoder_that_is_given_replaces_the_vectors_of_an_index(host):
    index, _ = filled(host)
    reverse = lambda texts: [[float("blue" in text or "warm" in text), 1.0] for text in texts]  # noqa: E731
    [found] = host.retrieve(drill(host, index, embed=reverse), "A warm one?")
    assert "blue" in found.text


@both_frameworks
def test_a_vector_that_changes_counts_with_the_next_question(host):
    index, _ = filled(host)
    retriever = drill(host, index)
    assert "red" in host.retrieve(retriever, "A warm one?")[0].text
    if host is LlamaIndex:
        vectors = index.vector_store.data.embedding_dict
        vectors.update(zip(vectors, reversed(list(vectors.values())), strict=True))
    else:
        first, second = index.store.values()
        first["vector"], second["vector"] = second["vector"], first["vector"]
    assert "blue" in host.retrieve(retriever, "A warm one?")[0].text


@both_frameworks
def test_hidden_vectors_do_not_change_a_score(host):
    model = host.embedding(color_of_text, color_of_question)
    visible = host.split([host.document(RED, "red", tenant="a"), host.document(BLUE, "blue", tenant="a")])
    hidden = host.split([host.document("# Three\n\nIt is red, red, red here.", "three", tenant="b")])
    alone, together = host.index(*visible, embedding=model), host.index(*visible, *hidden, embedding=model)
    mine = host.filters(tenant="a")
    for question in ("A warm one?", "A cold one?"):
        expected = host.retrieve(drill(host, alone, filters=mine), question)
        assert host.retrieve(drill(host, together, filters=mine), question) == expected != []


class ColorStore(RecordStore):
    """Store of a third party with records of a framework, and with their vectors."""

    def __init__(self, chunks):
        self.chunks = [replace(chunk, vector=color_of_text(chunk.text)) for chunk in chunks]

    def question_vector(self, question):
        return color_of_question(question)

    def search(self, question, n, where=None):
        return self.chunks[:n]

    def get(self, ids):
        return [chunk for chunk in self.chunks if chunk.id in ids]

    def find(self, where):
        return [chunk for chunk in self.chunks if matches(chunk.record.metadata, where)]


@both_frameworks
@pytest.mark.parametrize(("question", "color"), [("A warm one?", "red"), ("A cold one?", "blue")])
def test_a_record_store_of_a_third_party_is_a_source(host, question, color):
    read = read_nodes if host is LlamaIndex else read_distinct_documents
    store = ColorStore(read(host.split([host.document(RED, "red"), host.document(BLUE, "blue")])))
    [found] = host.both(drill(host, store), question)
    assert color in found.text
