"""An index in the place of nodes or of a retriever is told where it goes."""

from __future__ import annotations

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM

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
    ],
)
def test_an_index_is_no_retriever(make, index):
    with pytest.raises(InvalidInput, match="VectorStoreIndex is none: of an index, pass index"):
        make(index)
