"""The summariser reads all of a long section, and equals plain generation text by text; D3 shows what it writes."""

from __future__ import annotations

import re

import pytest
import torch
import transformers

from drillrank import D3
from drillrank.errors import InvalidInput
from drillrank.structure import parse_document
from drillrank.views import Chunker, HuggingFaceSummarizer
from tests.drillrank.neural.conftest import FAMILIES

SENTENCE = "The old town of Basel lies on the Rhine, a river of Europe. "
LONG = SENTENCE * 18


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(3)
    model, tokenizer = FAMILIES["bart"]()
    for weight in model.parameters():
        weight.data += 0.2 * torch.randn_like(weight)
    place = tmp_path_factory.mktemp("summariser")
    model.generation_config.max_new_tokens = 12
    model.generation_config.max_length = None
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return str(place)


@pytest.fixture(scope="module")
def summarizer(folder):
    return HuggingFaceSummarizer(folder, dtype="float32", device="cpu")


def generated(folder, text):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(text, return_tensors="pt")
    answer = model.generate(input_ids=ids["input_ids"], attention_mask=ids["attention_mask"], do_sample=False)
    return tokenizer.decode(answer[0], skip_special_tokens=True).strip()


def test_short_sections_are_their_own_summary_and_load_nothing():
    summarizer = HuggingFaceSummarizer("no/such-model")
    assert summarizer(["Short.", ""]) == ["Short.", ""]
    with pytest.raises(InvalidInput, match="no/such-model"):
        HuggingFaceSummarizer("/no/such/folder/no/such-model")([LONG])


def test_every_part_of_a_long_section_is_summarised_as_it_would_be_alone(folder, summarizer):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    chunker = Chunker("fixed", 300 - tokenizer.num_special_tokens_to_add(), tokens=tokenizer)
    windows = [chunk.text.strip() for chunk in chunker(parse_document(LONG, "text"))]
    assert len(windows) > 1
    assert all(window.startswith("The old town") for window in windows)
    expected = " ".join(filter(None, (generated(folder, window) for window in windows)))
    assert summarizer(["Short.", LONG]) == ["Short.", expected]
    assert expected


def test_a_sentence_longer_than_the_window_is_cut(summarizer):
    assert isinstance(summarizer(["town " * 900])[0], str)


def test_the_outline_shows_what_the_summariser_writes_and_sentences_of_what_it_gives_back(summarizer):
    middling = "Emma is a novel by Jane Austen; who wrote it? " * 8  # the summariser gives it back as it is
    paper, prompts = f"# Towns\n\n{LONG}\n\n# Novels\n\n{middling}\n\n# Rest\n\nShort.", []
    settings = {"summarizer": summarizer, "summary_words": 20, "unit": "paragraph"}
    D3(lambda prompt: prompts.append(prompt) or "None", settings=settings).retrieve("Which river?", [paper])
    [written] = summarizer([LONG.strip()])
    shown = dict(re.findall(r"^\* Section: (.*)\n(.*)$", prompts[0], re.MULTILINE))
    assert len(written.split()) <= 40
    assert shown["Towns"] == " ".join(written.split())
    assert shown["Novels"] == " ".join(["Emma is a novel by Jane Austen; who wrote it?"] * 2)
    assert shown["Rest"] == "Short."
