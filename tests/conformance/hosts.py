"""Both hosts under one roof, for tests that say the same of both: records, models, components and what they return."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever as Retriever
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import Document as NodesDocument
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

import langchain_ext
import llama_index_ext
from drillrank.text import terms
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.readers import Crowd, everything


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


class Finds(BaseRetriever):
    """The nodes that a function names for a question."""

    def __init__(self, finds: Callable[[str], Sequence[TextNode]]) -> None:
        super().__init__()
        self.finds = finds

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=1.0) for node in self.finds(query_bundle.query_str)]


class AsyncFinds(Finds):
    """The same with a method that awaits, and that the worker threads of the event loop must be free for."""

    async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(self._retrieve, query_bundle)


class NodeEars(BaseEventHandler):
    """Hears all events of ours."""

    _heard: list[Any] = PrivateAttr(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        if type(event).__module__.startswith("llama_index_ext"):
            self._heard.append(event.model_dump())


class DocumentEars(BaseCallbackHandler):
    """Hears all custom events."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.heard.append(data)


def hashed(text: str) -> list[float]:
    """Words hashed into 64 places."""
    vector = [0.01] * 64
    for word in terms(text):
        vector[sum(map(ord, word)) % 64] += 1.0
    return vector


class WordEmbedding(BaseEmbedding):
    """Of LlamaIndex."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return hashed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return hashed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return hashed(query)


class WordEmbeddings(Embeddings):
    """Of LangChain."""

    def embed_query(self, text: str) -> list[float]:
        return hashed(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(hashed, texts))


class Script:
    """One answer after the other; raises those that are exceptions, and takes its time if it is asked to."""

    def __init__(self, answers: Sequence[Any], seconds: float, prompts: list[str] | None = None) -> None:
        self.answers, self.seconds = answers, seconds
        self.prompts: list[str] = [] if prompts is None else prompts
        self.calls = self.busy = self.most = 0

    def next(self, prompt: Any = "") -> str:
        self.prompts.append(str(prompt))
        answer = self.answers[self.calls % len(self.answers)]
        self.calls += 1
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    async def anext(self, prompt: Any = "") -> str:
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(self.seconds)
        self.busy -= 1
        return self.next(prompt)


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
        return CompletionResponse(text=self._script.next(prompt))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=await self._script.anext(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class ScriptedChatModel(BaseChatModel):
    """Of LangChain."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.script.next(messages)))])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(await self.script.anext(messages)))])


