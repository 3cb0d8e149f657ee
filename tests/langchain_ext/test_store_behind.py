"""The vector store that all of a source's documents come from: found behind every wrapper that adds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import langchain_classic.retrievers as host
import pytest
from langchain_classic.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
    LLMChainExtractor,
    LLMChainFilter,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.runnables import (
    ConfigurableField,
    RouterRunnable,
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
)
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter

from langchain_ext import (
    BRMGRRetriever,
    D3Retriever,
    LikelihoodCrossEncoder,
    MultiViewRetriever,
    MultiViewTextSplitter,
    PromptRankRetriever,
    UPRRerank,
)
from langchain_ext._filters import store_behind

EMBEDDING = DeterministicFakeEmbedding(size=8)
STORE, OTHER = InMemoryVectorStore(EMBEDDING), InMemoryVectorStore(EMBEDDING)
LLM = FakeListLLM(responses=["x"])


class Redacting(BaseDocumentCompressor):
    """A user's own, which hides what stands in the store."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return [document.model_copy(update={"page_content": "Redacted."}) for document in documents]


class Untranslated(Visitor):
    def visit_operation(self, operation: Any) -> Any: ...
    def visit_comparison(self, comparison: Any) -> Any: ...
    def visit_structured_query(self, structured_query: Any) -> Any: ...


def compressed(inner: Any, compressor: Any) -> Runnable:
    return host.ContextualCompressionRetriever(base_compressor=compressor, base_retriever=inner)


def by_itself(inner: Any) -> Runnable:
    return host.SelfQueryRetriever(
        vectorstore=inner.vectorstore,
        query_constructor=RunnableLambda(str),
        structured_query_translator=Untranslated(),
    )


def ensemble(*retrievers: Any) -> Runnable:
    return host.EnsembleRetriever(retrievers=list(retrievers), weights=[1.0] * len(retrievers))


def branch(first: Any, *others: Any) -> Runnable:
    return RunnableBranch((lambda question: True, first), *(others or [first]))


def routed(*retrievers: Any) -> Runnable:
    return RouterRunnable({str(number): one for number, one in enumerate(retrievers)})


Wrap = Callable[[Any], Any]
ONE: dict[str, Wrap] = {
    "itself": lambda inner: inner,
    "with fallbacks": lambda inner: inner.with_fallbacks([inner]),
    "with retries": lambda inner: inner.with_retry(),
    "with a configuration": lambda inner: inner.with_config(tags=["x"]),
    "with arguments": lambda inner: inner.bind(k=3),
    "configurable": lambda inner: inner.configurable_fields(search_kwargs=ConfigurableField("search")),
    "each": lambda inner: inner.map(),
    "behind a step": lambda inner: RunnableLambda(str.strip) | inner,
    "in a branch": branch,
    "routed to": routed,
    "by view": lambda inner: {"raw": inner, "keywords": inner},
    "EnsembleRetriever": ensemble,
    "MergerRetriever": lambda inner: host.MergerRetriever(retrievers=[inner, inner]),
    "MultiQueryRetriever": lambda inner: host.MultiQueryRetriever.from_llm(inner, LLM),
    "RePhraseQueryRetriever": lambda inner: host.RePhraseQueryRetriever.from_llm(inner, LLM),
    "SelfQueryRetriever": by_itself,
    "ContextualCompressionRetriever": lambda inner: compressed(inner, UPRRerank()),
    "a cross encoder": lambda inner: compressed(inner, CrossEncoderReranker(model=LikelihoodCrossEncoder())),
    "a filter by an LLM": lambda inner: compressed(inner, LLMChainFilter.from_llm(LLM)),
    "MultiViewRetriever": lambda inner: MultiViewRetriever(source=inner),
    "MultiViewRetriever over the store": lambda inner: MultiViewRetriever(source=inner.vectorstore),
    "PromptRankRetriever": lambda inner: PromptRankRetriever(source=inner),
}
SEVERAL: dict[str, Callable[..., Any]] = {
    "with fallbacks": lambda one, other: one.with_fallbacks([other]),
    "in a branch": branch,
    "routed to": routed,
    "by view": lambda *inner: dict(zip(["raw", "keywords"], inner, strict=True)),
    "EnsembleRetriever": ensemble,
    "MultiViewRetriever": lambda *inner: MultiViewRetriever(source=dict(zip(["raw", "keywords"], inner, strict=True))),
}
MORE: dict[str, Wrap] = {
    "before a step": lambda inner: inner | RunnableLambda(lambda found: found[:1]),
    "in a function": lambda inner: RunnableLambda(lambda question: inner.invoke(question)),
    "beside another": lambda inner: RunnableParallel(found=inner),
    "MultiVectorRetriever": lambda inner: host.MultiVectorRetriever(
        vectorstore=inner.vectorstore, docstore=InMemoryStore()
    ),
    "ParentDocumentRetriever": lambda inner: host.ParentDocumentRetriever(
        vectorstore=inner.vectorstore, docstore=InMemoryStore(), child_splitter=CharacterTextSplitter()
    ),
    "TimeWeightedVectorStoreRetriever": lambda inner: host.TimeWeightedVectorStoreRetriever(
        vectorstore=inner.vectorstore
    ),
    "a user's compressor": lambda inner: compressed(inner, Redacting()),
    "an extractor": lambda inner: compressed(inner, LLMChainExtractor.from_llm(LLM)),
    "a pipeline": lambda inner: compressed(inner, DocumentCompressorPipeline(transformers=[Redacting()])),
    "PromptRankRetriever with a docstore": lambda inner: PromptRankRetriever(source=inner, store=InMemoryStore()),
    "BRMGRRetriever": lambda inner: BRMGRRetriever(source=inner, llm=FakeListChatModel(responses=["x"])),
    "D3Retriever": lambda inner: D3Retriever(source=inner),
    "in memory": lambda inner: MultiViewRetriever(documents=MultiViewTextSplitter().create_documents(["x"])),
}


