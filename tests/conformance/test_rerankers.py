"""Every reranker of both hosts goes through this suite; a new one is added to `RERANKERS` with its kind of model."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import BaseDocumentCompressor
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from drillrank import BRMGR, UPR, Passage
from drillrank.errors import InvalidInput
from drillrank.testing import RerankerTests
from tests.conformance.corpus import QUERY, TEXTS
from tests.conformance.frameworks import LangChain, LlamaIndex, build
from tests.conformance.kit_langchain import LangChainRerankerTests
from tests.conformance.kit_llama_index import LlamaIndexRerankerTests
from tests.examples import IS_THOROUGH, examples

RERANKERS = [
    ("BRMGRRerank", "embedded"),
    ("UPRRerank", "embedded"),
    ("PromptRankRerank", "embedded"),
    ("MonoT5Rerank", "tiny_monot5"),
    ("RelevanceRerank", "tiny_relevance"),
    ("UPRRerank", "tiny_likelihood"),
    ("BRMGRRerank", "tiny_likelihood"),
    ("PromptRankRerank", "tiny_paths"),
    ("UPRRerank", "served"),
    ("RelevanceRerank", "served_relevance"),
]
# In a quick run each component goes through both frameworks with its first model, and with its others through one.
PARAMS = [
    (host, *reranker)
    for index, reranker in enumerate(RERANKERS)
    for host in (LangChain, LlamaIndex)
    if IS_THOROUGH or index < 5 or (host is LangChain) is (index % 2 == 0)
]

BASE = {LangChain: BaseDocumentCompressor, LlamaIndex: BaseNodePostprocessor}
READ = {LangChain: {"metadata_fields": ("page",)}, LlamaIndex: {"metadata_mode": MetadataMode.NONE}}


def hits(host: Any, texts: list[str] = TEXTS, score: Any = 0.5, ids: bool = True, **metadata: Any) -> list[Any]:
    """Documents whose metadata may be nested and that come without scores, or nodes with them."""
    page = (lambda i: {"nested": {"page": i}}) if host is LangChain else (lambda i: {"page": i})
    return [
        host.hit(
            host.record(text, f"d{i}" if ids else None, **(metadata or {"title": f"T{i}", **page(i)})),
            None if host is LangChain else score,
        )
        for i, text in enumerate(texts)
    ]


def ranked(host: Any, component: Any, *given: Any, query: str = QUERY) -> list[Any]:
    return host.rerank(component, query, *(given or hits(host)))


def outcome(found: list[Any]) -> list[tuple[Any, float]]:
    return [(one.id, one.score) for one in found]


def read(one: Any) -> dict[str, Any]:
    """Its metadata without the score."""
    return {name: value for name, value in one.metadata.items() if name != "relevance_score"}


@pytest.fixture(
    scope="session",
    params=PARAMS,
    ids=lambda param: f"{param[0].__name__}-{param[1]}-{param[2]}",
)
def param(request):
    return request.param


@pytest.fixture(scope="session")
def host(param):
    return param[0]


@pytest.fixture(scope="session")
def cls(param):
    return getattr(param[0].ext, param[1])


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


def test_the_best_evidence_comes_first_and_by_default_three_come_back(host, cls, reranker, models):
    assert issubclass(cls, BASE[host])
    assert len(ranked(host, build(cls, **models.usual))) == 3
    assert not models.informed or ranked(host, reranker())[0].id == "d1"  # else weights are random, or of another task
    assert len(ranked(host, reranker(), *hits(host, ["one text"]))) == 1
    with pytest.raises(InvalidInput, match="query"):
        ranked(host, reranker(), query="  ")


def test_ranking_a_ranking_gives_the_same_scores(host, reranker, uniform):
    component = reranker(**uniform)
    first = ranked(host, component)
    again = ranked(host, component, *(host.hit(host.record(one.text, one.id, **one.metadata)) for one in first))
    assert dict(outcome(again)) == pytest.approx(dict(outcome(first)), abs=1e-5)


def test_ids_text_and_metadata_are_kept(host, reranker):
    nodes = [getattr(item, "node", item) for item in hits(host)]
    originals = {host.id_of(node): (host.text_of(node), node.metadata) for node in nodes}
    assert {one.id: (one.text, read(one)) for one in ranked(host, reranker())} == originals


def test_what_the_model_did_not_read_is_told(host, cls, reranker):
    items = hits(host, [text for text in TEXTS if text])
    limit = "max_document_tokens" if cls.__name__ == "PromptRankRerank" else "max_passage_tokens"
    cut = ranked(host, reranker(**{limit: 1}), *items)
    assert len(cut) == len(items)
    told = [one.metadata["drillrank_cut_tokens"] for one in cut]
    assert all(type(tokens) is int and tokens > 0 for tokens in told)
    again = ranked(host, reranker(), *(host.record(one.text, one.id, **one.metadata) for one in cut))
    assert not any("drillrank_cut_tokens" in one.metadata for one in again)  # this time all was read


@pytest.mark.parametrize("metadata", [{"x": 1}, {"title": None}, {"title": 7, "links": None}, {"links": [None, 3]}])
def test_odd_metadata_and_missing_ids(host, reranker, metadata):
    assert len(ranked(host, reranker(), *hits(host, ids=False, **metadata))) == len(TEXTS)


@pytest.mark.parametrize("old_score", [None, 0.0, -3.5])
@pytest.mark.parametrize("count", [1, 2, len(TEXTS)])
def test_scores_are_plain_floats_in_falling_order(host, reranker, count, old_score):
    scores = [one.score for one in ranked(host, reranker(), *hits(host, TEXTS[:count], old_score))]
    assert all(type(score) is float and score <= 0 for score in scores)
    assert scores == sorted(scores, reverse=True)
    json.dumps(scores)


def test_score_scales_and_an_inclusive_threshold(host, reranker):
    scales = ("log_likelihood", "probability", "softmax")
    plain, probability, posterior = (ranked(host, reranker(score=one)) for one in scales)
    assert [one.id for one in plain] == [one.id for one in probability] == [one.id for one in posterior]
    assert all(0 < one.score <= 1 for one in probability)
    assert sum(one.score for one in posterior) == pytest.approx(1)
    [best] = ranked(host, reranker(score="softmax", top_n=1))
    assert best.score == pytest.approx(posterior[0].score)
    kept = ranked(host, reranker(score_threshold=plain[1].score))
    assert [one.score for one in kept] == [one.score for one in plain if one.score >= plain[1].score]


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(TEXTS))))
def test_permuting_the_input_keeps_each_score(host, reranker, uniform, order):
    items, component = hits(host), reranker(**uniform)
    expected = dict(outcome(ranked(host, component, *items)))
    assert dict(outcome(ranked(host, component, *(items[i] for i in order)))) == pytest.approx(expected, abs=1e-5)


def test_what_is_given_twice_stays_twice(host, reranker):
    items = hits(host)
    assert len(ranked(host, reranker(), *items, items[1])) == len(items) + 1


class TestKit(RerankerTests):
    """The kit of `drillrank.testing`."""

    @pytest.fixture(autouse=True)
    def _parts(self, host, reranker, uniform, models):
        self.kit = (LangChainRerankerTests if host is LangChain else LlamaIndexRerankerTests)()
        self.reranker, self.models = partial(reranker, **uniform), models
        self.knows_the_answer = models.informed
        self.returns_given_records = self.kit.returns_given_records

    def make_reranker(self, top_n):
        return self.reranker(top_n=top_n)

    def make_slow_reranker(self, wait):
        self.models.slow.wait = wait
        return self.reranker(model=self.models.slow)

    def make_record(self, id, text, metadata):
        return self.kit.make_record(id, text, metadata)

    def rerank(self, reranker, question, records):
        return self.kit.rerank(reranker, question, records)

    async def arerank(self, reranker, question, records):
        return await self.kit.arerank(reranker, question, records)

    def listen(self):
        return self.kit.listen()


def test_configuration_round_trips_and_pickling_keeps_a_ready_model(host, cls, models):
    component = build(cls, **models.configured, top_n=2, score="softmax", **READ[host])
    expected = ranked(host, component)
    for copy in host.copies(component):
        assert copy.model_dump() == component.model_dump()
        assert ranked(host, copy) == expected
    ready = build(cls, **models.usual | {"model": models.ready})
    assert ranked(host, pickle.loads(pickle.dumps(ready))) == ranked(host, ready)


# LangChain's own


@pytest.fixture
def in_langchain(host):
    if host is not LangChain:
        pytest.skip("of the other host")


@pytest.mark.usefixtures("in_langchain")
def test_metadata_fields_are_read_by_the_model(reranker, models):
    documents = [LangChain.record("A text.", topic=topic) for topic in ("novels", "the Rhine", "chess")]
    found, other = (
        reranker(metadata_fields=read).compress_documents(documents, "Where is the Rhine?") for read in (("topic",), ())
    )
    assert [one.metadata["relevance_score"] for one in found] != [one.metadata["relevance_score"] for one in other]
    assert found[0].metadata["topic"] == "the Rhine" or not models.informed


@pytest.mark.usefixtures("in_langchain")
async def test_as_runnable(reranker):
    component = reranker()
    asked = {"query": QUERY, "documents": hits(LangChain)}
    expected = component.compress_documents(hits(LangChain), QUERY)
    assert component.as_runnable().invoke(asked) == expected == await component.as_runnable().ainvoke(asked)
    assert component.as_runnable().batch([asked, asked]) == [expected] * 2


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
    component.postprocess_nodes(hits(LlamaIndex), query_bundle=QueryBundle(QUERY))
    with pytest.raises(InvalidInput, match="query"):
        component.postprocess_nodes(hits(LlamaIndex), query_str="  ")
    with pytest.raises(InvalidInput, match="query"):
        component.postprocess_nodes(hits(LlamaIndex))
    told = [name for name in events if name.startswith("ReRank") or name == "ExceptionEvent"]
    assert told == ["ReRankStartEvent", "ReRankEndEvent", "ReRankStartEvent", "ExceptionEvent"]
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 2
    assert cls.class_name() == cls.__name__


@pytest.mark.usefixtures("in_llama_index")
def test_what_is_added_is_invisible_to_models_and_changes_no_hash(cls, reranker):
    nodes = {hit.node.node_id: hit.node for hit in hits(LlamaIndex, [text for text in TEXTS if text])}
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


@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank"])
@pytest.mark.parametrize(("mode", "text"), [("none", "It is a novel."), ("embed", "author: Austen\n\nIt is a novel.")])
def test_a_title_key_of_llama_index_fills_the_title_and_leaves_it_out_of_the_text(name, mode, text):
    node = LlamaIndex.record("It is a novel.", title="Emma", author="Austen")
    reranker = getattr(LlamaIndex.ext, name)(settings={"title_key": "title", "metadata_mode": mode})
    [found] = LlamaIndex.rerank(reranker, "Who wrote the novel Emma?", node)
    ranker = UPR(prior=None) if name == "UPRRerank" else BRMGR(prior=None)
    passages = [Passage(text, title="Emma")]
    lists = (passages,) if name == "UPRRerank" else (passages, [])
    [expected] = ranker.rank("Who wrote the novel Emma?", *lists)
    assert found.score == pytest.approx(expected.score)
    assert found.metadata["title"] == "Emma"
    plain = LlamaIndex.rerank(getattr(LlamaIndex.ext, name)(), "Who wrote the novel Emma?", node)
    assert [one.metadata for one in plain] == [found.metadata]
