"""Our retrievers and rerankers in whatever of LangChain's stands around them: the evidence comes through.

Indexing and its clean-up: `tests/langchain_ext/test_multi_view_indexing.py`; filters of what stands in between:
`tests/langchain_ext/test_filters.py`; configuration: `test_langchain_chains.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.agents import AgentExecutor, create_react_agent
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
    RePhraseQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    CrossEncoderReranker,
    DocumentCompressorPipeline,
)
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableBranch,
    RunnableLambda,
    RunnablePassthrough,
)
from langchain_core.stores import InMemoryStore
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

import langchain_ext
from tests.conformance.corpus import BOOK, NOTE, QUESTION
from tests.conformance.frameworks import LangChain

EVIDENCE = "The Rhine flows through Basel"
DOCUMENTS = [Document(BOOK, id="book", metadata={"source": "b"}), Document(NOTE, id="note", metadata={"source": "n"})]


RETRIEVERS = ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever", "BRMGRRetriever"]


def made(name: str) -> Any:
    return LangChain.made(name, DOCUMENTS, **({"guard": True} if name == "BRMGRRetriever" else {}))


def d3() -> Any:
    return made("D3Retriever")


def views() -> Any:
    return made("MultiViewRetriever")


class Echo(BaseChatModel):
    """Answers with all that it was asked."""

    @property
    def _llm_type(self):
        return "echo"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        text = "\n".join(str(message.content) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def answers(retriever: Any) -> Any:
    """Retrieval and generation, as the host's tutorials write it."""
    prompt = PromptTemplate.from_template("{context}\n\n{question}")
    given = {"context": retriever | joined, "question": RunnablePassthrough()}
    return given | prompt | Echo() | StrOutputParser()


def says(*texts: str) -> FakeListChatModel:
    return FakeListChatModel(responses=list(texts))


def broken(question: str) -> list[Document]:
    raise ConnectionError(question)


async def streamed(chain: Any) -> str:
    return "".join([part async for part in chain.astream(QUESTION)])


async def events(retriever: Any) -> list[Document]:
    ends = [e async for e in retriever.astream_events(QUESTION, version="v2") if e["event"] == "on_retriever_end"]
    return ends[-1]["data"]["output"]


async def as_completed(retriever: Any) -> list[Document]:
    return dict([found async for found in retriever.abatch_as_completed(["Where is London?", QUESTION])])[1]


def conversation(retriever: Any) -> Any:
    asks = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("user", "{input}")])
    aware = create_history_aware_retriever(says(QUESTION), retriever, asks)
    stuff = create_stuff_documents_chain(Echo(), ChatPromptTemplate.from_template("{context} {input}"))
    chain = create_retrieval_chain(aware, stuff)
    return chain.invoke({"input": "And through Basel?", "chat_history": [HumanMessage("Hello")]})["answer"]


def agent(retriever: Any) -> Any:
    tool = create_retriever_tool(retriever, "rivers", "Of rivers")
    prompt = PromptTemplate.from_template("{tools} {tool_names}\n{input}\n{agent_scratchpad}")

    class Acts(Echo):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            seen = re.search("Observation: (.*)", str(messages[-1].content), re.DOTALL)
            text = f"Final Answer: {seen[1]}" if seen else f"Action: rivers\nAction Input: {QUESTION}"
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    return AgentExecutor(agent=create_react_agent(Acts(), [tool], prompt), tools=[tool]).invoke({"input": QUESTION})


