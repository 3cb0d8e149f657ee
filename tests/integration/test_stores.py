"""Both hosts with Chroma and PostgreSQL: split, store, search, delete, store again, many at once."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.indexing import InMemoryRecordManager, index
from llama_index.core.schema import MetadataMode

from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.integration.conftest import STORES
from tests.integration.corpus import WRITTEN, changed, check_matched, once, papers, writers


@pytest.fixture(params=STORES, ids=lambda store: store.__name__)
def stored(request, opened, embed):
    return opened(request.param, embed, 384)


@pytest.fixture
def in_langchain(stored):
    return stored if stored.host is LangChain else pytest.skip("of the other host")


@pytest.fixture
def in_llama_index(stored):
    return stored if stored.host is LlamaIndex else pytest.skip("of the other host")


def documents(host, *sources):
    return [host.document(source.text, source.id, source=source.name) for source in sources]


def pieces(host, *sources):
    return host.split(documents(host, *sources))


def expected(host, *sources):
    """What is in a store that holds these documents and nothing else."""
    return once([(host.id_of(piece), host.text_of(piece)) for piece in pieces(host, *sources)])


def sections(host, *sources):
    """Raw records by id."""
    made = pieces(host, *sources)
    return {host.id_of(piece): piece for piece in made if piece.metadata["drillrank_view"] == "raw"}


def retriever(stored, source=None, **fields):
    return stored.host.ext.MultiViewRetriever(source=source or stored.source, **fields)


def found(stored, question, **fields):
    return stored.host.retrieve(retriever(stored, **fields), question)


def paths(hits):
    return [hit.metadata["drillrank_section_path"] for hit in hits]


def test_all_views_go_in_and_sections_come_out_as_they_were(stored):
    host, sources = stored.host, WRITTEN + papers(3)
    stored.put(documents(host, *sources))
    assert once(stored.rows()) == expected(host, *sources)
    raw = sections(host, *sources)
    for source in sources:
        hits = found(stored, source.question, top_n=5)
        assert len({hit.id for hit in hits}) == len(hits) == 5
        assert source not in WRITTEN or source.answer in paths(hits)[:2]
        for hit in hits:
            check_matched(hit.metadata.pop("drillrank_matched_views"), 5)
            assert hit.score > 0
            assert (hit.text, hit.metadata.pop("relevance_score", hit.score)) == (
                host.text_of(raw[hit.id]),
                hit.score,
            )
            assert hit.metadata == raw[hit.id].metadata
        for hit in retriever(stored, top_n=5).retrieve(source.question) if host is LlamaIndex else ():
            for mode in (MetadataMode.EMBED, MetadataMode.LLM):
                assert hit.get_content(metadata_mode=mode) == raw[hit.node_id].get_content(metadata_mode=mode)


def test_the_framework_s_own_retriever_over_the_index_that_ingested_returns_all_views(in_llama_index):
    stored = in_llama_index
    ingested = stored.ingest(documents(LlamaIndex, *WRITTEN))
    every = {piece.node_id: piece.metadata["drillrank_view"] for piece in pieces(LlamaIndex, *WRITTEN)}
    hits = ingested.as_retriever(similarity_top_k=len(every)).retrieve(WRITTEN[0].question)
    assert {hit.node_id: hit.metadata["drillrank_view"] for hit in hits} == every
    for views in (["raw"], ["raw", "keywords", "summary"]):
        [section] = LlamaIndex.retrieve(retriever(stored, ingested, views=views, top_n=1), WRITTEN[0].question)
        assert section.metadata["drillrank_view"] == "raw"
        assert paths([section]) == [WRITTEN[0].answer]


async def test_over_a_plain_retriever_async_and_with_what_stands_around(stored):
    host, light = stored.host, WRITTEN[0]
    stored.put(documents(host, *WRITTEN))
    awaited = stored.awaited if host is LangChain else stored.source
    for source, other in ((stored.source, awaited), (host.over(stored.source, 9), host.over(awaited, 9))):
        hits = found(stored, light.question, source=source, top_n=3)
        assert paths(hits)[0] == light.answer
        assert len({hit.id for hit in hits}) == 3
        assert await host.aretrieve(retriever(stored, other, top_n=3), light.question) == hits
    if stored.aclose:
        await stored.aclose()
    repairs = light.answer.rpartition(" > ")[0]
    for expand, path in (("neighbours", light.answer), ("parent", repairs)):
        [hit] = found(stored, light.question, top_n=1, expand=expand)
        assert paths([hit]) == [path]
        assert hit.text == light.text[hit.metadata["drillrank_start"] : hit.metadata["drillrank_end"]]
        assert "Winter of 1978" in hit.text


def test_what_is_embedded_has_context_and_what_comes_back_is_the_source(stored):
    host, light = stored.host, WRITTEN[0]
    made = host.split(documents(host, light), chunking="paragraph", context=["headings", "keywords"])
    host.add(stored.source, *made)
    embedded = [text for text in stored.model.texts if "nine panes of" in text]
    assert embedded
    assert all("Winter of 1953" in text for text in embedded)
    (hit,) = found(stored, light.question, top_n=1)
    assert light.text[hit.start : hit.start + len(hit.text)] == hit.text
    assert "nine panes" in hit.text


def test_a_deleted_document_is_gone_and_the_others_stay(stored):
    host, (light, bread, ice) = stored.host, WRITTEN
    stored.put(documents(host, *WRITTEN))
    stored.delete(bread.id)
    assert once(stored.rows()) == expected(host, light, ice)
    hits = found(stored, bread.question, top_n=99)
    assert {hit.metadata["source"] for hit in hits} == {light.name, ice.name}
    assert len(hits) == len(sections(host, light, ice))


def test_documents_stored_again_replace_themselves(stored):
    host, (light, *others) = stored.host, WRITTEN
    for sources in (WRITTEN, WRITTEN, [changed(light), *others]):
        stored.put(documents(host, *sources))
        assert once(stored.rows()) == expected(host, *sources)
    if host is LlamaIndex:
        stored.source.update_ref_doc(*documents(host, light))  # the host's other way, back again
    else:
        stored.put(documents(host, light))
    assert once(stored.rows()) == expected(host, *WRITTEN)
    assert paths(found(stored, light.question, top_n=1)) == [light.answer]


def test_the_host_s_indexing_keeps_the_store_up_to_date(in_langchain):
    stored, (light, bread, ice) = in_langchain, WRITTEN
    records = InMemoryRecordManager("drillrank")
    records.create_schema()

    def indexed(cleanup, *sources):
        counts = index(
            pieces(LangChain, *sources),
            records,
            stored.vectors,
            cleanup=cleanup,
            source_id_key="source",
            key_encoder=lambda document: str(uuid.uuid5(uuid.NAMESPACE_OID, document.model_dump_json())),
            batch_size=5,  # fewer than the pieces of a document
        )
        left = sources if cleanup == "full" else (*sources, bread, ice)
        texts = sorted(piece.page_content for piece in pieces(LangChain, *left))
        assert sorted(text for _, text in once(stored.rows())) == texts
        return [counts[key] for key in ("num_added", "num_updated", "num_skipped", "num_deleted")]

    every, lights, later = (len(pieces(LangChain, *some)) for some in (WRITTEN, [light], [changed(light)]))
    assert indexed("full", *WRITTEN) == [every, 0, 0, 0]
    assert indexed("full", *WRITTEN) == [0, 0, every, 0]
    added, updated, skipped, deleted = indexed("scoped_full", changed(light))
    assert (updated, added + skipped) == (0, later)
    assert deleted == lights - skipped > 0
    assert indexed("scoped_full", changed(light)) == [0, 0, later, 0]
    [hit] = found(stored, "When is the tower open?", top_n=1, expand="neighbours")
    assert paths([hit])[0].endswith("Visiting")
    assert hit.text == changed(light).text[hit.metadata["drillrank_start"] : hit.metadata["drillrank_end"]]
    assert "Winter of 1978" in hit.text
    assert "See also" in hit.text
    assert indexed("full", changed(light), ice)[3] == len(pieces(LangChain, bread))


def test_eight_writers_at_once(stored):
    if "qdrant" in type(stored.vectors).__name__.lower() and "DRILLRANK_QDRANT_URL" not in os.environ:
        pytest.skip("Qdrant's client in memory is not safe for several writers; set DRILLRANK_QDRANT_URL to a server.")
    host, shares = stored.host, writers(8)
    later = [[changed(light), *others] for light, *others in shares]

    def write(share):
        for source in share:
            stored.put(documents(host, source))

    with ThreadPoolExecutor(8) as pool:
        for several in (shares, later):
            list(pool.map(write, several))
            assert once(stored.rows()) == expected(host, *(source for share in several for source in share))
        list(pool.map(write, [later[0]] * 8))  # and the same documents at the same time
    assert once(stored.rows()) == expected(host, *(source for share in later for source in share))
