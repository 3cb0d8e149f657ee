"""The guard reads the filter of whatever stands between a component and a vector store, or refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
)
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.runnables import (
    ConfigurableField,
    RouterRunnable,
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from drillrank.errors import InvalidInput
from langchain_ext import BRMGRRetriever, D3Retriever, MultiViewRetriever, PromptRankRetriever, UPRRerank
from langchain_ext._filters import DocumentFilter
from langchain_ext._retriever import ConfiguredRetriever

MINE = Document("Mine.", id="1", metadata={"tenant": "a", "level": 1})
THEIRS = Document("Theirs.", id="2", metadata={"tenant": "b", "level": 1})
SECRET = Document("Secret.", id="3", metadata={"tenant": "a", "level": 9})
NOBODYS = Document("Nobody's.", id="4")
ALL = [MINE, THEIRS, SECRET, NOBODYS]


class Store(VectorStore):
    """A store that takes whatever filter it is given, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.asked.append(kwargs.get("filter"))
        return []

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, metadatas: Any = None, **kwargs: Any) -> Store:
        raise NotImplementedError


STORE = Store()


def retriever(**arguments: Any) -> Runnable:
    return STORE.as_retriever(search_kwargs={"k": 3, **(arguments or {"filter": {"tenant": "a"}})})


def unfiltered() -> Runnable:
    return retriever(k=3)


def seen(source: object, own: Any = None, config: Any = None) -> list[str | None]:
    return [found.id for found in DocumentFilter(own, source, config).filter_fetched(ALL)]


def by_configuration() -> Runnable:
    return unfiltered().configurable_fields(search_kwargs=ConfigurableField("search"))


WRAPPED: dict[str, Callable[[Runnable], object]] = {
    "itself": lambda inner: inner,
    "with fallbacks": lambda inner: inner.with_fallbacks([unfiltered()]),
    "as a fallback": lambda inner: unfiltered().with_fallbacks([inner]),
    "with retries": lambda inner: inner.with_retry(),
    "with a configuration": lambda inner: inner.with_config(tags=["x"]),
    "before a step": lambda inner: inner | RunnableLambda(lambda found: found[:1]),
    "behind a step": lambda inner: RunnableLambda(str.strip) | inner,
    "beside another": lambda inner: RunnableParallel(q=RunnablePassthrough(), found=inner) | (lambda g: g["found"]),
    "assigned": lambda inner: RunnablePassthrough.assign(found=inner),
    "in a branch": lambda inner: RunnableBranch((lambda question: True, inner), unfiltered()),
    "as the other branch": lambda inner: RunnableBranch((lambda question: True, unfiltered()), inner),
    "routed to": lambda inner: RouterRunnable({"one": inner, "other": unfiltered()}),
    "in an ensemble": lambda inner: EnsembleRetriever(retrievers=[inner, unfiltered()], weights=[0.5, 0.5]),
    "merged": lambda inner: MergerRetriever(retrievers=[unfiltered(), inner]),
    "compressed": lambda inner: ContextualCompressionRetriever(base_compressor=UPRRerank(), base_retriever=inner),
    "with more questions": lambda inner: MultiQueryRetriever.from_llm(inner, FakeListLLM(responses=["x"])),
    "by view": lambda inner: {"raw": unfiltered(), "keywords": inner},
    "in a component": lambda inner: BRMGRRetriever(source=inner, llm=FakeListLLM(responses=["x"])),
    "as a component's source": lambda inner: D3Retriever(source=inner),
    "each": lambda inner: inner.map(),
}
for_each = pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)


@for_each
def test_the_sources_filter_is_read_wherever_it_stands(wrap: Callable[[Runnable], object]):
    assert seen(wrap(retriever())) == ["1", "3"]
    assert seen(wrap(retriever(filter={"tenant": "a", "level": {"$lt": 5}}))) == ["1"]
    assert seen(wrap(retriever()), own=lambda document: document.id != "1") == ["3"]
    assert seen(wrap(unfiltered())) == ["1", "2", "3", "4"]


@for_each
@pytest.mark.parametrize(
    "others", [{"filter": "tenant = 'a'"}, {"expr": "tenant == 'a'"}, {"filter": {"tenant": {"$near": 1}}}]
)
def test_one_that_cannot_be_read_is_refused(wrap: Callable[[Runnable], object], others: dict):
    guard = DocumentFilter(None, wrap(retriever(**others)))
    assert guard.filter_results(ALL) == ALL  # the store itself has filtered these
    with pytest.raises(InvalidInput, match="filter=") as caught:
        guard.filter_fetched(ALL)
    assert "Secret" not in str(caught.value)
    assert seen(wrap(retriever(**others)), own={"tenant": "b"}) == ["2"]


@pytest.mark.parametrize(
    "name", sorted(WRAPPED.keys() - {"merged", "with more questions"})
)  # which take no such runnable
def test_a_runs_configuration_is_followed(name: str):
    wrap = WRAPPED[name]
    config = {"configurable": {"search": {"filter": {"tenant": "b"}}}}
    assert seen(wrap(by_configuration()), config=config) == ["2"]


