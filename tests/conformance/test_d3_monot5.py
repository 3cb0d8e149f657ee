"""The strategies of drilling down that need MonoT5, through both hosts."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument

import langchain_ext
import llama_index_ext
from drillrank import MonoT5
from drillrank.errors import InvalidInput
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.corpus import BOOK, QUESTION

strategies = pytest.mark.parametrize("strategy", ["monot5", "base+monot5", "monot5+base"])


@strategies
def test_llama_index(tiny_monot5, strategy):
    retriever = llama_index_ext.D3Retriever(
        [LlamaIndexDocument(text=BOOK)],
        llama_index_reader.Reader(),
        paragraphs=strategy,
        monot5=MonoT5(tiny_monot5.ready),
    )
    found = retriever.retrieve(QUESTION)
    assert found
    again = asyncio.run(retriever.aretrieve(QUESTION))
    assert [node.model_dump() for node in again] == [node.model_dump() for node in found]


@strategies
def test_langchain(tiny_monot5, strategy):
    fields = {"llm": langchain_reader.Reader(), "paragraphs": strategy, "monot5": MonoT5(tiny_monot5.ready)}
    retriever = langchain_ext.D3Retriever(documents=[Document(page_content=BOOK)], **fields)
    found = retriever.invoke(QUESTION)
    assert found
    assert asyncio.run(retriever.ainvoke(QUESTION)) == found


@strategies
def test_without_a_model_for_it_the_strategy_is_an_error(strategy):
    with pytest.raises(InvalidInput, match="unigram"):
        llama_index_ext.D3Retriever([], llama_index_reader.Reader(), paragraphs=strategy)
    with pytest.raises(InvalidInput, match="unigram"):
        langchain_ext.D3Retriever(documents=[], llm=langchain_reader.Reader(), paragraphs=strategy)
