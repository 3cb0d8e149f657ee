"""Both hosts under one roof, for tests that say the same of both: records, models, components and what they return."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever as Retriever
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
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
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.text import terms
from langchain_ext.rerank import GeneratedDocument
from llama_index_ext.rerank import GeneratedNode
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.readers import Crowd, everything


def build(cls: Any, *arguments: Any, **fields: Any) -> Any:
    """A component; fields that are none of its arguments are its settings."""
    return cls(*arguments, **keyword_arguments(cls, fields))


class Found(NamedTuple):
    """A result, and where its text stands in which document."""

    id: str | None
    score: float
    text: str
    metadata: dict[str, Any]
    start: int | None = None
    document: str | None = None


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


Vector = Callable[[str], list[float]]


class NodeEmbedding(BaseEmbedding):
    """A function, or one for texts and one for questions, as a model of LlamaIndex that remembers what it embedded."""

    _vectors: tuple[Vector, Vector] = PrivateAttr()
    _texts: list[str] = PrivateAttr(default_factory=list)
    _questions: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, vector: Vector = hashed, of_question: Vector | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._vectors = vector, of_question or vector

    @property
    def texts(self) -> list[str]:
        return self._texts

    @property
    def questions(self) -> list[str]:
        return self._questions

    def _get_text_embedding(self, text: str) -> list[float]:
        self._texts.append(text)
        return self._vectors[0](text)

    def _get_query_embedding(self, query: str) -> list[float]:
        self._questions.append(query)
        return self._vectors[1](query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(0)
        return self._get_query_embedding(query)


class DocumentEmbeddings(Embeddings):
    """The same of LangChain."""

    def __init__(self, vector: Vector = hashed, of_question: Vector | None = None) -> None:
        self._vectors = vector, of_question or vector
        self.texts: list[str] = []
        self.questions: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return list(map(self._vectors[0], texts))

    def embed_query(self, text: str) -> list[float]:
        self.questions.append(text)
        return self._vectors[1](text)

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(0)
        return self.embed_query(text)


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


class Framework:
    """What both do by what each does."""

    ext: ModuleType
    rerank: Any
    arerank: Any
    retrieve: Any
    aretrieve: Any
    splitter: Any
    document: Any
    llm: Any

    @classmethod
    def ask(cls, component: Any, query: str, *records: Any, asynchronous: bool = False) -> list[Found]:
        """What a retriever finds, or a reranker makes of records."""
        if asynchronous:
            return asyncio.run(cls.arerank(component, query, *records) if records else cls.aretrieve(component, query))
        return cls.rerank(component, query, *records) if records else cls.retrieve(component, query)

    @classmethod
    def both(cls, component: Any, query: str, *records: Any) -> list[Found]:
        """The same, which is also what is found asynchronously."""
        found = cls.ask(component, query, *records)
        assert cls.ask(component, query, *records, asynchronous=True) == found
        return found

    @classmethod
    def sections(cls, *documents: tuple[str, str], **fields: Any) -> list[Any]:
        """The views of documents, which are ids and texts."""
        return cls.split([cls.document(text, id_) for id_, text in documents], **fields)

    @classmethod
    def split(cls, documents: Sequence[Any], **fields: Any) -> list[Any]:
        """The views of documents of the host."""
        made = cls.splitter(**fields)
        return list((made.split_documents if hasattr(made, "split_documents") else made)(documents))

    @classmethod
    def made(cls, name: str, documents: Sequence[Any] = (), /, **fields: Any) -> Any:
        """Any component, over documents where it takes any, and with an LLM where it needs one; D3 of paragraphs."""
        component, fields = getattr(cls.ext, name), dict(fields)
        if name in ("BRMGRRetriever", "PromptRankRetriever", "SelfAskChain", "SelfAskQueryEngine"):
            fields.setdefault("source", cls.ext.D3Retriever(documents, top_n=4, settings={"unit": "paragraph"}))
        if name in ("BRMGRRetriever", "SelfAskChain", "SelfAskQueryEngine"):
            fields.setdefault("llm", cls.llm(["An answer."]))
        if name == "D3Retriever":
            fields.setdefault("documents", documents)
            fields.setdefault("settings", {"unit": "paragraph"})
        if name == "MultiViewRetriever":
            fields.setdefault("documents", cls.split(documents))
        return component(**fields)


class LlamaIndex(Framework):
    """Nodes."""

    ext = llama_index_ext
    embedding = NodeEmbedding
    splitter = llama_index_ext.MultiViewNodeParser
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
    def index(*records: TextNode, embedding: BaseEmbedding | None = None, **fields: Any) -> VectorStoreIndex:
        nodes = [record.model_copy() for record in records]
        return VectorStoreIndex(nodes, embed_model=embedding or NodeEmbedding(), **fields)

    @staticmethod
    def over(index: VectorStoreIndex, k: int = 4, **wanted: Any) -> Any:
        return index.as_retriever(similarity_top_k=k, filters=LlamaIndex.filters(**wanted) if wanted else None)

    @staticmethod
    def add(index: VectorStoreIndex, *records: TextNode) -> None:
        index.insert_nodes([record.model_copy() for record in records])

    @staticmethod
    def delete(index: VectorStoreIndex, *ids: str) -> None:
        index.delete_nodes(list(ids))

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
    def document(text: str, id: str | None = None, **metadata: Any) -> NodesDocument:
        return NodesDocument(text=text, metadata=metadata, **({} if id is None else {"id_": id}))

    @staticmethod
    def id_of(record: TextNode) -> str:
        return record.node_id

    @staticmethod
    def text_of(record: TextNode) -> str:
        return record.text

    @staticmethod
    def changed(record: TextNode, text: str | None = None, **metadata: Any) -> TextNode:
        update = {"text": record.text if text is None else text, "metadata": {**record.metadata, **metadata}}
        return record.model_copy(update={**update, "embedding": None})

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
    def generated(text: str, **metadata: Any) -> GeneratedNode:
        return GeneratedNode(text=text, metadata=metadata)

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
    def hit(record: TextNode, score: float | None = 0.5) -> NodeWithScore:
        """A record as a retriever brings it."""
        return record if isinstance(record, NodeWithScore) else NodeWithScore(node=record, score=score)

    @staticmethod
    def rerank(reranker: Any, query: str, *records: Any) -> list[Found]:
        """Of records, or of hits."""
        return LlamaIndex._found(reranker.postprocess_nodes(list(map(LlamaIndex.hit, records)), query_str=query))

    @staticmethod
    async def arerank(reranker: Any, query: str, *records: Any) -> list[Found]:
        given = list(map(LlamaIndex.hit, records))
        return LlamaIndex._found(await reranker.apostprocess_nodes(given, query_str=query))

    @staticmethod
    def retrieve(retriever: Any, query: str) -> list[Found]:
        return LlamaIndex._found(retriever.retrieve(query))

    @staticmethod
    async def aretrieve(retriever: Any, query: str) -> list[Found]:
        return LlamaIndex._found(await retriever.aretrieve(query))

    @staticmethod
    def _found(hits: Sequence[NodeWithScore]) -> list[Found]:
        return [
            Found(
                *(hit.node_id, hit.score, hit.get_content(), hit.metadata),
                *(getattr(hit.node, name, None) for name in ("start_char_idx", "ref_doc_id")),
            )
            for hit in hits
        ]

    @staticmethod
    def again(component: Any) -> Any:
        """Built from what the component is serialised as."""
        return type(component).from_json(component.to_json())

    @staticmethod
    def copies(component: Any) -> Iterator[Any]:
        """The same in all ways, and by pickle."""
        yield type(component).from_dict(component.to_dict())
        yield type(component).model_validate(component.model_dump())
        yield from (LlamaIndex.again(component), pickle.loads(pickle.dumps(component)))
        yield component.model_copy(deep=True)


class LangChain(Framework):
    """Documents."""

    ext = langchain_ext
    embedding = DocumentEmbeddings
    splitter = langchain_ext.MultiViewTextSplitter
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
    def index(*records: Document, embedding: Embeddings | None = None) -> InMemoryVectorStore:
        store = InMemoryVectorStore(embedding or DocumentEmbeddings())
        store.add_documents(list(records))
        return store

    @staticmethod
    def over(index: InMemoryVectorStore, k: int = 4, **wanted: Any) -> Any:
        holds = lambda found: wanted.items() <= found.metadata.items()  # noqa: E731
        return index.as_retriever(search_kwargs={"k": k, **({"filter": holds} if wanted else {})})

    @staticmethod
    def add(index: InMemoryVectorStore, *records: Document) -> None:
        index.add_documents(list(records))

    @staticmethod
    def delete(index: InMemoryVectorStore, *ids: str) -> None:
        index.delete(list(ids))

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
    def id_of(record: Document) -> str | None:
        return record.id

    @staticmethod
    def text_of(record: Document) -> str:
        return record.page_content

    @staticmethod
    def changed(record: Document, text: str | None = None, **metadata: Any) -> Document:
        update = {"page_content": record.page_content if text is None else text}
        return record.model_copy(update={**update, "metadata": {**record.metadata, **metadata}})

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

    document = record

    @staticmethod
    def generated(text: str, **metadata: Any) -> GeneratedDocument:
        return GeneratedDocument(page_content=text, metadata=metadata)

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
    def hit(record: Document, score: float | None = None) -> Document:
        """A record as a retriever brings it."""
        return record if score is None else LangChain.changed(record, relevance_score=score)

    @staticmethod
    def rerank(reranker: Any, query: str, *records: Document) -> list[Found]:
        return LangChain._found(reranker.compress_documents(list(records), query))

    @staticmethod
    async def arerank(reranker: Any, query: str, *records: Document) -> list[Found]:
        return LangChain._found(await reranker.acompress_documents(list(records), query))

    @staticmethod
    def _found(documents: Sequence[Document]) -> list[Found]:
        names = ("start_index", "drillrank_source_id")
        return [
            Found(d.id, d.metadata.get("relevance_score", 0.0), d.page_content, d.metadata, *map(d.metadata.get, names))
            for d in documents
        ]

    @staticmethod
    def again(component: Any) -> Any:
        """Built from what the component is serialised as."""
        return type(component)(**json.loads(component.model_dump_json()))

    @staticmethod
    def copies(component: Any) -> Iterator[Any]:
        """The same in all ways, and by pickle."""
        yield type(component)(**component.model_dump())
        yield type(component).model_validate_json(component.model_dump_json())
        yield from (LangChain.again(component), pickle.loads(pickle.dumps(component)))
        yield component.model_copy(deep=True)


each_reader = pytest.mark.parametrize(
    ("host", "kind"),
    [(LlamaIndex, 0), (LlamaIndex, 1), (LangChain, 0), (LangChain, 1)],
    ids=["llama_index", "llama_index, asynchronous", "langchain", "langchain, asynchronous"],
)
HOSTS = {"llama_index": LlamaIndex, "langchain": LangChain}
both_frameworks = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
READERS = {"DrillrankLoader", "DrillrankReader", "SupportEvaluator"}
"""Public classes that read files or check answers: they are no components of the core's table."""
COMPONENTS = [
    pytest.param(host, name, id=f"{id_}-{name}")
    for id_, host in HOSTS.items()
    for name in host.ext.__all__
    if name not in READERS
]
