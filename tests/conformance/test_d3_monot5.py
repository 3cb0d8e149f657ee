"""The strategies of drilling down that need MonoT5, through both hosts."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument

import langchain_ext
import llama_index_ext
from drillrank import MonoT5, Relevance
from drillrank.errors import InvalidInput
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.corpus import BOOK, QUESTION

strategies = pytest.mark.parametrize("strategy", ["monot5", "base+monot5", "monot5+base"])


@strategies
def test_llama_index(tiny_monot5, strategy):
    retriever = llama_index_ext.D3Retriever(
        [LlamaIndexDocument(text=BOOK)],
        llama_index_reader.Reader(),
        settings={"paragraphs": strategy, "monot5": MonoT5(tiny_monot5.ready)},
    )
    found = retriever.retrieve(QUESTION)
    assert found
    again = asyncio.run(retriever.aretrieve(QUESTION))
    assert [node.model_dump() for node in again] == [node.model_dump() for node in found]


@strategies
def test_langchain(tiny_monot5, strategy):
    fields = {"paragraphs": strategy, "monot5": MonoT5(tiny_monot5.ready)}
    retriever = langchain_ext.D3Retriever(
        documents=[Document(page_content=BOOK)], llm=langchain_reader.Reader(), settings=fields
    )
    found = retriever.invoke(QUESTION)
    assert found
    assert asyncio.run(retriever.ainvoke(QUESTION)) == found


@pytest.mark.parametrize("transform", ["softmax", "margin"])
@strategies
def test_any_judge_of_relevance_does_the_same(tiny_monot5, strategy, transform):
    """Log-odds are no logarithms of a probability: what is rather relevant than not has another bound there."""
    judges = [
        MonoT5(tiny_monot5.ready),
        Relevance(tiny_monot5.ready, preset="monot5", settings={"transform": transform}),
    ]
    in_llama_index, in_langchain = [], []
    for judge in judges:
        fields = {"paragraphs": strategy, "monot5": judge}
        one = llama_index_ext.D3Retriever([LlamaIndexDocument(text=BOOK)], llama_index_reader.Reader(), settings=fields)
        other = langchain_ext.D3Retriever(
            documents=[Document(page_content=BOOK)], llm=langchain_reader.Reader(), settings=fields
        )
        in_llama_index.append([node.node.text for node in one.retrieve(QUESTION)])
        in_langchain.append([document.page_content for document in other.invoke(QUESTION)])
    assert in_llama_index[0] == in_llama_index[1] != []
    assert in_langchain[0] == in_langchain[1] != []


@strategies
def test_without_a_model_for_it_the_strategy_is_an_error(strategy):
    with pytest.raises(InvalidInput, match="unigram"):
        llama_index_ext.D3Retriever(
            [LlamaIndexDocument(text=BOOK)], llama_index_reader.Reader(), settings={"paragraphs": strategy}
        )
    with pytest.raises(InvalidInput, match="unigram"):
        langchain_ext.D3Retriever([Document(BOOK)], llm=langchain_reader.Reader(), settings={"paragraphs": strategy})
