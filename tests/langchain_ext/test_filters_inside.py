"""The guard reads the filter of whatever stands between a component and a vector store, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import (
    ConfigurableField,
    RouterRunnable,
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.runnables.config import set_config_context
from langchain_core.vectorstores import VectorStore

from langchain_ext import BRMGRRetriever, D3Retriever, UPRRerank
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
    with set_config_context(config or {}) as context:
        return context.run(lambda: [found.id for found in DocumentFilter(own, source).filter_fetched(ALL)])


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


async def never(document: Document) -> bool:
    return False


metadata = st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", "b", 1, 2]), max_size=2)
wants = st.dictionaries(st.sampled_from(["view", "tenant"]), st.sampled_from(["a", "raw"]), max_size=2)
own_filters = st.one_of(
    st.none(),
    st.just({}),
    st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", 1, {"$ne": "a"}, {"$in": ["a", 1]}])),
    st.just({"$or": [{"tenant": "a"}, {"level": {"$gte": 2, "$lt": 3}}]}),
    st.just({"$not": {"tenant": "a"}}),
)


NO_DOCUMENTS = [None, "a text", {"documents": []}, 7, ["a text"], [Document("one"), None]]
