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
    with pytest.raises(InvalidInput, match="is none: an index or a retriever is given as source="):
        make(index)


@pytest.mark.parametrize(
    "make",
    [
        lambda index: PromptRankRetriever(source=index),
        lambda index: BRMGRRetriever(index, MockLLM()),
        lambda index: SelfAskQueryEngine(index, MockLLM()),
        lambda index: MultiViewRetriever(source={"raw": index}),
    ],
)
def test_an_index_is_no_retriever(make, index):
    with pytest.raises(InvalidInput, match="VectorStoreIndex is none: of an index, pass index"):
        make(index)


@pytest.mark.parametrize("given", ["openai", lambda prompt: "an answer"])
@pytest.mark.parametrize("make", [D3Retriever, BRMGRRetriever, SelfAskQueryEngine, PromptRankRetriever])
def test_what_is_no_llm_of_the_host_is_refused_when_a_component_is_built(make, given, index):
    with pytest.raises(InvalidInput, match="llm must be an LLM of LlamaIndex"):
        make(source=index.as_retriever(), llm=given)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda index: MultiViewRetriever([TextNode(text="a fox")], embed=5), "embed must turn texts into vectors"),
        (lambda index: D3Retriever(source=index, index=index.as_retriever()), "index is a VectorStoreIndex"),
        (lambda index: PromptRankRetriever(source=index.as_retriever(), store=index), "store is a BaseDocumentStore"),
    ],
)
def test_what_is_of_another_kind_is_refused_when_a_component_is_built(make, said, index):
    with pytest.raises(InvalidInput, match=said):
        make(index)
