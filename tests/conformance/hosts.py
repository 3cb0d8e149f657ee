"""Both hosts under one roof, for tests that say the same of both: records, models, components and what they return."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever as Retriever
from langchain_core.stores import InMemoryStore
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from pydantic import PrivateAttr

import langchain_ext
import llama_index_ext


class Found(NamedTuple):
    """A result."""

    id: str | None
    score: float
    text: str
    metadata: dict[str, Any]


class Nodes(BaseRetriever):
    """Always the same nodes."""

    def __init__(self, nodes: Sequence[TextNode]) -> None:
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=0.5) for node in self.nodes]


class Documents(Retriever):
    """Always the same documents."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found


class Script:
    """One answer after the other; raises those that are exceptions, and takes its time if it is asked to."""

    def __init__(self, answers: Sequence[Any], seconds: float) -> None:
        self.answers, self.seconds = answers, seconds
        self.calls = self.busy = self.most = 0

    def next(self) -> str:
        answer = self.answers[self.calls % len(self.answers)]
        self.calls += 1
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    async def anext(self) -> str:
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(self.seconds)
        self.busy -= 1
        return self.next()


class ScriptedLLM(CustomLLM):
    """Of LlamaIndex."""

    _script: Script = PrivateAttr()

    @property
    def script(self) -> Script:
        return self._script

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._script.next())

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=await self._script.anext())

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class ScriptedChatModel(BaseChatModel):
    """Of LangChain."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.script.next()))])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(await self.script.anext()))])


class LlamaIndex:
    """Nodes."""

    ext: ModuleType = llama_index_ext

    @staticmethod
    def record(text: str, id: str | None = None, **metadata: Any) -> TextNode:
        return TextNode(text=text, metadata=metadata, **({} if id is None else {"id_": id}))

    @staticmethod
    def retriever(*records: TextNode) -> Nodes:
        return Nodes(records)

    @staticmethod
    def store(*records: TextNode) -> SimpleDocumentStore:
        docstore = SimpleDocumentStore()
        docstore.add_documents(records)
        return docstore

    @staticmethod
    def llm(answers: Sequence[Any], seconds: float = 0.0) -> ScriptedLLM:
        llm = ScriptedLLM()
        llm._script = Script(answers, seconds)
        return llm

    @staticmethod
    def rerank(reranker: Any, query: str, *records: TextNode) -> list[Found]:
        given = [NodeWithScore(node=node, score=0.5) for node in records]
        return LlamaIndex._found(reranker.postprocess_nodes(given, query_str=query))

    @staticmethod
    async def arerank(reranker: Any, query: str, *records: TextNode) -> list[Found]:
        given = [NodeWithScore(node=node, score=0.5) for node in records]
        return LlamaIndex._found(await reranker.apostprocess_nodes(given, query_str=query))

    @staticmethod
    def retrieve(retriever: Any, query: str) -> list[Found]:
        return LlamaIndex._found(retriever.retrieve(query))

    @staticmethod
    async def aretrieve(retriever: Any, query: str) -> list[Found]:
        return LlamaIndex._found(await retriever.aretrieve(query))

    @staticmethod
    def _found(hits: Sequence[NodeWithScore]) -> list[Found]:
        return [Found(hit.node.node_id, hit.score, hit.node.get_content(), hit.node.metadata) for hit in hits]

    @staticmethod
    def again(component: Any) -> Any:
        """Built from what the component is serialised as."""
        return type(component).from_json(component.to_json())


class LangChain:
    """Documents."""

    ext: ModuleType = langchain_ext

    @staticmethod
    def record(text: str, id: str | None = None, **metadata: Any) -> Document:
        return Document(text, id=id, metadata=metadata)

    @staticmethod
    def retriever(*records: Document) -> Documents:
        return Documents(found=list(records))

    @staticmethod
    def store(*records: Document) -> InMemoryStore:
        store = InMemoryStore()
        store.mset([(record.id, record) for record in records])
        return store

    @staticmethod
    def llm(answers: Sequence[Any], seconds: float = 0.0) -> ScriptedChatModel:
        return ScriptedChatModel(script=Script(answers, seconds))

    @staticmethod
    def retrieve(retriever: Any, query: str) -> list[Found]:
        return LangChain._found(retriever.invoke(query))

    @staticmethod
    async def aretrieve(retriever: Any, query: str) -> list[Found]:
        return LangChain._found(await retriever.ainvoke(query))

    @staticmethod
    def rerank(reranker: Any, query: str, *records: Document) -> list[Found]:
        return LangChain._found(reranker.compress_documents(list(records), query))

    @staticmethod
    async def arerank(reranker: Any, query: str, *records: Document) -> list[Found]:
        return LangChain._found(await reranker.acompress_documents(list(records), query))

    @staticmethod
    def _found(documents: Sequence[Document]) -> list[Found]:
        return [Found(d.id, d.metadata.get("relevance_score", 0.0), d.page_content, d.metadata) for d in documents]

    @staticmethod
    def again(component: Any) -> Any:
        """Built from what the component is serialised as."""
        return type(component)(**json.loads(component.model_dump_json()))


both_hosts = pytest.mark.parametrize("host", [LlamaIndex, LangChain], ids=["llama_index", "langchain"])
