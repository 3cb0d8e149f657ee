"""LlamaIndex with Chroma and PostgreSQL: parse, store, search, delete, store again, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery
from pydantic import PrivateAttr

from llama_index_ext import MultiViewNodeParser, MultiViewRetriever
from tests.integration.conftest import Embed, Postgres
from tests.integration.corpus import WRITTEN, Source, changed, check_matched, once, papers, writers

PARSER = MultiViewNodeParser()
KEPT_OUT = {"excluded_embed_metadata_keys", "excluded_llm_metadata_keys"}  # these get the key of the ranks, too


class MiniLM(BaseEmbedding):
    _embed: Embed = PrivateAttr()

    def __init__(self, embed: Embed) -> None:
        super().__init__(model_name="all-MiniLM-L6-v2", embed_batch_size=64)
        self._embed = embed

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)


@dataclass
class Stored:
    """A vector store, the model that fills it, and a look at its rows behind the framework's back.

    `close` ends the store's connections, which belong to an event loop.
    """

    vectors: BasePydanticVectorStore
    model: MiniLM
    rows: Callable[[], list[tuple[str, str]]]
    close: Callable[[], Awaitable[None]] | None = None

    def index(self) -> VectorStoreIndex:
        return VectorStoreIndex.from_vector_store(self.vectors, embed_model=self.model, transformations=[PARSER])

    def pipeline(self, documents: SimpleDocumentStore) -> IngestionPipeline:
        """Stores what is new or changed, and deletes the nodes of documents that changed."""
        return IngestionPipeline(
            transformations=[PARSER, self.model],
            vector_store=self.vectors,
            docstore=documents,
            docstore_strategy=DocstoreStrategy.UPSERTS,
            disable_cache=True,
        )


@pytest.fixture
def chroma(embed: Embed, tmp_path: Path, name: str) -> Stored:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed: make integration")
    stores = pytest.importorskip("llama_index.vector_stores.chroma", reason="not installed: make integration")
    client = chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection(name)

    def rows() -> list[tuple[str, str]]:
        everything = collection.get(include=["documents"])
        return list(zip(everything["ids"], everything["documents"], strict=True))

    return Stored(stores.ChromaVectorStore(chroma_collection=collection), MiniLM(embed), rows)


@pytest.fixture
def pgvector(embed: Embed, postgres: Postgres, name: str) -> Iterator[Stored]:
    stores = pytest.importorskip("llama_index.vector_stores.postgres", reason="not installed: make integration")
    import sqlalchemy

    vectors = stores.PGVectorStore.from_params(
        connection_string=postgres.url("psycopg2"),
        async_connection_string=postgres.url("asyncpg"),
        table_name=name,
        embed_dim=384,
    )
    engine = sqlalchemy.create_engine(postgres.url("psycopg2"))

    def rows() -> list[tuple[str, str]]:
        with engine.connect() as connection:
            found = connection.execute(sqlalchemy.text(f"SELECT node_id, text FROM data_{name}"))
            return [(id_, text) for id_, text in found]

    vectors.add([])  # makes the table
    yield Stored(vectors, MiniLM(embed), rows, vectors.close)
    vectors.client.dispose()
    engine.dispose()


@pytest.fixture(params=["chroma", "pgvector"])
def stored(request: pytest.FixtureRequest) -> Stored:
    return request.getfixturevalue(request.param)


def document(source: Source) -> Document:
    return Document(text=source.text, id_=source.id, metadata={"file_name": source.name})


def documents(sources: list[Source]) -> list[Document]:
    return [document(source) for source in sources]


def expected(sources: list[Source]) -> set[tuple[str, str]]:
    """What is in a store that holds these documents and nothing else."""
    return once([(node.node_id, node.text) for node in PARSER(documents(sources))])


def paths(found: list[NodeWithScore]) -> list[str]:
    return [hit.node.metadata["drillrank_section_path"] for hit in found]


def outcome(found: list[NodeWithScore]) -> list[tuple[str, float, str, str]]:
    return [
        (hit.node.node_id, hit.score, hit.node.text, hit.node.metadata.get("drillrank_matched_views", ""))
        for hit in found
    ]


def raw_nodes(sources: list[Source]) -> dict[str, TextNode]:
    return {node.node_id: node for node in PARSER(documents(sources)) if node.metadata["drillrank_view"] == "raw"}


def test_all_views_go_in_and_sections_come_out_as_they_were(stored: Stored):
    sources = WRITTEN + papers(3)
    stored.pipeline(SimpleDocumentStore()).run(documents=documents(sources))
    assert once(stored.rows()) == expected(sources)
    raw = raw_nodes(sources)
    retriever = MultiViewRetriever(source=stored.index(), top_n=5)
    for source in sources:
        found = retriever.retrieve(source.question)
        assert len({hit.node.node_id for hit in found}) == len(found) == 5
        assert source not in WRITTEN or source.answer in paths(found)[:2]
        for hit in found:
            original = raw[hit.node.node_id]
            check_matched(hit.node.metadata.pop("drillrank_matched_views"), 5)
            assert hit.node.dict(exclude=KEPT_OUT) == original.dict(exclude=KEPT_OUT)
            for mode in (MetadataMode.EMBED, MetadataMode.LLM):
                assert hit.node.get_content(metadata_mode=mode) == original.get_content(metadata_mode=mode)


def test_a_retriever_that_is_told_what_views_lead_to_gives_each_section_once_with_its_best_score(stored: Stored):
    stored.pipeline(SimpleDocumentStore()).run(documents=documents(WRITTEN))
    raw = raw_nodes(WRITTEN)
    merged = 0
    for source in WRITTEN:
        rows = stored.vectors.query(VectorStoreQuery(stored.model.get_query_embedding(source.question), 12))
        best: dict[str, float] = {}
        for node, similarity in zip(rows.nodes, rows.similarities, strict=True):
            section = node.metadata["drillrank_section_id"]
            best[section] = max(similarity, best.get(section, similarity))
        followed = VectorIndexRetriever(stored.index(), similarity_top_k=12, object_map=raw)
        found = followed.retrieve(source.question)
        assert [(hit.node.node_id, hit.score) for hit in found] == list(best.items())
        assert [hit.node.text for hit in found] == [raw[id_].text for id_ in best]
        merged += len(rows.nodes) - len(found)
    assert merged > 0  # views of one section were among them


async def test_over_a_plain_retriever_async_and_with_what_stands_around(stored: Stored):
    stored.pipeline(SimpleDocumentStore()).run(documents=documents(WRITTEN))
    index = stored.index()
    light = WRITTEN[0]
    for source in (index, index.as_retriever(similarity_top_k=9)):
        retriever = MultiViewRetriever(source=source, top_n=3)
        found = retriever.retrieve(light.question)
        assert paths(found)[0] == light.answer
        assert outcome(await retriever.aretrieve(light.question)) == outcome(found)
    if stored.close:
        await stored.close()
    repairs = light.answer.rpartition(" > ")[0]
    for expand, around in (("neighbours", [repairs, f"{repairs} > Winter of 1978"]), ("parent", [repairs])):
        found = MultiViewRetriever(source=index, top_n=1, expand=expand).retrieve(light.question)
        assert paths(found) == [light.answer, *around]
        assert {hit.node.metadata.get("drillrank_expanded_from") for hit in found[1:]} == {found[0].node.node_id}
        assert all(hit.node.text == raw_nodes([light])[hit.node.node_id].text for hit in found)


def test_what_is_embedded_has_context_and_what_comes_back_is_the_source(stored: Stored):
    parser = MultiViewNodeParser(chunking="paragraph", context=["headings", "keywords"])
    light = WRITTEN[0]
    nodes = parser([document(light)])
    embedded = [
        node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes if node.metadata["drillrank_view"] == "raw"
    ]
    assert all("Winter of 1953" in text for text in embedded if "nine panes" in text)
    stored.vectors.add(stored.model(nodes))
    (found,) = MultiViewRetriever(source=stored.index(), top_n=1).retrieve(light.question)
    assert "context" not in found.node.get_content(metadata_mode=MetadataMode.LLM)
    assert light.text[found.node.start_char_idx : found.node.end_char_idx] == found.node.text
    assert "nine panes" in found.node.text


def test_a_deleted_document_is_gone_and_the_others_stay(stored: Stored):
    stored.pipeline(SimpleDocumentStore()).run(documents=documents(WRITTEN))
    stored.index().delete_ref_doc("bread")
    left = [source for source in WRITTEN if source.id != "bread"]
    assert once(stored.rows()) == expected(left)
    found = MultiViewRetriever(source=stored.index(), top_n=99).retrieve(WRITTEN[1].question)
    assert {hit.node.ref_doc_id for hit in found} == {"light", "ice"}
    assert len(found) == len(raw_nodes(left))


def test_documents_stored_again_replace_themselves(stored: Stored):
    known = SimpleDocumentStore()
    stored.pipeline(known).run(documents=documents(WRITTEN))
    assert stored.pipeline(known).run(documents=documents(WRITTEN)) == []  # nothing is new
    assert once(stored.rows()) == expected(WRITTEN)
    later = [changed(WRITTEN[0]), *WRITTEN[1:]]
    stored.pipeline(known).run(documents=documents(later))
    assert once(stored.rows()) == expected(later)
    stored.index().update_ref_doc(document(WRITTEN[0]))  # the host's other way, back again
    assert once(stored.rows()) == expected(WRITTEN)
    found = MultiViewRetriever(source=stored.index(), top_n=1).retrieve(WRITTEN[0].question)
    assert paths(found) == [WRITTEN[0].answer]


def test_eight_writers_at_once(stored: Stored):
    shares = writers(8)
    known = SimpleDocumentStore()
    together = [source for share in shares for source in share]

    def write(share: list[Source]) -> None:
        for source in share:
            stored.pipeline(known).run(documents=[document(source)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, shares))
        assert once(stored.rows()) == expected(together)
        later = [[changed(light), *others] for light, *others in shares]
        list(pool.map(write, later))
    assert once(stored.rows()) == expected([source for share in later for source in share])
