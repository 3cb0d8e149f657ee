"""What is wrong with a store, or with what was given beside it, a component says once; what is wrong anew, anew."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning
from tests.conformance.hosts import WordEmbedding, WordEmbeddings

OAK = "# Oak\n\nThe oak is tall.\n\n# Ash\n\nThe ash is tough.\n\n# Elm\n\nThe elm is rare.\n"
FOX = OAK.replace("oak", "fox").replace("Oak", "Fox")


class LangChain:
    """A store in memory of the host."""

    def __init__(self) -> None:
        self.store = InMemoryVectorStore(WordEmbeddings())

    def put(self, text: str, id_: str) -> list[Any]:
        pieces = langchain_ext.MultiViewTextSplitter().split_documents([LangChainDocument(text, id=id_)])
        self.store.add_documents(pieces)
        return pieces

    def chunk(self, text: str, id_: str | None = None) -> list[Any]:
        chunk = LangChainDocument(text, id=id_, metadata={"source": "x"})
        self.store.add_documents([chunk])
        return [chunk]

    def without_offsets(self, texts: list[str], document: str) -> None:
        self.store.add_documents([LangChainDocument(text, metadata={"source": document}) for text in texts])

    def delete(self, record: Any) -> None:
        self.store.delete([record.id])

    def d3(self, given: list[Any]) -> Any:
        return langchain_ext.D3Retriever(documents=given, source=self.store)

    def paths(self, given: list[Any]) -> Any:
        return langchain_ext.PromptRankRetriever(source=self.store.as_retriever(), documents=given, links=["titles"])

    def views(self, given: list[Any] | None = None, **fields: Any) -> Any:
        return langchain_ext.MultiViewRetriever(documents=given or [], source=self.store, top_n=9, **fields)

    @staticmethod
    def ask(component: Any, question: str, asynchronous: bool) -> list[Any]:
        return asyncio.run(component.ainvoke(question)) if asynchronous else component.invoke(question)


class LlamaIndex:
    """An index of the host."""

    def __init__(self) -> None:
        self.store = VectorStoreIndex([], embed_model=WordEmbedding())

    def put(self, text: str, id_: str) -> list[Any]:
        nodes = llama_index_ext.MultiViewNodeParser()([LlamaIndexDocument(text=text, id_=id_)])
        self.store.delete_nodes([node.node_id for node in nodes if node.node_id in self.store.docstore.docs])
        self.store.insert_nodes(nodes)
        return nodes

    def chunk(self, text: str, id_: str | None = None) -> list[Any]:
        node = TextNode(text=text, **({} if id_ is None else {"id_": id_}))
        if id_ is not None and id_ in self.store.docstore.docs:
            self.store.delete_nodes([id_], delete_from_docstore=True)
        self.store.insert_nodes([node])
        return [node]

    def without_offsets(self, texts: list[str], document: str) -> None:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        self.store.insert_nodes([TextNode(text=text, relationships=source) for text in texts])

    def delete(self, record: Any) -> None:
        self.store.delete_nodes([record.node_id])

    def d3(self, given: list[Any]) -> Any:
        return llama_index_ext.D3Retriever(given, source=self.store)

    def paths(self, given: list[Any]) -> Any:
        return llama_index_ext.PromptRankRetriever(source=self.store.as_retriever(), documents=given, links=["titles"])

    def views(self, given: list[Any] | None = None, **fields: Any) -> Any:
        return llama_index_ext.MultiViewRetriever(given or [], source=self.store, top_n=9, **fields)

    @staticmethod
    def ask(component: Any, question: str, asynchronous: bool) -> list[Any]:
        return asyncio.run(component.aretrieve(question)) if asynchronous else component.retrieve(question)


@pytest.fixture(params=[LangChain, LlamaIndex])
def host(request: pytest.FixtureRequest) -> Any:
    return request.param()


def told(host: Any, component: Any, question: str = "How is the oak?") -> list[str]:
    """What is told of three questions, sync and async: of each kind once."""
    heard: list[str] = []
    for asynchronous in (False, True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert host.ask(component, question, asynchronous)
        heard += [str(warning.message) for warning in caught if issubclass(warning.category, DrillrankWarning)]
    return heard


def test_missing_neighbours_and_sections_are_told_once(host):
    raw: Callable[[list[Any]], list[Any]] = lambda records: [  # noqa: E731
        record for record in records if record.metadata["drillrank_view"] == "raw"
    ]
    oak, fox = host.put(OAK, "oak"), host.put(FOX, "fox")
    component = host.views(expand="neighbours")
    assert told(host, component) == []
    host.delete(raw(oak)[1])
    heard = told(host, component)
    assert [("raw record" in one, "around" in one) for one in heard] == [(True, False), (False, True)]
    host.delete(raw(fox)[1])
    assert [("raw record" in one, "around" in one) for one in told(host, component)] == [(True, False), (False, True)]
    assert told(host, component) == []


def test_chunks_of_another_splitter_are_told_once(host):
    host.put(OAK, "oak")
    component = host.views()
    assert told(host, component) == []
    for number in range(2):
        host.chunk(f"The oak is chunk {number}.")
        heard = told(host, component)
        assert ["did not make" in one for one in heard] == [True] * (number == 0)


def test_what_was_given_to_d3_and_is_stale_is_told_once_and_another_one_anew(host):
    given = [*host.put(OAK, "oak"), *host.put(FOX, "fox")]
    component = host.d3(given)
    assert told(host, component) == []
    for text, id_ in ((OAK.replace("tall", "felled"), "oak"), (FOX.replace("tall", "sly"), "fox")):
        host.put(text, id_)
        [heard] = told(host, component)
        assert "1 documents differs" in heard
    assert told(host, component) == []


def test_chunks_without_offsets_are_told_once_for_each_document(host):
    chunks = [f"The oak is tall, part {number}." for number in range(2)]
    component = host.d3([])
    for document in ("x", "y"):
        host.without_offsets(chunks, document)
        [heard] = told(host, component)
        assert "1 documents do not say where" in heard, "of the one that is new"
    assert told(host, component) == []


def test_what_was_given_to_a_path_search_and_is_stale_is_told_once_and_another_one_anew(host):
    given = [*host.chunk("The oak is tall.", "oak"), *host.chunk("The fox is sly.", "fox")]
    component = host.paths(given)
    assert told(host, component) == []
    for text, id_ in (("The oak is felled.", "oak"), ("The fox is old.", "fox")):
        host.chunk(text, id_)
        [heard] = told(host, component)
        assert "1 of the documents given" in heard
        assert repr(id_) in heard
    assert told(host, component) == []