def test_a_configuration_that_was_bound_before_is_followed():
    bound = by_configuration().with_config(configurable={"search": {"filter": {"tenant": "a"}}})
    assert seen(bound) == seen(bound | RunnableLambda(lambda found: found)) == ["1", "3"]


def test_alternatives_are_followed_too():
    either = retriever().configurable_alternatives(ConfigurableField("who"), theirs=retriever(filter={"tenant": "b"}))
    assert seen(either) == ["1", "3"]
    assert seen(either, config={"configurable": {"who": "theirs"}}) == ["2"]


def test_arguments_bound_to_a_retriever_go_before_its_own():
    bound = retriever().bind(filter={"tenant": "b"})
    bound.invoke("question")
    assert STORE.asked[-1] == {"tenant": "b"}
    assert seen(bound) == ["2"]
    assert seen(bound.with_retry()) == ["2"]


class Filtered(ConfiguredRetriever):
    """As all of ours that fetch."""

    source: Any
    filters: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return []


def test_a_component_hands_its_own_filter_on():
    inner = Filtered(source=unfiltered(), filters={"tenant": "a"})
    assert seen(inner) == ["1", "3"]
    assert seen(inner.with_retry()) == ["1", "3"]


def test_a_function_around_a_retriever_is_looked_into():
    inner = retriever()
    assert seen(RunnableLambda(lambda question: inner.invoke(question))) == ["1", "3"]


def test_functions_are_asked_as_their_store_asks_them():
    memory = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    assert seen(memory.as_retriever(search_kwargs={"filter": lambda document: document.id == "2"})) == ["2"]
    assert seen(retriever(filter=lambda metadata: metadata.get("tenant") == "b")) == ["2"]


@pytest.mark.parametrize("filter", [3, "tenant", ["tenant"], {"tenant": None}, {"tenant": {"$near": 1}}])
def test_a_filter_of_another_kind_is_a_clear_error(filter: Any):
    with pytest.raises(InvalidInput, match="filter"):
        DocumentFilter(filter)


async def never(document: Document) -> bool:
    return False


def test_an_asynchronous_function_lets_nothing_through():
    with pytest.raises(InvalidInput, match="asynchronous"):
        DocumentFilter(never).filter_results(ALL)


metadata = st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", "b", 1, 2]), max_size=2)
wants = st.dictionaries(st.sampled_from(["view", "tenant"]), st.sampled_from(["a", "raw"]), max_size=2)
own_filters = st.one_of(
    st.none(),
    st.just({}),
    st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", 1, {"$ne": "a"}, {"$in": ["a", 1]}])),
    st.just({"$or": [{"tenant": "a"}, {"level": {"$gte": 2, "$lt": 3}}]}),
    st.just({"$not": {"tenant": "a"}}),
)


@settings(max_examples=60)
@given(st.lists(metadata, max_size=4), wants, own_filters, st.booleans())
def test_what_a_store_in_memory_brings_is_what_may_be_seen(held: list[dict], wanted: dict, own: Any, function: bool):
    documents = [Document("x", id=str(number), metadata=values) for number, values in enumerate(held)]
    allowed = {document.id for document in DocumentFilter(own).filter_results(documents)}
    expected = {d.id for d in documents if d.id in allowed and all(d.metadata.get(k) == v for k, v in wanted.items())}
    guard = DocumentFilter((lambda document: document.id in allowed) if function else own)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(documents)
    assert {d.id for d in store.similarity_search("q", k=9, filter=guard.for_store(store, wanted))} == expected


def test_other_stores_get_each_condition_for_itself():
    own = {"tenant": "a", "level": {"$gte": 1, "$lt": 3}}
    assert DocumentFilter(own).for_store(STORE, {"view": "raw"}) == {
        "$and": [{"view": "raw"}, {"tenant": "a"}, {"level": {"$gte": 1}}, {"level": {"$lt": 3}}]
    }
    assert DocumentFilter({"tenant": "a"}).for_store(STORE, {}) == {"tenant": "a"}
    assert DocumentFilter(None).for_store(STORE, {"view": "raw"}) == {"view": "raw"}
    assert DocumentFilter(None).for_store(STORE, {}) is DocumentFilter({}).for_store(STORE, {}) is None
    assert DocumentFilter(lambda document: False).for_store(STORE, {"view": "raw"}) == {"view": "raw"}


NO_DOCUMENTS = [None, "a text", {"documents": []}, 7, ["a text"], [Document("one"), None]]


@pytest.mark.parametrize("brought", NO_DOCUMENTS, ids=repr)
@pytest.mark.parametrize("filter", [None, {"tenant": "a"}])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_source_that_brings_no_documents_is_named(brought, filter, asynchronous):
    components = (
        D3Retriever(source=lambda question: brought, filters=filter),
        MultiViewRetriever(source=lambda question: brought, filters=filter),
        PromptRankRetriever(source=lambda question: brought, filters=filter),
        BRMGRRetriever(
            source=lambda question: brought, llm=FakeListChatModel(responses=["A passage."]), filters=filter
        ),
    )
    for component in components:
        with pytest.raises(InvalidInput, match=r"A source brings .*(NoneType|str|dict|int)"):
            asyncio.run(component.ainvoke("a question")) if asynchronous else component.invoke("a question")
