"""Chroma and PostgreSQL: nothing that the store does not hold, or that a filter hides, comes out of a component."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex

from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.leaks import World, cases, check_story
from tests.integration.conftest import Postgres

DIMENSIONS = 26


@pytest.fixture
def chroma(tmp_path: Path) -> Any:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed: make integration")
    return chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))


@pytest.fixture
def langchain_chroma(chroma: Any, name: str) -> Any:
    stores = pytest.importorskip("langchain_chroma", reason="langchain-chroma is not installed: make integration")
    return stores.Chroma(name, langchain_leaks.Words(), client=chroma)


@pytest.fixture
def langchain_pgvectorstore(postgres: Postgres, name: str) -> Iterator[Any]:
    stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed: make integration")
    engine = stores.PGEngine.from_connection_string(postgres.url("psycopg"))
    engine.init_vectorstore_table(name, DIMENSIONS)
    yield stores.PGVectorStore.create_sync(engine, langchain_leaks.Words(), name)
    asyncio.run(engine.close())


@pytest.fixture
def langchain_pgvector(postgres: Postgres, name: str) -> Iterator[Any]:
    stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed: make integration")
    postgres.run(f"CREATE DATABASE {name}")
    settings = {"connection": postgres.url("psycopg", name), "collection_name": name}
    vectors = stores.PGVector(langchain_leaks.Words(), **settings)
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


def of_langchain(form: Any, vectors: Any) -> World[Any]:
    return World(form(vectors))


def of_llama_index(form: Any, vectors: Any) -> World[Any]:
    return World(form(VectorStoreIndex.from_vector_store(vectors, embed_model=llama_index_leaks.Words())))


# The older PGVector is either synchronous or asynchronous; the other one of LangChain keeps a loop of its own.
STORES: dict[str, tuple[Any, Callable[..., World[Any]], bool]] = {
    "langchain_chroma": (langchain_leaks, of_langchain, True),
    "langchain_pgvectorstore": (langchain_leaks, of_langchain, True),
    "langchain_pgvector": (langchain_leaks, of_langchain, False),
    "llama_index_chroma": (llama_index_leaks, of_llama_index, True),
    "llama_index_pgvector": (llama_index_leaks, of_llama_index, True),
}
CASES = cases({store: (leaks, (store,)) for store, (leaks, *_) in STORES.items()})


@pytest.mark.parametrize(("store", "way", "theirs", "form", "build"), CASES)
async def test_what_is_heard_of_a_store_is_what_may_be_seen(
    request: pytest.FixtureRequest, store: str, way: str, theirs: bool, form: Any, build: Any
):
    leaks, filled, both = STORES[store]
    vectors = request.getfixturevalue(store)
    world = filled(form, vectors)
    scene = leaks.scene(world, way)
    component = build(scene)
    await check_story(world, lambda asynchronous: leaks.ask(component, theirs, scene.llm, asynchronous and both))
    if store == "llama_index_pgvector":
        await vectors.close()
