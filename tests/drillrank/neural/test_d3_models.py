"""D3 with models of Hugging Face: their summaries in the outline, their tokenizer where it is named."""

from __future__ import annotations

import re

import pytest
import torch

from drillrank import D3, load_language_model
from drillrank.text import token_counter
from drillrank.views import HuggingFaceSummarizer
from tests.drillrank.neural.conftest import FAMILIES

LONG = "The old town of Basel lies on the Rhine, a river of Europe. " * 18
MIDDLING = "Emma is a novel by Jane Austen; who wrote it? " * 8  # the summariser gives it back as it is
PAPER = f"# Towns\n\n{LONG}\n\n# Novels\n\n{MIDDLING}\n\n# Rest\n\nShort."


def asked_of(d3_settings, answer="None", model="unigram"):
    prompts = []

    def llm(prompt):
        prompts.append(prompt)
        return answer

    d3 = D3(llm, model, settings=d3_settings)
    return d3, prompts


@pytest.fixture(scope="module")
def summariser(tmp_path_factory):
    torch.manual_seed(5)
    model, tokenizer = FAMILIES["bart"]()
    for weight in model.parameters():
        weight.data += 0.2 * torch.randn_like(weight)
    model.generation_config.max_new_tokens, model.generation_config.max_length = 12, None
    place = tmp_path_factory.mktemp("summariser")
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return HuggingFaceSummarizer(str(place), dtype="float32", device="cpu")


def test_the_outline_shows_what_the_summariser_writes_and_sentences_of_what_it_gives_back(summariser):
    d3, prompts = asked_of({"summarizer": summariser, "summary_words": 20})
    d3.retrieve("Which river?", [PAPER])
    [written] = summariser([LONG.strip()])
    shown = dict(re.findall(r"^\* Section: (.*)\n(.*)$", prompts[0], re.MULTILINE))
    assert len(written.split()) <= 40
    assert shown["Towns"] == " ".join(written.split())
    assert shown["Novels"] == " ".join(["Emma is a novel by Jane Austen; who wrote it?"] * 2)
    assert shown["Rest"] == "Short."


def test_the_models_own_tokenizer_counts_where_it_is_named(folder):
    lm = load_language_model(f"hf:{folder}", dtype="float32", device="cpu")
    assert token_counter(lm)(LONG) == len(lm.engine.tokenizer(LONG).ids) > 0
    d3, prompts = asked_of({"tokens": lm}, model=lm)
    usage = d3.retrieve("Which river?", [PAPER]).usage
    assert usage.prompt_tokens == lm.count_tokens(prompts[0])
    assert not usage.estimated
