"""Components of both frameworks with the specification of an encoder as `embed`."""

from __future__ import annotations

import pickle

import pytest

from drillrank.likelihood.encoders import ENCODERS, Encoder
from tests.conformance.corpus import BOOK, QUERY, QUESTION, TEXTS
from tests.conformance.frameworks import LangChain, both_frameworks, hashed
from tests.langchain_ext.loading import restored


class HashingEncoder(Encoder):
    """Encoder without a library: `"hashing:<any name>"`."""

    kind, extra, library = "hashing", "dev", "json"

    def __call__(self, texts):
        return [hashed(text) for text in texts]


@pytest.fixture(autouse=True)
def _hashing_encoder(monkeypatch):
    monkeypatch.setitem(ENCODERS, "hashing", HashingEncoder)


def evidence_retriever(host, embed):
    return host.ext.D3Retriever([host.record(BOOK, "book")], embed=embed)


def view_retriever(host, embed):
    return host.ext.MultiViewRetriever(host.sections(("book", BOOK)), embed=embed)


RETRIEVERS = [evidence_retriever, view_retriever]


@both_frameworks
@pytest.mark.parametrize("make", RETRIEVERS)
def test_a_retriever_takes_a_specification_and_can_be_pickled(host, make):
    retriever = make(host, "hashing:x")
    expected = host.retrieve(make(host, HashingEncoder("y")), QUESTION)
    assert host.retrieve(retriever, QUESTION) == expected != []
    assert host.retrieve(pickle.loads(pickle.dumps(retriever)), QUESTION) == expected


@both_frameworks
def test_a_reranker_takes_a_specification_and_can_be_copied(host):
    records = [host.record(text, f"id {index}") for index, text in enumerate(TEXTS)]
    expected = host.rerank(host.ext.PromptRankRerank(embed=HashingEncoder("y")), QUERY, *records)
    reranker = host.ext.PromptRankRerank(embed="hashing:x")
    copies = [reranker, pickle.loads(pickle.dumps(reranker)), reranker.model_copy(deep=True)]
    for copy in copies:
        assert host.rerank(copy, QUERY, *records) == expected
    assert "embed" not in reranker.model_dump()


@pytest.mark.parametrize("make", RETRIEVERS)
def test_langchain_writes_a_specification_and_reads_it_again(make):
    retriever = make(LangChain, "hashing:x")
    assert retriever.model_dump()["embed"] == "hashing:x"
    again = restored(retriever)
    assert again.embed == "hashing:x"
    assert LangChain.retrieve(again, QUESTION) == LangChain.retrieve(retriever, QUESTION)
