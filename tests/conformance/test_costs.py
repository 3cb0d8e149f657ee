"""What a question costs a store: one embedding, and so many calls, sync and async, in both hosts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document as Page
from langchain_core.indexing import InMemoryRecordManager, index
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from pydantic import PrivateAttr

import langchain_ext
import llama_index_ext
from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.building import build
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore

DOCUMENTS = 4
TEXTS = [f"{BOOK}\n\n# Volume {number}\n\nIt is number {number}.\n" for number in range(DOCUMENTS + 2)]
Ask = Callable[[bool], tuple[list[Any], Counter[str]]]
"""Synchronously or not: what is found, and what was asked for it."""


class Embeddings(langchain_leaks.Words):
    """Counts questions."""

    def __init__(self) -> None:
        self.questions = 0

    def embed_query(self, text: str) -> list[float]:
        self.questions += 1
        return super().embed_query(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [langchain_leaks.Words.embed_query(self, text) for text in texts]


class Model(llama_index_leaks.Words):
    """Counts questions."""

    _questions: int = PrivateAttr(default=0)

    def _get_query_embedding(self, query: str) -> list[float]:
        self._questions += 1
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def in_langchain(name: str, by_index: bool, **fields: Any) -> Ask:
    embeddings = Embeddings()
    store = ServerStore(embeddings)
    pages = [Page(text, id=str(n), metadata={"source": f"{n}.md"}) for n, text in enumerate(TEXTS)]
    pieces = langchain_ext.MultiViewTextSplitter().split_documents(pages)
    if by_index:
        records = InMemoryRecordManager("books")
        index(pieces, records, store, cleanup="scoped_full", source_id_key="source", key_encoder="sha256")
    else:
        store.add_documents(pieces)
    component = build(getattr(langchain_ext, name), source=store, **fields)

    def ask(asynchronous: bool) -> tuple[list[Any], Counter[str]]:
        store.asked.clear()
        embeddings.questions = 0
        found = asyncio.run(component.ainvoke(QUESTION)) if asynchronous else component.invoke(QUESTION)
        return found, store.asked + Counter(questions=embeddings.questions)

    return ask


def in_llama_index(name: str, parser: Any, **fields: Any) -> Ask:
    model, store = Model(), TextStore()
    nodes = parser([Document(text=text, id_=str(n)) for n, text in enumerate(TEXTS)])
    over = VectorStoreIndex(nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=model)
    component = build(getattr(llama_index_ext, name), source=over, **fields)

    def ask(asynchronous: bool) -> tuple[list[Any], Counter[str]]:
        store.asked.clear()
        model._questions = 0
        found = asyncio.run(component.aretrieve(QUESTION)) if asynchronous else component.retrieve(QUESTION)
        asked = {"search": store.asked["search"], "records": store.asked["nodes"], "questions": model._questions}
        return found, Counter(asked)

    return ask


VIEWS = "MultiViewRetriever"
OVER_VIEWS = {
    "langchain": lambda **fields: in_langchain(VIEWS, by_index=False, **fields),
    "langchain, index()": lambda **fields: in_langchain(VIEWS, by_index=True, **fields),
    "llama_index": lambda **fields: in_llama_index(VIEWS, llama_index_ext.MultiViewNodeParser(), **fields),
}
DRILLING = {
    "langchain": lambda **fields: in_langchain("D3Retriever", by_index=False, **fields),
    "langchain, index()": lambda **fields: in_langchain("D3Retriever", by_index=True, **fields),
    "llama_index": lambda **fields: in_llama_index("D3Retriever", llama_index_ext.MultiViewNodeParser(), **fields),
    "llama_index, sentences": lambda **fields: in_llama_index(
        "D3Retriever", SentenceSplitter(chunk_size=80, chunk_overlap=10), **fields
    ),
}


@pytest.mark.parametrize("build", OVER_VIEWS.values(), ids=OVER_VIEWS)
@pytest.mark.parametrize(("expand", "look_ups"), [(None, 2), ("neighbours", 4), ("parent", 4)])
def test_sections_cost_one_embedding_and_three_searches(build: Callable[..., Ask], expand: Any, look_ups: int):
    """Look-ups do not depend on how many sections there are: by ids, and by metadata where ids are not ours."""
    ask = build(top_n=6, expand=expand)
    for asynchronous in (False, True):
        found, asked = ask(asynchronous)
        assert len(found) >= 6
        assert asked["questions"] <= 1
        assert asked["search"] <= 3
        assert asked["records"] <= look_ups


@pytest.mark.parametrize("build", DRILLING.values(), ids=DRILLING)
@pytest.mark.parametrize("documents", [1, DOCUMENTS])
def test_drilling_down_costs_one_embedding_and_a_call_a_document(build: Callable[..., Ask], documents: int):
    ask = build(max_documents=documents, top_n=9)
    for asynchronous in (False, True):
        found, asked = ask(asynchronous)
        assert found
        assert asked["questions"] == 1
        assert asked["search"] + asked["records"] <= 2 + documents
