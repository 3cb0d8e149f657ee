"""Sections in namespaces, and what a change of one of them costs in embeddings; both hosts alike."""

from __future__ import annotations

import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.documents import Document as LangChainDocument
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.storage.kvstore import SimpleKVStore
from pydantic import PrivateAttr

from drillrank.errors import InvalidInput
from langchain_ext import MultiViewTextSplitter
from llama_index_ext import MultiViewNodeParser
from tests.conformance.corpus import BOOK
from tests.conformance.hosts import WordEmbeddings


def llama_index(documents, **settings):
    """Ids, views and metadata."""
    given = [Document(text=text, id_=id_, metadata=metadata) for text, id_, metadata in documents]
    return [(node.node_id, node.metadata) for node in MultiViewNodeParser(**settings)(given)]


def langchain(documents, **settings):
    given = [LangChainDocument(text, id=id_, metadata=metadata) for text, id_, metadata in documents]
    return [(piece.id, piece.metadata) for piece in MultiViewTextSplitter(**settings).split_documents(given)]


hosts = pytest.mark.parametrize("cut", [llama_index, langchain])
TENANTS = [(BOOK, "guide", {"tenant": tenant}) for tenant in ("a", "b", 3)]


@hosts
def test_equal_ids_in_two_namespaces_lead_to_different_sections(cut):
    made = cut(TENANTS, namespace_key="tenant")
    assert len({id_ for id_, _ in made}) == len(made)
    assert {metadata["drillrank_namespace"] for _, metadata in made} == {"a", "b", "3"}
    assert all(metadata["drillrank_namespace"] == str(metadata["tenant"]) for _, metadata in made)
    apart = [cut([document], namespace=str(document[2]["tenant"])) for document in TENANTS]
    assert made == [section for of_one in apart for section in of_one]  # whatever else is cut with it


@hosts
def test_without_a_namespace_ids_are_those_of_all_releases(cut):
    (id_, metadata), *_ = cut([("# Foxes\n\nThey hunt.\n", "animals.md", {})])
    assert id_ == metadata["drillrank_section_id"] == "1161ce06-f025-5b5c-992e-9a90152c2e8e"
    assert "drillrank_namespace" not in metadata


@hosts
def test_hosts_agree_on_the_ids(cut):
    assert [id_ for id_, _ in cut(TENANTS, namespace_key="tenant")] == [
        id_ for id_, _ in langchain(TENANTS, namespace_key="tenant")
    ]


@hosts
@pytest.mark.parametrize("metadata", [{}, {"tenant": None}, {"tenant": " "}, {"tenant": ["a"]}, {"tenant": True}])
def test_a_document_without_a_namespace_is_named(cut, metadata):
    with pytest.raises(InvalidInput, match=r"'guide' has .* under 'tenant'"):
        cut([*TENANTS, (BOOK, "guide", metadata)], namespace_key="tenant")


@hosts
@pytest.mark.parametrize(
    "settings", [{"namespace": " "}, {"namespace_key": ""}, {"namespace": "a", "namespace_key": "b"}]
)
def test_senseless_namespaces_are_refused(cut, settings):
    with pytest.raises(ValueError, match="namespace"):
        cut(TENANTS, **settings)


# What a change embeds anew

LATER = BOOK.replace("The Thames flows through London.", "The Thames rises in Gloucestershire.")


class Counted(BaseEmbedding):
    """Remembers what it was asked to embed."""

    _embedded: list[str] = PrivateAttr(default_factory=list)

    def _get_text_embedding(self, text):
        self._embedded.append(text)
        return [float(len(text)), 1.0]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


def by_llama_index():
    model = Counted(embeddings_cache=SimpleKVStore())
    for text in (BOOK, LATER):
        model._embedded.clear()
        document = Document(text=text, id_="book", metadata={"version": "1"}, excluded_embed_metadata_keys=["version"])
        VectorStoreIndex(MultiViewNodeParser()([document]), embed_model=model)
    return model._embedded


def by_pipeline():
    model = Counted(embeddings_cache=SimpleKVStore())
    pipeline = IngestionPipeline(transformations=[MultiViewNodeParser(), model])
    for text in (BOOK, LATER):
        model._embedded.clear()
        pipeline.run(documents=[Document(text=text, id_="book")])
    return model._embedded


def by_langchain():
    class Embeddings(WordEmbeddings):
        embedded: list[str]

        def embed_documents(self, texts):
            self.embedded += texts
            return super().embed_documents(texts)

    model = Embeddings()
    cached = CacheBackedEmbeddings.from_bytes_store(model, InMemoryByteStore(), key_encoder="sha256")
    for text in (BOOK, LATER):
        model.embedded = []
        InMemoryVectorStore(cached).add_documents(
            MultiViewTextSplitter().split_documents([LangChainDocument(text, id="book", metadata={"version": "1"})])
        )
    return model.embedded


@pytest.mark.parametrize("embedded", [by_llama_index, by_pipeline, by_langchain])
def test_a_change_of_one_section_embeds_that_section_and_keywords_that_became_others(embedded):
    texts = embedded()
    later = {
        (metadata["drillrank_section_path"], metadata["drillrank_view"]): text
        for (_, metadata), text in zip(langchain([(LATER, "book", {})]), _texts_of(LATER), strict=True)
    }
    before = set(_texts_of(BOOK))
    assert sorted(texts) == sorted(text for text in later.values() if text not in before)
    anew = {place for place, text in later.items() if text in texts}
    assert {view for path, view in anew if path == "Rivers > The Thames"} == {"raw", "keywords", "summary"}
    assert {view for path, view in anew if path != "Rivers > The Thames"} <= {"keywords"}
    assert len(texts) < len(later)


def _texts_of(text):
    return [
        piece.page_content for piece in MultiViewTextSplitter().split_documents([LangChainDocument(text, id="book")])
    ]
