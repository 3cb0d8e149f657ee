"""Our record stores pass the kit of `drillrank.testing` over Chroma, Qdrant, FAISS and PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex

from drillrank.testing import RecordStoreTests
from tests.conformance.kit_stores import LangChainStoreTests, LlamaIndexStoreTests

_DIMENSIONS = 9
_ENCODABLE_TEXTS = tuple(text for text in RecordStoreTests.unusual_texts if "\ud800" not in text)
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")


def needed(module: str) -> Any:
    return pytest.importorskip(module, reason=f"{module} is not installed: make integration")


def name() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


def over(vector_store: Any, model: Any) -> VectorStoreIndex:
    storage = StorageContext.from_defaults(vector_store=vector_store)
    return VectorStoreIndex([], storage_context=storage, embed_model=model)


def ephemeral_chroma() -> Any:
    chromadb = needed("chromadb")
    return chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))


def qdrant_collection() -> tuple[Any, str]:
    """A client in memory, and the name of an empty collection."""
    qdrant = needed("qdrant_client")
    client, collection = qdrant.QdrantClient(":memory:"), name()
    vectors = qdrant.models.VectorParams(size=_DIMENSIONS, distance=qdrant.models.Distance.COSINE)
    client.create_collection(collection, vectors_config=vectors)
    return client, collection


class TestLangChainChroma(LangChainStoreTests):
    unusual_texts = _ENCODABLE_TEXTS

    def make_vector_store(self, embeddings):
        return needed("langchain_chroma").Chroma(name(), embeddings, client=ephemeral_chroma())


class TestLlamaIndexChroma(LlamaIndexStoreTests):
    unusual_texts = _ENCODABLE_TEXTS

    def make_index(self, model):
        stores = needed("llama_index.vector_stores.chroma")
        collection = ephemeral_chroma().create_collection(name())
        return over(stores.ChromaVectorStore(chroma_collection=collection), model)


class TestLangChainQdrant(LangChainStoreTests):
    unusual_ids = ()  # it takes UUIDs and numbers

    def make_vector_store(self, embeddings):
        return needed("langchain_qdrant").QdrantVectorStore(*qdrant_collection(), embeddings)


class TestLlamaIndexQdrant(LlamaIndexStoreTests):
    unusual_ids = ()  # it takes UUIDs and numbers

    def make_index(self, model):
        client, collection = qdrant_collection()
        return over(needed("llama_index.vector_stores.qdrant").QdrantVectorStore(collection, client=client), model)


class TestLlamaIndexFaiss(LlamaIndexStoreTests):
    def make_index(self, model):
        faiss, stores = needed("faiss"), needed("llama_index.vector_stores.faiss")
        return over(stores.FaissVectorStore(faiss.IndexFlatIP(_DIMENSIONS)), model)


class TestLangChainPGVectorStore(LangChainStoreTests):
    unusual_ids = ()  # it takes UUIDs
    guessed_ids = (str(uuid.UUID(int=0)),)
    unusual_texts = _ENCODABLE_TEXTS

    @pytest.fixture(autouse=True)
    def _server(self, postgres: Any) -> Iterator[None]:
        self.engine = needed("langchain_postgres").PGEngine.from_connection_string(postgres.url("psycopg"))
        yield
        asyncio.run(self.engine.close())

    def make_vector_store(self, embeddings):
        table = name()
        self.engine.init_vectorstore_table(table, _DIMENSIONS)
        return needed("langchain_postgres").PGVectorStore.create_sync(self.engine, embeddings, table)


class TestLlamaIndexPGVectorStore(LlamaIndexStoreTests):
    unusual_texts = _ENCODABLE_TEXTS

    @pytest.fixture(autouse=True)
    def _server(self, postgres: Any) -> Iterator[None]:
        self.urls = {
            "connection_string": postgres.url("psycopg2"),
            "async_connection_string": postgres.url("asyncpg"),
        }
        self.stores: list[Any] = []
        yield
        for store in self.stores:
            store.client.dispose()

    def make_index(self, model):
        stores = needed("llama_index.vector_stores.postgres")
        store = stores.PGVectorStore.from_params(**self.urls, table_name=name(), embed_dim=_DIMENSIONS)
        store.add([])  # makes the table
        self.stores.append(store)
        return over(store, model)

    async def aclose(self, store):
        if store is not None:
            await store.vector_store.close()
