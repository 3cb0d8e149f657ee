"""Every LlamaIndex reranker goes through this suite; a new one is added to `RERANKERS` with its kind of model."""

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
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from drillrank.errors import InvalidInput
from llama_index_ext import BRMGRRerank, MonoT5Rerank, PromptRankRerank, RelevanceRerank, UPRRerank
from tests.conformance.building import build
from tests.conformance.corpus import QUERY, TEXTS, VARIANTS, ticks_during

RERANKERS = [
    (BRMGRRerank, "embedded"),
    (UPRRerank, "embedded"),
    (PromptRankRerank, "embedded"),
    (MonoT5Rerank, "tiny_monot5"),
    (RelevanceRerank, "tiny_relevance"),
    (UPRRerank, "converted_likelihood"),
    (BRMGRRerank, "converted_likelihood"),
    (PromptRankRerank, "converted_paths"),
    (MonoT5Rerank, "converted"),
    (RelevanceRerank, "converted_relevance"),
    (UPRRerank, "served"),
    (RelevanceRerank, "served_relevance"),
]


@pytest.fixture(scope="session", params=RERANKERS, ids=lambda param: f"{param[0].__name__}-{param[1]}")
def component(request):
    return request.param


@pytest.fixture(scope="session")
def cls(component):
    return component[0]


@pytest.fixture(scope="session")
def models(component, request):
    return request.getfixturevalue(component[1])


@pytest.fixture(scope="session")
def reranker(cls, models):
    """Builds the component, with its usual language model, for all nodes, unless told otherwise."""
    return partial(build, cls, top_n=None, **models.usual)


def make_nodes(texts: list[str] = TEXTS, score: float | None = 0.5) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=text, id_=f"n{i}", metadata={"title": f"T{i}", "page": i}), score=score)
        for i, text in enumerate(texts)
    ]


def snapshot(nodes: list[NodeWithScore]) -> list[str]:
    return [node.model_dump_json() for node in nodes]


def outcome(nodes: list[NodeWithScore]) -> list[tuple[str, float]]:
    return [(node.node.node_id, node.score) for node in nodes]


@pytest.fixture
def events() -> Iterator[list[str]]:
    seen: list[str] = []

    class Recorder(BaseEventHandler):
        @classmethod
        def class_name(cls) -> str:
            return "Recorder"

        def handle(self, event: Any, **_: Any) -> None:
            seen.append(event.class_name())

    handler = Recorder()
    root_dispatcher.add_event_handler(handler)
    yield seen
    root_dispatcher.event_handlers.remove(handler)


def test_puts_the_best_evidence_first(reranker, models):
    if not models.informed:
        pytest.skip("its weights are random, or trained for something else")
    best = reranker().postprocess_nodes(make_nodes(), query_str=QUERY)[0]
    assert best.node.node_id == "n1"


def test_empty_list_gives_empty_list_without_events(reranker, events):
    assert reranker().postprocess_nodes([], query_str=QUERY) == []
    assert not [name for name in events if name.startswith("ReRank")]


def test_one_node(reranker):
    assert len(reranker().postprocess_nodes(make_nodes(["one text"]), query_str=QUERY)) == 1


def test_by_default_three_nodes_come_back(cls, models):
    assert len(build(cls, **models.usual).postprocess_nodes(make_nodes(), query_str=QUERY)) == 3


@pytest.mark.parametrize(("top_n", "expected"), [(1, 1), (3, 3), (99, len(TEXTS)), (None, len(TEXTS))])
def test_top_n(reranker, top_n, expected):
    assert len(reranker(top_n=top_n).postprocess_nodes(make_nodes(), query_str=QUERY)) == expected


@pytest.mark.parametrize("top_n", [0, -1])
def test_senseless_top_n_is_rejected_at_construction(reranker, top_n):
    with pytest.raises(InvalidInput, match="top_n"):
        reranker(top_n=top_n)


def test_a_missing_or_blank_query_is_a_clear_error(reranker):
    with pytest.raises(InvalidInput, match="query"):
        reranker().postprocess_nodes(make_nodes())
    with pytest.raises(InvalidInput, match="query"):
        reranker().postprocess_nodes(make_nodes(), query_str="  ")


