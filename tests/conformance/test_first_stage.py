"""The first stage as prior, in every reranker of both hosts that takes one."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import UPR, Passage
from drillrank.errors import InvalidInput
from tests.conformance.building import build

TEXTS = [f"The {town} bridge crosses the river." for town in ("Basel", "Bonn", "Cologne", "Mainz", "Worms")]
QUERY = "Which bridge crosses the river?"  # which words cannot tell apart
COSINES = [0.31, 0.72, 0.18, 0.55, 0.44]


class LangChain:
    """Documents, with the scores under `score_key` that a retriever may write."""

    def __init__(self, name, **fields):
        self.component = build(getattr(langchain_ext, name), **{"top_n": None} | ALONE.get(name, {}) | fields)

    def found(self, scores, generated=()):
        documents = [
            Document(page_content=text, metadata={} if score is None else {"relevance_score": score})
            for text, score in zip(TEXTS, scores, strict=False)
        ]
        documents += [Document(page_content=text, metadata={"drillrank_origin": "generated"}) for text in generated]
        return [document.page_content for document in self.component.compress_documents(documents, QUERY)]

    def scores(self, scores):
        documents = [Document(page_content=t, metadata={"relevance_score": s}) for t, s in zip(TEXTS, scores, strict=1)]
        ranking = self.component.compress_documents(documents, QUERY)
        return {document.page_content: document.metadata["relevance_score"] for document in ranking}

    def copies(self):
        yield type(self.component)(**self.component.model_dump())
        yield type(self.component).model_validate_json(self.component.model_dump_json())


class LlamaIndex:
    """Nodes with scores, or None."""

    def __init__(self, name, **fields):
        self.component = build(getattr(llama_index_ext, name), **{"top_n": None} | ALONE.get(name, {}) | fields)

    def found(self, scores, generated=()):
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS[: len(scores)]]
        for node, score in zip(nodes, scores, strict=True):
            node.score = score
        written = [TextNode(text=text, metadata={"drillrank_origin": "generated"}) for text in generated]
        nodes += [NodeWithScore(node=node) for node in written]
        return [item.node.text for item in self.component.postprocess_nodes(nodes, query_str=QUERY)]

    def scores(self, scores):
        nodes = [NodeWithScore(node=TextNode(text=t), score=s) for t, s in zip(TEXTS, scores, strict=True)]
        return {item.node.text: item.score for item in self.component.postprocess_nodes(nodes, query_str=QUERY)}

    def copies(self):
        yield type(self.component).from_dict(self.component.to_dict())
        yield type(self.component).from_json(self.component.to_json())


HOSTS = {"langchain": LangChain, "llama_index": LlamaIndex}
for_each_host = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
for_each = pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank"])
ALONE = {"PromptRankRerank": {"pairs": 0}}  # where no passage shares the score of a path that holds a better one
for_each_prior = pytest.mark.parametrize("prior", ["retrieval", "cosine"])


def by(scores):
    return [TEXTS[place] for place in sorted(range(len(scores)), key=lambda place: -scores[place])]


@for_each
@for_each_host
@for_each_prior
def test_the_first_stage_decides_what_words_cannot(host, name, prior):
    assert host(name).found(COSINES) == (TEXTS if name == "PromptRankRerank" else by(COSINES))  # by default
    assert host(name, prior=None).found(COSINES) == TEXTS
    assert host(name, prior=prior).found(COSINES) == by(COSINES)


@for_each_host
@for_each_prior
def test_the_scores_are_those_of_the_core(host, prior):
    texts = [Passage(text) for text in TEXTS]
    core = UPR(prior=prior).rank(QUERY, texts, scores=COSINES)
    assert host("UPRRerank", prior=prior).scores(COSINES) == {item.passage.text: item.score for item in core}


@given(scores=st.permutations([3.0, 7.5, -2.0, 0.25, 100.0]))
@for_each
@for_each_host
def test_any_scale_will_do_for_ranks(host, name, scores):
    assert host(name, prior="retrieval").found(scores) == by(scores)


@for_each
@for_each_host
def test_where_no_score_is_brought_the_order_counts_in_langchain_and_for_paths(host, name):
    for texts in (TEXTS, TEXTS[::-1]):
        component = host(name, prior="retrieval").component
        if host is LangChain:
            found = component.compress_documents([Document(page_content=text) for text in texts], QUERY)
            assert [document.page_content for document in found] == texts
            assert found[0].metadata["relevance_score"] > found[1].metadata["relevance_score"]
        else:
            nodes = [NodeWithScore(node=TextNode(text=text)) for text in texts]
            found = component.postprocess_nodes(nodes, query_str=QUERY)
            assert [item.node.text for item in found] == texts
            assert (found[0].score > found[1].score) == (name == "PromptRankRerank")
    with pytest.raises(InvalidInput, match="needs scores, the cosine"):
        host(name, prior="cosine").found([None] * len(TEXTS))


@for_each
@for_each_host
def test_a_missing_score_counts_as_an_average_one(host, name):
    found = host(name, prior="cosine").found([0.9, None, 0.1, 0.6, 0.2])
    assert found == [TEXTS[place] for place in (0, 3, 1, 4, 2)]


@for_each
@for_each_prior
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@for_each_host
def test_a_bad_score_is_refused_and_its_text_named(host, name, prior, wrong):
    if host is LangChain:  # whose metadata anybody may have stored: it is none
        assert host(name, prior=prior).found([0.5, wrong]) == host(name, prior=prior).found([0.5, None])
        return
    with pytest.raises(InvalidInput, match=r"first stage's score of passage 1 .* give a finite number"):
        host(name, prior=prior).found([0.5, wrong])
    assert len(host(name, prior=None).found([0.5, wrong])) == 2  # nobody reads it


@for_each
@pytest.mark.parametrize("wrong", ["0.5", True, [0.5], {"value": 1}])
def test_metadata_that_is_no_score_counts_as_none(name, wrong):
    found = LangChain(name, prior="retrieval").found
    assert found([0.5, wrong]) == found([0.5, None])
    assert LangChain(name, prior="retrieval", score_key=None).found([0.5, wrong]) == TEXTS[:2]
    assert LangChain(name, prior="retrieval").found([1, np.float32(2)]) == by([1, 2])


@for_each
@for_each_host
def test_what_is_no_cosine_is_refused(host, name):
    with pytest.raises(InvalidInput, match=r'is 17\.5, which is no cosine: give prior="retrieval"'):
        host(name, prior="cosine").found([0.5, 17.5])


@for_each
@for_each_host
def test_an_unknown_prior_is_refused(host, name):
    with pytest.raises(InvalidInput, match="prior"):
        host(name, prior="uniform")


@for_each
@for_each_host
@for_each_prior
def test_the_setting_makes_the_round_trip_and_takes_effect_when_assigned(host, name, prior):
    with_prior, without = host(name, prior=prior), host(name)
    for copy in (
        *with_prior.copies(),
        pickle.loads(pickle.dumps(with_prior.component)),
        with_prior.component.model_copy(deep=True),
        without.component.model_copy(update={"prior": prior}),
    ):
        assert copy.prior == prior
        with_prior.component = copy
        assert with_prior.found(COSINES) == by(COSINES)
    without.component.prior = prior
    assert without.found(COSINES) == by(COSINES)
    without.component.prior = None
    assert without.found(COSINES) == TEXTS


@for_each_host
def test_nothing_found_what_an_llm_wrote(host):
    """The order of generated texts is as without a prior."""
    wrote = ["A bridge crosses the river.", "Whales sing."]
    found = host("BRMGRRerank", prior="retrieval").found(COSINES, wrote)
    assert [text for text in found if text in TEXTS] == by(COSINES)
    plain = host("BRMGRRerank").found(COSINES, wrote)
    assert [text for text in found if text in wrote] == [text for text in plain if text in wrote]


def test_a_generated_document_may_carry_anything():
    documents = [Document(page_content=text) for text in TEXTS]
    documents.insert(
        1, Document(page_content="A bridge.", metadata={"drillrank_origin": "generated", "relevance_score": "high"})
    )
    found = langchain_ext.BRMGRRerank(prior="retrieval", top_n=None).compress_documents(documents, QUERY)
    assert [document.page_content for document in found] == [*["A bridge."], *TEXTS]


def test_retrieval_with_generation_hands_it_on():
    class Found(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text=t), score=s) for t, s in zip(TEXTS, COSINES, strict=True)]

    nodes = llama_index_ext.BRMGRRetriever(Found(), MockLLM(), n_generated=1, prior="cosine", top_n=9).retrieve(QUERY)
    assert [item.node.text for item in nodes if item.node.text in TEXTS] == by(COSINES)
    documents = [Document(page_content=t, metadata={"relevance_score": s}) for t, s in zip(TEXTS, COSINES, strict=True)]
    retriever = langchain_ext.BRMGRRetriever(
        source=RunnableLambda(lambda _: documents),
        llm=FakeListChatModel(responses=["A bridge."]),
        n_generated=1,
        prior="cosine",
        top_n=9,
    )
    found = [document.page_content for document in retriever.invoke(QUERY)]
    assert [text for text in found if text in TEXTS] == by(COSINES)


class FoundInOrder(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(text=text)) for text in TEXTS[::-1]]


def path_retriever(host, **fields):
    if host is LlamaIndex:
        return build(llama_index_ext.PromptRankRetriever, source=FoundInOrder(), settings={"pairs": 0}, **fields)
    documents = [Document(page_content=text) for text in TEXTS[::-1]]
    return build(
        langchain_ext.PromptRankRetriever,
        source=RunnableLambda(lambda _: documents),
        settings={"pairs": 0},
        **fields,
    )


@for_each_host
def test_a_retriever_of_paths_counts_the_order_of_what_it_found(host):
    retriever = path_retriever(host, prior="retrieval")
    found = retriever.retrieve(QUERY) if host is LlamaIndex else retriever.invoke(QUERY)
    assert [getattr(item, "text", None) or item.page_content for item in found] == TEXTS[::-1]
    scores = [item.score if host is LlamaIndex else item.metadata["relevance_score"] for item in found]
    assert scores == sorted(set(scores), reverse=True)


@for_each_host
def test_a_retriever_of_paths_has_no_cosines(host):
    with pytest.raises(InvalidInput, match=r'knows the order .* give prior="retrieval"'):
        path_retriever(host, prior="cosine")
