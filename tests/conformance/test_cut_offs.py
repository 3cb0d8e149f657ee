"""A cut-off on scores keeps the candidates that answer, in both frameworks: by shares among the candidates."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine

import langchain_ext
import llama_index_ext
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

TEXTS = ["Basel lies on the Rhine.", "Emma is a novel by Jane Austen.", "Foxes hunt at night.", "Owls hoot at night."]
QUERY = "Who wrote the novel Emma?"


def texts_of(host, fields):
    reranker = host.ext.UPRRerank(top_n=None, **fields)
    return [one.text for one in host.both(reranker, QUERY, *map(host.record, TEXTS))]


@both_frameworks
@pytest.mark.parametrize("score", ["log_likelihood", "probability", "softmax"])
def test_min_share_keeps_the_answer_on_every_scale(host, score):
    assert texts_of(host, {"score": score, "settings": {"min_share": 0.1}}) == [TEXTS[1]]


@both_frameworks
def test_min_share_is_a_minimum_of_the_softmax_scores(host):
    reranker = host.ext.UPRRerank(top_n=None, score="softmax")
    shares = [one.score for one in host.rerank(reranker, QUERY, *map(host.record, TEXTS))]
    assert sum(shares) == pytest.approx(1.0)
    assert len(texts_of(host, {"settings": {"min_share": shares[0]}})) == 1
    assert len(texts_of(host, {"settings": {"min_share": shares[-1]}})) == 4


@both_frameworks
@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank"])
def test_every_reranker_takes_min_share(host, name):
    def kept(**fields):
        return len(host.rerank(getattr(host.ext, name)(top_n=None, **fields), QUERY, *map(host.record, TEXTS)))

    assert kept() == 4
    assert kept(settings={"min_share": 0.5}) == 1


def test_a_similarity_postprocessor_behind_softmax_scores_keeps_the_answer():
    retriever = LlamaIndex.retriever(*map(LlamaIndex.record, TEXTS))
    steps = [llama_index_ext.UPRRerank(score="softmax"), SimilarityPostprocessor(similarity_cutoff=0.1)]
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=steps)
    assert [hit.text for hit in engine.query(QUERY).source_nodes] == [TEXTS[1]]


def test_a_filter_on_softmax_scores_keeps_the_answer_in_a_langchain_chain():
    retriever = LangChain.retriever(*map(LangChain.record, TEXTS))
    reranker = langchain_ext.UPRRerank(score="softmax").as_runnable(retriever)
    chain = reranker | RunnableLambda(lambda found: [one for one in found if one.metadata["relevance_score"] >= 0.1])
    assert [document.page_content for document in chain.invoke(QUERY)] == [TEXTS[1]]
