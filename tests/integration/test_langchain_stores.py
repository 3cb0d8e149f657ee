"""LangChain with Chroma and PostgreSQL: split, store, search, delete, store again, many at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from langchain_ext import MultiViewRetriever, MultiViewTextSplitter
from tests.integration.conftest import Embed, Postgres
from tests.integration.corpus import WRITTEN, Source, changed, check_matched, once, papers, writers

SPLITTER = MultiViewTextSplitter()


class MiniLM(Embeddings):
    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._embed([text])[0]


@dataclass
class Stored:
    """A vector store, and a look at its rows behind the framework's back."""

    vectors: VectorStore
    rows: Callable[[], list[tuple[str, str]]]
    awaited: VectorStore | None = None  # for stores that are either synchronous or asynchronous


@pytest.fixture
def chroma(embed: Embed, tmp_path: Path, name: str) -> Stored:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed: make integration")
    stores = pytest.importorskip("langchain_chroma", reason="langchain-chroma is not installed: make integration")
    client = chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))

    def rows() -> list[tuple[str, str]]:
        everything = client.get_collection(name).get(include=["documents"])
        return list(zip(everything["ids"], everything["documents"], strict=True))

    return Stored(stores.Chroma(name, MiniLM(embed), client=client), rows)


def in_table(url: str, query: str) -> Iterator[Callable[[], list[tuple[str, str]]]]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(url)

    def rows() -> list[tuple[str, str]]:
        with engine.connect() as connection:
            return [(str(id_), text) for id_, text in connection.execute(sqlalchemy.text(query))]

    yield rows
    engine.dispose()


@pytest.fixture
def pgvectorstore(embed: Embed, postgres: Postgres, name: str) -> Iterator[Stored]:
    """What langchain-postgres recommends."""
    stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed: make integration")
    engine = stores.PGEngine.from_connection_string(postgres.url("psycopg"))
    engine.init_vectorstore_table(name, 384)
    vectors = stores.PGVectorStore.create_sync(engine, MiniLM(embed), name)
    for rows in in_table(postgres.url("psycopg"), f"SELECT langchain_id, content FROM {name}"):
        yield Stored(vectors, rows)
    asyncio.run(engine.close())


@pytest.fixture
def pgvector(embed: Embed, postgres: Postgres, name: str) -> Iterator[Stored]:
    """What it offered before; still in wide use. Its ids are unique in the whole database, not in a collection."""
    stores = pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed: make integration")
    postgres.run(f"CREATE DATABASE {name}")
    settings = {"connection": postgres.url("psycopg", name), "collection_name": name}
    vectors = stores.PGVector(MiniLM(embed), **settings)
    awaited = stores.PGVector(MiniLM(embed), **settings, async_mode=True)
    for rows in in_table(postgres.url("psycopg", name), "SELECT id, document FROM langchain_pg_embedding"):
        yield Stored(vectors, rows, awaited)
    vectors._engine.dispose()


@pytest.fixture(params=["chroma", "pgvectorstore", "pgvector"])
def stored(request: pytest.FixtureRequest) -> Stored:
    return request.getfixturevalue(request.param)


def document(source: Source) -> Document:
    return Document(id=source.id, page_content=source.text, metadata={"source": source.name})


def pieces(*sources: Source) -> list[Document]:
    return SPLITTER.split_documents([document(source) for source in sources])


def expected(*sources: Source) -> set[tuple[str, str]]:
    """What is in a store that holds these documents and nothing else."""
    return once([(piece.id, piece.page_content) for piece in pieces(*sources)])


def sections(*sources: Source) -> dict[str, Document]:
    return {piece.id: piece for piece in pieces(*sources) if piece.metadata["drillrank_view"] == "raw"}


def paths(found: list[Document]) -> list[str]:
    return [hit.metadata["drillrank_section_path"] for hit in found]


def test_all_views_go_in_and_sections_come_out_as_they_were(stored: Stored):
    sources = WRITTEN + papers(3)
    stored.vectors.add_documents(pieces(*sources))
    assert once(stored.rows()) == expected(*sources)
    raw = sections(*sources)
    retriever = MultiViewRetriever(source=stored.vectors, top_n=5)
    for source in sources:
        found = retriever.invoke(source.question)
        assert len({hit.id for hit in found}) == len(found) == 5
        assert source not in WRITTEN or source.answer in paths(found)[:2]
        for hit in found:
            check_matched(hit.metadata.pop("drillrank_matched_views"), 5)
            assert hit.metadata.pop("relevance_score") > 0
            assert hit == raw[hit.id]


def plain(vectors: VectorStore) -> BaseRetriever:
    return vectors.as_retriever(search_kwargs={"k": 9})


