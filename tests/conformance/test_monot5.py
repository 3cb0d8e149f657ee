"""MonoT5 as a reranker of both hosts."""

from __future__ import annotations

import numpy as np
import pytest
from llama_index.core.schema import MetadataMode

from drillrank.likelihood import LanguageModel, NextTokens
from drillrank.prompts import TruncatableText
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks


class Undecided(LanguageModel):
    """Gives "true" a tenth and "false" three tenths, and keeps the requests."""

    spec = "undecided"
    tells_next_tokens = True

    def log_likelihood_batch(self, requests, temperature, include_eos):
        raise AssertionError("the next token is asked for")

    def next_tokens_batch(self, requests, logits):
        assert not logits
        self.requests = requests
        chances = {" true": 0.1, " false": 0.3}
        return [NextTokens(np.log([chances[answer] for answer in request.answers])) for request in requests]


@pytest.mark.parametrize(
    ("host", "settings", "text"),
    [
        (LlamaIndex, {"metadata_mode": MetadataMode.EMBED}, "title: Basel\npage: 3\n\nBasel lies on the Rhine."),
        (LlamaIndex, {"metadata_mode": MetadataMode.NONE}, "Basel lies on the Rhine."),
        (LangChain, {}, "Basel Basel lies on the Rhine."),
        (LangChain, {"title_key": "none"}, "Basel lies on the Rhine."),
        (LangChain, {"title_key": "none", "metadata_fields": ("page",)}, "page: 3\nBasel lies on the Rhine."),
    ],
)
def test_the_model_reads_the_record_as_asked_within_its_limit(host, settings, text):
    model = Undecided()
    record = host.record("Basel lies on the Rhine.", title="Basel", page=3)
    host.rerank(host.ext.MonoT5Rerank(model, max_passage_tokens=7, settings=settings), "Where?", record)
    assert [request.prompt for request in model.requests] == [
        ("Query: ", "Where?", " Document: ", TruncatableText(text, 7), " Relevant:")
    ]


@both_frameworks
@pytest.mark.parametrize(
    ("score", "expected"), [("log_likelihood", np.log(0.25)), ("probability", 0.25), ("softmax", 0.5)]
)
def test_score_scales(host, score, expected):
    found = host.rerank(host.ext.MonoT5Rerank(Undecided(), score=score), "Where?", host.record("a"), host.record("b"))
    assert [one.score for one in found] == pytest.approx([expected] * 2)


@both_frameworks
def test_a_dump_with_a_model_that_reads_no_instructions_is_refused(host):
    with pytest.raises(ValueError, match="Use a neural"):
        host.ext.MonoT5Rerank.model_validate({"model": "unigram", "top_n": 2})
