"""Every field of every component of both hosts: assigned it takes effect or is refused, misspelt it is refused."""

from __future__ import annotations

import inspect
import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Document as LlamaDocument
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel, PrivateAttr

import langchain_ext
import llama_index_ext
from drillrank.components import component as row_of
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.rerank.upr import UPR_PROMPT
from tests.conformance.readers import Reading

TEXTS = ["# A\n\nBasel lies on the Rhine.", "# B\n\nA cat.\n\n# C\n\nThe Rhine."]
QUERY = "What lies on the Rhine?"
HOSTS = {"langchain_ext": langchain_ext, "llama_index_ext": llama_index_ext}
COMPONENTS = [(host, name) for host in HOSTS for name in HOSTS[host].__all__]


def neural(name):
    return "neural model" in row_of(name).needs


def build(host, name, **fields):
    cls = getattr(HOSTS[host], name)
    if neural(name):
        fields = {"model": Reading()} | fields
    if host == "langchain_ext":
        documents = [Document(page_content=text, id=str(i)) for i, text in enumerate(TEXTS)]
        llm = FakeListChatModel(responses=["An answer."])
        if name == "D3Retriever":
            fields = {"documents": documents} | fields
        if name in ("BRMGRRetriever", "PromptRankRetriever", "SelfAskChain"):
            fields = {"source": langchain_ext.D3Retriever(documents)} | fields
        if name == "MultiViewRetriever":
            fields = {"documents": langchain_ext.MultiViewTextSplitter().split_documents(documents)} | fields
        if name in ("BRMGRRetriever", "SelfAskChain"):
            fields = {"llm": llm} | fields
        return cls(**fields)
    nodes = [LlamaDocument(text=text, id_=str(i)) for i, text in enumerate(TEXTS)]
    inner = llama_index_ext.D3Retriever(nodes)
    if name in ("BRMGRRetriever", "SelfAskQueryEngine"):
        return cls(inner, MockLLM(), **fields)
    if name == "PromptRankRetriever":
        return cls(**{"source": inner} | fields)
    made = {"D3Retriever": nodes, "MultiViewRetriever": llama_index_ext.MultiViewNodeParser()(nodes)}
    return cls(**({"documents": made[name]} if name in made else {}) | fields)


def names_of(component):
    """The fields, whatever kind of class it is."""
    if isinstance(component, BaseModel):
        return list(type(component).model_fields)
    return [
        parameter.name
        for parameter in inspect.signature(type(component).__init__).parameters.values()
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    ]


for_each = pytest.mark.parametrize(("host", "name"), COMPONENTS)


@for_each
def test_every_misspelt_field_is_refused_with_a_hint(host, name):
    for field in names_of(build(host, name)):
        wrong = f"did you mean '{field}'|unexpected keyword argument '{field}q'"  # of LlamaIndex's retrievers, Python's
        with pytest.raises((InvalidInput, TypeError), match=wrong):
            build(host, name, **{f"{field}q": 1})


@for_each
def test_validating_a_dump_works_or_is_refused(host, name):
    component = build(host, name)
    if isinstance(component, BaseModel):
        dumped = component.model_dump()
        try:
            restored = type(component).model_validate(dumped)
        except ValueError:
            assert "source" in dumped or neural(name)
        else:
            assert restored.model_dump() == dumped


class Longest(LanguageModel):
    """Prefers long prompts: behaves like no other model."""

    spec = "longest"

    def _log_likelihood(self, requests, temperature, include_eos):
        likelihoods = UnigramModel().log_likelihood([("", request.target) for request in requests])
        for request, likelihood in zip(requests, likelihoods, strict=True):
            likelihood.matched = True
            likelihood.total = -1000 / sum(len(getattr(part, "text", part)) for part in request.prompt)
        return likelihoods