class LlamaIndex:
    """Nodes."""

    ext: ModuleType = llama_index_ext
    readers = (
        llama_index_reader.Reader,
        llama_index_reader.ChatReader,
    )

    @classmethod
    def reader(cls, answer: Any = everything, crowd: Crowd | None = None, kind: int = 0) -> Any:
        return cls.readers[kind](answer=answer, crowd=crowd or Crowd())

    links = ("metadata", "hyperlinks", "titles", "relationships")

    @staticmethod
    def finds(finds: Callable[[str], Sequence[TextNode]], asynchronous: bool = False) -> Finds:
        return (AsyncFinds if asynchronous else Finds)(finds)

    @staticmethod
    def index(*records: TextNode, by_words: bool = False) -> VectorStoreIndex:
        model = WordEmbedding() if by_words else MockEmbedding(4)
        return VectorStoreIndex([record.model_copy() for record in records], embed_model=model)

    @staticmethod
    def sections(*documents: tuple[str, str], **fields: Any) -> list[TextNode]:
        """The views of documents, which are ids and texts."""
        parser = llama_index_ext.MultiViewNodeParser(**fields)
        return parser.get_nodes_from_documents([NodesDocument(text=text, id_=id_) for id_, text in documents])

    @staticmethod
    def over(index: VectorStoreIndex, k: int = 4, **wanted: Any) -> Any:
        return index.as_retriever(similarity_top_k=k, filters=LlamaIndex.filters(**wanted) if wanted else None)

    @staticmethod
    def delete(index: VectorStoreIndex, id: str) -> None:
        index.delete_nodes([id])

    @staticmethod
    def filters(**wanted: Any) -> MetadataFilters:
        return MetadataFilters(filters=[MetadataFilter(key=key, value=value) for key, value in wanted.items()])

    @staticmethod
    def hear(retriever: Any, query: str) -> tuple[list[Found], list[Any]]:
        """What is found, and our events."""
        ears, root = NodeEars(), get_dispatcher("root")
        root.add_event_handler(ears)
        try:
            return LlamaIndex.retrieve(retriever, query), ears._heard
        finally:
            root.event_handlers.remove(ears)

    @staticmethod
    def self_ask(source: Any, llm: Any, **fields: Any) -> Any:
        return llama_index_ext.SelfAskQueryEngine(source, llm, **fields)

    @staticmethod
    def answer(self_ask: Any, query: str) -> tuple[str, list[str], dict[str, Any]]:
        """The answer, the texts that it is from, and how it came about."""
        return LlamaIndex._answer(self_ask.query(query))

    @staticmethod
    async def aanswer(self_ask: Any, query: str) -> tuple[str, list[str], dict[str, Any]]:
        return LlamaIndex._answer(await self_ask.aquery(query))

    @staticmethod
    def _answer(response: Any) -> tuple[str, list[str], dict[str, Any]]:
        return str(response), [hit.node.get_content() for hit in response.source_nodes], response.metadata

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
    def llm(answers: Sequence[Any], seconds: float = 0.0, prompts: list[str] | None = None) -> ScriptedLLM:
        llm = ScriptedLLM()
        llm._script = Script(answers, seconds, prompts)
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
    readers = (
        langchain_reader.Reader,
        langchain_reader.AsyncReader,
    )

    @classmethod
    def reader(cls, answer: Any = everything, crowd: Crowd | None = None, kind: int = 0) -> Any:
        return cls.readers[kind](answer=answer, crowd=crowd or Crowd())

    links = ("metadata", "hyperlinks", "titles")

    @staticmethod
    def finds(finds: Callable[[str], Sequence[Document]], asynchronous: bool = False) -> Any:
        async def awaited(question: str) -> list[Document]:
            await asyncio.sleep(0.001)
            return list(await asyncio.to_thread(finds, question))

        return RunnableLambda(lambda question: list(finds(question)), *([awaited] if asynchronous else []))

    @staticmethod
    def index(*records: Document, by_words: bool = False) -> InMemoryVectorStore:
        store = InMemoryVectorStore(WordEmbeddings() if by_words else DeterministicFakeEmbedding(size=8))
        store.add_documents(list(records))
        return store

    @staticmethod
    def sections(*documents: tuple[str, str], **fields: Any) -> list[Document]:
        """The views of documents, which are ids and texts."""
        splitter = langchain_ext.MultiViewTextSplitter(**fields)
        return splitter.split_documents([Document(text, id=id_) for id_, text in documents])

    @staticmethod
    def over(index: InMemoryVectorStore, k: int = 4, **wanted: Any) -> Any:
        holds = lambda found: wanted.items() <= found.metadata.items()  # noqa: E731
        return index.as_retriever(search_kwargs={"k": k, **({"filter": holds} if wanted else {})})

    @staticmethod
    def delete(index: InMemoryVectorStore, id: str) -> None:
        index.delete([id])

    @staticmethod
    def filters(**wanted: Any) -> dict[str, Any]:
        return wanted

    @staticmethod
    def hear(retriever: Any, query: str) -> tuple[list[Found], list[Any]]:
        """What is found, and our events."""
        ears = DocumentEars()
        run = RunnableLambda(lambda question: LangChain.retrieve(retriever, question))
        return run.invoke(query, {"callbacks": [ears]}), ears.heard

    @staticmethod
    def self_ask(source: Any, llm: Any, **fields: Any) -> Any:
        return langchain_ext.SelfAskChain(source, llm, **fields)

    @staticmethod
    def answer(self_ask: Any, query: str) -> tuple[str, list[str], dict[str, Any]]:
        """The answer, the texts that it is from, and how it came about."""
        return LangChain._answer(self_ask.invoke(query))

    @staticmethod
    async def aanswer(self_ask: Any, query: str) -> tuple[str, list[str], dict[str, Any]]:
        return LangChain._answer(await self_ask.ainvoke(query))

    @staticmethod
    def _answer(output: dict[str, Any]) -> tuple[str, list[str], dict[str, Any]]:
        texts = [document.page_content for step in output["steps"] for document in step["documents"]]
        return output["answer"], list(dict.fromkeys(texts)), output

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
    def llm(answers: Sequence[Any], seconds: float = 0.0, prompts: list[str] | None = None) -> ScriptedChatModel:
        return ScriptedChatModel(script=Script(answers, seconds, prompts))

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


each_reader = pytest.mark.parametrize(
    ("host", "kind"),
    [(LlamaIndex, 0), (LlamaIndex, 1), (LangChain, 0), (LangChain, 1)],
    ids=["llama_index", "llama_index, asynchronous", "langchain", "langchain, asynchronous"],
)
both_hosts = pytest.mark.parametrize("host", [LlamaIndex, LangChain], ids=["llama_index", "langchain"])
