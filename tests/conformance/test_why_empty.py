"""A question whose filter hides everything has no result, and is told why: once, in both hosts."""

import asyncio
import warnings

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning

TEXT = "# Doors\n\nThe code is 1234.\n\n# Windows\n\nThey are closed.\n"
QUESTION = "What is the code of the door?"
THEIRS = MetadataFilters(filters=[MetadataFilter(key="tenant", value="b")])


def _langchain(name):
    guides = [LangChainDocument(TEXT, id="guide", metadata={"tenant": "a"})]
    if name == "MultiViewRetriever":
        guides = langchain_ext.MultiViewTextSplitter().split_documents(guides)
    return getattr(langchain_ext, name), guides


def _in_langchain(name, filter):
    component, guides = _langchain(name)
    return component(documents=guides, filters=filter).invoke(QUESTION)


def _behind_langchain(name, filter):
    component, guides = _langchain(name)
    return component(source=lambda question: guides, filters=filter).invoke(QUESTION)


def _in_llama_index(name, filter):
    guides = [LlamaIndexDocument(text=TEXT, id_="guide", metadata={"tenant": "a"})]
    if name == "MultiViewRetriever":
        guides = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents(guides)
    filters = THEIRS if filter == {"tenant": "b"} else filter
    return getattr(llama_index_ext, name)(guides, filters=filters).retrieve(QUESTION)


@pytest.mark.parametrize("name", ["MultiViewRetriever", "D3Retriever"])
@pytest.mark.parametrize("ask", [_in_langchain, _behind_langchain, _in_llama_index])
@pytest.mark.parametrize("filter", [{"tenant": "b"}, lambda record: record.metadata["tenant"] == "b"])
def test_nothing_passes_the_filter(name, ask, filter):
    with pytest.warns(DrillrankWarning, match="nothing that the filter|passes the filter") as told:
        assert ask(name, filter) == []
    assert len(told) == 1
    assert "1234" not in str(told[0].message)


@pytest.mark.parametrize("name", ["MultiViewRetriever", "D3Retriever"])
@pytest.mark.parametrize("ask", [_in_langchain, _behind_langchain, _in_llama_index])
def test_what_passes_is_found_without_a_word(name, ask):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(name, lambda record: record.metadata["tenant"] == "a")


class _Guides(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(text=TEXT, id_="guide", metadata={"tenant": "a"}))]


def _wrapped_in_langchain(name):
    guides = [LangChainDocument(TEXT, id="guide", metadata={"tenant": "a"})]
    llm = FakeListChatModel(responses=["So the final answer is: unknown"])
    fields = {"PromptRankRetriever": {}, "BRMGRRetriever": {"llm": llm, "n_generated": 1}}[name]
    component = getattr(langchain_ext, name)
    retriever = component(source=lambda question: guides, filters={"tenant": "b"}, **fields)
    return retriever.invoke(QUESTION), asyncio.run(retriever.ainvoke(QUESTION))


def _wrapped_in_llama_index(name):
    fields = {"PromptRankRetriever": {}, "BRMGRRetriever": {"llm": MockLLM(max_tokens=3), "n_generated": 1}}[name]
    retriever = getattr(llama_index_ext, name)(source=_Guides(), filters=THEIRS, **fields)
    return retriever.retrieve(QUESTION), asyncio.run(retriever.aretrieve(QUESTION))


@pytest.mark.parametrize("name", ["PromptRankRetriever", "BRMGRRetriever"])
@pytest.mark.parametrize("ask", [_wrapped_in_langchain, _wrapped_in_llama_index])
def test_what_a_retriever_brought_does_not_vanish_without_a_word(name, ask):
    with pytest.warns(DrillrankWarning, match=f"{name}: the source brought nothing that the filter shows") as told:
        found = ask(name)
    assert "1234" not in str(found)
    assert len(told) == 2  # one a question
