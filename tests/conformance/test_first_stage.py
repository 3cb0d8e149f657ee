"""The first stage as prior, in every reranker of both hosts that takes one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, Passage
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks, build

TEXTS = [f"The {town} bridge crosses the river." for town in ("Basel", "Bonn", "Cologne", "Mainz", "Worms")]
QUERY = "Which bridge crosses the river?"  # which words cannot tell apart
COSINES = [0.31, 0.72, 0.18, 0.55, 0.44]
ALONE = {"PromptRankRerank": {"pairs": 0}}  # where no passage shares the score of a path that holds a better one
for_each = pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank"])
for_each_prior = pytest.mark.parametrize("prior", ["retrieval", "cosine"])


def reranker(host, name, **fields):
    return build(getattr(host.ext, name), **{"top_n": None, **ALONE.get(name, {}), **fields})


def ranked(host, component, scores, generated=()):
    """Of hits with these scores, and of what an LLM wrote."""
    hits = [host.hit(host.record(text), score) for text, score in zip(TEXTS, scores, strict=False)]
    written = [host.generated(text) for text in generated]
    return host.rerank(component, QUERY, *hits, *written)


def found(host, name, scores, generated=(), **fields):
    return [one.text for one in ranked(host, reranker(host, name, **fields), scores, generated)]


def by(scores):
    return [TEXTS[place] for place in sorted(range(len(scores)), key=lambda place: -scores[place])]


@for_each
@both_frameworks
@for_each_prior
def test_the_first_stage_decides_what_words_cannot(host, name, prior):
    assert found(host, name, COSINES) == (TEXTS if name == "PromptRankRerank" else by(COSINES))  # by default
    assert found(host, name, COSINES, prior=None) == TEXTS
    assert found(host, name, COSINES, prior=prior) == by(COSINES)
    core = UPR(prior=prior).rank(QUERY, list(map(Passage, TEXTS)), scores=COSINES)
    hits = ranked(host, reranker(host, "UPRRerank", prior=prior), COSINES)
    assert {one.text: one.score for one in hits} == {item.passage.text: item.score for item in core}


@given(scores=st.permutations([3.0, 7.5, -2.0, 0.25, 100.0]))
@for_each
@both_frameworks
def test_any_scale_will_do_for_ranks(host, name, scores):
    assert found(host, name, scores, prior="retrieval") == by(scores)


@for_each
@both_frameworks
def test_where_no_score_is_brought_the_order_counts_in_langchain_and_for_paths(host, name):
    component = reranker(host, name, prior="retrieval")
    for texts in (TEXTS, TEXTS[::-1]):
        hits = host.rerank(component, QUERY, *(host.hit(host.record(text), None) for text in texts))
        assert [one.text for one in hits] == texts
        assert (hits[0].score > hits[1].score) == (host is LangChain or name == "PromptRankRerank")


@for_each
@both_frameworks
def test_missing_scores_count_as_average_ones(host, name):
    missing = found(host, name, [0.9, None, 0.1, 0.6, 0.2], prior="cosine")
    assert missing == [TEXTS[place] for place in (0, 3, 1, 4, 2)]


@for_each
@for_each_prior
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@both_frameworks
def test_a_score_that_is_no_finite_number_counts_as_unknown(host, name, prior, wrong):
    assert found(host, name, [0.5, wrong], prior=prior) == found(host, name, [0.5, None], prior=prior)


@for_each
@pytest.mark.parametrize("wrong", ["0.5", True, [0.5], {"value": 1}])
def test_metadata_that_is_no_score_counts_as_none(name, wrong):
    fields = {"prior": "retrieval"}
    assert found(LangChain, name, [0.5, wrong], **fields) == found(LangChain, name, [0.5, None], **fields)
    assert found(LangChain, name, [1, np.float32(2)], **fields) == by([1, 2])
    component = reranker(LangChain, name, score_key=None, **fields)
    assert [one.text for one in ranked(LangChain, component, [0.5, wrong])] == TEXTS[:2]


@for_each
@both_frameworks
@for_each_prior
def test_the_setting_makes_the_round_trip_and_takes_effect_when_assigned(host, name, prior):
    with_prior, without = reranker(host, name, prior=prior), reranker(host, name)
    for copy in (*host.copies(with_prior), without.model_copy(update={"prior": prior})):
        assert copy.prior == prior
        assert [one.text for one in ranked(host, copy, COSINES)] == by(COSINES)
    for assigned, expected in ((prior, by(COSINES)), (None, TEXTS)):
        without.prior = assigned
        assert [one.text for one in ranked(host, without, COSINES)] == expected


@both_frameworks
def test_nothing_found_what_an_llm_wrote(host):
    """The order of generated texts is as without a prior, and they may carry anything for a score."""
    wrote = ["A bridge crosses the river.", "Whales sing."]
    texts = found(host, "BRMGRRerank", COSINES, wrote, prior="retrieval")
    assert [text for text in texts if text in TEXTS] == by(COSINES)
    plain = found(host, "BRMGRRerank", COSINES, wrote)
    assert [text for text in texts if text in wrote] == [text for text in plain if text in wrote]
    records = [host.record(text) for text in TEXTS]
    records.insert(1, host.generated("A bridge.", relevance_score="high"))
    merged = host.rerank(reranker(host, "BRMGRRerank", prior="retrieval"), QUERY, *records)
    assert [one.text for one in merged] == ["A bridge.", *TEXTS]


class Scored(type(LlamaIndex.retriever())):
    """Nodes with the cosines as scores."""

    def _retrieve(self, query_bundle):
        return [LlamaIndex.hit(node, score) for node, score in zip(self.nodes, COSINES, strict=True)]


@both_frameworks
def test_retrieval_with_generation_hands_it_on(host):
    hits = [LlamaIndex.record(text) for text in TEXTS]
    if host is LangChain:
        hits = [host.hit(host.record(text), score) for text, score in zip(TEXTS, COSINES, strict=True)]
    source = host.retriever(*hits) if host is LangChain else Scored(hits)
    merging = host.ext.BRMGRRetriever(source, host.llm(["A bridge."]), n_generated=1, prior="cosine", top_n=9)
    assert [one.text for one in host.retrieve(merging, QUERY) if one.text in TEXTS] == by(COSINES)


@both_frameworks
def test_a_retriever_of_paths_counts_the_order_of_what_it_found(host):
    source = host.finds(lambda question: [host.record(text) for text in TEXTS[::-1]])
    paths = build(host.ext.PromptRankRetriever, source=source, settings={"pairs": 0}, prior="retrieval")
    hits = host.retrieve(paths, QUERY)
    assert [one.text for one in hits] == TEXTS[::-1]
    assert [one.score for one in hits] == sorted({one.score for one in hits}, reverse=True)
