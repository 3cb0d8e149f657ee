"""Requests to a store: the same in both hosts, sync and async, and never past the filter."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import IndexNode, NodeRelationship, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from pydantic import Field

from drillrank.hosts.store import THE_QUESTION, answered
from drillrank.llm import Fetch, Requests, Retrieve, arun, run
from langchain_ext import D3Retriever
from langchain_ext import _lookups as langchain_filters
from langchain_ext import _lookups as langchain_lookups
from llama_index_ext import _lookups as llama_index_filters
from llama_index_ext import _lookups as llama_index_lookups

# id, tenant, document
RECORDS = [("1", "a", "x"), ("2", "b", "x"), ("3", "a", "y"), ("4", "b", "y")]


class CountedEmbedding(DeterministicFakeEmbedding):
    asked: list[str] = Field(default_factory=list)

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        return super().embed_query(text)


class CountedMockEmbedding(MockEmbedding):
    asked: list[str] = Field(default_factory=list)

    def _get_query_embedding(self, query: str) -> list[float]:
        self.asked.append(query)
        return super()._get_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class LangChain:
    document_key = "document"

    def __init__(self) -> None:
        self.embedding = CountedEmbedding(size=8, asked=[])
        self.store = InMemoryVectorStore(self.embedding)
        metadata = [{"tenant": tenant, "document": document} for _, tenant, document in RECORDS]
        self.store.add_documents(
            [Document(f"text {id_}", id=id_, metadata=own) for (id_, *_), own in zip(RECORDS, metadata, strict=True)]
        )

    def lookups(self, form: str | None, inherited: bool = False):
        filter = {
            None: None,
            "declared": {"tenant": "a"},
            "function": lambda document: document.metadata["tenant"] == "a",
        }[form]
        if inherited:
            source = self.store.as_retriever(search_kwargs={"filter": lambda found: found.metadata["tenant"] == "a"})
            return langchain_lookups.StoreLookups("q", source, langchain_filters.DocumentFilter(None, source))
        return langchain_lookups.StoreLookups("q", self.store, langchain_filters.DocumentFilter(filter))

    @staticmethod
    def ids(found) -> list[str]:
        return [document.id for document in found]


class LlamaIndex:
    document_key = llama_index_lookups.DOCUMENT

    def __init__(self) -> None:
        self.embedding = CountedMockEmbedding(embed_dim=4, asked=[])
        nodes = [
            TextNode(
                text=f"text {id_}",
                id_=id_,
                metadata={"tenant": tenant},
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
            )
            for id_, tenant, document in RECORDS
        ]
        self.index = VectorStoreIndex(nodes, embed_model=self.embedding)

    def lookups(self, form: str | None, inherited: bool = False):
        declared = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
        filters = {None: None, "declared": declared, "function": lambda node: node.metadata["tenant"] == "a"}[form]
        if inherited:
            source = self.index.as_retriever(filters=declared)
            return llama_index_lookups.StoreLookups(
                QueryBundle("q"), source, llama_index_filters.NodeFilter(None, source)
            )
        return llama_index_lookups.StoreLookups(QueryBundle("q"), self.index, llama_index_filters.NodeFilter(filters))

    @staticmethod
    def ids(found) -> list[str]:
        return [getattr(one, "node", one).node_id for one in found]


def nearest(n: int) -> Retrieve:
    return Retrieve(THE_QUESTION, n)


def asked(store, request) -> Requests:
    def one():
        [found] = yield [request]
        return found

    return answered(one(), store.handlers)


@pytest.fixture(params=[LangChain, LlamaIndex])
def host(request):
    return request.param()


@pytest.mark.parametrize("form", [None, "declared", "function", "inherited"])
def test_every_lookup_obeys_the_filter_and_async_is_the_same(host, form):
    def lookups():
        return host.lookups(None if form == "inherited" else form, form == "inherited")

    mine = {id_ for id_, tenant, _ in RECORDS if form is None or tenant == "a"}
    of_x = {id_ for id_, _, document in RECORDS if document == "x"}
    expected = [
        (nearest(4), mine),
        (Fetch(("4", "1", "9")), mine & {"1", "4"}),
        (Fetch(where={host.document_key: "x"}), mine & of_x),
        (Fetch(where={host.document_key: ("x", "z")}), mine & of_x),
    ]
    for lookup, ids in expected:
        found = host.ids(run(asked(lookups(), lookup)))
        assert len(found) == len(set(found))
        assert set(found) == ids, lookup
        assert host.ids(asyncio.run(arun(asked(lookups(), lookup)))) == found


@pytest.mark.parametrize("form", ["declared", "function"])
def test_a_search_finds_as_many_as_asked_for_though_the_store_ranks_hidden_ones_first(host, form):
    assert len(run(asked(host.lookups(form), nearest(2)))) == 2


def test_a_question_is_embedded_once_however_often_is_searched(host):
    lookups = host.lookups(None)
    for _ in range(3):
        run(asked(lookups, nearest(1)))
    assert len(host.embedding.asked) == 1

    async def searches():
        lookups = host.lookups(None)
        await asyncio.gather(*(arun(asked(lookups, nearest(1))) for _ in range(3)))

    host.embedding.asked.clear()
    asyncio.run(searches())
    assert len(host.embedding.asked) == 1


def test_a_copy_that_a_view_carries_is_not_what_a_search_brings():
    view = IndexNode(text="view", id_="5", index_id="1", obj=TextNode(text="of another day", id_="1"))
    index = VectorStoreIndex([view], embed_model=MockEmbedding(embed_dim=4))
    lookups = llama_index_lookups.StoreLookups(QueryBundle("q"), index, llama_index_filters.NodeFilter(None))
    [hit] = run(asked(lookups, nearest(1)))
    assert (hit.node.node_id, hit.node.text, hit.node.obj) == ("5", "view", None)


def test_what_an_index_has_deleted_is_not_found_though_its_docstore_keeps_it():
    host = LlamaIndex()
    host.index.delete_ref_doc("x")
    assert host.index.docstore.get_nodes(["1"], raise_error=False)
    assert host.ids(run(asked(host.lookups(None), Fetch(("1", "3"))))) == ["3"]
    assert host.ids(run(asked(host.lookups(None), Fetch(where={host.document_key: "x"})))) == []


def test_components_that_share_an_index_do_not_share_what_their_filters_show():
    documents = [
        Document(f"# {tenant}\n\nThe code of {tenant} is {number}.", id=tenant, metadata={"tenant": tenant})
        for tenant, number in (("a", 1234), ("b", 9876))
    ]
    filters = [None, {"tenant": "a"}, {"tenant": "b"}]
    retrievers = [D3Retriever(documents=documents, filters=filter) for filter in filters]
    shown = [{found.metadata["tenant"] for found in retriever.invoke("What is the code?")} for retriever in retrievers]
    assert shown == [{"a", "b"}, {"a"}, {"b"}]
