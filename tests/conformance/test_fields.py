"""Every field of every component of both hosts: assigned it takes effect or is refused, misspelt it is refused."""

from __future__ import annotations

import inspect
import pickle

import pytest
from pydantic import BaseModel, PrivateAttr

from drillrank.components import component as row_of
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.rerank.upr import UPR_PROMPT
from tests.conformance.frameworks import COMPONENTS, LangChain, LlamaIndex, both_frameworks
from tests.conformance.readers import Reading

TEXTS = ["# A\n\nBasel lies on the Rhine.", "# B\n\nA cat.\n\n# C\n\nThe Rhine."]
QUERY = "What lies on the Rhine?"


def neural(name):
    return "neural model" in row_of(name).needs


def made(host, name, **fields):
    fields = ({"model": Reading()} if neural(name) else {}) | fields
    return host.made(name, [host.document(text, str(i)) for i, text in enumerate(TEXTS)], **fields)


def ranked(host, reranker, texts=TEXTS):
    return [one.text for one in host.rerank(reranker, QUERY, *map(host.record, texts))]


def names_of(component):
    """The fields, whatever kind of class it is."""
    if isinstance(component, BaseModel):
        return list(type(component).model_fields)
    parameters = inspect.signature(type(component).__init__).parameters.values()
    return [one.name for one in parameters if one.name != "self" and one.kind is not one.VAR_KEYWORD]


@pytest.mark.parametrize(("host", "name"), COMPONENTS)
def test_a_misspelt_field_is_refused_with_a_hint_and_a_dump_and_a_pickle_work_or_are_refused(host, name):
    component = made(host, name)
    for field in names_of(component):
        wrong = f"did you mean '{field}'|unexpected keyword argument '{field}q'"  # of LlamaIndex's retrievers, Python's
        with pytest.raises((InvalidInput, TypeError), match=wrong):
            made(host, name, **{f"{field}q": 1})
    if isinstance(component, BaseModel):
        dumped = component.model_dump()
        try:
            restored = type(component).model_validate(dumped)
        except ValueError:
            assert "source" in dumped or neural(name)
        else:
            assert restored.model_dump() == dumped
    if name != "SelfAskQueryEngine":  # its model of the suites is no class that can be made again
        assert type(pickle.loads(pickle.dumps(component))).__name__ == name


class Longest(LanguageModel):
    """Prefers long prompts: behaves like no other model."""

    spec = "longest"

    def _log_likelihood(self, requests, temperature, include_eos):
        likelihoods = UnigramModel().log_likelihood([("", request.target) for request in requests])
        for request, likelihood in zip(requests, likelihoods, strict=True):
            likelihood.matched = True
            likelihood.total = -1000 / sum(len(getattr(part, "text", part)) for part in request.prompt)
        return likelihoods


@both_frameworks
def test_an_assigned_model_ranks(host):
    texts = ["Basel on the Rhine.", "A long text about chess, cats and much else."]
    reranker = made(host, "UPRRerank")

    def first(component):
        return ranked(host, component, texts)[0]

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
    with pytest.warns(DrillrankWarning, match='score_threshold=0.5.*"min_share"'):
        assert ranked(host, made(host, "UPRRerank", settings={"score_threshold": 0.5})) == []


WRONG = {"top_n": 0, "score": "cosine", "prior": "unknown", "template": "no place", "guard": 7, "links": ("n",)}


@both_frameworks
@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank", "MonoT5Rerank"])
def test_a_reranker_refuses_wrong_fields_equals_itself_alone_and_keeps_what_a_subclass_holds(host, name):
    """A wrong field is refused when it is built, and an assigned one with the next question."""
    reranker, other = made(host, name), made(host, name)
    for field, wrong in WRONG.items():
        if field in names_of(reranker):
            with pytest.raises(InvalidInput, match=f"{field}|passage template|links"):
                made(host, name, **{field: wrong})
            before = getattr(reranker, field)
            setattr(reranker, field, wrong)
            with pytest.raises(InvalidInput):
                ranked(host, reranker)
            setattr(reranker, field, before)
            assert ranked(host, reranker)
    assert (reranker == other, reranker == reranker, len({reranker, other})) == (False, True, 2)

    class Mine(type(reranker)):
        _asked: int = PrivateAttr(0)

        def __init__(self, label, **fields):
            super().__init__(**fields)
            self._label = label

        def _rank(self, *given):
            self._asked += 1
            return super()._rank(*given)

    mine = Mine("x", **({"model": Reading()} if neural(name) else {}))
    mine.top_n = 1
    assert len(ranked(host, mine)) == 1
    assert (mine._label, mine._asked) == ("x", name != "PromptRankRerank" or host is LlamaIndex)


def test_assigned_fields_of_langchain_retrievers_take_effect():
    retriever = made(LangChain, "D3Retriever")
    assert len(retriever.invoke(QUERY, top_n=3)) == 3
    retriever.top_n = 1
    assert len(retriever.invoke(QUERY)) == 1
    retriever.documents = [LangChain.document("Another text.")]
    assert [found.page_content for found in retriever.invoke(QUERY)] == ["Another text."]
