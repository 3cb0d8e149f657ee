"""No component of either host holds up the event loop, whatever it is made of: every component goes through.

Whatever a component is made of blocks until the loop has come round: on the loop's own thread it would for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_core.vectorstores import VectorStore as LangChainVectorStore
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

import langchain_ext
import llama_index_ext
from tests.conformance import langchain_reader, llama_index_reader
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.heartbeat import Heartbeat, SlowJudge
from tests.conformance.readers import everything

LONG = "\n\n".join(f"# Part {part}\n\n{'The Rhine flows through Basel. ' * 50}" for part in range(2))
Probe = tuple[Awaitable[Any], set[str]]
"""What is done, and who has to be asked meanwhile."""


def answers(heart: Heartbeat) -> Callable[[str], str]:
    def answer(prompt: str) -> str:
        heart.wait("llm")
        return everything(prompt) or "[river, town]"

    return answer


class Embedding(BaseEmbedding):
    """Its asynchronous method is the synchronous one, as with most models on the same machine."""

    heart: Any

    def _get_query_embedding(self, query: str) -> list[float]:
        self.heart.wait("embedding")
        return [1.0, 0.0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(len(text)), 1.0]


class VectorStore(SimpleVectorStore):
    def query(self, query, **kwargs):
        _hearts[-1].wait("store")
        return super().query(query, **kwargs)


class Docstore(SimpleDocumentStore):
    def get_document(self, doc_id, raise_error=True):
        _hearts[-1].wait("docstore")
        return super().get_document(doc_id, raise_error)

    async def aget_document(self, doc_id, raise_error=True):
        return await asyncio.to_thread(self.get_document, doc_id, raise_error)


_hearts: list[Heartbeat] = []


class Found(BaseRetriever):
    """Synchronous only."""

    def __init__(self, heart: Heartbeat, nodes: list[TextNode]) -> None:
        super().__init__()
        self._heart, self._nodes = heart, nodes

    def _retrieve(self, query_bundle):
        self._heart.wait("retriever")
        return [NodeWithScore(node=node, score=1.0) for node in self._nodes]


class Asynchronous(Found):
    """With a method of its own that waits."""

    async def _aretrieve(self, query_bundle):
        return await asyncio.to_thread(self._retrieve, query_bundle)


class OwnChat(llama_index_reader.Reader):
    """A chat model with an asynchronous method that waits."""

    @property
    def metadata(self):
        return super().metadata.model_copy(update={"is_chat_model": True})

    @llm_chat_callback()
    async def achat(self, messages, **kwargs) -> ChatResponse:
        answer = await asyncio.to_thread(self._answer, str(messages[-1].content))
        return ChatResponse(message=ChatMessage(role="assistant", content=answer))


DOCUMENT = Document(text=BOOK, id_="book")
NODES = [TextNode(text=f"The Rhine flows through Basel {number} times.", id_=str(number)) for number in range(2)]
FOUND = [NodeWithScore(node=node, score=1.0) for node in NODES]


def view_index(heart: Heartbeat) -> VectorStoreIndex:
    nodes = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents([DOCUMENT])
    storage = StorageContext.from_defaults(vector_store=VectorStore(), docstore=Docstore())
    return VectorStoreIndex(nodes, embed_model=Embedding(heart=heart), storage_context=storage)


def llama_index_probes(name: str, heart: Heartbeat) -> list[Probe]:
    component, judge = getattr(llama_index_ext, name), SlowJudge(heart)
    if issubclass(component, BaseNodePostprocessor):
        return [(component(model=judge).apostprocess_nodes(FOUND, query_str=QUESTION), {"model"})] + (
            [(_linked(heart, component).apostprocess_nodes(FOUND[:1], query_str=QUESTION), {"retriever", "docstore"})]
            if name == "PromptRankRerank"
            else []
        )
    retrievers = Found(heart, NODES), Asynchronous(heart, NODES)
    readers = [kind(answers(heart)) for kind in (llama_index_reader.Reader, OwnChat)]
    views = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents([DOCUMENT])
    every_part = {"retriever", "llm"}
    return {
        "BRMGRRetriever": lambda: [
            (component(found, llm, model=judge).aretrieve(QUESTION), every_part | {"model"})
            for found, llm in zip(retrievers, readers, strict=True)
        ],
        "D3Retriever": lambda: (
            [
                (component(source=found, llm=llm, model=judge).aretrieve(QUESTION), every_part | {"model"})
                for found, llm in zip(retrievers, readers, strict=True)
            ]
            + [(component(source=view_index(heart), model=judge).aretrieve(QUESTION), {"embedding", "store", "model"})]
        ),
        "MultiViewRetriever": lambda: [
            (component(source=Found(heart, views)).aretrieve(QUESTION), {"retriever"}),
            (component(source={"raw": Asynchronous(heart, views)}).aretrieve(QUESTION), {"retriever"}),
            (component(source=view_index(heart)).aretrieve(QUESTION), {"embedding", "store"}),
        ],
        "PromptRankRetriever": lambda: (
            [
                (
                    component(source=found, links=("metadata", "retrieval"), store=_docstore(), model=judge).aretrieve(
                        QUESTION
                    ),
                    {"retriever", "docstore", "model"},
                )
                for found in (Found(heart, _linking()), Asynchronous(heart, _linking()))
            ]
            + [
                (component(source=found, llm=llm, model=judge).aretrieve(QUESTION), every_part | {"model"})
                for found, llm in zip(retrievers, readers, strict=True)
            ]
        ),
        "SelfAskQueryEngine": lambda: [
            (component(found, kind(_follow_up(heart))).aquery(QUESTION), every_part)
            for found, kind in zip(retrievers, (llama_index_reader.Reader, OwnChat), strict=True)
        ],
        "MultiViewNodeParser": lambda: (
            [(component(llm=llm).acall([Document(text=LONG)]), {"llm"}) for llm in readers]
            + [(component(summarizer=_Summarizer(heart)).acall([Document(text=LONG)]), {"summarizer"})]
        ),
    }[name]()


def _linking() -> list[TextNode]:
    return [NODES[0].model_copy(update={"metadata": {"links": "1"}})]


def _docstore() -> Docstore:
    docstore = Docstore()
    docstore.add_documents(NODES)
    return docstore


def _linked(heart: Heartbeat, component: Any) -> Any:
    FOUND[0].node.metadata["links"] = "1"
    return component(links=("metadata",), source=Found(heart, NODES), store=_docstore())


def _follow_up(heart: Heartbeat) -> Callable[[str], str]:
    says = answers(heart)

    def answer(prompt: str) -> str:
        answered = "Intermediate" in prompt.rpartition(QUESTION)[2]
        return says(prompt) and ("So the final answer is: Basel" if answered else "Follow up: What flows there?")

    return answer


class _Summarizer:
    def __init__(self, heart: Heartbeat) -> None:
        self._heart = heart

    def __call__(self, texts):
        self._heart.wait("summarizer")
        return list(texts)


class LangChainFound(LangChainRetriever):
    heart: Any
    documents: list[LangChainDocument]

    def _get_relevant_documents(self, query, *, run_manager):
        self.heart.wait("retriever")
        return self.documents


class LangChainEmbedding(Embeddings):
    def __init__(self, heart: Heartbeat) -> None:
        self._heart = heart

    def embed_query(self, text):
        self._heart.wait("embedding")
        return [1.0, 0.0]

    def embed_documents(self, texts):
        return [[float(len(text)), 1.0] for text in texts]


class LangChainStore(InMemoryVectorStore):
    """Slow to search, as a remote one is."""

    asimilarity_search = LangChainVectorStore.asimilarity_search

    def _similarity_search_with_score_by_vector(self, *given, **more):
        _hearts[-1].wait("store")
        return super()._similarity_search_with_score_by_vector(*given, **more)


class LangChainDocstore(InMemoryStore):
    def mget(self, keys):
        _hearts[-1].wait("docstore")
        return super().mget(keys)

    async def amget(self, keys):
        return await asyncio.to_thread(self.mget, keys)


DOCUMENTS = [LangChainDocument(page_content=node.text, id=node.node_id) for node in NODES]


def langchain_probes(name: str, heart: Heartbeat) -> list[Probe]:
    component, judge = getattr(langchain_ext, name), SlowJudge(heart)
    if issubclass(component, BaseDocumentCompressor):
        reranker = component(model=judge)
        return [
            (reranker.acompress_documents(DOCUMENTS, QUESTION), {"model"}),
            (reranker.as_runnable().ainvoke({"query": QUESTION, "documents": DOCUMENTS}), {"model"}),
        ]
    if issubclass(component, BaseCrossEncoder):
        return [(CrossEncoderReranker(model=component(judge)).acompress_documents(DOCUMENTS, QUESTION), {"model"})]
    llm = langchain_reader.Reader(answer=answers(heart))
    found = LangChainFound(heart=heart, documents=DOCUMENTS)
    pieces = langchain_ext.MultiViewTextSplitter().create_documents([BOOK])
    store = LangChainStore(LangChainEmbedding(heart))
    store.add_documents(pieces)
    every_part = {"retriever", "llm"}
    return {
        "BRMGRRetriever": lambda: [
            (component(source=found, llm=llm, model=judge).ainvoke(QUESTION), every_part | {"model"})
        ],
        "D3Retriever": lambda: [
            (component(source=found, llm=llm, model=judge).ainvoke(QUESTION), every_part | {"model"}),
            (component(source=store, model=judge).ainvoke(QUESTION), {"embedding", "store", "model"}),
        ],
        "MultiViewRetriever": lambda: [
            (component(source=LangChainFound(heart=heart, documents=pieces)).ainvoke(QUESTION), {"retriever"}),
            (component(source=store).ainvoke(QUESTION), {"embedding", "store"}),
        ],
        "PromptRankRetriever": lambda: [
            (
                component(
                    source=LangChainFound(heart=heart, documents=_linking_documents()),
                    links=("metadata", "retrieval"),
                    store=_langchain_docstore(),
                    model=judge,
                ).ainvoke(QUESTION),
                {"retriever", "docstore", "model"},
            ),
            (component(source=found, llm=llm, model=judge).ainvoke(QUESTION), every_part | {"model"}),
        ],
        "SelfAskChain": lambda: [
            (
                component(source=found, llm=langchain_reader.Reader(answer=_follow_up(heart))).ainvoke(QUESTION),
                every_part,
            )
        ],
        "MultiViewTextSplitter": lambda: [
            (component(llm=llm).atransform_documents([LangChainDocument(page_content=LONG)]), {"llm"}),
            (
                component(summarizer=_Summarizer(heart)).atransform_documents([LangChainDocument(page_content=LONG)]),
                {"summarizer"},
            ),
        ],
    }[name]()


def _linking_documents() -> list[LangChainDocument]:
    return [DOCUMENTS[0].model_copy(update={"metadata": {"links": "1"}})]


def _langchain_docstore() -> LangChainDocstore:
    docstore = LangChainDocstore()
    docstore.mset([(document.id, document) for document in DOCUMENTS])
    return docstore


COMPONENTS = [
    pytest.param(probes, name, id=f"{package.__name__}.{name}")
    for package, probes in ((llama_index_ext, llama_index_probes), (langchain_ext, langchain_probes))
    for name in package.__all__
]


@pytest.mark.parametrize(("probes", "name"), COMPONENTS)
async def test_the_loop_comes_round_while_a_component_waits_for_what_it_is_made_of(probes, name):
    heart = Heartbeat()
    _hearts[:] = [heart]
    for work, parts in probes(name, heart):
        heart.waited.clear()
        await heart.during(work)
        assert parts <= heart.waited
        assert not heart.in_vain


async def test_the_probe_notices_a_loop_that_is_held_up(monkeypatch):
    monkeypatch.setattr("tests.conformance.heartbeat.PATIENCE", 0.01)
    heart = Heartbeat()

    async def holds_up() -> None:
        heart.wait("itself")

    await heart.during(holds_up())
    assert heart.in_vain == {"itself"}
