"""Arguments, sources and questions that only the components of LangChain refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from drillrank.errors import InvalidInput
from langchain_ext import (
    BRMGRRerank,
    BRMGRRetriever,
    D3Retriever,
    MonoT5Rerank,
    MultiViewRetriever,
    MultiViewTextSplitter,
    PromptRankRerank,
    PromptRankRetriever,
    RelevanceRerank,
    SelfAskChain,
    UPRRerank,
)
from langchain_ext._filters import DocumentFilter
from tests.drillrank.helpers import refuses
from tests.langchain_ext.filter_cases import ALL, STORE

QUERY = "Who hunts mice?"
FOX = Document("Foxes hunt mice.", id="fox")
LLM = FakeListChatModel(responses=["A passage."])
NEURAL = [cls(model="hf:no-such-model") for cls in (MonoT5Rerank, RelevanceRerank)]
RERANKERS = [UPRRerank(), BRMGRRerank(), PromptRankRerank(), *NEURAL]


async def never(document: Document) -> bool:
    return False


def self_ask(**fields: Any) -> SelfAskChain:
    return SelfAskChain(source=D3Retriever([FOX]), llm=LLM, **fields)


test_input_that_cannot_be_used_is_refused_in_few_words = refuses(
    (lambda: D3Retriever(FOX), "documents of D3Retriever"),
    (lambda: D3Retriever(["text"]), "documents of D3Retriever"),
    (lambda: D3Retriever([FOX], "unigram"), "takes at most 1 positional arguments, got 2"),
    *(
        (lambda text=text: D3Retriever([FOX], llm=LLM, settings={"section_prompt": text}), "template")
        for text in ("no places", "{question} only", "{outline}{question}{unknown}")
    ),
    (
        lambda: D3Retriever([FOX], llm=LLM, settings={"section_prompt": 5}),
        r"A template must contain \{outline\}, got 5",
    ),
    (lambda: MultiViewRetriever(source={"raw": STORE}), r"as_retriever\(\)"),
    (lambda: MultiViewTextSplitter(200), "got 200"),
    (lambda: MonoT5Rerank(), "MonoT5Rerank needs model: A neural model"),
    (lambda: PromptRankRerank(links="names"), "'names'"),
    (lambda: PromptRankRetriever(source=RunnableLambda(lambda question: [FOX]), store={}), "store"),
    (lambda: UPRRerank(top_k=3), "did you mean 'top_n'"),
    (lambda: UPRRerank().compress_documents(["a text"], QUERY), "got a str among them"),
    (lambda: self_ask(prompt="{question}{unknown}{transcript}"), "prompt"),
    *(
        (lambda question=question: self_ask().invoke(question), "A query must be a string")
        for question in (5, {"question": QUERY}, None)
    ),
    *(
        (lambda filters=filters: DocumentFilter(filters), "filter")
        for filters in (3, "tenant", ["tenant"], {"tenant": None}, {"tenant": {"$near": 1}})
    ),
    (lambda: DocumentFilter(never).filter_results(ALL), "asynchronous"),
    *(
        (lambda reranker=reranker, given=given: reranker.as_runnable().invoke(given), "as_runnable")
        for reranker in RERANKERS
        for given in ([FOX], QUERY, {"query": QUERY}, None)
    ),
    *(
        (
            # As create_retrieval_chain gives it.
            lambda reranker=reranker: reranker.as_runnable(RunnableLambda(str.encode)).invoke({"input": QUERY}),
            r"A query must be a string .*'input'",
        )
        for reranker in RERANKERS
    ),
)


SOURCES = {
    "D3Retriever": lambda source, filters: D3Retriever(source=source, filters=filters),
    "MultiViewRetriever": lambda source, filters: MultiViewRetriever(source=source, filters=filters),
    "PromptRankRetriever": lambda source, filters: PromptRankRetriever(source=source, filters=filters),
    "BRMGRRetriever": lambda source, filters: BRMGRRetriever(source=source, llm=LLM, filters=filters),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("found", [None, "a text", {"documents": []}, 7, ["a text"], [Document("one"), None]], ids=repr)
@pytest.mark.parametrize("filters", [None, {"tenant": "a"}], ids=["no filter", "a filter"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_source_that_returns_no_documents_is_refused(name, found, filters, asynchronous):
    retriever = SOURCES[name](lambda question: found, filters)
    with pytest.raises(InvalidInput, match=r"A source must return.*(NoneType|str|dict|int)"):
        asyncio.run(retriever.ainvoke(QUERY)) if asynchronous else retriever.invoke(QUERY)