async def test_over_a_plain_retriever_async_and_with_what_stands_around(stored: Stored):
    stored.vectors.add_documents(pieces(*WRITTEN))
    light, vectors, awaited = WRITTEN[0], stored.vectors, stored.awaited or stored.vectors
    for source, other in ((vectors, awaited), (plain(vectors), plain(awaited))):
        found = MultiViewRetriever(source=source, top_n=3).invoke(light.question)
        assert paths(found)[0] == light.answer
        assert len({hit.id for hit in found}) == 3
        assert await MultiViewRetriever(source=other, top_n=3).ainvoke(light.question) == found
    repairs = light.answer.rpartition(" > ")[0]
    for expand, around in (("neighbours", [repairs, f"{repairs} > Winter of 1978"]), ("parent", [repairs])):
        found = MultiViewRetriever(source=vectors, top_n=1, expand=expand).invoke(light.question)
        assert paths(found) == [light.answer, *around]
        assert {hit.metadata.get("drillrank_expanded_from") for hit in found[1:]} == {found[0].id}
        assert all(hit.page_content == sections(light)[hit.id].page_content for hit in found)
        assert await MultiViewRetriever(source=awaited, top_n=1, expand=expand).ainvoke(light.question) == found
    if stored.awaited:
        await stored.awaited._async_engine.dispose()


def test_what_is_embedded_has_context_and_what_comes_back_is_the_source(stored: Stored):
    splitter = MultiViewTextSplitter(chunking="paragraph", context=["headings", "keywords"])
    light = WRITTEN[0]
    stored.vectors.add_documents(splitter.split_documents([document(light)]))
    embedded = [text for _, text in stored.rows() if "nine panes of" in text]
    assert embedded
    assert all("Winter of 1953" in text for text in embedded)
    (found,) = MultiViewRetriever(source=stored.vectors, top_n=1).invoke(light.question)
    start = found.metadata["start_index"]
    assert light.text[start : start + len(found.page_content)] == found.page_content
    assert "nine panes" in found.page_content


def test_a_deleted_document_is_gone_and_the_others_stay(stored: Stored):
    light, bread, ice = WRITTEN
    stored.vectors.add_documents(pieces(*WRITTEN))
    stored.vectors.delete([piece.id for piece in pieces(bread)])
    assert once(stored.rows()) == expected(light, ice)
    found = MultiViewRetriever(source=stored.vectors, top_n=99).invoke(bread.question)
    assert {hit.metadata["source"] for hit in found} == {light.name, ice.name}
    assert len(found) == len(sections(light, ice))


def test_documents_stored_again_replace_themselves(stored: Stored):
    light, *others = WRITTEN
    for _ in range(2):
        stored.vectors.add_documents(pieces(*WRITTEN))
        assert once(stored.rows()) == expected(*WRITTEN)
    later = pieces(changed(light))
    gone = {piece.id for piece in pieces(light)} - {piece.id for piece in later}
    stored.vectors.add_documents(later)
    stored.vectors.delete(list(gone))
    assert once(stored.rows()) == expected(changed(light), *others)


def test_the_host_s_indexing_keeps_the_store_up_to_date(stored: Stored):
    light, bread, ice = WRITTEN
    records = InMemoryRecordManager("drillrank")
    records.create_schema()

    def indexed(cleanup: str, *sources: Source) -> list[int]:
        counts = index(
            pieces(*sources),
            records,
            stored.vectors,
            cleanup=cleanup,
            source_id_key="source",
            key_encoder=by_content,
            batch_size=5,  # fewer than the pieces of a document
        )
        assert sorted(text for _, text in once(stored.rows())) == sorted(
            piece.page_content for piece in pieces(*(sources if cleanup == "full" else (*sources, bread, ice)))
        )
        return [counts[key] for key in ("num_added", "num_updated", "num_skipped", "num_deleted")]

    every, lights = len(pieces(*WRITTEN)), len(pieces(light))
    assert indexed("full", *WRITTEN) == [every, 0, 0, 0]
    assert indexed("full", *WRITTEN) == [0, 0, every, 0]
    added, updated, skipped, deleted = indexed("scoped_full", changed(light))
    assert (updated, added + skipped) == (0, len(pieces(changed(light))))
    assert deleted == lights - skipped > 0
    assert indexed("scoped_full", changed(light)) == [0, 0, len(pieces(changed(light))), 0]
    found = MultiViewRetriever(source=stored.vectors, top_n=1, expand="neighbours").invoke("When is the tower open?")
    assert [path.rpartition(" > ")[2] for path in paths(found)] == ["Visiting", "Winter of 1978", "See also"]
    assert [hit.page_content for hit in found] == [sections(changed(light))[hit.id].page_content for hit in found]
    assert indexed("full", changed(light), ice)[3] == len(pieces(bread))


def by_content(document: Document) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, document.model_dump_json()))


def test_eight_writers_at_once(stored: Stored):
    shares = writers(8)

    def write(share: list[Source]) -> None:
        for source in share:
            stored.vectors.add_documents(pieces(source))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, shares))
        assert once(stored.rows()) == expected(*(source for share in shares for source in share))
        list(pool.map(write, [shares[0]] * 8))  # and the same documents at the same time
    assert once(stored.rows()) == expected(*(source for share in shares for source in share))
