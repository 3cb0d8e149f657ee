"""The index that all of a source's records come from: found behind every wrapper of the host that adds nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import llama_index.core.retrievers as host
import pytest
from llama_index.core import Document, MockEmbedding, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import IndexNode, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores.types import VectorStoreInfo

from drillrank.errors import DrillrankWarning
from llama_index_ext import (
    BRMGRRetriever,
    D3Retriever,
    MultiViewNodeParser,
    MultiViewRetriever,
    PromptRankRetriever,
    SelfAskQueryEngine,
)
from llama_index_ext._filters import index_behind
from tests.conformance.leaks import reasoner
from tests.conformance.llama_index_leaks import Words
from tests.conformance.llama_index_reader import Reader
from tests.conformance.readers import Crowd
from tests.conformance.text_store import TextStore

INDEX, OTHER = (VectorStoreIndex([TextNode(text=text)], embed_model=MockEmbedding(embed_dim=4)) for text in "xy")
Wrap = Callable[[BaseRetriever], Any]


def routed(*retrievers: BaseRetriever) -> BaseRetriever:
    tools = [RetrieverTool.from_defaults(one, description="x") for one in retrievers]
    return host.RouterRetriever(LLMSingleSelector.from_defaults(llm=MockLLM()), tools, llm=MockLLM())


def fused(*retrievers: BaseRetriever) -> BaseRetriever:
    return host.QueryFusionRetriever(list(retrievers), llm=MockLLM(), num_queries=1, use_async=False)


def recursive(*retrievers: BaseRetriever, **others: Any) -> BaseRetriever:
    return host.RecursiveRetriever("0", {str(number): one for number, one in enumerate(retrievers)}, **others)


def leading_to(inner: Any) -> BaseRetriever:
    leading = IndexNode(text="x", index_id="inner", obj=inner)
    return VectorStoreIndex(objects=[leading], embed_model=MockEmbedding(embed_dim=4)).as_retriever()


def with_a_copy(inner: BaseRetriever) -> BaseRetriever:
    inner.object_map = {"x": TextNode(text="x")}
    return inner


ONE: dict[str, Wrap] = {
    "VectorIndexRetriever": lambda inner: inner,
    "TransformRetriever": lambda inner: host.TransformRetriever(inner, IdentityQueryTransform()),
    "QueryFusionRetriever": fused,
    "RouterRetriever": routed,
    "RecursiveRetriever": recursive,
    "VectorIndexAutoRetriever": lambda inner: host.VectorIndexAutoRetriever(
        inner._index, VectorStoreInfo(content_info="x", metadata_info=[]), llm=MockLLM()
    ),
    "copies of nodes": with_a_copy,
    "by view": lambda inner: {"raw": inner, "summary": inner},
    "MultiViewRetriever": lambda inner: MultiViewRetriever(source=inner),
    "MultiViewRetriever by view": lambda inner: MultiViewRetriever(source={"raw": inner, "summary": inner}),
    "PromptRankRetriever": lambda inner: PromptRankRetriever(source=inner),
}
SEVERAL: dict[str, Callable[..., Any]] = {
    "QueryFusionRetriever": fused,
    "RouterRetriever": routed,
    "RecursiveRetriever": recursive,
    "by view": lambda *inner: dict(zip(["raw", "keywords"], inner, strict=True)),
    "MultiViewRetriever": lambda *inner: MultiViewRetriever(source=dict(zip(["raw", "keywords"], inner, strict=True))),
}
MORE: dict[str, Wrap] = {
    "AutoMergingRetriever": lambda inner: host.AutoMergingRetriever(inner, StorageContext.from_defaults()),
    "RecursiveRetriever with nodes": lambda inner: recursive(inner, node_dict={"x": TextNode(text="x")}),
    "RecursiveRetriever with engines": lambda inner: recursive(
        inner, query_engine_dict={"x": SelfAskQueryEngine(inner, MockLLM())}
    ),
    "objects": leading_to,
    "fused objects": lambda inner: fused(leading_to(inner)),
    "PromptRankRetriever with a docstore": lambda inner: PromptRankRetriever(source=inner, store=SimpleDocumentStore()),
    "BRMGRRetriever": lambda inner: BRMGRRetriever(inner, MockLLM()),
    "D3Retriever": lambda inner: D3Retriever(source=inner),
    "in memory": lambda inner: MultiViewRetriever(MultiViewNodeParser()([Document(text="x")])),
    "another kind of index": lambda inner: SummaryIndex([TextNode(text="x")]).as_retriever(),
}
NO_VECTOR_INDEX = {
    "BaseRetriever": "a base",
    "BaseImageRetriever": "a base",
    "BasePGRetriever": "a base",
    "CustomPGRetriever": "a base",
    "SQLParserMode": "no retriever",
    "SQLRetriever": "tables",
    "NLSQLRetriever": "tables",
    "EmptyIndexRetriever": "nothing",
    "BM25Retriever": "not installed with the host",
    **dict.fromkeys(["KGTableRetriever", "KnowledgeGraphRAGRetriever", "PGRetriever"], "graphs"),
    **dict.fromkeys(["LLMSynonymRetriever", "CypherTemplateRetriever", "TextToCypherRetriever"], "graphs"),
    "VectorContextRetriever": "graphs",
    **dict.fromkeys(["SummaryIndexRetriever", "SummaryIndexEmbeddingRetriever", "SummaryIndexLLMRetriever"], "lists"),
    **dict.fromkeys(["ListIndexRetriever", "ListIndexEmbeddingRetriever"], "lists"),
    **dict.fromkeys(["TreeAllLeafRetriever", "TreeSelectLeafEmbeddingRetriever"], "trees"),
    **dict.fromkeys(["TreeSelectLeafRetriever", "TreeRootRetriever"], "trees"),
    "KeywordTableSimpleRetriever": "tables of keywords",
}


def test_every_retriever_of_the_host_is_in_a_table():
    tried = {name.split(" ")[0] for table in (ONE, MORE) for name in table}
    assert set(host.__all__) - tried == set(NO_VECTOR_INDEX)


@pytest.mark.parametrize("name", sorted(NO_VECTOR_INDEX))
def test_the_others_keep_no_retriever_that_would_have_to_be_looked_through(name: str):
    if name == "BM25Retriever":
        return
    taken = inspect.signature(getattr(host, name).__init__).parameters
    assert not {"retriever", "retrievers", "vector_retriever", "retriever_dict", "retriever_tools"} & set(taken)


@pytest.mark.parametrize("wrap", ONE.values(), ids=ONE)
@pytest.mark.parametrize("outer", [fused, routed, recursive])
def test_a_single_index_is_found(wrap: Wrap, outer: Callable[..., Any]):
    source = wrap(INDEX.as_retriever())
    assert index_behind(source) is INDEX
    assert index_behind(outer(*(source.values() if isinstance(source, dict) else [source]))) is INDEX


@pytest.mark.parametrize("wrap", SEVERAL.values(), ids=SEVERAL)
def test_of_two_indices_there_is_none(wrap: Callable[..., Any]):
    assert index_behind(wrap(INDEX.as_retriever(), OTHER.as_retriever())) is None
    assert index_behind(wrap(INDEX.as_retriever(), INDEX.as_retriever())) is INDEX
    assert index_behind(wrap(INDEX.as_retriever(), BRMGRRetriever(INDEX.as_retriever(), MockLLM()))) is None


@pytest.mark.parametrize("wrap", MORE.values(), ids=MORE)
def test_where_a_source_brings_other_things_there_is_none(wrap: Wrap):
    assert index_behind(wrap(INDEX.as_retriever())) is None


def test_nothing_is_behind_nothing():
    assert index_behind(INDEX) is INDEX
    assert index_behind(None) is index_behind({}) is None


TEXT = "# Doors\n\nThe code is {}.\n\n# Windows\n\nThey are shut.\n"
QUESTION = "What is the code of the door?"
WRAPPERS = ["VectorIndexRetriever", "TransformRetriever", "QueryFusionRetriever"]


def filled(vector_store: Any = None) -> VectorStoreIndex:
    context = StorageContext.from_defaults(vector_store=vector_store) if vector_store else None
    index = VectorStoreIndex([], storage_context=context, embed_model=Words())
    for name, code in (("a", "1234"), ("b", "9876")):
        index.insert_nodes(MultiViewNodeParser()([Document(text=TEXT.format(code), id_=name)]))
    return index


COMPONENTS: dict[str, Wrap] = {
    "MultiViewRetriever": lambda source: MultiViewRetriever(source=source, expand="neighbours"),
    "MultiViewRetriever by view": lambda source: MultiViewRetriever(source={"raw": source, "summary": source}),
    "D3Retriever": lambda source: D3Retriever(source=source),
    "PromptRankRetriever": lambda source: PromptRankRetriever(source=source, top_n=None),
    "BRMGRRetriever": lambda source: BRMGRRetriever(source, MockLLM(max_tokens=3), 1, generated_share=0.0),
    "SelfAskQueryEngine": lambda source: SelfAskQueryEngine(source, Reader(reasoner, Crowd())),
}


def asked(component: Any) -> list[str | None]:
    """Ids of the documents that results are from; what was generated is from none."""
    found = component.query(QUESTION).source_nodes if hasattr(component, "query") else component.retrieve(QUESTION)
    return [hit.node.ref_doc_id for hit in found if hit.node.metadata.get("drillrank_origin") != "generated"]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("store", [None, TextStore], ids=["vectors", "texts"])
@pytest.mark.parametrize("build", COMPONENTS.values(), ids=COMPONENTS)
@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_a_search_by_doc_ids_is_one_whether_the_store_minds_them_or_not(wrapper: str, store: Any, build: Wrap):
    """The host's stores in memory do not, and bring other documents' nodes."""
    index = filled(store() if store else None)
    plain = index.as_retriever(doc_ids=["a"], similarity_top_k=12)
    assert {hit.node.ref_doc_id for hit in plain.retrieve(QUESTION)} == {"a", "b"}
    assert set(asked(build(ONE[wrapper](plain)))) == {"a"}


@pytest.mark.parametrize("name", sorted(COMPONENTS.keys() - {"MultiViewRetriever by view"}))
def test_where_doc_ids_leave_nothing_the_advice_names_them(name: str):
    source = filled().as_retriever(doc_ids=["nobody"], similarity_top_k=12)
    with pytest.warns(DrillrankWarning, match=r"nothing that the restriction to doc_ids .*filters on 'doc_id'.* shows"):
        assert asked(COMPONENTS[name](source)) == []


def test_of_several_searches_by_doc_ids_each_may_find_its_own():
    index = filled()
    of_a, of_b, of_all = (index.as_retriever(doc_ids=ids, similarity_top_k=12) for ids in (["a"], ["b"], None))
    assert set(asked(BRMGRRetriever(fused(of_a, of_b), MockLLM(max_tokens=3), 1))) == {"a", "b"}
    assert set(asked(BRMGRRetriever(fused(of_a, of_all), MockLLM(max_tokens=3), 1))) == {"a", "b"}
    assert set(asked(BRMGRRetriever(fused(of_a, of_a), MockLLM(max_tokens=3), 1))) == {"a"}


def test_a_document_is_put_together_from_the_index_behind_a_fusion():
    index = filled()
    source = fused(index.as_retriever(similarity_top_k=1))
    found = D3Retriever(source=source, top_n=9).retrieve(QUESTION)
    assert len(found) == 2
    index.delete_ref_doc(str(found[0].node.ref_doc_id), delete_from_docstore=True)
    again = D3Retriever(source=source, top_n=9).retrieve(QUESTION)
    assert {hit.node.ref_doc_id for hit in again}.isdisjoint({hit.node.ref_doc_id for hit in found})
