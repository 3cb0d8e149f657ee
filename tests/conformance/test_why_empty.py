"""A question whose filter hides everything has no result, and is told why: once, in both hosts."""

import warnings

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
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
    return component(documents=guides, filter=filter).invoke(QUESTION)


def _behind_langchain(name, filter):
    component, guides = _langchain(name)
    return component(source=lambda question: guides, filter=filter).invoke(QUESTION)


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
