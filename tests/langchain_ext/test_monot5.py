from __future__ import annotations

import numpy as np
import pytest
from langchain_core.documents import Document
from pydantic import ValidationError

from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel, NextTokens
from drillrank.prompts import Evidence
from langchain_ext import MonoT5Rerank


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


def test_the_model_reads_title_and_metadata_as_asked_within_its_limit():
    model = Undecided()
    document = Document(page_content="Basel lies on the Rhine.", metadata={"title": "Basel", "page": 3})
    for fields, text in (
        ({}, "Basel Basel lies on the Rhine."),
        ({"title_key": "none"}, "Basel lies on the Rhine."),
        ({"title_key": "none", "metadata_fields": ("page",)}, "page: 3\nBasel lies on the Rhine."),
    ):
        MonoT5Rerank(model, max_passage_tokens=7, settings=fields).compress_documents([document], "Where?")
        assert [request.prompt for request in model.requests] == [
            ("Query: ", "Where?", " Document: ", Evidence(text, 7), " Relevant:")
        ]


@pytest.mark.parametrize(
    ("score", "expected"), [("log_likelihood", np.log(0.25)), ("probability", 0.25), ("softmax", 0.5)]
)
def test_score_scales(score, expected):
    documents = [Document(page_content=text) for text in "ab"]
    reranked = MonoT5Rerank(Undecided(), score=score).compress_documents(documents, "Where?")
    assert [document.metadata["relevance_score"] for document in reranked] == pytest.approx([expected] * 2)


def test_a_model_that_reads_no_instructions_is_refused_at_construction():
    with pytest.raises(InvalidInput, match="'unigram' does not read: give a neural model"):
        MonoT5Rerank("unigram")
    with pytest.raises(ValidationError, match="give a neural model"):
        MonoT5Rerank.model_validate({"model": "unigram"})


def test_the_model_must_be_named():
    with pytest.raises(InvalidInput, match="needs model: A neural model"):
        MonoT5Rerank(top_n=3)
