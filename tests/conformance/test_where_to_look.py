"""Where to look is said: a store, the host's retriever over one, or what `index=` and `store=` name; nothing else."""

from __future__ import annotations

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableLambda
from llama_index.core import StorageContext
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
)

from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

TEXT = "# Doors\n\nThe code is 1234.\n\n# Windows\n\nThey are shut.\n"
QUESTION = "What is the code of the door?"
PARAGRAPHS = {"unit": "paragraph"}
WHOLE = ["The code is 1234.", "They are shut."]


def stored(host):
    return host.index(*host.sections(("guide", TEXT), views=["raw"]))


WRAPPED = {
    LlamaIndex: {
        "TransformRetriever": lambda inner: TransformRetriever(inner, IdentityQueryTransform()),
        "QueryFusionRetriever": lambda inner: QueryFusionRetriever(
            [inner], llm=MockLLM(), num_queries=1, use_async=False
        ),
        "RecursiveRetriever": lambda inner: RecursiveRetriever("0", {"0": inner}),
        "AutoMergingRetriever": lambda inner: AutoMergingRetriever(inner, StorageContext.from_defaults()),
        "MultiViewRetriever": lambda inner: LlamaIndex.ext.MultiViewRetriever(source=inner),
    },
    LangChain: {
        "with retries": lambda inner: inner.with_retry(),
        "behind a step": lambda inner: RunnableLambda(str.strip) | inner,
        "EnsembleRetriever": lambda inner: EnsembleRetriever(retrievers=[inner], weights=[1.0]),
        "MultiQueryRetriever": lambda inner: MultiQueryRetriever.from_llm(inner, FakeListLLM(responses=["x"])),
        "MultiViewRetriever": lambda inner: LangChain.ext.MultiViewRetriever(source=inner),
    },
}


@pytest.mark.parametrize(
    ("host", "wrap"),
    [pytest.param(host, wrap, id=name) for host, wrappers in WRAPPED.items() for name, wrap in wrappers.items()],
)
def test_behind_what_wraps_a_retriever_only_what_is_named_is_asked(host, wrap):
    filled = stored(host)
    one = host.over(filled, 1)

    def texts(**fields):
        return sorted(
            found.text
            for found in host.retrieve(host.ext.D3Retriever(top_n=9, settings=PARAGRAPHS, **fields), QUESTION)
        )

    assert texts(source=one) == WHOLE
    assert len(texts(source=wrap(one))) == 1
    named = {"index" if host is LlamaIndex else "store": filled}
    assert texts(source=wrap(one), **named) == WHOLE
    shut = host.filters(drillrank_section_path="Windows")
    assert texts(source=wrap(host.over(filled)), **named, filters=shut) == ["They are shut."]


@both_frameworks
@pytest.mark.parametrize("cut", [False, True])
def test_what_was_given_stands_for_a_document_of_which_a_view_was_found_alone(host, cut):
    whole = host.document(TEXT, "guide")
    views = host.split([whole])
    summaries = [piece for piece in views if piece.metadata["drillrank_view"] == "summary"]
    source = host.finds(lambda question: summaries)
    retriever = host.ext.D3Retriever(views if cut else [whole], source=source, top_n=9, settings=PARAGRAPHS)
    assert sorted(found.text for found in host.retrieve(retriever, QUESTION)) == WHOLE


class Redacting(BaseDocumentCompressor):
    """A user's own, which hides what stands in the store."""

    def compress_documents(self, documents, query, callbacks=None):
        return [document.model_copy(update={"page_content": "Redacted."}) for document in documents]


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_what_a_users_compressor_hides_is_not_looked_up_behind_it():
    source = ContextualCompressionRetriever(
        base_compressor=Redacting(), base_retriever=stored(LangChain).as_retriever()
    )
    for name, fields in (("D3Retriever", {"top_n": 9}), ("MultiViewRetriever", {"expand": "neighbours"})):
        retriever = getattr(LangChain.ext, name)(source=source, **fields)
        assert "1234" not in str([found.page_content for found in retriever.invoke(QUESTION)])
