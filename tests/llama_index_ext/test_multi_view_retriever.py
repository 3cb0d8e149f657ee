"""One store with a filter, a retriever for each view, one retriever, or memory: the same sections, async and sync."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core import Document, MockEmbedding, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import SimpleDocumentStore

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.text import terms
from llama_index_ext import MultiViewNodeParser, MultiViewRetriever
from tests.conformance.corpus import BOOK, QUESTION, QUESTIONS

NODES = MultiViewNodeParser().get_nodes_from_documents([Document(text=BOOK, id_="book")])
RAW = [node for node in NODES if node.metadata["drillrank_view"] == "raw"]


class WordEmbedding(BaseEmbedding):
    """Words hashed into 64 places."""

    def _get_text_embedding(self, text):
        vector = [0.01] * 64
        for word in terms(text):
            vector[sum(map(ord, word)) % 64] += 1.0
        return vector

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class Scripted(BaseRetriever):
    """Returns what it is given; knows whether it was asked asynchronously."""

    def __init__(self, nodes, **fields):
        self.nodes, self.awaited = nodes, 0
        super().__init__(**fields)

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=node, score=1.0 / (1 + rank)) for rank, node in enumerate(self.nodes)]

    async def _aretrieve(self, query_bundle: QueryBundle):
        self.awaited += 1
        return self._retrieve(query_bundle)


def of_view(view, order=None):
    nodes = [node for node in NODES if node.metadata["drillrank_view"] == view]
    return nodes if order is None else [nodes[i] for i in order]


def outcome(found):
    return [(hit.node.node_id, hit.score, hit.node.metadata.get("drillrank_matched_views")) for hit in found]


def vector_index(**fields):
    return VectorStoreIndex(NODES, embed_model=WordEmbedding(), **fields)


async def test_one_index_with_a_view_filter():
    retriever = MultiViewRetriever(source=vector_index(), top_n=2)
    found = retriever.retrieve(QUESTION)
    assert found[0].node.metadata["drillrank_section_path"] == "Rivers > The Rhine"
    assert {entry.split(":")[0] for entry in found[0].node.metadata["drillrank_matched_views"].split()} == {
        "raw",
        "keywords",
        "summary",
    }
    assert {hit.node.metadata["drillrank_view"] for hit in found} == {"raw"}
    assert BOOK[found[0].node.start_char_idx : found[0].node.end_char_idx] == found[0].node.text
    assert outcome(await retriever.aretrieve(QUESTION)) == outcome(found)


async def test_a_retriever_for_each_view():
    source = {
        "raw": Scripted(of_view("raw", [0, 1])),
        "keywords": Scripted(of_view("keywords", [2, 1])),
        "summary": Scripted(of_view("summary", [1, 2])),
    }
    retriever = MultiViewRetriever(NODES, source=source, top_n=3)
    found = retriever.retrieve(QUESTION)
    assert [hit.node.metadata["drillrank_matched_views"] for hit in found] == [
        "raw:2 keywords:2 summary:1",
        "keywords:1 summary:2",
        "raw:1",
    ]
    assert [hit.node.node_id for hit in found] == [RAW[1].node_id, RAW[2].node_id, RAW[0].node_id]
    assert outcome(await retriever.aretrieve(QUESTION)) == outcome(found)
    assert [inner.awaited for inner in source.values()] == [1, 1, 1]


async def test_retrievers_of_any_kind():
    def index(view):
        return VectorStoreIndex(of_view(view), embed_model=WordEmbedding())

    fused = QueryFusionRetriever(
        [index("summary").as_retriever(similarity_top_k=3), Scripted(of_view("summary", [2]))],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=3,
        use_async=False,
    )
    in_order = SummaryIndex(of_view("keywords")).as_retriever()
    retriever = MultiViewRetriever(
        NODES,
        source={"raw": index("raw").as_retriever(similarity_top_k=2), "keywords": in_order, "summary": fused},
        top_n=9,
    )
    found = retriever.retrieve(QUESTION)
    rhine, *_ = found
    assert rhine.node.metadata["drillrank_section_path"] == "Rivers > The Rhine"
    assert rhine.node.metadata["drillrank_matched_views"] == "raw:1 keywords:2 summary:2"
    assert {hit.node.node_id for hit in found} == {node.node_id for node in RAW}
    assert len(found) == len(RAW)
    assert outcome(await retriever.aretrieve(QUESTION)) == outcome(found)


async def test_one_retriever_over_all_views():
    single = Scripted([of_view("keywords")[1], *of_view("raw", [2, 0])])
    retriever = MultiViewRetriever(NODES, source=single, top_n=3)
    found = retriever.retrieve(QUESTION)
    assert {hit.node.node_id for hit in found} == {RAW[i].node_id for i in (0, 1, 2)}
    assert outcome(await retriever.aretrieve(QUESTION)) == outcome(found)
    assert single.awaited == 1


def test_eight_threads_over_one_store():
    retriever = MultiViewRetriever(NODES, source=vector_index(), expand="neighbours")
    expected = [outcome(retriever.retrieve(question)) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: outcome(retriever.retrieve(question)), QUESTIONS)) == expected


def test_weights():
    source = {"raw": Scripted(of_view("raw", [0])), "keywords": Scripted(of_view("keywords", [1]))}
    for heavy, first in (("raw", 0), ("keywords", 1)):
        found = MultiViewRetriever(NODES, source=source, top_n=1, weights={heavy: 3.0}).retrieve(QUESTION)
        assert found[0].node.node_id == RAW[first].node_id


@pytest.mark.parametrize(
    ("expand", "expected"),
    [
        ("neighbours", ["Rivers > The Rhine", "Rivers", "Rivers > The Thames"]),
        ("parent", ["Rivers > The Rhine", "Rivers"]),
    ],
)
def test_expansion_in_memory_and_in_a_store(expand, expected):
    storage = StorageContext.from_defaults(docstore=SimpleDocumentStore())
    storage.docstore.add_documents(NODES)
    kinds = (
        {"documents": NODES},
        {"source": vector_index(storage_context=storage)},
        {"source": vector_index(), "documents": NODES},
    )
    for settings in kinds:
        found = MultiViewRetriever(**settings, top_n=1, expand=expand).retrieve(QUESTION)
        assert [hit.node.metadata["drillrank_section_path"] for hit in found] == expected
        assert {hit.score for hit in found} == {found[0].score}
        origins = [hit.node.metadata.get("drillrank_expanded_from") for hit in found]
        assert origins == [None, *[found[0].node.node_id] * (len(found) - 1)]


def test_a_view_whose_section_is_nowhere_is_left_out_with_a_warning():
    lonely = Scripted(of_view("keywords", [0]))
    with pytest.warns(DrillrankWarning, match="pass documents, too"):
        assert MultiViewRetriever(source={"keywords": lonely}).retrieve(QUESTION) == []
    with_nodes = MultiViewRetriever(NODES, source={"keywords": lonely}).retrieve(QUESTION)
    assert [found.node.node_id for found in with_nodes] == [RAW[0].node_id]


def test_events_are_balanced_with_inner_retrievers():
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    source = {"raw": Scripted(of_view("raw"), callback_manager=manager)}
    MultiViewRetriever(source=source, callback_manager=manager).retrieve(QUESTION)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 2
    assert not debug.get_events(CBEventType.EXCEPTION)


def test_an_empty_store_finds_nothing_and_says_so():
    empty = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=8))
    with pytest.warns(DrillrankWarning, match="holds nothing"):
        assert MultiViewRetriever(source=empty).retrieve(QUESTION) == []


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"source": "store"}, "source"),
        ({"source": {}}, "source"),
        ({"source": {"title": Scripted([])}}, "views of source"),
        ({"expand": "all"}, "expand"),
        ({"weights": {"raw": -1}}, "weight"),
    ],
)
def test_unusable_settings_are_named(settings, match):
    with pytest.raises(InvalidInput, match=match):
        MultiViewRetriever(**{"documents": NODES} | settings)
