from __future__ import annotations

import json

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryStore

from drillrank import Passage, Path
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.multihop.prior import PathPrior
from drillrank.prompts import prompt_text
from drillrank.rerank.demonstrations import Demonstration
from langchain_ext import PromptRankRerank

SHOTS = (Demonstration(Path((Passage("It lies on the Rhine.", title="Basel"),)), "Where is Basel?", "bridge"),)
SETTINGS = {
    "demonstrations": SHOTS,
    "instructions": ("{path} Ask. Question:",),
    "ensemble": "mean",
    "temperature": 1.4,
}


class WordModel(LanguageModel):
    """Words are its tokens; it remembers what it was asked."""

    def __init__(self):
        self.requests, self.temperatures = [], []

    @property
    def spec(self):
        return "words"

    def first_tokens(self, text, count):
        return " ".join(text.split(" ")[:count])

    def _log_likelihood(self, requests, temperature, include_eos):
        self.requests += requests
        self.temperatures.append(temperature)
        return [Likelihood(["word"], np.array([-1.0]), -1.0) for _ in requests]


def test_settings_and_demonstrations_survive_json():
    with pytest.warns(DrillrankWarning, match="(instructions|demonstrations) does nothing with 'unigram'"):
        given = PromptRankRerank(settings=SETTINGS)
    with pytest.warns(DrillrankWarning, match="(instructions|demonstrations) does nothing with 'unigram'"):
        again = PromptRankRerank(**json.loads(given.model_dump_json()))
    assert {name: getattr(again.settings, name) for name in SETTINGS} == SETTINGS


def test_they_reach_the_language_model():
    model = WordModel()
    reranker = PromptRankRerank(model, settings=SETTINGS)
    reranker.compress_documents([Document(page_content="a red fox")], "what colour")
    [request] = model.requests
    assert prompt_text(request.prompt) == (
        "Document: Basel It lies on the Rhine. Ask. Question: Where is Basel? Document: a red fox Ask. Question:"
    )
    assert model.temperatures == [1.4]


QUESTION = "In which port did the director of The Silent Pier grow up?"
FILM = Document("The Silent Pier was directed by Ada Holm.", id="film", metadata={"links": ["holm", "nowhere"]})
HOLM = Document("She grew up in the port of Esbjerg.", id="holm", metadata={"title": "Ada Holm"})
WHALE = Document("Whales sing.", id="whale")


class Shelf(BaseRetriever):
    """Always the same documents."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [WHALE, HOLM]


def stored(*documents):
    store = InMemoryStore()
    store.mset([(document.id, document) for document in documents])
    return store


def outcome(documents):
    return [(found.id, found.metadata["relevance_score"]) for found in documents]


def test_linked_documents_are_fetched_from_a_docstore():
    reranker = PromptRankRerank(store=stored(FILM, HOLM, WHALE), top_n=None)
    found = reranker.compress_documents([FILM, WHALE], QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm", "whale"]
    assert {document.id: document.page_content for document in found}["holm"] == HOLM.page_content
    assert [score for _, score in outcome(found)] == sorted((score for _, score in outcome(found)), reverse=True)
    without = PromptRankRerank(top_n=None).compress_documents([FILM, WHALE], QUESTION)
    assert sorted(document.id for document in without) == ["film", "whale"]


def test_a_retriever_brings_what_no_link_names():
    reranker = PromptRankRerank(source=Shelf(), links=(), top_n=None)
    found = reranker.compress_documents([Document("The Silent Pier was directed by somebody.", id="film")], QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm", "whale"]


async def test_expansion_is_the_same_asynchronously():
    reranker = PromptRankRerank(store=stored(HOLM), source=Shelf())
    expected = outcome(reranker.compress_documents([FILM], QUESTION))
    assert outcome(await reranker.acompress_documents([FILM], QUESTION)) == expected


def test_a_given_document_without_an_id_is_not_fetched_once_more():
    nameless = [document.model_copy(update={"id": None}) for document in (FILM, HOLM)]

    class Nameless(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return nameless

    found = PromptRankRerank(source=Nameless(), top_n=None).compress_documents(nameless, QUESTION)
    assert len(found) == 2


def test_stores_and_retrievers_are_no_part_of_the_configuration():
    given = PromptRankRerank(store=stored(), source=Shelf(), links=("titles",))
    again = PromptRankRerank(**json.loads(given.model_dump_json()))
    assert (again.links, again.store, again.source) == (("titles",), None, None)


@pytest.mark.parametrize("links", [("title",), ("retrieval",), "titles"])
def test_unknown_links_are_refused(links):
    with pytest.raises(InvalidInput, match="links"):
        PromptRankRerank(links=links)


def test_settings_of_the_search_survive_json_and_reach_it():
    search = {"hops": 3, "beam": 2, "branch": 1, "pairs": 0, "link_prior": PathPrior(jump=0.1), "cascade": 7}
    budgets = {"demonstrations_per_prompt": 1, "max_document_tokens": 5, "max_prompt_tokens": 40}
    given = PromptRankRerank(settings={**search, **budgets})
    again = PromptRankRerank(**json.loads(given.model_dump_json()))
    assert {name: getattr(again.settings, name) for name in (*search, *budgets)} == {**search, **budgets}
    model = WordModel()
    long = "one two three four five six seven"
    PromptRankRerank(model, settings={**search, **budgets}).compress_documents([Document(page_content=long)], QUESTION)
    assert {request.max_tokens for request in model.requests} == {40}
    assert {part.max_tokens for request in model.requests for part in request.prompt if not isinstance(part, str)} == {
        5
    }
