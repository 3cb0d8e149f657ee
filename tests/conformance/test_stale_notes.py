"""What an earlier search noted of its cost and its problems is not taken for what a later one says."""

from __future__ import annotations

from tests.conformance.frameworks import both_frameworks

QUERY = "Which town lies on the Rhine?"
STALE = {
    "drillrank_problems": "sections: no answer",
    "drillrank_prompt_tokens": 90,
    "drillrank_completion_tokens": 9,
    "drillrank_llm_calls": 2,
    "drillrank_tokens_estimated": True,
}
KEPT = {"drillrank_matched_views": "raw:1", "problems": "the user's own", "page": 3}


@both_frameworks
def test_notes_of_a_search_before_go_and_all_else_stays(host):
    earlier = host.record("Basel is a town on the Rhine.", "basel", **STALE, **KEPT)
    for found in (
        host.rerank(host.ext.UPRRerank(), QUERY, earlier),
        host.retrieve(host.ext.PromptRankRetriever(source=host.retriever(earlier)), QUERY),
    ):
        assert not STALE.keys() & found[0].metadata.keys()
        assert KEPT.items() <= found[0].metadata.items()
