"""Path search beside a store: what it returns is what the store holds, and nothing that filters hide."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

from drillrank import load_language_model
from drillrank.errors import DrillrankWarning, InvalidInput
from llama_index_ext import BRMGRRetriever, PromptRankRerank, PromptRankRetriever, SelfAskQueryEngine
from llama_index_ext.events import PathHopEvent
from tests.conformance.linked_records import (
    FILM_METADATA,
    FILM_TEXT,
    HOLM_METADATA,
    HOLM_TEXT,
    NAMING,
    QUESTION,
    RECORDS,
    TITLES,
)

MINE = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
FILM = TextNode(
    text=FILM_TEXT,
    id_="film",
    metadata=FILM_METADATA,
    relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="holm")},
)


def holm(tenant="a", text=HOLM_TEXT, id="holm"):
    return TextNode(text=text, id_=id, metadata={**HOLM_METADATA, "tenant": tenant})


class Finds(BaseRetriever):
    """The nodes that it was given; for another question others."""

    def __init__(self, *nodes, later=None):
        super().__init__()
        self._nodes, self._later = nodes, later

    def _retrieve(self, query_bundle):
        found = self._nodes if self._later is None or query_bundle.query_str == QUESTION else self._later
        return [NodeWithScore(node=node, score=1.0) for node in found]


def by_key(*nodes):
    store = SimpleDocumentStore()
    store.add_documents(list(nodes))
    return store


def indexed(*nodes):
    return VectorStoreIndex([node.model_copy() for node in nodes], embed_model=MockEmbedding(4))


class Ears(BaseEventHandler):
    _heard: list = PrivateAttr(default_factory=list)

    def handle(self, event, **kwargs):
        if isinstance(event, PathHopEvent):
            self._heard.append(repr(event))


@pytest.fixture
def ears():
    listening = Ears()
    root = get_dispatcher("root")
    root.add_event_handler(listening)
    yield listening._heard
    root.event_handlers.remove(listening)


def texts(found):
    return [hit.node.get_content() for hit in found]


LINKS = ["metadata", "hyperlinks", "titles", "relationships"]


@pytest.mark.parametrize("links", LINKS)
async def test_a_linked_text_is_what_the_store_holds_now(links):
    retriever = PromptRankRetriever(
        source=Finds(FILM),
        documents=[FILM, holm(text="SECRET")],
        store=by_key(FILM, holm(text="Redacted.")),
        links=[links],
    )
    with pytest.warns(DrillrankWarning, match="1 of the documents given"):
        found = retriever.retrieve(QUESTION)
    assert sorted(texts(found)) == sorted([FILM.text, "Redacted."])
    assert await retriever.aretrieve(QUESTION) == found


def test_a_hit_wins_over_a_given_node():
    new, old = holm(text="She grew up in Ribe."), holm()
    new.metadata["version"], old.metadata["version"] = 2, 1
    with pytest.warns(DrillrankWarning, match="'holm'"):
        found = PromptRankRetriever(source=Finds(FILM, new), documents=[FILM, old]).retrieve(QUESTION)
    [ours] = [hit.node for hit in found if hit.node.node_id == "holm"]
    assert (ours.text, ours.metadata["version"]) == ("She grew up in Ribe.", 2)


@pytest.mark.parametrize("links", LINKS)
async def test_the_index_behind_the_retriever_knows_what_is_left(links):
    index = indexed(FILM, holm())
    found_first = index.as_retriever(similarity_top_k=1)
    [hit] = found_first.retrieve(QUESTION)
    retriever = PromptRankRetriever(source=found_first, documents=[FILM, holm()], links=[links], top_n=None)
    expected = ["film", "holm"] if hit.node.node_id == "film" else ["holm"]
    assert sorted(hit.node.node_id for hit in retriever.retrieve(QUESTION)) == expected
    index.delete_nodes(["holm"])
    assert texts(retriever.retrieve(QUESTION)) == [FILM.text]
    assert texts(await retriever.aretrieve(QUESTION)) == [FILM.text]


def test_a_store_with_ids_of_its_own_says_so_and_nothing_comes_twice():
    again = [node.model_copy(update={"id_": f"{node.node_id}-2"}) for node in (FILM, holm())]
    with pytest.warns(DrillrankWarning, match="pass store=") as caught:
        found = PromptRankRetriever(source=Finds(again[0]), documents=[FILM, holm()], store=by_key(*again)).retrieve(
            QUESTION
        )
    assert len(caught) == 1
    assert texts(found) == [FILM.text]
    found = PromptRankRetriever(source=Finds(*again), documents=[FILM, holm()], links=["titles"], top_n=None).retrieve(
        QUESTION
    )
    assert sorted(hit.node.node_id for hit in found) == ["film-2", "holm-2"]
    assert "film-2 > holm-2" in [hit.node.metadata["drillrank_path"] for hit in found]


WAYS = {
    "documents": lambda hidden: {"source": Finds(FILM), "documents": [FILM, hidden]},
    "docstore": lambda hidden: {"source": Finds(FILM), "store": by_key(FILM, hidden)},
    "hits": lambda hidden: {"source": Finds(FILM, hidden)},
    "retrieval": lambda hidden: {"source": Finds(FILM, later=[hidden]), "links": ["retrieval"]},
    "docstore and documents of one's own": lambda hidden: {
        "source": Finds(FILM),
        "documents": [FILM, holm()],
        "store": by_key(FILM, hidden),
    },
}


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("filters", [MINE, lambda node: node.metadata.get("tenant") == "a"])
async def test_nothing_hidden_is_returned_named_or_told(links, way, filters, ears):
    hidden = holm("b", "SECRET")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        retriever = PromptRankRetriever(**{"links": [links], **WAYS[way](hidden)}, filters=filters, top_n=None)
        found = retriever.retrieve(QUESTION)
        assert texts(await retriever.aretrieve(QUESTION)) == texts(found)
    assert [hit.node.node_id for hit in found] == ["film"]
    assert found[0].node.metadata["drillrank_path"] == "film"
    assert found[0].node.get_content(MetadataMode.LLM) == FILM.get_content(MetadataMode.LLM)
    assert ears
    told = repr([ears, [str(warning.message) for warning in caught]])
    assert "SECRET" not in told
    assert "holm" not in told


@pytest.mark.parametrize("way", ["documents", "docstore"])
def test_the_filters_of_the_source_govern_what_is_linked(way):
    hidden = holm("b", "SECRET")
    given_ones = WAYS[way](hidden)
    given_ones["source"] = indexed(FILM, hidden).as_retriever(filters=MINE)
    assert [hit.node.node_id for hit in PromptRankRetriever(**given_ones).retrieve(QUESTION)] == ["film"]


def test_a_reranker_reads_nothing_hidden():
    hidden = holm("b", "SECRET")
    for options in ({}, {"store": by_key(hidden)}, {"source": Finds(hidden)}):
        reranker = PromptRankRerank(filters=MINE, links=("metadata", "titles", "relationships"), **options)
        for nodes in ([FILM], [FILM, hidden]):
            found = reranker.postprocess_nodes([NodeWithScore(node=node) for node in nodes], query_str=QUESTION)
            assert [hit.node.node_id for hit in found] == ["film"]


class Says(CustomLLM):
    _prompts: list = PrivateAttr(default_factory=list)
    _script: list = PrivateAttr(default_factory=list)

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        self._prompts.append(prompt)
        script = ["Yes.\nFollow up: Who directed it?", "Ada Holm", "So the final answer is: Esbjerg"]
        return CompletionResponse(text=script[(len(self._prompts) - 1) % 3])

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError


async def test_no_prompt_holds_what_is_hidden():
    hidden = holm("b", "SECRET")
    llm = Says()
    engine = SelfAskQueryEngine(Finds(hidden, FILM), llm, filters=MINE)
    response = engine.query(QUESTION)
    assert texts(response.source_nodes) == [FILM.text]
    assert texts((await engine.aquery(QUESTION)).source_nodes) == [FILM.text]
    assert "Pier was directed" in str(llm._prompts)
    assert "SECRET" not in str(llm._prompts)
    merging = BRMGRRetriever(Finds(hidden, FILM), Says(), 1, filters=MINE)
    assert FILM.text in texts(merging.retrieve(QUESTION))
    assert "SECRET" not in str([texts(merging.retrieve(QUESTION)), texts(await merging.aretrieve(QUESTION))])


def test_filters_that_nobody_knows_are_refused_at_once():
    for build in (
        lambda: PromptRankRerank(filters=7),
        lambda: PromptRankRetriever(source=Finds(), filters=7),
        lambda: SelfAskQueryEngine(Finds(), Says(), filters=7),
        lambda: BRMGRRetriever(Finds(), Says(), filters=7),
    ):
        with pytest.raises(ValueError, match="filters"):
            build()
    with pytest.raises(InvalidInput):
        PromptRankRetriever(source=Finds(), filters="tenant")


def nodes_of(records):
    return [TextNode(text=text, id_=id_, metadata=metadata) for id_, text, metadata in records]


@pytest.mark.filterwarnings("ignore:PromptRankRetriever. the source brought nothing")
@settings(deadline=None, max_examples=60)
@given(RECORDS, st.integers(0, 4), st.sampled_from(["given", "store"]))
def test_what_is_hidden_might_as_well_not_be_there(records, first, where):
    nodes = nodes_of(records)
    mine = [node for node in nodes if node.metadata["tenant"] == "a"]
    hits = nodes[: first + 1]
    common = {"model": load_language_model("unigram").fit(TITLES), "top_n": None, "links": LINKS}

    def found(nodes, hits, **options):
        beside = {"store": by_key(*nodes)} if where == "store" else {}
        ranking = PromptRankRetriever(source=Finds(*hits), documents=nodes, **common, **beside, **options).retrieve(
            NAMING
        )
        return {hit.node.node_id: round(hit.score, 9) for hit in ranking}

    assert found(nodes, hits, filters=MINE) == found(mine, [node for node in hits if node in mine])


@settings(deadline=None, max_examples=60)
@given(RECORDS, RECORDS, st.integers(0, 3))
def test_every_result_is_what_the_store_holds(before, after, first):
    held = {node.node_id: node for node in nodes_of(after)}
    retriever = PromptRankRetriever(
        source=Finds(*list(held.values())[: first + 1]),
        documents=nodes_of(before),
        store=by_key(*held.values()),
        filters=MINE,
        top_n=None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        found = retriever.retrieve(QUESTION)
    for hit in found:
        record = held[hit.node.node_id]
        assert hit.node.get_content() == record.get_content()
        assert record.metadata["tenant"] == "a"
        assert record.metadata.items() <= hit.node.metadata.items()
    assert len({hit.node.node_id for hit in found}) == len(found)
