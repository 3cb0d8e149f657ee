from __future__ import annotations

import numpy as np
import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel, NextTokens
from drillrank.prompts import Evidence
from llama_index_ext import MonoT5Rerank


class Undecided(LanguageModel):
    """Gives "true" a tenth and "false" three tenths, and keeps the requests."""

    spec = "undecided"
    tells_next_tokens = True

    def _log_likelihood(self, requests, temperature, include_eos):
        raise AssertionError("the next token is asked for")

    def _next_tokens(self, requests, logits):
        assert not logits
        self.requests = requests
        chances = {" true": 0.1, " false": 0.3}
        return [NextTokens(np.log([chances[answer] for answer in request.answers])) for request in requests]


def test_the_model_reads_the_node_as_asked_within_its_limit():
    model = Undecided()
    node = NodeWithScore(node=TextNode(text="Basel lies on the Rhine.", metadata={"page": 3}))
    for mode, text in ((MetadataMode.EMBED, "page: 3\n\nBasel lies on the Rhine."), (MetadataMode.NONE, node.text)):
        MonoT5Rerank(model, settings={"metadata_mode": mode}, max_passage_tokens=7).postprocess_nodes(
            [node], query_str="Where?"
        )
        assert [request.prompt for request in model.requests] == [
            ("Query: ", "Where?", " Document: ", Evidence(text, 7), " Relevant:")
        ]


@pytest.mark.parametrize(
    ("score", "expected"), [("log_likelihood", np.log(0.25)), ("probability", 0.25), ("softmax", 0.5)]
)
def test_score_scales(score, expected):
    nodes = [NodeWithScore(node=TextNode(text=text), score=9.0) for text in "ab"]
    reranked = MonoT5Rerank(Undecided(), score=score).postprocess_nodes(nodes, query_str="Where?")
    assert [node.score for node in reranked] == pytest.approx([expected] * 2)


def test_a_model_that_reads_no_instructions_is_refused_at_construction():
    with pytest.raises(InvalidInput, match="'unigram' does not read: give a neural model"):
        MonoT5Rerank("unigram")
    with pytest.raises(InvalidInput, match="give a neural model"):
        MonoT5Rerank.from_dict({"model": "unigram", "top_n": 2})


def test_the_model_must_be_named():
    with pytest.raises(InvalidInput, match="needs model: A neural model"):
        MonoT5Rerank(top_n=3)
