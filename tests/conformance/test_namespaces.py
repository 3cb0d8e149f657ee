"""Sections in namespaces, and what a change of one of them costs in embeddings; both hosts alike."""

from __future__ import annotations

import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.stores import InMemoryByteStore
from llama_index.core import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.storage.kvstore import SimpleKVStore

from tests.conformance.corpus import BOOK
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

TENANTS = [(BOOK, "guide", {"tenant": tenant}) for tenant in ("a", "b", 3)]


def cut(host, documents, **settings):
    """Ids and metadata."""
    pieces = host.split([host.document(text, id_, **metadata) for text, id_, metadata in documents], **settings)
    return [(host.id_of(piece), piece.metadata) for piece in pieces]


@both_frameworks
def test_equal_ids_in_two_namespaces_lead_to_different_sections_and_hosts_agree_on_them(host):
    made = cut(host, TENANTS, namespace_key="tenant")
    ids = [id_ for id_, _ in made]
    assert len(set(ids)) == len(ids)
    assert ids == [id_ for id_, _ in cut(LangChain, TENANTS, namespace_key="tenant")]
    assert {metadata["drillrank_namespace"] for _, metadata in made} == {"a", "b", "3"}
    assert all(metadata["drillrank_namespace"] == str(metadata["tenant"]) for _, metadata in made)
    apart = [cut(host, [document], namespace=str(document[2]["tenant"])) for document in TENANTS]
    assert made == [section for of_one in apart for section in of_one]  # whatever else is cut with it
    (id_, metadata), *_ = cut(host, [("# Foxes\n\nThey hunt.\n", "animals.md", {})])
    assert id_ == metadata["drillrank_section_id"] == "1161ce06-f025-5b5c-992e-9a90152c2e8e"
    assert "drillrank_namespace" not in metadata


# What a change embeds anew

LATER = BOOK.replace("The Thames flows through London.", "The Thames rises in Gloucestershire.")


def by_llama_index(document, model):
    document.excluded_embed_metadata_keys = ["version"]
    VectorStoreIndex(LlamaIndex.split([document]), embed_model=model)


def by_pipeline(document, model):
    document.metadata.clear()
    IngestionPipeline(transformations=[LlamaIndex.splitter(), model]).run(documents=[document])


def by_langchain(document, model):
    LangChain.index(*LangChain.split([document]), embedding=model)


@pytest.mark.parametrize(
    ("host", "fill"), [(LlamaIndex, by_llama_index), (LlamaIndex, by_pipeline), (LangChain, by_langchain)]
)
def test_a_change_of_one_section_embeds_that_section_and_keywords_that_became_others(host, fill):
    if host is LlamaIndex:
        model = cached = host.embedding(embeddings_cache=SimpleKVStore())
    else:
        model = host.embedding()
        cached = CacheBackedEmbeddings.from_bytes_store(model, InMemoryByteStore(), key_encoder="sha256")
    for text in (BOOK, LATER):
        model.texts.clear()
        fill(host.document(text, "book", version="1"), cached)
    before, later = (LangChain.sections(("book", text)) for text in (BOOK, LATER))
    known = {piece.page_content for piece in before}
    changed = [piece for piece in later if piece.page_content not in known]
    assert sorted(model.texts) == sorted(piece.page_content for piece in changed)
    places = {(piece.metadata["drillrank_section_path"], piece.metadata["drillrank_view"]) for piece in changed}
    assert {view for path, view in places if path == "Rivers > The Thames"} == {"raw", "keywords", "summary"}
    assert {view for path, view in places if path != "Rivers > The Thames"} <= {"keywords"}
    assert len(changed) < len(later)
