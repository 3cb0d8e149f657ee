"""LangChain's `dumps` and `loads`: a component comes back as it was; what cannot be written is refused."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

import langchain_ext
from drillrank import load_language_model
from tests.conformance.corpus import QUESTION
from tests.langchain_ext.loading import restored

DOCUMENTS = [Document("# Owls\n\nThey hoot.", id="owls", metadata={"tenant": "a"}), Document("Foxes hunt.", id="fox")]
MINE = {"tenant": "a"}


@pytest.mark.parametrize(
    "component",
    [
        langchain_ext.UPRRerank(load_language_model(mu=7.0), top_n=1, settings={"score_threshold": -9.0}),
        langchain_ext.BRMGRRerank(guard=True),
        langchain_ext.PromptRankRerank(filters=MINE, links=("titles",), settings={"hops": 1}),
        langchain_ext.MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k"),
        langchain_ext.RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker"),
    ],
    ids=lambda component: type(component).__name__,
)
def test_a_reranker_comes_back_as_it_was(component):
    again = restored(component)
    assert type(again) is type(component)
    assert again.model_dump() == component.model_dump()
    if "model_options" not in component.model_fields_set and component.model == "unigram":
        assert again.compress_documents(DOCUMENTS, QUESTION) == component.compress_documents(DOCUMENTS, QUESTION)


def test_retrievers_come_back_with_their_documents_and_filters():
    prompt = PromptTemplate.from_template("Which of {outline} for {question}?")
    d3 = langchain_ext.D3Retriever(DOCUMENTS, filters=MINE, top_n=9, settings={"section_prompt": prompt})
    pieces = langchain_ext.MultiViewTextSplitter().split_documents(DOCUMENTS)
    for component in (
        d3,
        langchain_ext.MultiViewRetriever(pieces, filters=MINE),
        langchain_ext.PromptRankRetriever(DOCUMENTS, source=d3, filters=MINE),
    ):
        found = restored(component, langchain_ext.D3Retriever).invoke(QUESTION)
        assert found == component.invoke(QUESTION) != []
        assert {document.metadata["tenant"] for document in found} == {"a"}
    assert restored(d3).settings.section_prompt == prompt


@pytest.mark.parametrize(
    "component",
    [
        langchain_ext.PromptRankRerank(filters=lambda document: False),
        langchain_ext.D3Retriever(DOCUMENTS, filters=lambda document: True),
        langchain_ext.PromptRankRerank(source=RunnableLambda(lambda question: DOCUMENTS)),
        langchain_ext.LikelihoodCrossEncoder(),  # as the host's own
        langchain_ext.MultiViewTextSplitter(),
    ],
    ids=["a reranker's filter", "a retriever's filter", "a source", "cross encoder", "splitter"],
)
def test_what_cannot_be_written_is_refused(component):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((NotImplementedError, ValueError)):
            loads(dumps(component), valid_namespaces=["langchain_ext"])