def test_every_retriever_of_the_host_is_in_a_table():
    of_the_host = set()
    for name in host.__all__:
        try:
            getattr(host, name)
        except (ModuleNotFoundError, DeprecationWarning):  # of another package, by way of this one
            continue
        of_the_host.add(name)
    assert of_the_host == (ONE.keys() | MORE.keys()) & set(host.__all__)


@pytest.mark.parametrize("wrap", ONE.values(), ids=ONE)
def test_a_single_store_is_found(wrap: Wrap):
    assert store_behind(wrap(STORE.as_retriever())) is STORE


@pytest.mark.parametrize("outer", ["EnsembleRetriever", "routed", "with retries", "MultiViewRetriever", "by view"])
@pytest.mark.parametrize("wrap", sorted(ONE.keys() - {"by view"}))
def test_a_single_store_is_found_behind_two(wrap: str, outer: str):
    around: Callable[..., Any] = {"EnsembleRetriever": ensemble, "routed": routed}.get(outer) or ONE[outer]
    assert store_behind(around(ONE[wrap](STORE.as_retriever()))) is STORE


@pytest.mark.parametrize("wrap", SEVERAL.values(), ids=SEVERAL)
def test_of_two_stores_there_is_none(wrap: Callable[..., Any]):
    assert store_behind(wrap(STORE.as_retriever(), OTHER.as_retriever())) is None
    assert store_behind(wrap(STORE.as_retriever(), STORE.as_retriever())) is STORE
    assert store_behind(wrap(STORE.as_retriever(), RunnableLambda(lambda question: []))) is None


@pytest.mark.parametrize("wrap", MORE.values(), ids=MORE)
def test_where_a_source_brings_other_things_there_is_none(wrap: Wrap):
    assert store_behind(wrap(STORE.as_retriever())) is None


def test_a_runs_configuration_is_followed():
    either = STORE.as_retriever().configurable_alternatives(ConfigurableField("who"), theirs=OTHER.as_retriever())
    assert store_behind(either) is STORE
    assert store_behind(RunnableLambda(str.strip) | either, {"configurable": {"who": "theirs"}}) is OTHER
    assert store_behind(STORE) is STORE
    assert store_behind(None) is store_behind({}) is None


TEXT = "# Doors\n\nThe code is 1234.\n\n# Windows\n\nThey are shut.\n"
ASKS_MORE = ["MultiQueryRetriever", "RePhraseQueryRetriever", "EnsembleRetriever", "ContextualCompressionRetriever"]


@pytest.mark.parametrize("name", ASKS_MORE)
def test_a_document_is_put_together_from_the_store_behind(name: str):
    store = InMemoryVectorStore(EMBEDDING)
    store.add_documents(MultiViewTextSplitter().split_documents([Document(TEXT, id="guide")]))
    source = ONE[name](store.as_retriever(search_kwargs={"k": 1}))
    found = D3Retriever(source=source, top_n=9).invoke("What is the code of the door?")
    assert sorted(document.page_content for document in found) == ["The code is 1234.", "They are shut."]


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_what_a_users_compressor_hides_is_not_looked_up_behind_it():
    store = InMemoryVectorStore(EMBEDDING)
    store.add_documents(MultiViewTextSplitter().split_documents([Document(TEXT, id="guide")]))
    source = compressed(store.as_retriever(search_kwargs={"k": 6}), Redacting())
    for retriever in (D3Retriever(source=source, top_n=9), MultiViewRetriever(source=source, expand="neighbours")):
        found = retriever.invoke("What is the code of the door?")
        assert "1234" not in str([document.page_content for document in found])
