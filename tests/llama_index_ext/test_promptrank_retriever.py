from __future__ import annotations

import asyncio
import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.vectors import TfidfIndex, top
from llama_index_ext import PromptRankRerank, PromptRankRetriever, UPRRerank
from llama_index_ext.events import PathHopEvent
from tests.conformance.corpus import ticks_during

QUESTION = "Where did the director of The Silent Pier spend her childhood?"
FILM = TextNode(
    text="The Silent Pier was directed by [Ada Holm](holm.md).",
    id_="film",
    metadata={"title": "The Silent Pier", "file_path": "film.md", "links": "holm"},
)
HOLM = TextNode(
    text="She grew up in the port of Esbjerg.", id_="holm", metadata={"title": "Ada Holm", "file_path": "holm.md"}
)
WHALE = TextNode(text="Whales sing.", id_="whale", metadata={"title": "Whale"})
RIVER = TextNode(text="Rivers flow.", id_="river", metadata={"title": "River"})
NODES = [FILM, WHALE, RIVER, HOLM]


class Words(BaseRetriever):
    """TF-IDF without the titles; synchronous only, as many retrievers are."""

    def __init__(self, nodes, top_k=1):
        super().__init__()
        self.nodes, self.top_k, self.queries = list(nodes), top_k, []
        self.index = TfidfIndex([node.text for node in self.nodes])

    def _retrieve(self, query_bundle):
        self.queries.append(query_bundle.query_str)
        scores = self.index.scores(query_bundle.query_str)
        return [NodeWithScore(node=self.nodes[i], score=float(scores[i])) for i in top(scores, self.top_k)]


class AsyncWords(Words):
    """The same with a method that awaits, and that the worker threads of the event loop must be free for."""

    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(self._retrieve, query_bundle)


class SlowWords(Words):
    def _retrieve(self, query_bundle):
        time.sleep(0.15)
        return super()._retrieve(query_bundle)


def outcome(nodes):
    return [(found.node.node_id, found.score, found.node.metadata["drillrank_path"]) for found in nodes]


def with_relation(kind):
    info = RelatedNodeInfo(node_id="holm")
    return TextNode(
        text="The Silent Pier.", id_="film", relationships={kind: [info] if kind == NodeRelationship.CHILD else info}
    )


@pytest.mark.parametrize("source", [{"documents": NODES}, {"store": True}])
@pytest.mark.parametrize("links", [["metadata"], ["hyperlinks"], ["titles"]])
def test_reaches_what_was_not_retrieved(source, links):
    if "store" in source:
        source = {"store": SimpleDocumentStore()}
        source["store"].add_documents(NODES)
        if links != ["metadata"]:  # a store knows ids, no titles and addresses
            source["documents"] = NODES
    found = PromptRankRetriever(source=Words(NODES), links=links, **source).retrieve(QUESTION)
    assert sorted(item.node.node_id for item in found) == ["film", "holm"]
    assert "film > holm" in [item.node.metadata["drillrank_path"] for item in found]


def test_a_second_retrieval_whose_query_is_the_path():
    base = Words(NODES, top_k=2)
    found = PromptRankRetriever(
        source=base,
        links=["retrieval"],
        top_n=None,
        settings={"beam": 1, "hops": 2},
    ).retrieve("the silent pier")
    assert base.queries[0] == "the silent pier"
    assert base.queries[1] == f"the silent pier The Silent Pier {FILM.text}"
    assert len(base.queries) == 2
    assert {item.node.node_id for item in found} >= {"film"}


@pytest.mark.parametrize(
    "kind", [NodeRelationship.NEXT, NodeRelationship.PREVIOUS, NodeRelationship.CHILD, NodeRelationship.PARENT]
)
def test_relationships(kind):
    film = with_relation(kind)
    retriever = PromptRankRetriever(source=Words([film]), documents=[film, HOLM], links=["relationships"])
    assert {item.node.node_id for item in retriever.retrieve(QUESTION)} == {"film", "holm"}


