"""Path search as a reranker of both hosts: settings, links beyond what is given, configuration."""

from __future__ import annotations

import numpy as np
import pytest

from drillrank import Passage, Path
from drillrank.errors import DrillrankWarning
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.multihop.prior import PathPrior
from drillrank.prompts import prompt_text
from drillrank.rerank.demonstrations import Demonstration
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

SHOTS = (Demonstration(Path((Passage("It lies on the Rhine.", title="Basel"),)), "Where is Basel?", "bridge"),)
SETTINGS = {
    "demonstrations": SHOTS,
    "instructions": ("{path} Ask. Question:",),
    "ensemble": "mean",
    "temperature": 1.4,
}
QUESTION = "In which port did the director of The Silent Pier grow up?"


class WordModel(LanguageModel):
    """Words are its tokens; it remembers what it was asked."""

    def __init__(self):
        self.requests, self.temperatures = [], []

    @property
    def spec(self):
        return "words"

    def first_tokens(self, text, count):
        return " ".join(text.split(" ")[:count])

    def log_likelihood_batch(self, requests, temperature, include_eos):
        self.requests += requests
        self.temperatures.append(temperature)
        return [Likelihood(["word"], np.array([-1.0]), -1.0) for _ in requests]


def film(host):
    return host.record("The Silent Pier was directed by Ada Holm.", id="film", links=["holm", "nowhere"])


def holm(host):
    return host.record("She grew up in the port of Esbjerg.", id="holm", title="Ada Holm")


def whale(host):
    return host.record("Whales sing.", id="whale")


@both_frameworks
def test_settings_and_demonstrations_survive_json(host):
    with pytest.warns(DrillrankWarning, match="(instructions|demonstrations) has no effect"):
        given = host.ext.PromptRankRerank(settings=SETTINGS)
    with pytest.warns(DrillrankWarning, match="(instructions|demonstrations) has no effect"):
        again = host.again(given)
    assert {name: getattr(again.settings, name) for name in SETTINGS} == SETTINGS


@both_frameworks
def test_they_reach_the_language_model(host):
    model = WordModel()
    host.rerank(host.ext.PromptRankRerank(model, settings=SETTINGS), "what colour", host.record("a red fox"))
    [request] = model.requests
    assert prompt_text(request.prompt) == (
        "Document: Basel It lies on the Rhine. Ask. Question: Where is Basel? Document: a red fox Ask. Question:"
    )
    assert model.temperatures == [1.4]


@both_frameworks
def test_linked_records_are_fetched_from_a_docstore(host):
    store = host.store(film(host), holm(host), whale(host))
    given = film(host), whale(host)
    found = host.rerank(host.ext.PromptRankRerank(store=store), QUESTION, *given)
    assert sorted(one.id for one in found) == ["film", "holm", "whale"]
    assert {one.id: one.text for one in found}["holm"] == "She grew up in the port of Esbjerg."
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len(host.rerank(host.ext.PromptRankRerank(store=store, top_n=1), QUESTION, *given)) == 1
    assert sorted(one.id for one in host.rerank(host.ext.PromptRankRerank(), QUESTION, *given)) == ["film", "whale"]


def test_what_was_not_retrieved_has_no_retrieval_score():
    reranker = LlamaIndex.ext.PromptRankRerank(
        store=LlamaIndex.store(holm(LlamaIndex)), settings={"keep_retrieval_score": True}
    )
    found = LlamaIndex.rerank(reranker, QUESTION, film(LlamaIndex))
    assert {one.id: one.metadata["retrieval_score"] for one in found} == {"film": 0.5, "holm": None}


@both_frameworks
def test_a_retriever_brings_what_no_link_names(host):
    reranker = host.ext.PromptRankRerank(source=host.retriever(whale(host), holm(host)), links=())
    found = host.rerank(reranker, QUESTION, host.record("The Silent Pier was directed by somebody.", id="film"))
    assert sorted(one.id for one in found) == ["film", "holm", "whale"]


@both_frameworks
async def test_expansion_is_the_same_asynchronously(host):
    source = host.retriever(whale(host), holm(host))
    reranker = host.ext.PromptRankRerank(store=host.store(holm(host)), source=source)
    expected = host.rerank(reranker, QUESTION, film(host))
    assert await host.arerank(reranker, QUESTION, film(host)) == expected


def test_a_given_document_without_an_id_is_not_fetched_once_more():
    nameless = [made(LangChain).model_copy(update={"id": None}) for made in (film, holm)]
    reranker = LangChain.ext.PromptRankRerank(source=LangChain.retriever(*nameless))
    assert len(LangChain.rerank(reranker, QUESTION, *nameless)) == 2


@both_frameworks
def test_stores_and_retrievers_are_no_part_of_the_configuration(host):
    links = ("titles", "relationships") if host is LlamaIndex else ("titles",)
    given = host.ext.PromptRankRerank(store=host.store(), source=host.retriever(), links=links)
    again = host.again(given)
    assert (again.links, again.store, again.source) == (links, None, None)


@both_frameworks
def test_settings_of_the_search_survive_json_and_reach_it(host):
    search = {"hops": 3, "beam": 2, "branch": 1, "pairs": 0, "link_prior": PathPrior(jump=0.1)}
    budgets = {"demonstrations_per_prompt": 1, "max_document_tokens": 5, "max_prompt_tokens": 40}
    again = host.again(host.ext.PromptRankRerank(settings={**search, **budgets}))
    assert {name: getattr(again.settings, name) for name in (*search, *budgets)} == {**search, **budgets}
    model = WordModel()
    reranker = host.ext.PromptRankRerank(model, settings={**search, **budgets})
    host.rerank(reranker, QUESTION, host.record("one two three four five six seven"))
    assert {request.max_tokens for request in model.requests} == {40}
    cut = {part.max_tokens for request in model.requests for part in request.prompt if not isinstance(part, str)}
    assert cut == {5}
