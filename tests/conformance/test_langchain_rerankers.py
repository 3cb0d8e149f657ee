"""Every LangChain reranker goes through this suite; a new one is added to `RERANKERS` with its kind of model."""

from __future__ import annotations

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import BaseDocumentCompressor, Document

from drillrank.errors import InvalidInput
from langchain_ext import BRMGRRerank, MonoT5Rerank, PromptRankRerank, RelevanceRerank, UPRRerank
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
    """Builds the component, with its usual language model unless told otherwise."""
    return partial(build, cls, **models.usual)


@pytest.fixture(scope="session")
def uniform(cls):
    """What makes the order of documents no evidence."""
    return {"prior": None} if "prior" in cls.model_fields else {}


def make_documents(texts: list[str] = TEXTS) -> list[Document]:
    return [
        Document(id=f"d{i}", page_content=text, metadata={"title": f"T{i}", "nested": {"page": i}})
        for i, text in enumerate(texts)
    ]


def outcome(documents) -> list[tuple[str, float]]:
    return [(document.id, document.metadata["relevance_score"]) for document in documents]


def test_puts_the_best_evidence_first(reranker, models):
    if not models.informed:
        pytest.skip("its weights are random, or trained for something else")
    assert reranker().compress_documents(make_documents(), QUERY)[0].id == "d1"


def test_empty_list(reranker):
    assert reranker().compress_documents([], QUERY) == []


def test_one_document(reranker):
    assert len(reranker().compress_documents(make_documents(["one text"]), QUERY)) == 1


def test_default_keeps_three_as_the_host_does(reranker):
    assert len(reranker().compress_documents(make_documents(), QUERY)) == 3


@pytest.mark.parametrize(("top_n", "expected"), [(1, 1), (99, len(TEXTS)), (None, len(TEXTS))])
def test_top_n(reranker, top_n, expected):
    result = reranker(top_n=top_n).compress_documents(make_documents(), QUERY)
    assert len(result) == len({document.id for document in result}) == expected


@pytest.mark.parametrize("top_n", [0, -1])
def test_senseless_top_n_is_rejected_at_construction(reranker, top_n):
    with pytest.raises(InvalidInput, match="top_n"):
        reranker(top_n=top_n)


def test_unknown_fields_are_rejected(reranker):
    with pytest.raises(InvalidInput, match="topn"):
        reranker(topn=3)


def test_a_blank_query_is_a_clear_error(reranker):
    with pytest.raises(InvalidInput, match="query"):
        reranker().compress_documents(make_documents(), " ")


def test_documents_are_not_mutated_and_ranking_twice_is_the_same(reranker, uniform):
    documents = make_documents()
    before = [document.model_dump_json() for document in documents]
    reranker(top_n=None).compress_documents(documents, QUERY)
    component = reranker(top_n=None, **uniform)
    first = component.compress_documents(documents, QUERY)
    assert [document.model_dump_json() for document in documents] == before
    again = component.compress_documents(first, QUERY)
    assert [document.id for document in again] == [document.id for document in first]
    assert dict(outcome(again)) == pytest.approx(dict(outcome(first)), abs=1e-5)


def test_ids_text_and_metadata_are_kept(reranker):
    originals = {document.id: document for document in make_documents()}
    for document in reranker(top_n=None, score_key="s").compress_documents(make_documents(), QUERY):
        assert document.page_content == originals[document.id].page_content
        assert {**document.metadata, "s": None} == {**originals[document.id].metadata, "s": None}


def test_what_the_model_did_not_read_is_told(cls, reranker):
    limit = "max_document_tokens" if cls is PromptRankRerank else "max_passage_tokens"
    documents = make_documents([text for text in TEXTS if text])
    cut = reranker(**{limit: 1}, top_n=None).compress_documents(documents, QUERY)
    assert len(cut) == len(documents)
    assert all(document.metadata["drillrank_cut_tokens"] > 0 for document in cut)
    assert all(type(document.metadata["drillrank_cut_tokens"]) is int for document in cut)
    again = reranker().compress_documents(cut, QUERY)  # this time all is read
    assert not any("drillrank_cut_tokens" in document.metadata for document in again)


@pytest.mark.parametrize("metadata", [{}, {"title": None}, {"title": 7, "links": None}, {"links": [None, 3]}])
def test_odd_metadata_and_missing_ids(reranker, metadata):
    documents = [Document(page_content=text, metadata=metadata) for text in TEXTS]
    assert len(reranker(top_n=None).compress_documents(documents, QUERY)) == len(TEXTS)


@pytest.mark.parametrize("count", [1, 2, len(TEXTS)])
def test_scores_are_plain_floats_in_falling_order(reranker, count):
    scores = [score for _, score in outcome(reranker().compress_documents(make_documents(TEXTS[:count]), QUERY))]
    assert all(type(score) is float for score in scores)
    assert scores == sorted(scores, reverse=True)
    json.dumps(scores)


