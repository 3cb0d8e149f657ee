"""`PromptRankRetriever(llm=...)` in both hosts: asked once a hop, told what it named and cost, the same in async."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever as LangChainBase
from llama_index.core import PromptTemplate
from llama_index.core.retrievers import BaseRetriever as LlamaIndexBase
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank.errors import InvalidInput
from drillrank.vectors import TfidfIndex, top
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.building import build

TEXTS = {
    "film": "The Silent Pier was directed by Ada Holm.",
    "holm": "Ada Holm, a child of Esbjerg: an article on her youth.",
    **{f"whale{i}": f"Whales of the north sing at night, number {i}." for i in range(9)},
}
IDS = list(TEXTS)
INDEX = TfidfIndex(list(TEXTS.values()))
QUERY = "In which port did the director of The Silent Pier grow up?"


def found(query):
    return [IDS[i] for i in top(INDEX.scores(query), 2)]


class Documents(LangChainBase):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(TEXTS[name], id=name) for name in found(query)]


class Nodes(LlamaIndexBase):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(text=TEXTS[name], id_=name)) for name in found(query_bundle.query_str)]


def by_langchain(says, **fields):
    llm = langchain_reader.Reader(answer=says)
    retriever = build(langchain_ext.PromptRankRetriever, source=Documents(), llm=llm, hops=3, **fields)
    return retriever, lambda: retriever.invoke(QUERY), lambda: retriever.ainvoke(QUERY), llm.crowd.prompts


def by_llama_index(says, **fields):
    llm = llama_index_reader.Reader(says)
    retriever = build(llama_index_ext.PromptRankRetriever, source=Nodes(), llm=llm, hops=3, **fields)
    return retriever, lambda: retriever.retrieve(QUERY), lambda: retriever.aretrieve(QUERY), llm._crowd.prompts


BOTH = pytest.mark.parametrize("made", [by_langchain, by_llama_index])


def told(results):
    return [
        {key: value for key, value in result.metadata.items() if key.startswith("drillrank_")} for result in results
    ]


async def awaited(call):
    return await call()


@BOTH
def test_what_it_names_is_found_and_its_cost_is_told(made):
    _, sync, later, prompts = made(lambda prompt: "article on Ada Holm" if "child" not in prompt else "nothing")
    results = told(sync())
    assert "film > holm" in [result["drillrank_path"] for result in results]
    assert {result["drillrank_missing"] for result in results} == {"article on Ada Holm"}
    assert {result["drillrank_llm_calls"] for result in results} == {len(prompts)} == {2}
    assert all(result["drillrank_prompt_tokens"] > 50 for result in results)
    assert TEXTS["film"] in prompts[0]
    assert QUERY in prompts[0]
    assert told(asyncio.run(awaited(later))) == results


@pytest.mark.parametrize(
    "sync",
    [
        lambda: langchain_ext.PromptRankRetriever(source=Documents(), settings={"hops": 3}).invoke(QUERY),
        lambda: llama_index_ext.PromptRankRetriever(source=Nodes(), settings={"hops": 3}).retrieve(QUERY),
    ],
)
def test_without_an_llm_nothing_is_told_of_one(sync):
    assert not [key for result in told(sync()) for key in result if "missing" in key or "llm" in key]


def test_the_hosts_own_prompts():
    chat = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{documents} {question} Lacking?")])
    _, sync, _, prompts = by_langchain(lambda prompt: "nothing", missing_prompt=chat)
    sync()
    assert prompts[0].endswith("Lacking?")
    retriever, sync, _, prompts = by_llama_index(lambda prompt: "nothing")
    retriever.update_prompts({"missing_prompt": PromptTemplate("{documents} {question} Lacking?")})
    sync()
    assert prompts[0].endswith("Lacking?")
    assert list(retriever.get_prompts()) == ["missing_prompt"]
    for broken in (by_langchain, by_llama_index):
        with pytest.raises((InvalidInput, ValueError), match=r"documents|question"):
            broken(lambda prompt: "nothing", missing_prompt="Lacking?")
