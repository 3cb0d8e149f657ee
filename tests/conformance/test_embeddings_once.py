"""A question is embedded once, however many views it is looked up in, synchronously or not."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import QueryBundle
from pydantic import PrivateAttr

import langchain_ext
import llama_index_ext
from tests.conformance.corpus import BOOK, QUESTION


def vector(text: str) -> list[float]:
    return [float(text.count(letter)) + 1 for letter in "aeiou"]


class Model(BaseEmbedding):
    _asked: list[str] = PrivateAttr(default_factory=list)

    def _get_query_embedding(self, query):
        self._asked.append(query)
        return vector(query)

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text):
        return vector(text)


class AsyncModel(Model):
    async def _aget_query_embedding(self, query):
        await asyncio.sleep(0)
        return self._get_query_embedding(query)


class LangChainModel(Embeddings):
    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_query(self, text):
        self.asked.append(text)
        return vector(text)

    def embed_documents(self, texts):
        return list(map(vector, texts))


class AsyncLangChainModel(LangChainModel):
    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return self.embed_query(text)


class TextStore(InMemoryVectorStore):
    """Embeds where it stores: a vector is of no use to it."""

    @property
    def embeddings(self) -> None:
        return None


@pytest.mark.parametrize("kind", [Model, AsyncModel])
@pytest.mark.parametrize("by_view", [False, True])
def test_llama_index(kind, by_view):
    model = kind()
    nodes = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents([Document(text=BOOK, id_="book")])
    index = VectorStoreIndex(nodes, embed_model=model)
    source = {view: index.as_retriever() for view in ("raw", "keywords", "summary")} if by_view else index
    retriever = llama_index_ext.MultiViewRetriever(source=source)
    query = QueryBundle(QUESTION)
    found = retriever.retrieve(query)
    assert model._asked == [QUESTION]
    assert query == QueryBundle(QUESTION)  # is not changed
    again = asyncio.run(retriever.aretrieve(query))
    assert model._asked == [QUESTION] * 2
    assert found
    assert [(hit.node.node_id, hit.score) for hit in again] == [(hit.node.node_id, hit.score) for hit in found]


def test_each_llama_index_embedding_model_is_asked_for_a_vector_of_its_own():
    nodes = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents([Document(text=BOOK, id_="book")])
    models = Model(), AsyncModel()
    retrievers = [VectorStoreIndex(nodes, embed_model=model).as_retriever() for model in models]
    retriever = llama_index_ext.MultiViewRetriever(source=dict(zip(("raw", "summary"), retrievers, strict=True)))
    retriever.retrieve(QUESTION)
    asyncio.run(retriever.aretrieve(QUESTION))
    assert [model._asked for model in models] == [[QUESTION] * 2] * 2


@pytest.mark.parametrize("kind", [LangChainModel, AsyncLangChainModel])
def test_langchain(kind):
    model = kind()
    store = InMemoryVectorStore(model)
    store.add_documents(langchain_ext.MultiViewTextSplitter().split_documents([LangChainDocument(page_content=BOOK)]))
    retriever = langchain_ext.MultiViewRetriever(source=store)
    found = retriever.invoke(QUESTION)
    assert model.asked == [QUESTION]
    assert asyncio.run(retriever.ainvoke(QUESTION)) == found
    assert model.asked == [QUESTION] * 2

    own = TextStore(model)
    own.store = store.store
    retriever = langchain_ext.MultiViewRetriever(source=own)
    assert retriever.invoke(QUESTION) == found == asyncio.run(retriever.ainvoke(QUESTION))


@pytest.mark.parametrize("host", ["llama_index", "langchain"])
def test_in_memory_the_views_share_a_vector(host):
    if host == "llama_index":
        model = Model()
        nodes = llama_index_ext.MultiViewNodeParser()([Document(text=BOOK, id_="book")])
        found = llama_index_ext.MultiViewRetriever(nodes, embed=model).retrieve(QUESTION)
        asked = model._asked
    else:
        langchain_model = LangChainModel()
        pieces = langchain_ext.MultiViewTextSplitter().split_documents([LangChainDocument(page_content=BOOK)])
        found = langchain_ext.MultiViewRetriever(documents=pieces, embed=langchain_model).invoke(QUESTION)
        asked = langchain_model.asked
    assert found
    assert asked == [QUESTION]