def test_score_scales(reranker):
    plain = outcome(reranker(top_n=None).compress_documents(make_documents(), QUERY))
    posterior = outcome(reranker(top_n=None, score="softmax").compress_documents(make_documents(), QUERY))
    probability = outcome(reranker(top_n=None, score="probability").compress_documents(make_documents(), QUERY))
    assert [name for name, _ in plain] == [name for name, _ in posterior] == [name for name, _ in probability]
    assert all(score <= 0 for _, score in plain)
    assert all(0 < score <= 1 for _, score in probability)
    assert sum(score for _, score in posterior) == pytest.approx(1)


def test_threshold_is_inclusive(reranker):
    scores = [score for _, score in outcome(reranker(top_n=None).compress_documents(make_documents(), QUERY))]
    kept = outcome(reranker(top_n=None, score_threshold=scores[1]).compress_documents(make_documents(), QUERY))
    assert [score for _, score in kept] == [score for score in scores if score >= scores[1]]


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(len(TEXTS))))
def test_permuting_the_input_keeps_each_document_s_score(reranker, uniform, order):
    documents = make_documents()
    component = reranker(top_n=None, **uniform)
    permuted = component.compress_documents([documents[i] for i in order], QUERY)
    assert dict(outcome(permuted)) == pytest.approx(
        dict(outcome(component.compress_documents(documents, QUERY))), abs=1e-5
    )


def test_ties_keep_the_input_order(reranker):
    documents = [Document(id=f"d{i}", page_content="same text") for i in range(4)]
    result = reranker(top_n=None).compress_documents(documents, QUERY)
    assert [document.id for document in result] == ["d0", "d1", "d2", "d3"]


def test_metadata_fields_are_read_by_the_model(reranker, models):
    documents = [
        Document(page_content="A text.", metadata={"topic": topic}) for topic in ("novels", "the Rhine", "chess")
    ]
    found, other = (
        reranker(metadata_fields=read).compress_documents(documents, "Where is the Rhine?") for read in (("topic",), ())
    )
    assert [one.metadata["relevance_score"] for one in found] != [one.metadata["relevance_score"] for one in other]
    assert found[0].metadata["topic"] == "the Rhine" or not models.informed


async def test_async_equals_sync(reranker):
    component = reranker()
    expected = outcome(component.compress_documents(make_documents(), QUERY))
    assert outcome(await component.acompress_documents(make_documents(), QUERY)) == expected


async def test_async_does_not_block_the_event_loop(reranker, models):
    assert await ticks_during(reranker(model=models.slow).acompress_documents(make_documents(), QUERY)) >= 3


def test_eight_threads_give_serial_results(reranker):
    component = reranker(top_n=None)
    expected = [outcome(component.compress_documents(make_documents(), query)) for query in VARIANTS]
    barrier = threading.Barrier(8)

    def work(query: str) -> list[tuple[str, float]]:
        barrier.wait(timeout=30)
        return outcome(component.compress_documents(make_documents(), query))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, VARIANTS)) == expected


def test_configuration_round_trips(cls, models):
    component = build(cls, **models.configured, top_n=2, score="softmax", metadata_fields=("page",))
    for copy in (
        cls(**component.model_dump()),
        cls.model_validate_json(component.model_dump_json()),
        pickle.loads(pickle.dumps(component)),
        component.model_copy(deep=True),
    ):
        assert copy.model_dump() == component.model_dump()
        assert outcome(copy.compress_documents(make_documents(), QUERY)) == outcome(
            component.compress_documents(make_documents(), QUERY)
        )


def test_pickling_keeps_a_ready_model(cls, models):
    component = build(cls, **models.usual | {"model": models.ready})
    copy = pickle.loads(pickle.dumps(component))
    assert outcome(copy.compress_documents(make_documents(), QUERY)) == outcome(
        component.compress_documents(make_documents(), QUERY)
    )


async def test_as_runnable(reranker):
    component = reranker()
    given = {"query": QUERY, "documents": make_documents()}
    expected = outcome(component.compress_documents(make_documents(), QUERY))
    assert outcome(component.as_runnable().invoke(given)) == expected
    assert outcome(await component.as_runnable().ainvoke(given)) == expected
    assert [outcome(result) for result in component.as_runnable().batch([given, given])] == [expected] * 2


def test_base(cls):
    assert issubclass(cls, BaseDocumentCompressor)


def test_text_in_documents_is_data(reranker):
    documents = make_documents(["{text} {title} {path} %s \\N{DASH}", "{" * 50, "{{query}} river Basel"])
    assert len(reranker().compress_documents(documents, "{query} river {0}")) == 3
