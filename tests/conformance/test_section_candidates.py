"""Views of one section among the candidates of a reranker, or among what a plain retriever returns."""

from __future__ import annotations

import pytest

from drillrank.errors import DrillrankWarning
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import LlamaIndex, both_frameworks

VIEWS = ("raw", "keywords", "summary")
RERANKERS = ["UPRRerank", "BRMGRRerank", "PromptRankRerank"]


def section_views(host, heading, *views, **fields):
    records = host.sections(("book", BOOK), **fields)
    by_view = {
        record.metadata["drillrank_view"]: record
        for record in records
        if record.metadata["drillrank_section_path"].endswith(heading)
    }
    return [by_view[view] for view in views]


def view_of(found):
    return found.metadata["drillrank_view"], found.metadata["drillrank_section_path"]


@both_frameworks
@pytest.mark.parametrize("name", RERANKERS)
def test_the_views_of_a_section_are_one_candidate_its_raw_record(host, name):
    candidates = [
        *section_views(host, "Rhine", "keywords", "summary", "raw"),
        *section_views(host, "Thames", "summary", "keywords"),
        host.record("A note about Basel.", "note"),
    ]
    reranker = getattr(host.ext, name)(top_n=None)
    found = host.both(reranker, QUESTION, *candidates)
    sections = {view_of(one) for one in found if one.id != "note"}
    assert sections == {("raw", "Rivers > The Rhine"), ("summary", "Rivers > The Thames")}
    assert len(found) == 3


@both_frameworks
def test_the_score_is_that_of_the_raw_text(host):
    views = section_views(host, "Rhine", "summary", "keywords", "raw")
    other = host.record("A river is long.", "other")
    [alone, merged] = (
        host.rerank(host.ext.UPRRerank(prior=None, top_n=9), QUESTION, *candidates, other)
        for candidates in (views[-1:], views)
    )
    assert [(one.id, one.score) for one in merged] == [(one.id, one.score) for one in alone]


@both_frameworks
def test_the_best_place_of_a_view_is_that_of_the_section(host):
    views = section_views(host, "Rhine", "summary", "raw")
    other = host.hit(host.record("Basel is a town.", "other"), 0.5)
    candidates = [host.hit(view, score) for view, score in zip(views, (0.9, 0.1), strict=True)]
    first = host.hit(views[1], 0.9)
    reranker = host.ext.UPRRerank(prior="retrieval", top_n=9)

    def rerank(*hits):
        if host is LlamaIndex:
            found = reranker.postprocess_nodes(list(hits), query_str=QUESTION)
            return [(hit.node.node_id, hit.score) for hit in found]
        found = reranker.compress_documents(list(hits), QUESTION)
        return [(document.id, document.metadata["relevance_score"]) for document in found]

    assert rerank(candidates[0], other, candidates[1]) == rerank(first, other)


@both_frameworks
def test_two_versions_of_a_section_are_two_candidates(host):
    [raw] = section_views(host, "Rhine", "raw")
    later = host.changed(raw, host.text_of(raw).replace("Cologne", "Strasbourg"))
    assert len(host.both(host.ext.UPRRerank(top_n=9), QUESTION, raw, later)) == 2


@both_frameworks
def test_top_n_counts_sections(host):
    candidates = [view for name in ("Rhine", "Thames", "Towns") for view in section_views(host, name, *VIEWS)]
    found = host.both(host.ext.UPRRerank(top_n=3), QUESTION, *candidates)
    assert len({one.metadata["drillrank_section_id"] for one in found}) == 3


@both_frameworks
def test_a_merging_retriever_over_a_plain_one_returns_each_section_once_as_its_raw_record(host):
    source = host.over(host.index(*host.sections(("book", BOOK))), 9)
    assert len({view_of(one)[0] for one in host.retrieve(source, QUESTION)}) == 3
    retriever = host.ext.BRMGRRetriever(source=source, llm=host.llm(["Basel lies on it."]), n_generated=1, top_n=9)
    found = [one for one in host.both(retriever, QUESTION) if "drillrank_view" in one.metadata]
    assert {view_of(one)[0] for one in found} == {"raw"}
    assert len({one.id for one in found}) == len(found) > 1


@both_frameworks
def test_a_section_whose_raw_record_is_deleted_does_not_reach_the_llm(host):
    store = host.index(*host.sections(("book", BOOK)))
    [rhine] = section_views(host, "Rhine", "raw")
    host.delete(store, host.id_of(rhine))
    retriever = host.ext.BRMGRRetriever(source=store, llm=host.llm(["It."]), n_generated=1, top_n=20)
    with pytest.warns(DrillrankWarning, match="no longer in the store"):
        found = host.retrieve(retriever, QUESTION)
    assert not any("The Rhine" in one.metadata.get("drillrank_section_path", "") for one in found)
