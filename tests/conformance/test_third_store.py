"""A store of a third party, the dictionary of the examples, as the source of components of both frameworks."""

from __future__ import annotations

from typing import Any

import pytest

import langchain_ext
import llama_index_ext
from drillrank.testing import sample_embed
from examples.dictionary_store import Database, DictionaryStore
from langchain_ext.stored_chunks import read_documents
from llama_index_ext.stored_chunks import read_nodes
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.kit_langchain import LangChainRetrieverTests
from tests.conformance.kit_llama_index import LlamaIndexRetrieverTests
from tests.conformance.kit_stores import sample_document, sample_node, tenant_filters

READ = {LangChain: read_documents, LlamaIndex: read_nodes}


class FilledDictionary:
    """How the kit fills the dictionary with records of a framework."""

    def make_store(self, chunks: Any, embed: Any) -> Database:
        database = Database(embed)
        self.add(database, chunks)
        return database

    def delete(self, store: Any, chunks: Any) -> None:
        store.delete([chunk.id for chunk in chunks])


class FilledWithDocuments(FilledDictionary, LangChainRetrieverTests):
    stores_sections = True

    def add(self, store: Any, chunks: Any) -> None:
        store.add(read_documents(map(sample_document, chunks)))


class FilledWithNodes(FilledDictionary, LlamaIndexRetrieverTests):
    stores_sections = True

    def add(self, store: Any, chunks: Any) -> None:
        store.add(read_nodes(map(sample_node, chunks)))


def visible(tenant: str | None) -> dict[str, str] | None:
    return None if tenant is None else {"tenant": tenant}


class TestD3RetrieverOfLangChain(FilledWithDocuments):
    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        return langchain_ext.D3Retriever(source=DictionaryStore(store, visible(tenant)), top_n=top_n)


class TestMultiViewRetrieverOfLangChain(FilledWithDocuments):
    """The component hides records of others; the store does not."""

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        source = DictionaryStore(store)
        return langchain_ext.MultiViewRetriever(source=source, filters=visible(tenant), top_n=top_n or 5)


class TestD3RetrieverOfLlamaIndex(FilledWithNodes):
    """The component hides records of others; the store does not."""

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        source = DictionaryStore(store)
        return llama_index_ext.D3Retriever(source=source, filters=tenant_filters(tenant), top_n=top_n)


class TestMultiViewRetrieverOfLlamaIndex(FilledWithNodes):
    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        return llama_index_ext.MultiViewRetriever(source=DictionaryStore(store, visible(tenant)), top_n=top_n or 5)


@both_frameworks
@pytest.mark.parametrize("name", ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever"])
def test_what_a_splitter_makes_is_found_in_a_store_of_a_third_party(host, name):
    guides = [
        host.document(f"# Doors\n\nThe code is {code}.\n", f"{tenant}/guide", tenant=tenant)
        for tenant, code in (("a", "1234"), ("b", "9876"))
    ]
    database = Database(sample_embed)
    database.add(READ[host](host.split(guides, namespace_key="tenant")))
    retriever = getattr(host.ext, name)(source=DictionaryStore(database, {"tenant": "a"}))
    results = host.both(retriever, "What is the code of the door?")
    assert "The code is 1234." in results[0].text
    assert not any("9876" in result.text for result in results)
