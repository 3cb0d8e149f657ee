"""The guard reads the filter of whatever stands between a component and a vector store, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
)
from langchain_core.documents import Document
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

from drillrank.errors import InvalidInput
from langchain_ext import BRMGRRetriever, D3Retriever, UPRRerank
from langchain_ext._filters import DocumentFilter
from langchain_ext._retriever import ConfiguredRetriever
from tests.langchain_ext.filter_cases import ALL, STORE, retriever, seen, unfiltered


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


@for_each
@pytest.mark.parametrize(
    "others", [{"filter": "tenant = 'a'"}, {"expr": "tenant == 'a'"}, {"filter": {"tenant": {"$near": 1}}}]
)
def test_one_that_cannot_be_read_is_refused(wrap: Callable[[Runnable], object], others: dict):
    guard = DocumentFilter(None, wrap(retriever(**others)))
    assert guard.filter_results(ALL) == ALL  # the store itself has filtered these
    with pytest.raises(InvalidInput, match="filters=") as caught:
        guard.filter_fetched(ALL)
    assert "Secret" not in str(caught.value)
    assert seen(wrap(retriever(**others)), own={"tenant": "b"}) == ["2"]
