"""The guard reads the filters of whatever stands between a component and an index, or refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
    VectorIndexAutoRetriever,
)
from llama_index.core.schema import IndexNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
    VectorStoreInfo,
)

from drillrank.errors import InvalidInput
from llama_index_ext import BRMGRRetriever, D3Retriever, MultiViewRetriever, PromptRankRetriever
from llama_index_ext._filters import NodeFilter
from tests.llama_index_ext.filter_cases import ALL, INDEX, retriever, seen, unfiltered, where


def fusion(*retrievers: BaseRetriever) -> BaseRetriever:
    return QueryFusionRetriever(list(retrievers), llm=MockLLM(), num_queries=1)


def routed(*retrievers: BaseRetriever) -> BaseRetriever:
    tools = [RetrieverTool.from_defaults(one, description="x") for one in retrievers]
    return RouterRetriever(LLMSingleSelector.from_defaults(llm=MockLLM()), tools, llm=MockLLM())


def engine(inner: BaseRetriever) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(inner, llm=MockLLM())


def over_objects(inner: BaseRetriever) -> BaseRetriever:
    leading = IndexNode(text="x", index_id="inner", obj=inner)
    return VectorStoreIndex(objects=[leading], embed_model=MockEmbedding(embed_dim=4)).as_retriever()


WRAPPED: dict[str, Callable[[BaseRetriever], object]] = {
    "itself": lambda inner: inner,
    "fused": lambda inner: fusion(unfiltered(), inner),
    "fused twice": lambda inner: fusion(fusion(inner), unfiltered()),
    "recursive": lambda inner: RecursiveRetriever("vector", {"vector": inner}),
    "recursive, not the root": lambda inner: RecursiveRetriever("one", {"one": unfiltered(), "other": inner}),
    "recursive, in an engine": lambda inner: RecursiveRetriever("v", {"v": unfiltered()}, {"e": engine(inner)}),
    "merging": lambda inner: AutoMergingRetriever(inner, StorageContext.from_defaults()),
    "transformed": lambda inner: TransformRetriever(inner, IdentityQueryTransform()),
    "routed to": lambda inner: routed(unfiltered(), inner),
    "behind objects": over_objects,
    "by view": lambda inner: {"raw": unfiltered(), "summary": inner},
    "in a component": lambda inner: BRMGRRetriever(inner, MockLLM()),
    "as a component's source": lambda inner: D3Retriever(source=inner),
    "as a component's only source": lambda inner: MultiViewRetriever(source=inner),
    "as a component's sources": lambda inner: MultiViewRetriever(source={"raw": unfiltered(), "summary": inner}),
}
for_each = pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)


@for_each
def test_the_sources_filter_is_read_wherever_it_stands(wrap: Callable[[BaseRetriever], object]):
    assert seen(wrap(retriever())) == ["1", "3"]
    assert seen(wrap(retriever(filters=where(tenant="a", level=1)))) == ["1"]
    assert seen(wrap(retriever(filters=where(FilterCondition.OR, tenant="b", level=9)))) == ["2", "3"]
    assert seen(wrap(retriever(filters=where(FilterCondition.NOT, tenant="b", level=9)))) == ["1", "4"]
    assert seen(wrap(retriever(doc_ids=["theirs"]))) == ["2"]
    assert seen(wrap(retriever(node_ids=["1", "4"]))) == ["1", "4"]
    assert seen(wrap(retriever()), own=lambda found: found.node_id != "1") == ["3"]
    assert seen(wrap(unfiltered())) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    "component",
    [
        lambda **own: BRMGRRetriever(unfiltered(), MockLLM(), **own),
        lambda **own: D3Retriever(source=unfiltered(), **own),
        lambda **own: MultiViewRetriever(source=unfiltered(), **own),
        lambda **own: PromptRankRetriever(source=unfiltered(), **own),
    ],
)
def test_a_components_own_filter_is_read_as_any_source_s(component: Callable[..., BaseRetriever]):
    assert seen(component(filters=where(tenant="a"))) == ["1", "3"]
    assert seen(component()) == ["1", "2", "3", "4"]


def test_the_fixed_part_of_a_filter_that_an_llm_completes_is_read():
    info = VectorStoreInfo(content_info="x", metadata_info=[])
    asked = VectorIndexAutoRetriever(INDEX, info, llm=MockLLM(), extra_filters=where(tenant="a"))
    assert seen(asked) == ["1", "3"]


@for_each
@pytest.mark.parametrize(
    "arguments",
    [
        {"vector_store_kwargs": {"where": {"tenant": "a"}}},
        {"filters": MetadataFilters(filters=[MetadataFilter(key="tenant", value=None)])},
    ],
)
def test_one_that_cannot_be_read_is_refused(wrap: Callable[[BaseRetriever], object], arguments: dict):
    guard = NodeFilter(None, wrap(retriever(**arguments)))
    assert guard.filter_results(ALL) == ALL  # the store itself has filtered these
    with pytest.raises(InvalidInput, match="filters=") as caught:
        guard.filter_fetched(ALL)
    assert "Secret" not in str(caught.value)
    assert seen(wrap(retriever(**arguments)), own=where(tenant="b")) == ["2"]
