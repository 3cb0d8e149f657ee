from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.documents import Document

from drillrank import UPR
from drillrank.errors import InvalidInput
from langchain_ext import LikelihoodCrossEncoder
from tests.examples import examples

QUERY = "Which river flows through Basel?"
texts = st.sampled_from(["Basel lies on the Rhine, a river.", "Emma is a novel.", "", "The river flows through Basel."])
queries = st.sampled_from([QUERY, "Who wrote Emma?"])


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(queries, texts), max_size=8))
def test_pairs_are_scored_in_order_as_upr_scores_the_candidates_of_each_query(pairs):
    scores = LikelihoodCrossEncoder().score(pairs)
    assert len(scores) == len(pairs)
    assert all(type(score) is float for score in scores)
    for query in {query for query, _ in pairs}:
        mine = [i for i, pair in enumerate(pairs) if pair[0] == query]
        ranking = UPR().rank(query, [pairs[i][1] for i in mine])
        for item in ranking:
            assert scores[mine[item.details["position"]]] == pytest.approx(item.score)


def test_in_the_host_s_reranker():
    reranker = CrossEncoderReranker(model=LikelihoodCrossEncoder(), top_n=1)
    documents = [Document(page_content=text) for text in ("Emma is a novel.", "The river flows through Basel.")]
    [best] = reranker.compress_documents(documents, QUERY)
    assert best.page_content == "The river flows through Basel."


def test_pickle_and_bad_input():
    encoder = LikelihoodCrossEncoder(model_options={"mu": 50})
    pairs = [(QUERY, "a river"), (QUERY, "a novel")]
    assert pickle.loads(pickle.dumps(encoder)).score(pairs) == encoder.score(pairs)
    assert encoder.score([]) == []
    with pytest.raises(InvalidInput, match="query"):
        encoder.score([(" ", "text")])