AROUND: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda r: r.invoke(QUESTION),
    "ainvoke": lambda r: asyncio.run(r.ainvoke(QUESTION)),
    "batch": lambda r: r.batch(["Where is London?", QUESTION])[1],
    "abatch": lambda r: asyncio.run(r.abatch(["Where is London?", QUESTION]))[1],
    "batch_as_completed": lambda r: dict(r.batch_as_completed(["Where is London?", QUESTION]))[1],
    "abatch_as_completed": lambda r: asyncio.run(as_completed(r)),
    "stream": lambda r: next(iter(r.stream(QUESTION))),
    "astream_events": lambda r: asyncio.run(events(r)),
    "with_retry": lambda r: r.with_retry().invoke(QUESTION),
    "with_fallbacks": lambda r: RunnableLambda(broken).with_fallbacks([r]).invoke(QUESTION),
    "bind": lambda r: r.bind(top_n=4).invoke(QUESTION),
    "configurable_fields": lambda r: (
        r.configurable_fields(top_n=ConfigurableField("n")).with_config(configurable={"n": 4}).invoke(QUESTION)
    ),
    "configurable_alternatives": lambda r: (
        langchain_ext.PromptRankRetriever(source=broken)
        .configurable_alternatives(ConfigurableField("which"), ours=r)
        .with_config(configurable={"which": "ours"})
        .invoke(QUESTION)
    ),
    "in a chain": lambda r: answers(r).invoke(QUESTION),
    "in a chain, streamed": lambda r: asyncio.run(streamed(answers(r))),
    "branch": lambda r: RunnableBranch((lambda q: "river" in q, r), broken).invoke(QUESTION),
    "ensemble": lambda r: EnsembleRetriever(retrievers=[r, views()]).invoke(QUESTION),
    "merger": lambda r: MergerRetriever(retrievers=[r, views()]).invoke(QUESTION),
    "multi-query": lambda r: MultiQueryRetriever.from_llm(r, says(f"{QUESTION}\nWhere is the Rhine?")).invoke(QUESTION),
    "rephrased query": lambda r: RePhraseQueryRetriever.from_llm(r, says(QUESTION)).invoke("Basel?"),
    "compression": lambda r: ContextualCompressionRetriever(
        base_retriever=r, base_compressor=langchain_ext.UPRRerank(prior=None)
    ).invoke(QUESTION),
    "pipeline of compressors": lambda r: ContextualCompressionRetriever(
        base_retriever=r,
        base_compressor=DocumentCompressorPipeline(
            transformers=[
                RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=0),
                langchain_ext.UPRRerank(prior=None),
            ]
        ),
    ).invoke(QUESTION),
    "cross encoder": lambda r: ContextualCompressionRetriever(
        base_retriever=r,
        base_compressor=CrossEncoderReranker(model=langchain_ext.LikelihoodCrossEncoder(), top_n=2),
    ).invoke(QUESTION),
    "tool": lambda r: create_retriever_tool(r, "rivers", "Of rivers").invoke(QUESTION),
    "conversation": conversation,
    "agent": lambda r: agent(r)["output"],
}


@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize("around", AROUND)
def test_the_evidence_comes_through(name, around):
    found = AROUND[around](made(name))
    assert EVIDENCE in (found if isinstance(found, str) else joined(found))


RERANKERS = {
    "compressor": lambda c, r: ContextualCompressionRetriever(base_retriever=r, base_compressor=c).invoke(QUESTION),
    "compressor, asynchronous": lambda c, r: asyncio.run(
        ContextualCompressionRetriever(base_retriever=r, base_compressor=c).ainvoke(QUESTION)
    ),
    "step of a chain": lambda c, r: c.as_runnable(r).invoke(QUESTION),
    "step with fallbacks": lambda c, r: RunnableLambda(broken).with_fallbacks([c.as_runnable(r)]).invoke(QUESTION),
    "batch": lambda c, r: c.as_runnable(r).batch([QUESTION, "London?"])[0],
    "behind another": lambda c, r: langchain_ext.UPRRerank(top_n=9).as_runnable(c.as_runnable(r)).invoke(QUESTION),
    "in front of an ensemble": lambda c, r: EnsembleRetriever(
        retrievers=[ContextualCompressionRetriever(base_retriever=r, base_compressor=c), d3()]
    ).invoke(QUESTION),
}


@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank"])
@pytest.mark.parametrize("around", RERANKERS)
def test_a_reranker_keeps_the_evidence(name, around):
    reranker = getattr(langchain_ext, name)(prior=None)
    assert EVIDENCE in joined(RERANKERS[around](reranker, views()))


def test_parents_of_our_children_reranked():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    parents = ParentDocumentRetriever(
        vectorstore=store, docstore=InMemoryStore(), child_splitter=langchain_ext.MultiViewTextSplitter()
    )
    parents.add_documents(DOCUMENTS)
    best = langchain_ext.UPRRerank(top_n=1, prior=None).as_runnable(parents).invoke(QUESTION)
    assert [document.page_content for document in best] == [BOOK]


def test_a_self_ask_chain_among_runnables():
    chain = langchain_ext.SelfAskChain(d3(), says("So the final answer is: the Rhine"))
    answer = chain | RunnableLambda(lambda output: output["answer"])
    assert answer.batch([QUESTION, QUESTION]) == ["the Rhine"] * 2
    assert RunnableLambda(broken).with_fallbacks([answer]).invoke(QUESTION) == "the Rhine"


def test_every_run_ends():
    class Open(BaseCallbackHandler):
        def __init__(self):
            self.runs = set()

        def on_chain_start(self, serialized, inputs, *, run_id, **kwargs):
            self.runs.add(run_id)

        def on_retriever_start(self, serialized, query, *, run_id, **kwargs):
            self.runs.add(run_id)

        def on_chain_end(self, outputs, *, run_id, **kwargs):
            self.runs.remove(run_id)

        on_retriever_end = on_chain_end

    handler = Open()
    chain = langchain_ext.UPRRerank().as_runnable(langchain_ext.PromptRankRetriever(source=d3()))
    chain.invoke(QUESTION, {"callbacks": [handler]})
    asyncio.run(chain.ainvoke(QUESTION, {"callbacks": [handler]}))
    assert not handler.runs
