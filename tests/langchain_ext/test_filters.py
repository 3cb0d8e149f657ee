"""The guard reads the filter of whatever stands between a component and a vector store, or refuses."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from drillrank.errors import DrillrankWarning, InvalidInput
from langchain_ext import (
    D3Retriever,
    MultiViewRetriever,
)
from langchain_ext._filters import DocumentFilter
from tests.conformance.frameworks import LangChain
from tests.conformance.server_store import OwnForm, PostFiltered
from tests.examples import examples
from tests.langchain_ext.filter_cases import STORE, retriever, seen


def test_functions_are_asked_as_their_store_asks_them():
    memory = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    assert seen(memory.as_retriever(search_kwargs={"filter": lambda document: document.id == "2"})) == ["2"]
    assert seen(retriever(filter=lambda metadata: metadata.get("tenant") == "b")) == ["2"]


metadata = st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", "b", 1, 2]), max_size=2)
wants = st.dictionaries(st.sampled_from(["view", "tenant"]), st.sampled_from(["a", "raw"]), max_size=2)
own_filters = st.one_of(
    st.none(),
    st.just({}),
    st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", 1, {"$ne": "a"}, {"$in": ["a", 1]}])),
    st.just({"$or": [{"tenant": "a"}, {"level": {"$gte": 2, "$lt": 3}}]}),
    st.just({"$not": {"tenant": "a"}}),
)


@settings(max_examples=examples(60))
@given(st.lists(metadata, max_size=4), wants, own_filters, st.booleans())
def test_what_a_store_in_memory_brings_is_what_may_be_seen(held: list[dict], wanted: dict, own: Any, function: bool):
    documents = [Document("x", id=str(number), metadata=values) for number, values in enumerate(held)]
    allowed = {document.id for document in DocumentFilter(own).filter_results(documents)}
    expected = {d.id for d in documents if d.id in allowed and all(d.metadata.get(k) == v for k, v in wanted.items())}
    guard = DocumentFilter((lambda document: document.id in allowed) if function else own)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(documents)
    assert {d.id for d in store.similarity_search("q", k=9, filter=guard.as_store_filter(store, wanted))} == expected


def test_other_stores_get_each_condition_for_itself():
    own = {"tenant": "a", "level": {"$gte": 1, "$lt": 3}}
    assert DocumentFilter(own).as_store_filter(STORE, {"view": "raw"}) == {
        "$and": [{"view": "raw"}, {"tenant": "a"}, {"level": {"$gte": 1}}, {"level": {"$lt": 3}}]
    }
    assert DocumentFilter({"tenant": "a"}).as_store_filter(STORE, {}) == {"tenant": "a"}
    assert DocumentFilter(None).as_store_filter(STORE, {"view": "raw"}) == {"view": "raw"}
    assert DocumentFilter(None).as_store_filter(STORE, {}) is DocumentFilter({}).as_store_filter(STORE, {}) is None
    assert DocumentFilter(lambda document: False).as_store_filter(STORE, {"view": "raw"}) == {"view": "raw"}


PARAGRAPHS = {"unit": "paragraph"}


def test_a_store_that_filters_what_it_has_fetched_loses_nothing(monkeypatch: pytest.MonkeyPatch):
    store, text = PostFiltered(LangChain.embedding()), "".join(f"# Part {n}\n\nMeal {n} is hot.\n\n" for n in range(60))
    books = [Document(text, metadata={"source": source}) for source in "ab"]
    store.add_documents(LangChain.split(books, views=["raw"], min_tokens=None))
    one = store.as_retriever(search_kwargs={"k": 1, "filter": {"source": "b"}, "fetch_k": 120})
    assert len(MultiViewRetriever(source=store, filters={"source": "b"}, top_n=60).invoke("meal")) == 60
    assert len(D3Retriever(source=one, top_n=99, settings=PARAGRAPHS).invoke("meal")) == 60
    monkeypatch.setattr("langchain_ext._store._MAX_RECORDS", 60)
    assert len(D3Retriever(source=one, top_n=99, settings=PARAGRAPHS).invoke("meal")) == 60  # by the fetch_k of its own


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_store_with_a_form_of_filter_of_its_own(asynchronous: bool):
    def found(component: Any) -> list[Document]:
        return asyncio.run(component.ainvoke("one")) if asynchronous else component.invoke("one")

    book = Document("# One\n\nIt is one.\n\n# Two\n\nIt is two.\n", id="book", metadata={"source": "b"})
    store, views = OwnForm(LangChain.embedding()), ("raw", "keywords", "summary")
    store.add_documents(LangChain.split([book], min_tokens=None))
    form = {view: SimpleNamespace(must={"drillrank_view": view}) for view in views}
    of_view = {view: store.as_retriever(search_kwargs={"k": 1, "filter": form[view]}) for view in views}
    [hit] = found(MultiViewRetriever(source=of_view, expand="neighbours", filters={"source": "b"}))
    assert hit.page_content == book.page_content
    with pytest.raises(InvalidInput, match="one for each view"):
        found(MultiViewRetriever(source=store))
    for source in (store, store.as_retriever()):
        with pytest.warns(DrillrankWarning, match=r"OwnForm takes no dictionary .* Pass the originals"):
            assert found(D3Retriever(source=source))
    whole = D3Retriever(source=of_view["raw"], documents=[book], filters={"source": "b"}, settings=PARAGRAPHS)
    with pytest.warns(DrillrankWarning, match="OwnForm"):
        assert len(found(whole)) == 2
