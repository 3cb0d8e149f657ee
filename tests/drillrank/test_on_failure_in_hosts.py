"""`on_failure="raise"` of the components that ask an LLM for views, passages and what paths lack, in both hosts."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning, LLMFailure
from drillrank.evaluation.settings_file import keyword_arguments
from tests.conformance import langchain_reader, llama_index_reader

TEXT = "# Foxes\n\nThey hunt.\n"


class Down(Exception):
    pass


def down(prompt):
    raise Down("no route")


def langchain_views(**fields):
    splitter = langchain_ext.MultiViewTextSplitter(
        llm=langchain_reader.Reader(answer=down), **keyword_arguments(langchain_ext.MultiViewTextSplitter, fields)
    )
    documents = [LangChainDocument(TEXT)]
    return lambda: splitter.split_documents(documents), lambda: splitter.atransform_documents(documents)


def llama_index_views(**fields):
    parser = llama_index_ext.MultiViewNodeParser(
        llm=llama_index_reader.Reader(down), **keyword_arguments(llama_index_ext.MultiViewNodeParser, fields)
    )
    documents = [Document(text=TEXT)]
    return (lambda: parser.get_nodes_from_documents(documents), lambda: parser.aget_nodes_from_documents(documents))


def langchain_passages(**fields):
    inner = langchain_ext.D3Retriever(documents=[LangChainDocument(TEXT)])
    retriever = langchain_ext.BRMGRRetriever(
        source=inner,
        llm=langchain_reader.Reader(answer=down),
        **keyword_arguments(langchain_ext.BRMGRRetriever, fields),
    )
    return lambda: retriever.invoke("Who hunts?"), lambda: retriever.ainvoke("Who hunts?")


def llama_index_passages(**fields):
    inner = llama_index_ext.D3Retriever([Document(text=TEXT)])
    retriever = llama_index_ext.BRMGRRetriever(
        inner, llama_index_reader.Reader(down), **keyword_arguments(llama_index_ext.BRMGRRetriever, fields)
    )
    return lambda: retriever.retrieve("Who hunts?"), lambda: retriever.aretrieve("Who hunts?")


def langchain_paths(**fields):
    inner = langchain_ext.D3Retriever(documents=[LangChainDocument(TEXT)])
    retriever = langchain_ext.PromptRankRetriever(
        source=inner,
        llm=langchain_reader.Reader(answer=down),
        **keyword_arguments(langchain_ext.PromptRankRetriever, fields),
    )
    return lambda: retriever.invoke("Who hunts?"), lambda: retriever.ainvoke("Who hunts?")


def llama_index_paths(**fields):
    inner = llama_index_ext.D3Retriever([Document(text=TEXT)])
    retriever = llama_index_ext.PromptRankRetriever(
        source=inner,
        llm=llama_index_reader.Reader(down),
        **keyword_arguments(llama_index_ext.PromptRankRetriever, fields),
    )
    return lambda: retriever.retrieve("Who hunts?"), lambda: retriever.aretrieve("Who hunts?")


VIEWS, PASSAGES = (langchain_views, llama_index_views), (langchain_passages, llama_index_passages)
PATHS = (langchain_paths, llama_index_paths)


@pytest.mark.parametrize("made", [*VIEWS, *PASSAGES, *PATHS])
def test_a_failed_call_raises_or_is_done_without(made):
    sync, later = made()
    with pytest.warns(DrillrankWarning, match="no route"):
        assert sync()
    sync, later = made(on_failure="raise")
    for asked in (sync, lambda: asyncio.run(_awaited(later))):
        with pytest.raises(LLMFailure) as caught:
            asked()
        assert isinstance(caught.value.__cause__, Down)


async def _awaited(asked):
    return await asked()