def test_the_source_of_a_node_is_no_further_evidence():
    film = with_relation(NodeRelationship.SOURCE)
    retriever = PromptRankRetriever(source=Words([film]), documents=[film, HOLM], links=["relationships"])
    assert [item.node.node_id for item in retriever.retrieve(QUESTION)] == ["film"]


def test_links_to_nowhere_and_cycles_end():
    one = TextNode(text="a red fox", id_="1", metadata={"links": ["2", "nowhere", "1"]})
    two = TextNode(text="a river", id_="2", metadata={"links": ["1", "2"]})
    docstore = SimpleDocumentStore()
    docstore.add_documents([one, two])
    found = PromptRankRetriever(source=Words([one]), store=docstore, settings={"hops": 4}).retrieve("which red fox")
    assert sorted(item.node.node_id for item in found) == ["1", "2"]


def test_copies_carry_the_path_and_the_given_nodes_do_not_change():
    before = [node.model_dump_json() for node in NODES]
    found = PromptRankRetriever(source=Words(NODES), documents=NODES).retrieve(QUESTION)
    assert [node.model_dump_json() for node in NODES] == before
    for item in found:
        added = {"drillrank_path", "drillrank_path_score"}
        assert item.node.metadata["drillrank_path_score"] == item.score
        assert {key: value for key, value in item.node.metadata.items() if key not in added} == next(
            node.metadata for node in NODES if node.node_id == item.node.node_id
        )
        assert "path" not in item.node.get_content(MetadataMode.EMBED).replace("file_path", "")


def test_a_users_own_path_stays_and_a_later_ranking_forgets_ours():
    film = NODES[0].model_copy(update={"metadata": {**NODES[0].metadata, "path": "films/pier.md"}})
    [found] = PromptRankRetriever(source=Words([film])).retrieve(QUESTION)
    assert found.node.metadata["path"] == "films/pier.md"
    assert found.node.get_content(MetadataMode.LLM) == film.get_content(MetadataMode.LLM)
    [again] = UPRRerank().postprocess_nodes([found], query_str=QUESTION)
    assert again.node.metadata == film.metadata


def test_a_node_that_is_retrieved_twice_comes_once():
    class Twice(Words):
        def _retrieve(self, query_bundle):
            return 2 * super()._retrieve(query_bundle)

    found = PromptRankRetriever(source=Twice(NODES, top_k=4), top_n=None).retrieve(QUESTION)
    assert sorted(item.node.node_id for item in found) == sorted(node.node_id for node in NODES)


@pytest.mark.parametrize("base", [Words, AsyncWords])
async def test_async_equals_sync(base):
    docstore = SimpleDocumentStore()
    docstore.add_documents(NODES)
    links = ["metadata", "retrieval"]
    retriever = PromptRankRetriever(source=base(NODES[:2], top_k=2), store=docstore, links=links, settings={"hops": 3})
    expected = outcome(retriever.retrieve(QUESTION))
    assert outcome(await retriever.aretrieve(QUESTION)) == expected
    many = await asyncio.gather(*(retriever.aretrieve(QUESTION) for _ in range(40)))  # more than there are threads
    assert [outcome(found) for found in many] == [expected] * 40


async def test_a_base_retriever_without_async_does_not_block_the_event_loop():
    retriever = PromptRankRetriever(source=SlowWords(NODES), documents=NODES)
    assert await ticks_during(retriever.aretrieve(QUESTION)) >= 3


