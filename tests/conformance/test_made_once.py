"""First questions at the same time: documents are prepared and summarised once, in both hosts, sync and async."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from llama_index.core import Document
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore

import langchain_ext
import llama_index_ext
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.readers import Crowd

TEXT = "\n\n".join(
    f"# Part {n}\n\n" + " ".join(f"Sentence {m} of part {n} is about stones." for m in range(20)) + "\n\nThe end."
    for n in range(3)
)


def answer(prompt):
    return "Stones." if "summarization" in prompt else "none"


class LlamaIndexSource(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=Document(text=TEXT, id_="book"), score=1.0)]


class LangChainSource(LangChainRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [LangChainDocument(TEXT, id="book")]


def llama_index(crowd, embed):
    llm = llama_index_reader.Reader(answer, crowd)
    made = llama_index_ext.D3Retriever(llm=llm, source=LlamaIndexSource(), settings={"summarizer": "llm"}, embed=embed)
    return made.retrieve, made.aretrieve


def langchain(crowd, embed):
    llm = langchain_reader.Reader(answer=answer, crowd=crowd)
    made = langchain_ext.D3Retriever(llm=llm, source=LangChainSource(), settings={"summarizer": "llm"}, embed=embed)
    return made.invoke, made.ainvoke


@pytest.mark.parametrize("host", [llama_index, langchain])
@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_eight_first_questions_at_once_prepare_and_summarise_once(host, how):
    embedded = []

    def embed(texts):
        embedded.append(len(texts))
        return [[1.0, len(text)] for text in texts]

    crowd = Crowd(0.01)
    ask, aask = host(crowd, embed)

    async def all_at_once():
        await asyncio.gather(*(aask("Which stones?") for _ in range(8)))

    if how == "tasks":
        asyncio.run(all_at_once())
    else:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ask, ["Which stones?"] * 8))
    assert sum("summarization" in prompt for prompt in crowd.prompts) == 3
    assert embedded == [6]
