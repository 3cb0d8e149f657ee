from __future__ import annotations

import numpy as np
import pytest
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from drillrank import Passage, Path
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.multihop.prior import PathPrior
from drillrank.prompts import prompt_text
from drillrank.rerank.demonstrations import Demonstration
from llama_index_ext import PromptRankRerank

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
        again = PromptRankRerank.from_json(given.to_json())
    assert {name: getattr(again.settings, name) for name in SETTINGS} == SETTINGS


def test_they_reach_the_language_model():
    model = WordModel()
    reranker = PromptRankRerank(model, settings=SETTINGS)
    reranker.postprocess_nodes([NodeWithScore(node=TextNode(text="a red fox"))], query_str="what colour")
    [request] = model.requests
    assert prompt_text(request.prompt) == (
        "Document: Basel It lies on the Rhine. Ask. Question: Where is Basel? Document: a red fox Ask. Question:"
    )
    assert model.temperatures == [1.4]


QUESTION = "In which port did the director of The Silent Pier grow up?"
FILM = TextNode(text="The Silent Pier was directed by Ada Holm.", id_="film", metadata={"links": ["holm", "nowhere"]})
HOLM = TextNode(text="She grew up in the port of Esbjerg.", id_="holm", metadata={"title": "Ada Holm"})
WHALE = TextNode(text="Whales sing.", id_="whale")


class Shelf(BaseRetriever):
    """Always the same nodes."""

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=node, score=0.5) for node in (WHALE, HOLM)]


def rerank(reranker, *nodes):
    return reranker.postprocess_nodes([NodeWithScore(node=node, score=0.5) for node in nodes], query_str=QUESTION)


def test_linked_nodes_are_fetched_from_a_docstore():
    docstore = SimpleDocumentStore()
    docstore.add_documents([FILM, HOLM, WHALE])
    found = rerank(PromptRankRerank(store=docstore, settings={"keep_retrieval_score": True}), FILM, WHALE)
    assert sorted(item.node.node_id for item in found) == ["film", "holm", "whale"]
    assert {item.node.node_id: item.node.metadata["retrieval_score"] for item in found}["holm"] is None
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert len(rerank(PromptRankRerank(store=docstore, top_n=1), FILM, WHALE)) == 1
    assert sorted(item.node.node_id for item in rerank(PromptRankRerank(), FILM, WHALE)) == ["film", "whale"]


def test_a_retriever_brings_what_no_link_names():
    film = TextNode(text="The Silent Pier was directed by somebody.", id_="film")
    found = rerank(PromptRankRerank(source=Shelf(), links=()), film)
    assert sorted(item.node.node_id for item in found) == ["film", "holm", "whale"]


async def test_expansion_is_the_same_asynchronously():
    docstore = SimpleDocumentStore()
    docstore.add_documents([HOLM])
    reranker = PromptRankRerank(store=docstore, source=Shelf())
    nodes = [NodeWithScore(node=FILM)]
    expected = [(item.node.node_id, item.score) for item in reranker.postprocess_nodes(nodes, query_str=QUESTION)]
    found = await reranker.apostprocess_nodes(nodes, query_str=QUESTION)
    assert [(item.node.node_id, item.score) for item in found] == expected


def test_stores_and_retrievers_are_no_part_of_the_configuration():
    given = PromptRankRerank(store=SimpleDocumentStore(), source=Shelf(), links=("titles", "relationships"))
    assert not {"store", "source"} & set(given.to_dict())
    again = PromptRankRerank.from_json(given.to_json())
    assert (again.links, again.store, again.source) == (("titles", "relationships"), None, None)


@pytest.mark.parametrize("links", [("title",), ("retrieval",), "titles"])
def test_unknown_links_are_refused(links):
    with pytest.raises(InvalidInput, match="links"):
        PromptRankRerank(links=links)


def test_settings_of_the_search_survive_json_and_reach_it():
    search = {"hops": 3, "beam": 2, "branch": 1, "pairs": 0, "link_prior": PathPrior(jump=0.1), "cascade": 7}
    budgets = {"demonstrations_per_prompt": 1, "max_document_tokens": 5, "max_prompt_tokens": 40}
    given = PromptRankRerank(settings={**search, **budgets})
    again = PromptRankRerank.from_json(given.to_json())
    assert {name: getattr(again.settings, name) for name in (*search, *budgets)} == {**search, **budgets}
    model = WordModel()
    long = "one two three four five six seven"
    rerank(PromptRankRerank(model, settings={**search, **budgets}), TextNode(text=long))
    assert {request.max_tokens for request in model.requests} == {40}
    assert {part.max_tokens for request in model.requests for part in request.prompt if not isinstance(part, str)} == {
        5
    }