@pytest.mark.parametrize("host", HOSTS)
def test_an_assigned_model_ranks(host):
    texts = ["Basel on the Rhine.", "A long text about chess, cats and much else."]
    reranker = build(host, "UPRRerank")

    def first(component):
        if host == "langchain_ext":
            return component.compress_documents([Document(page_content=text) for text in texts], QUERY)[0].page_content
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in texts]
        return component.postprocess_nodes(nodes, query_str=QUERY)[0].node.text

    assert first(reranker) == texts[0]
    copied = reranker.model_copy(update={"model": Longest()})
    assert [first(reranker), first(copied)] == texts
    reranker.model = Longest()
    assert first(reranker) == texts[1]
    reranker.template = UPR_PROMPT.replace("Please", "Do")
    reranker.model = "unigram"
    with pytest.warns(DrillrankWarning, match="template does nothing with 'unigram'"):
        assert first(reranker) == texts[0]
    reranker.template, reranker.model_options, reranker.top_n = UPR_PROMPT, {"mu": 7.0}, 1
    assert first(reranker) == texts[0]
    assert reranker.language_model.options == {"mu": 7.0}


RERANKERS = [(host, name) for host, name in COMPONENTS if name.endswith("Rerank") and name != "RelevanceRerank"]
WRONG = {"top_n": 0, "score": "cosine", "prior": "unknown", "template": "no place", "guard": 7, "links": ("n",)}


def ask(reranker):
    """A ranking in either host."""
    if hasattr(reranker, "compress_documents"):
        return reranker.compress_documents([Document(page_content=text) for text in TEXTS], QUERY)
    return reranker.postprocess_nodes([NodeWithScore(node=TextNode(text=text)) for text in TEXTS], query_str=QUERY)


@pytest.mark.parametrize(("host", "name"), RERANKERS)
def test_a_wrong_field_is_refused_when_a_reranker_is_built_and_an_assigned_one_with_the_next_question(host, name):
    reranker = build(host, name)
    for field, wrong in WRONG.items():
        if field in names_of(reranker):
            with pytest.raises(InvalidInput, match=f"{field}|passage template|Links"):
                build(host, name, **{field: wrong})
            before = getattr(reranker, field)
            setattr(reranker, field, wrong)
            with pytest.raises(InvalidInput):
                ask(reranker)
            setattr(reranker, field, before)
            assert ask(reranker)


@pytest.mark.parametrize(("host", "name"), RERANKERS)
def test_a_reranker_equals_itself_alone_and_keeps_what_a_subclass_holds(host, name):
    one, other = build(host, name), build(host, name)
    assert (one == other, one == one, len({one, other, one})) == (False, True, 2)

    class Mine(type(one)):
        _asked: int = PrivateAttr(0)

        def __init__(self, label, **fields):
            super().__init__(**fields)
            self._label = label

        def _rank(self, *given):
            self._asked += 1
            return super()._rank(*given)

    mine = Mine("x", **({"model": Reading()} if neural(name) else {}))
    mine.top_n = 1
    assert len(ask(mine)) == 1
    assert (mine._label, mine._asked) == ("x", name != "PromptRankRerank" or host == "llama_index_ext")


@pytest.mark.parametrize("host", HOSTS)
def test_a_threshold_that_no_likelihood_reaches_is_said(host):
    with pytest.warns(DrillrankWarning, match='score_threshold=0.5.*score="probability"'):
        assert ask(build(host, "UPRRerank", settings={"score_threshold": 0.5})) == []


def test_assigned_fields_of_langchain_retrievers_take_effect():
    retriever = build("langchain_ext", "D3Retriever")
    assert len(retriever.invoke(QUERY, top_n=3)) == 3
    retriever.top_n = 1
    assert len(retriever.invoke(QUERY)) == 1
    retriever.documents = [Document(page_content="Another text.")]
    assert [found.page_content for found in retriever.invoke(QUERY)] == ["Another text."]


@for_each
def test_pickling_still_works(host, name):
    if not (host == "llama_index_ext" and name == "SelfAskQueryEngine"):
        assert type(pickle.loads(pickle.dumps(build(host, name)))).__name__ == name
