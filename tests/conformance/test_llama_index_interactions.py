"""Our retrievers and rerankers in whatever of LlamaIndex's stands around them: the evidence comes through.

Ingestion, its cache and upserts: `tests/llama_index_ext/test_multi_view_ingestion.py`; parents, siblings and merging:
`test_d3_hierarchies.py`; filters of what stands in between: `tests/llama_index_ext/test_filters.py`.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from llama_index.core import MockEmbedding, SummaryIndex, VectorStoreIndex, get_response_synthesizer
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import (
    LongContextReorder,
    MetadataReplacementPostProcessor,
    PrevNextNodePostprocessor,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever, RouterRetriever, TransformRetriever
from llama_index.core.schema import TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolMetadata
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step

import llama_index_ext
from tests.conformance.corpus import BOOK, NOTE, QUESTION
from tests.conformance.frameworks import LlamaIndex

EVIDENCE = "The Rhine flows through Basel"
DOCUMENTS = [LlamaIndex.document(BOOK, "book"), LlamaIndex.document(NOTE, "note")]
LLM = MockLLM()  # answers with its prompt: what it was given is in the answer


RETRIEVERS = ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever", "BRMGRRetriever"]


def made(name: str) -> Any:
    return LlamaIndex.made(name, DOCUMENTS, **({"guard": True} if name == "BRMGRRetriever" else {}))


def d3() -> Any:
    return made("D3Retriever")


def views() -> Any:
    return made("MultiViewRetriever")


class First(BaseSelector):
    """Selects the first choice."""

    def _select(self, choices, query):
        return SelectorResult(selections=[SingleSelection(index=0, reason="")])

    async def _aselect(self, choices, query):
        return self._select(choices, query)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass


class Two(BaseQuestionGenerator):
    """Asks the same in two ways."""

    def generate(self, tools, query):
        return [SubQuestion(sub_question=text, tool_name="rivers") for text in (QUESTION, f"{QUESTION} Say it.")]

    async def agenerate(self, tools, query):
        return self.generate(tools, query)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass


def engine(retriever: Any, **fields: Any) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(retriever, llm=LLM, **fields)


def tool(retriever: Any) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine(retriever), name="rivers", description="Of rivers")


def fused(retriever: Any, mode: str) -> QueryFusionRetriever:
    return QueryFusionRetriever([retriever, d3()], llm=LLM, num_queries=1, mode=mode, use_async=False)  # type: ignore[arg-type]


def recursive(retriever: Any) -> RecursiveRetriever:
    return RecursiveRetriever("root", retriever_dict={"root": retriever})


def routed(retriever: Any) -> RouterRetriever:
    return RouterRetriever(First(), [RetrieverTool.from_defaults(retriever, description="Of rivers")], llm=LLM)


def memory() -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(token_limit=3000)


def context_chat(retriever: Any) -> ContextChatEngine:
    return ContextChatEngine.from_defaults(retriever, llm=LLM, memory=memory())


ENGINES: dict[str, Callable[[Any], Any]] = {
    "query engine": lambda r: engine(r).query(QUESTION),
    "asynchronous": lambda r: asyncio.run(engine(r).aquery(QUESTION)),
    "streaming": lambda r: engine(r, streaming=True).query(QUESTION).get_response(),
    "citations": lambda r: CitationQueryEngine.from_args(
        index=VectorStoreIndex([], embed_model=MockEmbedding(8)), retriever=r, llm=LLM
    ).query(QUESTION),
    "router": lambda r: RouterQueryEngine(First(), [tool(r)], llm=LLM).query(QUESTION),
    "sub-questions": lambda r: SubQuestionQueryEngine(
        Two(), get_response_synthesizer(llm=LLM), [tool(r)], use_async=False, verbose=False
    ).query(QUESTION),
    "transformed query": lambda r: TransformQueryEngine(engine(r), IdentityQueryTransform()).query(QUESTION),
    "query engine tool": lambda r: tool(r).call(QUESTION).raw_output,
    "chat with context": lambda r: context_chat(r).chat(QUESTION),
    "chat with context, asynchronous": lambda r: asyncio.run(context_chat(r).achat(QUESTION)),
    "chat, condensed and context": lambda r: CondensePlusContextChatEngine.from_defaults(
        r, llm=LLM, memory=memory()
    ).chat(QUESTION),
    "chat, condensed question": lambda r: CondenseQuestionChatEngine.from_defaults(
        engine(r), llm=LLM, memory=memory()
    ).chat(QUESTION),
    "fusion, reciprocal ranks": lambda r: engine(fused(r, "reciprocal_rerank")).query(QUESTION),
    "fusion, relative scores": lambda r: engine(fused(r, "relative_score")).query(QUESTION),
    "fusion, simple": lambda r: engine(fused(r, "simple")).query(QUESTION),
    "recursive": lambda r: engine(recursive(r)).query(QUESTION),
    "routed retrievers": lambda r: engine(routed(r)).query(QUESTION),
    "transformed retriever": lambda r: engine(TransformRetriever(r, IdentityQueryTransform())).query(QUESTION),
}


@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize("around", ENGINES)
def test_the_evidence_reaches_the_llm(name, around):
    response: Response = ENGINES[around](made(name))
    assert EVIDENCE in str(response)
    assert any(EVIDENCE in found.get_content() for found in response.source_nodes)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retriever_as_a_tool(name):
    found = RetrieverTool.from_defaults(made(name), description="Of rivers").call(QUESTION)
    assert EVIDENCE in found.content


class Acts(CustomLLM):
    """Uses its tool once, then says what the tool said."""

    @property
    def metadata(self):
        return LLMMetadata(model_name="acts")

    def complete(self, prompt, formatted=False, **kwargs):
        observed = prompt.rpartition("Observation:")[2] if "user: Observation:" in prompt else ""
        if observed:
            return CompletionResponse(text=f"Thought: I can answer.\nAnswer: {' '.join(observed.split())}")
        return CompletionResponse(
            text=f'Thought: I need a tool.\nAction: rivers\nAction Input: {{"input": "{QUESTION}"}}'
        )

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield self.complete(prompt)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the host's
def test_an_agent():
    agent = ReActAgent(tools=[tool(d3())], llm=Acts(), streaming=False)

    async def asked():
        return await agent.run(QUESTION, memory=memory())

    assert EVIDENCE in str(asyncio.run(asked()))


def test_a_workflow():
    class Ask(Workflow):
        @step
        async def retrieve(self, ctx: Context, event: StartEvent) -> StopEvent:
            nodes = await d3().aretrieve(event.question)
            best = await llama_index_ext.UPRRerank(top_n=1).apostprocess_nodes(nodes, query_str=event.question)
            return StopEvent(result=best[0].get_content())

    async def asked():
        return await Ask().run(question=QUESTION)

    assert EVIDENCE in asyncio.run(asked())


# Rerankers

INDEX = LlamaIndex.index(*LlamaIndex.split(DOCUMENTS, views=("raw",)))
WINDOWS = SentenceWindowNodeParser.from_defaults(window_size=1).get_nodes_from_documents(DOCUMENTS)


AROUND: dict[str, Callable[[Any], Any]] = {
    "an index's engine": lambda c: INDEX.as_query_engine(llm=LLM, similarity_top_k=9, node_postprocessors=[c]).query(
        QUESTION
    ),
    "an index's chat": lambda c: INDEX.as_chat_engine(
        "context", llm=LLM, similarity_top_k=9, node_postprocessors=[c], memory=memory()
    ).chat(QUESTION),
    "all nodes of a summary index": lambda c: (
        SummaryIndex(DOCUMENTS).as_query_engine(llm=LLM, node_postprocessors=[c]).query(QUESTION)
    ),
    "reordered for a long context": lambda c: engine(views(), node_postprocessors=[c, LongContextReorder()]).query(
        QUESTION
    ),
    "windows of sentences": lambda c: (
        VectorStoreIndex(WINDOWS, embed_model=MockEmbedding(8))
        .as_query_engine(
            llm=LLM,
            similarity_top_k=99,
            node_postprocessors=[c, MetadataReplacementPostProcessor(target_metadata_key="window")],
        )
        .query(QUESTION)
    ),
    "neighbours added": lambda c: engine(
        INDEX.as_retriever(similarity_top_k=9),
        node_postprocessors=[c, PrevNextNodePostprocessor(docstore=INDEX.docstore, mode="both")],
    ).query(QUESTION),
    "two rerankers": lambda c: engine(views(), node_postprocessors=[llama_index_ext.UPRRerank(top_n=9), c]).query(
        QUESTION
    ),
    "a cut-off behind probabilities": lambda c: engine(
        views(),
        node_postprocessors=[
            c,
            llama_index_ext.UPRRerank(score="probability"),
            SimilarityPostprocessor(similarity_cutoff=1e-9),
        ],
    ).query(QUESTION),
}


@pytest.mark.parametrize("name", ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever"])
def test_a_fusion_knows_a_node_again(name):
    host = INDEX.as_retriever(similarity_top_k=9)
    found = getattr(llama_index_ext, name)(source=host)
    first, again = ({hit.node_id: hit.node for hit in found.retrieve(asked)} for asked in (QUESTION, "Whose ships?"))
    known = again if name == "D3Retriever" else {hit.node_id: hit.node for hit in host.retrieve(QUESTION)}
    assert first
    assert {id_: first[id_].hash for id_ in first} == {id_: known[id_].hash for id_ in first}
    assert all(first[id_].metadata != known[id_].metadata for id_ in first)
    copy = pickle.loads(pickle.dumps(deepcopy(list(first.values()))))
    assert [(type(node), node.metadata) for node in copy] == [(TextNode, node.metadata) for node in first.values()]


@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank"])
@pytest.mark.parametrize("around", AROUND)
def test_a_reranker_keeps_the_evidence(name, around):
    response = AROUND[around](getattr(llama_index_ext, name)(prior=None))
    assert any(EVIDENCE in found.get_content() for found in response.source_nodes)


def test_self_ask_is_an_engine_among_engines():
    asks = llama_index_ext.SelfAskQueryEngine(d3(), MockLLM(max_tokens=1), max_steps=1)  # says "text"
    asked = QueryEngineTool(asks, ToolMetadata("self-ask", "asks"))
    assert str(RouterQueryEngine(First(), [asked], llm=LLM).query(QUESTION)) == "text"
