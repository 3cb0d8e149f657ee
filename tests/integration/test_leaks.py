"""Chroma and PostgreSQL: nothing that the store does not hold, or that a filter hides, comes out of a component."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex

from tests.conformance.hearing import ask
from tests.conformance.hosts import LangChain, LlamaIndex
from tests.conformance.leaks import QUESTION, World, cases, check_story, letters, scene
from tests.integration.conftest import Postgres

DIMENSIONS = 26


@pytest.fixture
def chroma(tmp_path: Path) -> Any:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed: make integration")
    return chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))


@pytest.fixture
def langchain_chroma(chroma: Any, name: str) -> Any:
    stores = pytest.importorskip("langchain_chroma", reason="langchain-chroma is not installed: make integration")
    return stores.Chroma(name, LangChain.embedding(letters), client=chroma)


@pytest.fixture
def langchain_pgvectorstore(postgres: Postgres, name: str) -> Iterator[Any]:
    stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed: make integration")
    engine = stores.PGEngine.from_connection_string(postgres.url("psycopg"))
    engine.init_vectorstore_table(name, DIMENSIONS)
    yield stores.PGVectorStore.create_sync(engine, LangChain.embedding(letters), name)
    asyncio.run(engine.close())


@pytest.fixture
def langchain_pgvector(postgres: Postgres, name: str) -> Iterator[Any]:
    stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed: make integration")
    postgres.run(f"CREATE DATABASE {name}")
    settings = {"connection": postgres.url("psycopg", name), "collection_name": name}
    vectors = stores.PGVector(LangChain.embedding(letters), **settings)
    yield vectors
    vectors._engine.dispose()


@pytest.fixture
def llama_index_chroma(chroma: Any, name: str) -> Any:
    stores = pytest.importorskip("llama_index.vector_stores.chroma", reason="not installed: make integration")
    return stores.ChromaVectorStore(chroma_collection=chroma.create_collection(name))


@pytest.fixture
def llama_index_pgvector(postgres: Postgres, name: str) -> Iterator[Any]:
    stores = pytest.importorskip("llama_index.vector_stores.postgres", reason="not installed: make integration")
    vectors = stores.PGVectorStore.from_params(
        connection_string=postgres.url("psycopg2"),
        async_connection_string=postgres.url("asyncpg"),
        table_name=name,
        embed_dim=DIMENSIONS,
    )
    vectors.add([])  # makes the table
    yield vectors
    vectors.client.dispose()


# The older PGVector is either synchronous or asynchronous; the other one of LangChain keeps a loop of its own.
OF_LANGCHAIN, OF_LLAMA_INDEX = ("chroma", "pgvectorstore", "pgvector"), ("chroma", "pgvector")
STORES = [*(f"langchain_{name}" for name in OF_LANGCHAIN), *(f"llama_index_{name}" for name in OF_LLAMA_INDEX)]


@pytest.mark.parametrize(("store", "way", "theirs", "form", "build"), cases({name: name for name in STORES}))
async def test_what_is_heard_of_a_store_is_what_may_be_seen(
    request: pytest.FixtureRequest, store: str, way: str, theirs: bool, form: Any, build: Any
):
    vectors, host = request.getfixturevalue(store), LangChain if store.startswith("langchain") else LlamaIndex
    model = host.embedding(letters)
    filled = vectors if host is LangChain else VectorStoreIndex.from_vector_store(vectors, embed_model=model)
    world = World(host, filled, form)
    beside = scene(world, way)
    component, both = build(beside), store != "langchain_pgvector"
    await check_story(
        world, lambda asynchronous: ask(host, component, QUESTION, beside.llm, theirs, asynchronous and both)
    )
    if store == "llama_index_pgvector":
        await vectors.close()
