from __future__ import annotations

import numpy as np
from llama_index.core.schema import NodeWithScore, TextNode

from drillrank import Passage, Path
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.prompts import prompt_text
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.settings import PromptRankSettings
from llama_index_ext import PromptRankRerank

SHOTS = (Demonstration(Path((Passage("It lies on the Rhine.", title="Basel"),)), "Where is Basel?", "bridge"),)
SETTINGS = PromptRankSettings(("{path} Ask. Question:",), "mean", 1.4)


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
    given = PromptRankRerank(demonstrations=SHOTS, **SETTINGS.to_dict())
    again = PromptRankRerank.from_json(given.to_json())
    assert again.demonstrations == SHOTS
    assert (again.instructions, again.ensemble, again.temperature) == (SETTINGS.instructions, "mean", 1.4)


def test_they_reach_the_language_model():
    model = WordModel()
    reranker = PromptRankRerank(model, demonstrations=SHOTS, **SETTINGS.to_dict())
    reranker.postprocess_nodes([NodeWithScore(node=TextNode(text="a red fox"))], query_str="what colour")
    [request] = model.requests
    assert prompt_text(request.prompt) == (
        "Document: Basel It lies on the Rhine. Ask. Question: Where is Basel? Document: a red fox Ask. Question:"
    )
    assert model.temperatures == [1.4]