GRAPHS = st.lists(
    st.tuples(st.lists(st.sampled_from(["silent", "pier", "director", "whale", "port"]), max_size=4).map(" ".join),
              st.lists(st.integers(0, 6).map(str), max_size=4)),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(GRAPHS, st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_the_result_is_that_of_the_core(graph, retrieved, hops, in_corpus):
    nodes = [TextNode(text=text, id_=str(i), metadata={"links": links}) for i, (text, links) in enumerate(graph)]
    passages = [Passage(text, id=str(i), links=links) for i, (text, links) in enumerate(graph)]
    base = Words(nodes, top_k=retrieved)
    search = {"hops": hops, "beam": 4, "branch": 2, "pairs": 3}
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    known = {"documents": nodes} if in_corpus else {"store": docstore}
    found = PromptRankRetriever(source=base, links=["metadata"], top_n=None, settings=search, **known).retrieve(
        "silent pier"
    )

    class Source:
        def retrieve(self, query, n):
            return [passages[int(hit.node.node_id)] for hit in base.retrieve(query)]

        def fetch(self, ids):
            return [passage for passage in passages if passage.id in ids]

    expected = PathSearch(PromptRank(), passages if in_corpus else None, first_stage=Source(), settings=search)
    assert outcome(found) == [
        (item.passage.id, item.score, " > ".join(item.details["path"])) for item in expected.search("silent pier")
    ]


class Listener(BaseEventHandler):
    @classmethod
    def class_name(cls):
        return "Listener"

    def handle(self, event, **kwargs):
        if isinstance(event, PathHopEvent):
            HEARD.append(event)


HEARD: list[PathHopEvent] = []


@pytest.fixture
def heard():
    HEARD.clear()
    listener = Listener()
    root_dispatcher.add_event_handler(listener)
    yield HEARD
    root_dispatcher.event_handlers.remove(listener)


async def test_every_hop_is_told(heard):
    retriever = PromptRankRetriever(source=Words(NODES), documents=NODES, settings={"hops": 4})
    retriever.retrieve(QUESTION)
    told = [(event.query, event.hop, event.paths, event.best_path) for event in heard]
    assert told == [(QUESTION, 1, 1, ["film"]), (QUESTION, 2, 1, ["film", "holm"])]
    assert all(type(event.best_score) is float for event in heard)
    heard.clear()
    await retriever.aretrieve(QUESTION)
    assert [(event.query, event.hop, event.paths, event.best_path) for event in heard] == told


def test_a_reranker_tells_of_its_hops(heard):
    PromptRankRerank().postprocess_nodes([NodeWithScore(node=node) for node in (HOLM, FILM)], query_str=QUESTION)
    assert [(event.hop, event.paths) for event in heard] == [
        (1, 2),
        (2, 2),
    ]  # a name that both mention leads either way


def test_nothing_retrieved_nothing_found(heard):
    assert PromptRankRetriever(source=Words([]), documents=NODES).retrieve(QUESTION) == []
    assert heard == []


def test_the_query_bundle_reaches_the_base_retriever():
    class Bundles(Words):
        def _retrieve(self, query_bundle):
            assert query_bundle.embedding == [1.0]
            return super()._retrieve(query_bundle)

    found = PromptRankRetriever(source=Bundles(NODES)).retrieve(QueryBundle(QUESTION, embedding=[1.0]))
    assert found[0].node.node_id == "film"


@pytest.mark.parametrize("wrong", [{"hop": 3}, {"links": ["title"]}, {"documents": [FILM, FILM]}, {"top_n": 0}])
def test_settings_that_cannot_be_used_are_refused_at_once(wrong):
    with pytest.raises((InvalidInput, TypeError), match=r"hop|title|share the id|top_n"):
        PromptRankRetriever(source=Words(NODES), **wrong)


def test_settings_reach_the_search_and_survive_pickle():
    retriever = PromptRankRetriever(
        source=Words(NODES),
        documents=NODES,
        settings={"hops": 1, "instructions": [PROMPTRANK_INSTRUCTIONS[7]]},
    )
    assert [item.node.metadata["drillrank_path"] for item in retriever.retrieve(QUESTION)] == ["film"]
    copy = pickle.loads(pickle.dumps(retriever))
    assert outcome(copy.retrieve(QUESTION)) == outcome(retriever.retrieve(QUESTION))
