"""Path search as a retriever of either host."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.storage import create_kv_docstore
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from llama_index.core.schema import (
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.vectors import TfidfIndex, top
from tests.conformance.corpus import SlowModel, ticks_during
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.examples import examples

QUESTION = "Where did the director of The Silent Pier spend her childhood?"
FILM_TEXT = "The Silent Pier was directed by [Ada Holm](holm.md)."


def film(host, id="film", **more):
    return host.record(FILM_TEXT, id, title="The Silent Pier", source="film.md", links="holm", **more)


def holm(host, id="holm"):
    return host.record("She grew up in the port of Esbjerg.", id, title="Ada Holm", source="holm.md")


def all_of(host):
    whale, river = (host.record(f"{name}s move.", name.lower(), title=name) for name in ("Whale", "River"))
    return [film(host), whale, river, holm(host)]


def text_of(record):
    return record.text if isinstance(record, TextNode) else record.page_content


def words(host, records, top_k=1, queries=None, **how):
    """A retriever by TF-IDF without the titles."""
    index = TfidfIndex([text_of(record) for record in records])

    def finds(query):
        if queries is not None:
            queries.append(query)
        return [records[i] for i in top(index.scores(query), top_k)]

    return host.finds(finds, **how)


def retriever(host, source=None, **fields):
    return host.ext.PromptRankRetriever(source=words(host, all_of(host)) if source is None else source, **fields)


def outcome(found):
    return [(one.id, one.metadata["drillrank_path_score"], one.metadata["drillrank_path"]) for one in found]


def ids(found):
    return sorted(one.id for one in found)


@both_frameworks
@pytest.mark.parametrize("where", ["documents", "store", "index"])
@pytest.mark.parametrize("links", ["metadata", "hyperlinks", "titles"])
async def test_reaches_what_was_not_retrieved(host, where, links):
    records = all_of(host)
    if where == "documents":
        known = {"documents": records}
    else:
        known = {"store": host.store(*records) if host is LlamaIndex or where == "store" else host.index(*records)}
        if links != "metadata":  # a store knows ids, no titles and addresses
            known["documents"] = records
    component = retriever(host, links=[links], **known)
    found = host.retrieve(component, QUESTION)
    assert ids(found) == ["film", "holm"]
    assert "film > holm" in [one.metadata["drillrank_path"] for one in found]
    assert outcome(await host.aretrieve(component, QUESTION)) == outcome(found)


def test_a_document_of_a_key_value_store_is_called_by_its_key_and_bytes_are_refused():
    store, held = InMemoryStore(), InMemoryByteStore()
    store.mset([("holm", Document("She grew up in the port of Esbjerg."))])
    held.mset([("holm", b"bytes")])
    wrapped = create_kv_docstore(InMemoryByteStore())
    wrapped.mset([("holm", holm(LangChain))])
    base = words(LangChain, [film(LangChain)])
    for known in (store, wrapped):
        assert ids(LangChain.retrieve(retriever(LangChain, base, store=known), QUESTION)) == ["film", "holm"]
    with pytest.raises(InvalidInput, match="create_kv_docstore"):
        LangChain.retrieve(retriever(LangChain, base, store=held), QUESTION)


@both_frameworks
def test_a_second_retrieval_whose_query_is_the_path(host):
    queries = []
    base = words(host, all_of(host), 2, queries)
    component = retriever(host, base, links=["retrieval"], top_n=None, settings={"beam": 1, "hops": 2})
    assert "film" in ids(host.retrieve(component, "the silent pier"))
    assert queries == ["the silent pier", f"the silent pier The Silent Pier {FILM_TEXT}"]


@pytest.mark.parametrize("kind", ["NEXT", "PREVIOUS", "CHILD", "PARENT", "SOURCE"])
def test_relationships_are_links_but_the_source_of_a_node_is_no_further_evidence(kind):
    info, relation = RelatedNodeInfo(node_id="holm"), NodeRelationship[kind]
    relationships = {relation: [info] if kind == "CHILD" else info}
    node = TextNode(text="The Silent Pier.", id_="film", relationships=relationships)
    documents = [node, holm(LlamaIndex)]
    component = retriever(LlamaIndex, words(LlamaIndex, [node]), documents=documents, links=["relationships"])
    expected = ["film"] if kind == "SOURCE" else ["film", "holm"]
    assert ids(LlamaIndex.retrieve(component, QUESTION)) == expected


@both_frameworks
def test_links_to_nowhere_and_cycles_end(host):
    one = host.record("a red fox", "1", links=["2", "nowhere", "1"])
    store = host.store(one, host.record("a river", "2", links=["1", "2"]))
    component = retriever(host, words(host, [one]), store=store, settings={"hops": 4})
    assert ids(host.retrieve(component, "which red fox")) == ["1", "2"]


@both_frameworks
def test_copies_carry_the_path_and_the_given_records_do_not_change(host):
    records = all_of(host)
    before = [record.model_dump_json() for record in records]
    found = host.retrieve(retriever(host, words(host, records), documents=records), QUESTION)
    assert [record.model_dump_json() for record in records] == before
    originals = {record.id_ if host is LlamaIndex else record.id: record for record in records}
    for one in found:
        added = {name: one.metadata[name] for name in ("drillrank_path", "drillrank_path_score")}
        assert added["drillrank_path_score"] == one.score
        added |= {} if host is LlamaIndex else {"relevance_score": one.score}
        assert one.metadata == {**originals[one.id].metadata, **added}
        assert one.text == text_of(originals[one.id])


@both_frameworks
def test_a_users_own_path_stays_and_a_later_ranking_forgets_ours(host):
    own = film(host, path="films/pier.md", path_score="mine")
    component = retriever(host, words(host, [own]))
    [found] = component.retrieve(QUESTION) if host is LlamaIndex else component.invoke(QUESTION)
    node = found.node if host is LlamaIndex else found
    assert (node.metadata["path"], node.metadata["path_score"]) == ("films/pier.md", "mine")
    if host is LlamaIndex:
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.get_content(mode) == own.get_content(mode)
    [again] = host.rerank(host.ext.UPRRerank(), QUESTION, node)
    assert {**again.metadata, "relevance_score": None} == {**own.metadata, "relevance_score": None}


def test_documents_without_ids_are_told_apart_and_recognised():
    nameless = [document.model_copy(update={"id": None}) for document in all_of(LangChain)]
    base = words(LangChain, nameless, 2)
    component = retriever(LangChain, base, documents=nameless, links=["titles", "retrieval"], top_n=None)
    found = LangChain.retrieve(component, QUESTION)
    assert len(set(ids(found))) == len(found) == len({one.text for one in found})
    assert {name for one in found for name in one.metadata["drillrank_path"].split(" > ")} <= set(ids(found))


@both_frameworks
def test_a_record_that_is_retrieved_twice_comes_once(host):
    found = host.retrieve(retriever(host, host.finds(lambda query: 2 * all_of(host)), top_n=None), QUESTION)
    assert ids(found) == ["film", "holm", "river", "whale"]


@both_frameworks
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_async_equals_sync(host, asynchronous):
    records = all_of(host)
    base = words(host, records[:2], 2, asynchronous=asynchronous)
    component = retriever(host, base, store=host.store(*records), links=["metadata", "retrieval"], settings={"hops": 3})
    expected = outcome(host.retrieve(component, QUESTION))
    assert outcome(await host.aretrieve(component, QUESTION)) == expected
    many = await asyncio.gather(
        *(host.aretrieve(component, QUESTION) for _ in range(40))
    )  # more than there are threads
    assert [outcome(found) for found in many] == [expected] * 40


@both_frameworks
@pytest.mark.parametrize("slow", ["model", "retriever"])
async def test_the_event_loop_is_not_blocked(host, slow):
    records = all_of(host)

    def finds(query):
        time.sleep(0.15)
        return records[:1]

    fields = {"model": SlowModel()} if slow == "model" else {"source": host.finds(finds)}
    assert await ticks_during(host.aretrieve(retriever(host, documents=records, **fields), QUESTION)) >= 3


GRAPHS = st.lists(
    st.tuples(st.lists(st.sampled_from(["silent", "pier", "director", "whale", "port"]), max_size=4).map(" ".join),
              st.lists(st.integers(0, 6).map(str), max_size=4)),
    min_size=1, max_size=6,
)  # fmt: skip


@both_frameworks
@settings(deadline=None, max_examples=examples(40))
@given(GRAPHS, st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_the_result_is_that_of_the_core(host, graph, retrieved, hops, in_corpus):
    # Numbered: LlamaIndex 0.14.10 drops a node that is equal to another one.
    records = [host.record(text, str(i), links=links, number=i) for i, (text, links) in enumerate(graph)]
    passages = [Passage(text, id=str(i), links=links) for i, (text, links) in enumerate(graph)]
    base = words(host, records, retrieved)
    search = {"hops": hops, "beam": 4, "branch": 2, "pairs": 3}
    known = {"documents": records} if in_corpus else {"store": host.store(*records)}
    component = retriever(host, base, links=["metadata"], top_n=None, settings=search, **known)

    class Source:
        def retrieve(self, query, n):
            return [passages[int(one.id)] for one in host.retrieve(base, query)]

        def fetch(self, ids):
            return [passage for passage in passages if passage.id in ids]

    expected = PathSearch(PromptRank(), passages if in_corpus else None, first_stage=Source(), settings=search)
    assert outcome(host.retrieve(component, "silent pier")) == [
        (item.passage.id, item.score, " > ".join(item.details["path"])) for item in expected.search("silent pier")
    ]


@both_frameworks
def test_every_hop_is_told(host):
    records = all_of(host)
    _, heard = host.hear(retriever(host, documents=records, settings={"hops": 4}), QUESTION)
    told = [(event["query"], event["hop"], event["paths"], event["best_path"]) for event in heard]
    assert told == [(QUESTION, 1, 1, ["film"]), (QUESTION, 2, 1, ["film", "holm"])]
    assert all(type(event["best_score"]) is float for event in heard)
    nothing, heard = host.hear(retriever(host, host.retriever(), documents=records), QUESTION)
    assert (nothing, heard) == ([], [])


def test_the_query_bundle_reaches_the_source():
    class Bundles(type(LlamaIndex.finds(list))):
        def _retrieve(self, query_bundle):
            assert query_bundle.embedding == [1.0]
            return super()._retrieve(query_bundle)

    component = retriever(LlamaIndex, Bundles(lambda query: [film(LlamaIndex)]))
    [found] = component.retrieve(QueryBundle(QUESTION, embedding=[1.0]))
    assert found.node.node_id == "film"
    reranker = LlamaIndex.ext.PromptRankRerank()
    nodes = [NodeWithScore(node=node) for node in (holm(LlamaIndex), film(LlamaIndex))]
    rerank = type("Rerank", (), {"retrieve": lambda self, query: reranker.postprocess_nodes(nodes, query_str=query)})
    _, heard = LlamaIndex.hear(rerank(), QUESTION)
    assert [(event["hop"], event["paths"]) for event in heard] == [(1, 2), (2, 2)]  # both mention a name


class Listener(BaseCallbackHandler):
    def __init__(self):
        self.hops, self.starts = [], []

    def on_custom_event(self, name, data, **kwargs):
        self.hops.append((name, data["query"], data["hop"], data["best_path"], kwargs["run_id"]))

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self.starts.append((run_id, parent_run_id))


class AsyncListener(AsyncCallbackHandler, Listener):
    async def on_custom_event(self, *arguments, **kwargs):
        Listener.on_custom_event(self, *arguments, **kwargs)

    async def on_retriever_start(self, *arguments, **kwargs):
        Listener.on_retriever_start(self, *arguments, **kwargs)


async def test_inner_runs_are_children_and_events_stream():
    source = LangChain.retriever(film(LangChain))
    component = retriever(LangChain, source, documents=all_of(LangChain), settings={"hops": 4})
    listener, alistener = Listener(), AsyncListener()
    component.invoke(QUESTION, {"callbacks": [listener]})
    await component.ainvoke(QUESTION, {"callbacks": [alistener]})
    for heard in (listener, alistener):
        (run, no_parent), (_, parent) = heard.starts
        assert (no_parent, parent) == (None, run)
        paths = [(1, ["film"]), (2, ["film", "holm"])]
        assert heard.hops == [("promptrank_hop", QUESTION, hop, path, run) for hop, path in paths]
    events = [event async for event in component.astream_events(QUESTION, version="v2")]
    assert [event["data"]["hop"] for event in events if event["event"] == "on_custom_event"] == [1, 2]


def test_a_reranker_in_a_run_tells_of_its_hops_and_of_what_it_retrieves():
    listener = Listener()
    whale = LangChain.retriever(all_of(LangChain)[1])
    reranker = LangChain.ext.PromptRankRerank(source=whale, settings={"hops": 2})
    found = LangChain.retriever(film(LangChain), holm(LangChain))
    pipeline = ContextualCompressionRetriever(base_compressor=reranker, base_retriever=found)
    assert len(pipeline.invoke(QUESTION, {"callbacks": [listener]})) == 3
    run = listener.starts[0][0]
    assert [hop[1:3] for hop in listener.hops] == [(QUESTION, 1), (QUESTION, 2)]
    [reranking] = {hop[-1] for hop in listener.hops}  # a run of its own
    # The pipeline, its retriever, one retrieval for each path.
    assert [parent for _, parent in listener.starts[1:]] == [run, reranking, reranking]


@both_frameworks
def test_settings_reach_the_search(host):
    fields = {"settings": {"hops": 1, "instructions": [PROMPTRANK_INSTRUCTIONS[7]]}}
    found = host.retrieve(retriever(host, documents=all_of(host), **fields), QUESTION)
    assert [one.metadata["drillrank_path"] for one in found] == ["film"]
