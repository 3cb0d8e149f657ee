"""Where to look is said: a store, the host's retriever over one, or what `index=` and `store=` name; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.documents import Document as Page
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
)

import langchain_ext
import llama_index_ext

TEXT = "# Doors\n\nThe code is 1234.\n\n# Windows\n\nThey are shut.\n"
QUESTION = "What is the code of the door?"
WHOLE = ["The code is 1234.", "They are shut."]


class Redacting(BaseDocumentCompressor):
    """A user's own, which hides what stands in the store."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Page]:
        return [document.model_copy(update={"page_content": "Redacted."}) for document in documents]


def index() -> VectorStoreIndex:
    nodes = llama_index_ext.MultiViewNodeParser(views=["raw"])([Document(text=TEXT, id_="guide")])
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))


def store() -> InMemoryVectorStore:
    filled = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    pieces = langchain_ext.MultiViewTextSplitter(["raw"]).split_documents([Page(TEXT, id="guide")])
    filled.add_documents(pieces)
    return filled


LLAMA_INDEX: dict[str, Callable[[BaseRetriever], BaseRetriever]] = {
    "TransformRetriever": lambda inner: TransformRetriever(inner, IdentityQueryTransform()),
    "QueryFusionRetriever": lambda inner: QueryFusionRetriever([inner], llm=MockLLM(), num_queries=1, use_async=False),
    "RecursiveRetriever": lambda inner: RecursiveRetriever("0", {"0": inner}),
    "AutoMergingRetriever": lambda inner: AutoMergingRetriever(inner, StorageContext.from_defaults()),
    "MultiViewRetriever": lambda inner: llama_index_ext.MultiViewRetriever(source=inner),
}
LANGCHAIN: dict[str, Callable[[Any], Any]] = {
    "with retries": lambda inner: inner.with_retry(),
    "behind a step": lambda inner: RunnableLambda(str.strip) | inner,
    "EnsembleRetriever": lambda inner: EnsembleRetriever(retrievers=[inner], weights=[1.0]),
    "MultiQueryRetriever": lambda inner: MultiQueryRetriever.from_llm(inner, FakeListLLM(responses=["x"])),
    "MultiViewRetriever": lambda inner: langchain_ext.MultiViewRetriever(source=inner),
}


def texts(found: list[Any]) -> list[str]:
    return sorted(one.page_content if isinstance(one, Page) else one.node.get_content() for one in found)


@pytest.mark.parametrize("wrap", LLAMA_INDEX.values(), ids=LLAMA_INDEX)
def test_llama_index(wrap):
    filled = index()
    one = filled.as_retriever(similarity_top_k=1)
    assert texts(llama_index_ext.D3Retriever(source=one, top_n=9).retrieve(QUESTION)) == WHOLE
    brought = texts(llama_index_ext.D3Retriever(source=wrap(one), top_n=9).retrieve(QUESTION))
    assert len(brought) == 1
    assert texts(llama_index_ext.D3Retriever(source=wrap(one), index=filled, top_n=9).retrieve(QUESTION)) == WHOLE


@pytest.mark.parametrize("wrap", LANGCHAIN.values(), ids=LANGCHAIN)
def test_langchain(wrap):
    filled = store()
    one = filled.as_retriever(search_kwargs={"k": 1})
    assert texts(langchain_ext.D3Retriever(source=one, top_n=9).invoke(QUESTION)) == WHOLE
    brought = texts(langchain_ext.D3Retriever(source=wrap(one), top_n=9).invoke(QUESTION))
    assert len(brought) == 1
    assert texts(langchain_ext.D3Retriever(source=wrap(one), store=filled, top_n=9).invoke(QUESTION)) == WHOLE


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_what_a_users_compressor_hides_is_not_looked_up_behind_it():
    source = ContextualCompressionRetriever(base_compressor=Redacting(), base_retriever=store().as_retriever())
    drilling = langchain_ext.D3Retriever(source=source, top_n=9)
    views = langchain_ext.MultiViewRetriever(source=source, expand="neighbours")
    for retriever in (drilling, views):
        assert "1234" not in str(texts(retriever.invoke(QUESTION)))


def test_what_is_looked_up_there_obeys_the_filters():
    filled = store()
    found = langchain_ext.D3Retriever(
        source=filled.as_retriever().with_retry(),
        store=filled,
        filters={"drillrank_section_path": "Windows"},
        top_n=9,
    ).invoke(QUESTION)
    assert texts(found) == ["They are shut."]
