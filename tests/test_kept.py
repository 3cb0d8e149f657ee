"""What a model said is kept: the second run asks no model, and prints what the first one did."""

from __future__ import annotations

import importlib
import shutil

import pytest

from benchmarks import kept
from drillrank import UPR, Passage, Relevance
from drillrank.likelihood import HuggingFaceModel
from tests.drillrank.neural.conftest import smallest

PASSAGES = [Passage("A red fox crossed the river.", title="Foxes"), Passage("Whales sing at night.")]
QUESTION = "Which fox crossed the river?"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.setenv("DRILLRANK_MODELS", str(tmp_path))
    monkeypatch.setenv("DRILLRANK_KEPT", str(tmp_path / "kept"))
    importlib.reload(kept)
    yield smallest(tmp_path / "tiny")
    monkeypatch.undo()
    importlib.reload(kept)


def said():
    """Of likelihoods, next tokens, cuts and written texts."""
    model = kept.KeptModel("tiny")
    relevance = Relevance(model, preset="yes-no", settings={"positive": "y", "negative": "n", "chat": False})
    writer = kept.KeptWriter("tiny", 4)
    cut = model.first_tokens(QUESTION * 20, 7)
    model.save()
    return (
        [found.total for found in UPR(model).likelihoods(QUESTION, PASSAGES)],
        [item.score for item in relevance.rank(QUESTION, PASSAGES)],
        cut,
        writer.together([lambda text=text: writer(text) for text in ("a fox", "a whale and a river")]),
    )


def test_the_second_run_needs_no_model_and_says_the_same(tiny):
    totals, scores, cut, texts = said()
    own = HuggingFaceModel(str(tiny), dtype="float32")
    likelihoods = UPR(own).likelihoods(QUESTION, PASSAGES)
    assert totals == pytest.approx([found.total for found in likelihoods], abs=1e-4)
    assert cut == own.first_tokens(QUESTION * 20, 7)
    assert all(texts)
    shutil.rmtree(tiny)
    importlib.reload(kept)
    again = said()
    assert again[0] == pytest.approx(totals, abs=1e-4)
    assert again[1:] == (pytest.approx(scores, abs=1e-6), cut, texts)
    with pytest.raises(kept.InvalidInput, match="is not there"):
        UPR(kept.KeptModel("tiny")).likelihoods("Another?", PASSAGES)


def test_texts_are_those_of_transformers_though_prompts_share_what_is_read(tiny):
    import torch
    import transformers

    prompts = ["the fox", "the fox crossed the river", "the fox crossed the river and sang", "a whale"]
    writer = kept.KeptWriter("tiny", 6)
    texts = writer.together([lambda text=text: writer(text) for text in prompts])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny).eval()
    for prompt, text in zip(prompts, texts, strict=True):
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        end = model.generation_config.eos_token_id
        written = model.generate(ids, max_new_tokens=6, do_sample=False, repetition_penalty=1.2, pad_token_id=end or 0)
        assert text == tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)


def test_a_kept_reader_returns_what_it_read_without_the_model(tiny, monkeypatch):
    prompts = [("Text: a fox. ", QUESTION, " yes or no?"), ("Text: a whale. ", QUESTION, " yes or no?")]
    rows = {"calls": 0}

    def read(_tokenizer, _model, before, _question, _after):
        rows["calls"] += 1
        return [float(len(before)), -2.0, 9.0]

    monkeypatch.setattr(kept, "_read", read)
    first = kept.KeptReader("tiny").read(prompts)
    assert first[:, 0].tolist() == [13.0, 15.0]
    shutil.rmtree(tiny)
    assert kept.KeptReader("tiny").read(prompts[::-1]).tolist() == first[::-1].tolist()
    assert rows["calls"] == 2