def test_nodes_are_not_mutated_and_ranking_twice_is_the_same(reranker):
    nodes = make_nodes()
    before = snapshot(nodes)
    component = reranker(keep_retrieval_score=True)
    first = component.postprocess_nodes(nodes, query_str=QUERY)
    assert snapshot(nodes) == before
    assert outcome(component.postprocess_nodes(nodes, query_str=QUERY)) == outcome(first)


def test_ids_text_and_metadata_are_kept(reranker):
    nodes = {node.node.node_id: node.node for node in make_nodes()}
    for node in reranker().postprocess_nodes(make_nodes(), query_str=QUERY):
        original = nodes[node.node.node_id]
        assert node.node.get_content() == original.get_content()
        assert node.node.metadata == original.metadata
        assert node.node.hash == original.hash


def test_retrieval_score_is_kept_on_request_and_invisible_to_models(reranker):
    nodes = make_nodes()
    for node in reranker(keep_retrieval_score=True).postprocess_nodes(nodes, query_str=QUERY):
        original = nodes[int(node.node.node_id[1:])].node
        assert node.node.metadata["retrieval_score"] == 0.5
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert node.node.get_content(metadata_mode=mode) == original.get_content(metadata_mode=mode)


def test_what_the_model_did_not_read_is_told_on_a_copy_that_models_read_as_before(cls, reranker):
    nodes = make_nodes([text for text in TEXTS if text])
    limit = "max_document_tokens" if cls is PromptRankRerank else "max_passage_tokens"
    cut = reranker(**{limit: 1}).postprocess_nodes(nodes, query_str=QUERY)
    assert len(cut) == len(nodes)
    for node in cut:
        original = nodes[int(node.node.node_id[1:])].node
        left_out = node.node.metadata["drillrank_cut_tokens"]
        assert type(left_out) is int
        assert left_out > 0
        rest = {key: value for key, value in node.node.metadata.items() if key != "drillrank_nothing_matched"}
        assert {**original.metadata, "drillrank_cut_tokens": left_out} == rest  # of one word, little matches
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert node.node.get_content(metadata_mode=mode) == original.get_content(metadata_mode=mode)
    again = reranker().postprocess_nodes(cut, query_str=QUERY)  # this time all was read
    assert not any("drillrank_cut_tokens" in node.node.metadata for node in again)


@pytest.mark.parametrize("old_score", [None, 0.0, -3.5])
@pytest.mark.parametrize("count", [1, 2, len(TEXTS)])
def test_scores_are_plain_floats_in_falling_order(reranker, count, old_score):
    result = reranker().postprocess_nodes(make_nodes(TEXTS[:count], old_score), query_str=QUERY)
    scores = [node.score for node in result]
    assert all(type(score) is float for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert all(score <= 0 for score in scores)
    json.dumps(scores)


def test_score_scales(reranker):
    plain = reranker().postprocess_nodes(make_nodes(), query_str=QUERY)
    probability = reranker(score="probability").postprocess_nodes(make_nodes(), query_str=QUERY)
    posterior = reranker(score="softmax").postprocess_nodes(make_nodes(), query_str=QUERY)
    order = [name for name, _ in outcome(plain)]
    assert [name for name, _ in outcome(probability)] == order == [name for name, _ in outcome(posterior)]
    assert all(0 < node.score <= 1 for node in probability)
    assert sum(node.score for node in posterior) == pytest.approx(1)
    assert reranker(score="softmax", top_n=1).postprocess_nodes(make_nodes(), query_str=QUERY)[0].score == (
        pytest.approx(posterior[0].score)
    )
    with pytest.raises(InvalidInput, match="score"):
        reranker(score="cosine")


def test_threshold_is_inclusive(reranker):
    scores = [score for _, score in outcome(reranker().postprocess_nodes(make_nodes(), query_str=QUERY))]
    kept = reranker(score_threshold=scores[1]).postprocess_nodes(make_nodes(), query_str=QUERY)
    assert [node.score for node in kept] == [score for score in scores if score >= scores[1]]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(TEXTS))))
