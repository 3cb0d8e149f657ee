"""Every reranker of both hosts goes through this suite; a new one is added to `RERANKERS` with its kind of model."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import BaseDocumentCompressor, Document
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

import langchain_ext
import llama_index_ext
from drillrank.errors import InvalidInput
from tests.conformance.building import build
from tests.conformance.corpus import QUERY, TEXTS, VARIANTS, ticks_during

RERANKERS = [
    ("BRMGRRerank", "embedded"),
    ("UPRRerank", "embedded"),
    ("PromptRankRerank", "embedded"),
    ("MonoT5Rerank", "tiny_monot5"),
    ("RelevanceRerank", "tiny_relevance"),
    ("UPRRerank", "converted_likelihood"),
    ("BRMGRRerank", "converted_likelihood"),
    ("PromptRankRerank", "converted_paths"),
    ("MonoT5Rerank", "converted"),
    ("RelevanceRerank", "converted_relevance"),
    ("UPRRerank", "served"),
    ("RelevanceRerank", "served_relevance"),
]


class LangChain:
    """Documents, their compressors, and metadata that may be nested."""

    base, package, read = BaseDocumentCompressor, langchain_ext, {"metadata_fields": ("page",)}

    @staticmethod
    def made(texts: list[str] = TEXTS, score: float | None = None, ids: bool = True, **metadata: Any) -> list[Document]:
        return [
            Document(text, id=f"d{i}" if ids else None, metadata=metadata or {"title": f"T{i}", "nested": {"page": i}})
            for i, text in enumerate(texts)
        ]

    @staticmethod
    def ranked(component: Any, documents: list[Document], query: str = QUERY) -> list[Document]:
        return list(component.compress_documents(documents, query))

    @staticmethod
    async def aranked(component: Any, documents: list[Document], query: str = QUERY) -> list[Document]:
        return list(await component.acompress_documents(documents, query))

    @staticmethod
    def outcome(documents: list[Document]) -> list[tuple[Any, float]]:
        return [(document.id, document.metadata["relevance_score"]) for document in documents]

    @staticmethod
    def held(document: Document) -> tuple[str, dict[str, Any]]:
        """Its text, and its metadata without the score."""
        return document.page_content, {k: v for k, v in document.metadata.items() if k != "relevance_score"}

    @staticmethod
    def copies(component: Any) -> Iterator[Any]:
        yield type(component)(**component.model_dump())
        yield type(component).model_validate_json(component.model_dump_json())


class LlamaIndex:
    """Nodes with scores, and their postprocessors."""

    base, package, read = BaseNodePostprocessor, llama_index_ext, {"metadata_mode": MetadataMode.NONE}

    @staticmethod
    def made(texts: list[str] = TEXTS, score: float | None = 0.5, ids: bool = True, **metadata: Any) -> list[Any]:
        return [
            NodeWithScore(
                node=TextNode(
                    text=text, metadata=metadata or {"title": f"T{i}", "page": i}, **({"id_": f"d{i}"} if ids else {})
                ),
                score=score,
            )
            for i, text in enumerate(texts)
        ]

    @staticmethod
    def ranked(component: Any, nodes: list[NodeWithScore], query: str = QUERY) -> list[NodeWithScore]:
        return list(component.postprocess_nodes(nodes, query_str=query))

    @staticmethod
    async def aranked(component: Any, nodes: list[NodeWithScore], query: str = QUERY) -> list[NodeWithScore]:
        return list(await component.apostprocess_nodes(nodes, query_str=query))

    @staticmethod
    def outcome(nodes: list[NodeWithScore]) -> list[tuple[Any, float]]:
        return [(hit.node.node_id, hit.score) for hit in nodes]

    @staticmethod
    def held(hit: NodeWithScore) -> tuple[str, dict[str, Any]]:
        return hit.node.get_content(), hit.node.metadata

    @staticmethod
    def copies(component: Any) -> Iterator[Any]:
        yield type(component).from_dict(component.to_dict())
        yield type(component).from_json(component.to_json())
        yield type(component).model_validate(component.model_dump())


HOSTS = (LangChain, LlamaIndex)


@pytest.fixture(
    scope="session",
    params=[(host, *one) for host in HOSTS for one in RERANKERS],
    ids=lambda param: f"{param[0].__name__}-{param[1]}-{param[2]}",
)
def param(request):
    return request.param


@pytest.fixture(scope="session")
def host(param):
    return param[0]


@pytest.fixture(scope="session")
def cls(param):
    return getattr(param[0].package, param[1])


@pytest.fixture(scope="session")
def models(param, request):
    return request.getfixturevalue(param[2])


@pytest.fixture(scope="session")
def reranker(cls, models):
    """Builds the component, with its usual language model, for all that is given, unless told otherwise."""
    return partial(build, cls, top_n=None, **models.usual)


@pytest.fixture(scope="session")
def uniform(cls):
    """What makes the order of documents no evidence."""
    return {"prior": None} if "prior" in cls.model_fields else {}


def snapshot(items: list[Any]) -> list[str]:
    return [item.model_dump_json() for item in items]


def test_puts_the_best_evidence_first(host, reranker, models):
    if not models.informed:
        pytest.skip("its weights are random, or trained for something else")
    assert host.outcome(host.ranked(reranker(), host.made()))[0][0] == "d1"


def test_empty_list_and_one_item(host, reranker):
    assert host.ranked(reranker(), []) == []
    assert len(host.ranked(reranker(), host.made(["one text"]))) == 1


def test_by_default_three_come_back(host, cls, models):
    assert len(host.ranked(build(cls, **models.usual), host.made())) == 3


@pytest.mark.parametrize(("top_n", "expected"), [(1, 1), (3, 3), (99, len(TEXTS)), (None, len(TEXTS))])
def test_top_n(host, reranker, top_n, expected):
    found = host.outcome(host.ranked(reranker(top_n=top_n), host.made()))
    assert len(found) == len({name for name, _ in found}) == expected


@pytest.mark.parametrize(("field", "value"), [("top_n", 0), ("top_n", -1), ("topn", 3), ("score", "cosine")])
def test_what_cannot_be_is_rejected_at_construction(reranker, field, value):
    with pytest.raises(InvalidInput, match=field):
        reranker(**{field: value})


def test_a_blank_query_is_a_clear_error(host, reranker):
    with pytest.raises(InvalidInput, match="query"):
        host.ranked(reranker(), host.made(), "  ")


def test_what_is_given_is_not_mutated_and_ranking_twice_is_the_same(host, reranker, uniform):
    items = host.made()
    before = snapshot(items)
    component = reranker(**uniform)
    first = host.outcome(host.ranked(component, items))
    assert host.outcome(host.ranked(component, items)) == first
    assert snapshot(items) == before
    again = host.ranked(component, host.ranked(component, items))
    assert dict(host.outcome(again)) == pytest.approx(dict(first), abs=1e-5)


def test_ids_text_and_metadata_are_kept(host, reranker):
    originals = {f"d{i}": host.held(item) for i, item in enumerate(host.made())}
    found = host.ranked(reranker(), host.made())
    assert {name: host.held(item) for (name, _), item in zip(host.outcome(found), found, strict=True)} == originals


def test_what_the_model_did_not_read_is_told(host, cls, reranker):
    items = host.made([text for text in TEXTS if text])
    limit = "max_document_tokens" if cls.__name__ == "PromptRankRerank" else "max_passage_tokens"
    cut = host.ranked(reranker(**{limit: 1}), items)
    assert len(cut) == len(items)
    told = [host.held(item)[1]["drillrank_cut_tokens"] for item in cut]
    assert all(type(tokens) is int and tokens > 0 for tokens in told)
    again = host.ranked(reranker(), cut)  # this time all was read
    assert not any("drillrank_cut_tokens" in host.held(item)[1] for item in again)


@pytest.mark.parametrize("metadata", [{"x": 1}, {"title": None}, {"title": 7, "links": None}, {"links": [None, 3]}])
def test_odd_metadata_and_missing_ids(host, reranker, metadata):
    assert len(host.ranked(reranker(), host.made(ids=False, **metadata))) == len(TEXTS)


@pytest.mark.parametrize("old_score", [None, 0.0, -3.5])
@pytest.mark.parametrize("count", [1, 2, len(TEXTS)])
def test_scores_are_plain_floats_in_falling_order(host, reranker, count, old_score):
    scores = [score for _, score in host.outcome(host.ranked(reranker(), host.made(TEXTS[:count], old_score)))]
    assert all(type(score) is float and score <= 0 for score in scores)
    assert scores == sorted(scores, reverse=True)
    json.dumps(scores)


def test_score_scales(host, reranker):
    scales = ("log_likelihood", "probability", "softmax")
    plain, probability, posterior = (host.outcome(host.ranked(reranker(score=one), host.made())) for one in scales)
    assert [name for name, _ in plain] == [name for name, _ in probability] == [name for name, _ in posterior]
    assert all(0 < score <= 1 for _, score in probability)
    assert sum(score for _, score in posterior) == pytest.approx(1)
    [best] = host.outcome(host.ranked(reranker(score="softmax", top_n=1), host.made()))
    assert best[1] == pytest.approx(posterior[0][1])


def test_threshold_is_inclusive(host, reranker):
    scores = [score for _, score in host.outcome(host.ranked(reranker(), host.made()))]
    kept = host.outcome(host.ranked(reranker(score_threshold=scores[1]), host.made()))
    assert [score for _, score in kept] == [score for score in scores if score >= scores[1]]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(TEXTS))))
def test_permuting_the_input_keeps_each_score(host, reranker, uniform, order):
    items, component = host.made(), reranker(**uniform)
    expected = dict(host.outcome(host.ranked(component, items)))
    permuted = host.ranked(component, [items[i] for i in order])
    assert dict(host.outcome(permuted)) == pytest.approx(expected, abs=1e-5)


def test_ties_keep_the_input_order_and_what_is_given_twice_stays_twice(host, reranker):
    same = host.made(["same text"] * 4, source="a.md")
    assert [name for name, _ in host.outcome(host.ranked(reranker(), same))] == ["d0", "d1", "d2", "d3"]
    items = host.made()
    assert len(host.ranked(reranker(), [*items, items[1]])) == len(items) + 1


async def test_async_equals_sync_and_does_not_block_the_loop(host, reranker, models):
    component = reranker()
    expected = host.outcome(host.ranked(component, host.made()))
    assert host.outcome(await host.aranked(component, host.made())) == expected
    assert await ticks_during(host.aranked(reranker(model=models.slow), host.made())) >= 3


def test_eight_threads_give_serial_results(host, reranker):
    component = reranker()
    expected = [host.outcome(host.ranked(component, host.made(), query)) for query in VARIANTS]
    barrier = threading.Barrier(8)

    def work(query: str) -> list[tuple[str, float]]:
        barrier.wait(timeout=30)
        return host.outcome(host.ranked(component, host.made(), query))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, VARIANTS)) == expected


def test_configuration_round_trips(host, cls, models):
    component = build(cls, **models.configured, top_n=2, score="softmax", **host.read)
    expected = host.outcome(host.ranked(component, host.made()))
    for copy in (*host.copies(component), pickle.loads(pickle.dumps(component)), component.model_copy(deep=True)):
        assert copy.model_dump() == component.model_dump()
        assert host.outcome(host.ranked(copy, host.made())) == expected


def test_pickling_keeps_a_ready_model(host, cls, models):
    component = build(cls, **models.usual | {"model": models.ready})
    copy = pickle.loads(pickle.dumps(component))
    assert host.outcome(host.ranked(copy, host.made())) == host.outcome(host.ranked(component, host.made()))


def test_base_and_text_that_is_data(host, cls, reranker):
    assert issubclass(cls, host.base)
    items = host.made(["{text} {title} {path} %s \\N{DASH}", "{" * 50, "{{query}} river Basel"])
    assert len(host.ranked(reranker(), items, "{query} river {0}")) == 3


# LangChain's own


@pytest.fixture
def in_langchain(host):
    if host is not LangChain:
        pytest.skip("of the other host")


@pytest.mark.usefixtures("in_langchain")
def test_metadata_fields_are_read_by_the_model(reranker, models):
    documents = [Document("A text.", metadata={"topic": topic}) for topic in ("novels", "the Rhine", "chess")]
    found, other = (
        reranker(metadata_fields=read).compress_documents(documents, "Where is the Rhine?") for read in (("topic",), ())
    )
    assert [one.metadata["relevance_score"] for one in found] != [one.metadata["relevance_score"] for one in other]
    assert found[0].metadata["topic"] == "the Rhine" or not models.informed


@pytest.mark.usefixtures("in_langchain")
async def test_as_runnable(reranker):
    component, outcome = reranker(), LangChain.outcome
    asked = {"query": QUERY, "documents": LangChain.made()}
    expected = outcome(component.compress_documents(LangChain.made(), QUERY))
    assert outcome(component.as_runnable().invoke(asked)) == expected
    assert outcome(await component.as_runnable().ainvoke(asked)) == expected
    assert [outcome(result) for result in component.as_runnable().batch([asked, asked])] == [expected] * 2


# LlamaIndex's own


@pytest.fixture
def in_llama_index(host):
    if host is not LlamaIndex:
        pytest.skip("of the other host")


@pytest.fixture
def events() -> Iterator[list[str]]:
    seen: list[str] = []

    class Recorder(BaseEventHandler):
        def handle(self, event: Any, **_: Any) -> None:
            seen.append(event.class_name())

    handler = Recorder()
    root_dispatcher.add_event_handler(handler)
    yield seen
    root_dispatcher.event_handlers.remove(handler)


@pytest.mark.usefixtures("in_llama_index")
def test_events_are_balanced_also_where_a_ranking_raises(cls, reranker, events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    component = reranker(top_n=2)
    component.callback_manager = CallbackManager([debug])  # as RetrieverQueryEngine does
    assert component.postprocess_nodes([], query_str=QUERY) == []
    assert not [name for name in events if name.startswith("ReRank")]
    component.postprocess_nodes(LlamaIndex.made(), query_bundle=QueryBundle(QUERY))
    with pytest.raises(InvalidInput, match="query"):
        component.postprocess_nodes(LlamaIndex.made(), query_str="  ")
    with pytest.raises(InvalidInput, match="query"):
        component.postprocess_nodes(LlamaIndex.made())
    told = [name for name in events if name.startswith("ReRank") or name == "ExceptionEvent"]
    assert told == ["ReRankStartEvent", "ReRankEndEvent", "ReRankStartEvent", "ExceptionEvent"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 2
    assert cls.class_name() == cls.__name__


@pytest.mark.usefixtures("in_llama_index")
def test_what_is_added_is_invisible_to_models_and_changes_no_hash(cls, reranker):
    nodes = {hit.node.node_id: hit.node for hit in LlamaIndex.made([text for text in TEXTS if text])}
    given_nodes = [NodeWithScore(node=node, score=0.5) for node in nodes.values()]
    for hit in reranker().postprocess_nodes(given_nodes, query_str=QUERY):
        assert hit.node.hash == nodes[hit.node.node_id].hash
    limit = "max_document_tokens" if cls.__name__ == "PromptRankRerank" else "max_passage_tokens"
    for fields in ({"keep_retrieval_score": True}, {limit: 1}):
        for hit in reranker(**fields).postprocess_nodes(given_nodes, query_str=QUERY):
            original = nodes[hit.node.node_id]
            added = {key: hit.node.metadata[key] for key in hit.node.metadata.keys() - original.metadata.keys()}
            assert added.get("retrieval_score", 0.5) == 0.5
            assert {"retrieval_score", "drillrank_cut_tokens"} & added.keys()
            assert added.keys() <= {"retrieval_score", "drillrank_cut_tokens", "drillrank_nothing_matched"}
            for mode in (MetadataMode.EMBED, MetadataMode.LLM):
                assert hit.node.get_content(metadata_mode=mode) == original.get_content(metadata_mode=mode)
