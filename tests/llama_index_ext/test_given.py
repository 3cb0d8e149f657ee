"""An index in the place of nodes or of a retriever is told where it goes."""

from __future__ import annotations

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from drillrank.errors import InvalidInput
from llama_index_ext import BRMGRRetriever, D3Retriever, MultiViewRetriever, PromptRankRetriever, SelfAskQueryEngine


@pytest.fixture(scope="module")
def index():
    return VectorStoreIndex.from_documents([Document(text="a fox")], embed_model=MockEmbedding(3))


@pytest.mark.parametrize(
    "make",
    [
        D3Retriever,
        MultiViewRetriever,
        lambda index: PromptRankRetriever(source=index.as_retriever(), documents=index),
        lambda index: D3Retriever("a fox"),
    ],
)
def test_an_index_is_no_list_of_nodes(make, index):
    with pytest.raises(InvalidInput, match="Pass an index or a retriever as source="):
        make(index)


def test_a_source_is_a_retriever_an_index_or_a_record_store(index):
    for make in (
        lambda source: PromptRankRetriever(source=source),
        lambda source: BRMGRRetriever(source, MockLLM()),
        lambda source: SelfAskQueryEngine(source, MockLLM()),
        lambda source: D3Retriever(source=source),
        lambda source: MultiViewRetriever(source=source),
    ):
        make(index)
        make(index.as_retriever())
        with pytest.raises(InvalidInput, match="source must be a retriever, a VectorStoreIndex or a RecordStore"):
            make(["a fox"])


def test_the_source_of_a_view_is_a_retriever(index):
    with pytest.raises(InvalidInput, match="source of a view must be a retriever, got a VectorStoreIndex"):
        MultiViewRetriever(source={"raw": index})


@pytest.mark.parametrize("given", ["openai", lambda prompt: "an answer"])
@pytest.mark.parametrize("make", [D3Retriever, BRMGRRetriever, SelfAskQueryEngine, PromptRankRetriever])
def test_what_is_no_llm_of_the_host_is_refused_when_a_component_is_built(make, given, index):
    with pytest.raises(InvalidInput, match="llm must be an LLM of LlamaIndex"):
        make(source=index.as_retriever(), llm=given)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda index: MultiViewRetriever([TextNode(text="a fox")], embed=5), "embed must turn texts into vectors"),
        (lambda index: D3Retriever(source=index, index=index.as_retriever()), "index must be a VectorStoreIndex"),
        (
            lambda index: PromptRankRetriever(source=index.as_retriever(), store=index),
            "store must be a BaseDocumentStore",
        ),
    ],
)
def test_what_is_of_another_kind_is_refused_when_a_component_is_built(make, said, index):
    with pytest.raises(InvalidInput, match=said):
        make(index)
