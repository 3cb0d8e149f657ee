"""A question is embedded once, however many views it is looked up in, synchronously or not."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import QueryBundle

from drillrank.views import VIEWS
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks, hashed


@both_frameworks
@pytest.mark.parametrize("where", ["store", "a retriever for each view", "memory"])
def test_one_embedding_a_question(host, where):
    model, records = host.embedding(), host.sections(("book", BOOK))
    index = host.index(*records, embedding=model)
    if where == "memory":
        retriever = host.ext.MultiViewRetriever(records, embed=model)
    elif where == "store" or host is LangChain:
        retriever = host.ext.MultiViewRetriever(source=index)
    else:
        retriever = host.ext.MultiViewRetriever(source={view: host.over(index) for view in VIEWS})
    found = host.retrieve(retriever, QUESTION)
    assert model.questions == [QUESTION]
    assert host.ask(retriever, QUESTION, asynchronous=True) == found != []
    assert model.questions == [QUESTION] * 2


def test_a_vector_that_the_question_brings_is_kept():
    model = LlamaIndex.embedding()
    index = LlamaIndex.index(*LlamaIndex.sections(("book", BOOK)), embedding=model)
    retriever = LlamaIndex.ext.MultiViewRetriever(source=index)
    asked = QueryBundle(QUESTION, embedding=hashed(QUESTION))
    found = [retriever.retrieve(asked), asyncio.run(retriever.aretrieve(asked))]
    assert [LlamaIndex._found(hits) for hits in found] == [LlamaIndex.retrieve(retriever, QUESTION)] * 2
    assert model.questions == [QUESTION]


def test_a_bundle_is_not_changed_and_each_model_is_asked_for_a_vector_of_its_own():
    records, models = LlamaIndex.sections(("book", BOOK)), (LlamaIndex.embedding(), LlamaIndex.embedding())
    sources = (LlamaIndex.over(LlamaIndex.index(*records, embedding=model), 99) for model in models)
    retriever = LlamaIndex.ext.MultiViewRetriever(source=dict(zip(("raw", "summary"), sources, strict=True)))
    query = QueryBundle(QUESTION)
    retriever.retrieve(query)
    asyncio.run(retriever.aretrieve(query))
    assert query == QueryBundle(QUESTION)
    assert [model.questions for model in models] == [[QUESTION] * 2] * 2


class TextStore(InMemoryVectorStore):
    """Embeds where it stores: a vector is of no use to it."""

    @property
    def embeddings(self) -> None:
        return None


def test_a_store_without_an_embedding_model_is_asked_in_words():
    store = LangChain.index(*LangChain.sections(("book", BOOK)))
    own = TextStore(store.embedding)
    own.store = store.store
    found = LangChain.both(LangChain.ext.MultiViewRetriever(source=own), QUESTION)
    assert found == LangChain.retrieve(LangChain.ext.MultiViewRetriever(source=store), QUESTION) != []