def test_permuting_the_input_keeps_each_node_s_score(reranker, order):
    nodes = make_nodes()
    expected = dict(outcome(reranker().postprocess_nodes(nodes, query_str=QUERY)))
    permuted = reranker().postprocess_nodes([nodes[i] for i in order], query_str=QUERY)
    assert dict(outcome(permuted)) == pytest.approx(expected, abs=1e-5)


def test_ties_keep_the_input_order(reranker):
    nodes = [NodeWithScore(node=TextNode(text="same text", id_=f"n{i}")) for i in range(4)]
    result = reranker().postprocess_nodes(nodes, query_str=QUERY)
    assert [node.node.node_id for node in result] == ["n0", "n1", "n2", "n3"]


def test_a_node_given_twice_stays_twice(reranker):
    nodes = make_nodes()
    result = reranker().postprocess_nodes([*nodes, nodes[1]], query_str=QUERY)
    assert len(result) == len(nodes) + 1


async def test_async_equals_sync(reranker):
    component = reranker()
    expected = component.postprocess_nodes(make_nodes(), query_str=QUERY)
    assert outcome(await component.apostprocess_nodes(make_nodes(), query_str=QUERY)) == outcome(expected)


async def test_async_does_not_block_the_event_loop(reranker, models):
    assert await ticks_during(reranker(model=models.slow).apostprocess_nodes(make_nodes(), query_str=QUERY)) >= 3


def test_eight_threads_give_serial_results(reranker):
    component = reranker()
    expected = [outcome(component.postprocess_nodes(make_nodes(), query_str=query)) for query in VARIANTS]
    barrier = threading.Barrier(8)

    def work(query: str) -> list[tuple[str, float]]:
        barrier.wait(timeout=30)
        return outcome(component.postprocess_nodes(make_nodes(), query_str=query))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, VARIANTS)) == expected


def test_configuration_round_trips(cls, models):
    component = build(cls, **models.configured, top_n=2, score="softmax", metadata_mode=MetadataMode.NONE)
    for copy in (
        cls.from_dict(component.to_dict()),
        cls.from_json(component.to_json()),
        cls.model_validate(component.model_dump()),
        pickle.loads(pickle.dumps(component)),
        component.model_copy(deep=True),
    ):
        assert copy.to_dict() == component.to_dict()
        assert outcome(copy.postprocess_nodes(make_nodes(), query_str=QUERY)) == outcome(
            component.postprocess_nodes(make_nodes(), query_str=QUERY)
        )


def test_pickling_keeps_a_ready_model(cls, models):
    component = build(cls, **models.usual | {"model": models.ready})
    copy = pickle.loads(pickle.dumps(component))
    assert outcome(copy.postprocess_nodes(make_nodes(), query_str=QUERY)) == outcome(
        component.postprocess_nodes(make_nodes(), query_str=QUERY)
    )


def test_events_are_balanced(reranker, events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    component = reranker(top_n=2)
    component.callback_manager = CallbackManager([debug])  # as RetrieverQueryEngine does
    component.postprocess_nodes(make_nodes(), query_bundle=QueryBundle(QUERY))
    assert [name for name in events if name.startswith("ReRank")] == ["ReRankStartEvent", "ReRankEndEvent"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 1


def test_a_ranking_that_raises_ends_its_events(reranker, events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    component = reranker()
    component.callback_manager = CallbackManager([debug])
    with pytest.raises(InvalidInput, match="query"):
        component.postprocess_nodes(make_nodes(), query_str="  ")
    named = [name for name in events if name.startswith("ReRank") or name == "ExceptionEvent"]
    assert named == ["ReRankStartEvent", "ExceptionEvent"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 1


def test_class_name_and_base(cls):
    assert cls.class_name() == cls.__name__
    assert "BaseNodePostprocessor" in [base.__name__ for base in cls.__mro__]


def test_text_in_nodes_is_data(reranker):
    nodes = make_nodes(["{text} {title} {path} %s \\N{DASH}", "{" * 50, "{{query}} river Basel"])
    assert len(reranker().postprocess_nodes(nodes, query_str="{query} river {0}")) == 3
