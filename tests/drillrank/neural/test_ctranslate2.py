"""CTranslate2: conversion, what cannot be loaded or asked, and what quantisation costs."""

from __future__ import annotations

import logging
import shutil
import sys

import numpy as np
import pytest
import transformers

from drillrank import load_language_model
from drillrank.errors import InvalidInput, MissingExtra
from drillrank.likelihood.ct2 import LIMITS
from drillrank.likelihood.local import NotFinite
from tests.drillrank.neural.conftest import loaded, saved

ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")

from drillrank.likelihood.ct2 import convert  # noqa: E402

LONG = "The old town of Basel lies on the Rhine. " * 40


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return saved("gpt2", tmp_path_factory)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return saved("t5-untied", tmp_path_factory)


@pytest.fixture
def converted(gpt2, tmp_path):
    loaded(gpt2, "ct2")
    return shutil.copytree(gpt2.parent / f"{gpt2.name}-ct2", tmp_path / "copy")


def test_a_missing_package_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtra, match=r"drillrank\[ct2\]"):
        load_language_model(f"ct2:{tmp_path}")


@pytest.mark.parametrize("options", [{"compute_type": "int4"}, {"threads": 0}, {"dtype": "float32"}])
def test_bad_options(tmp_path, options):
    with pytest.raises(InvalidInput):
        load_language_model(f"ct2:{tmp_path}", **options)
    with pytest.raises(InvalidInput, match='"ct2:" names no model'):
        load_language_model("ct2:")


def test_a_model_that_was_not_converted_says_how(gpt2, tmp_path):
    for place in (gpt2, tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match="convert"):
            load_language_model(f"ct2:{place}").log_likelihood([("a", "b")])


@pytest.mark.parametrize("broken", ["config.json", LIMITS, "model.bin", "tokenizer.json"])
def test_a_broken_file_or_a_missing_tokenizer_is_named(converted, broken):
    if broken == "tokenizer.json":
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (converted / name).unlink()
    else:
        (converted / broken).write_bytes(b"{")
    with pytest.raises(InvalidInput, match=rf"{broken}|cannot load"):
        load_language_model(f"ct2:{converted}").log_likelihood([("a", "b")])


def test_without_limits_a_prompt_that_is_too_long_asks_for_them(converted):
    (converted / LIMITS).unlink()
    with pytest.raises(InvalidInput, match="max_length"):
        load_language_model(f"ct2:{converted}").log_likelihood([(LONG, "which river?")])
    [cut] = load_language_model(f"ct2:{converted}", max_length=300).log_likelihood([(LONG, "which river?")])
    assert cut.cut_tokens > 0


def test_a_model_that_cannot_be_converted_is_named(tmp_path, t5):
    with pytest.raises(InvalidInput, match="nowhere"):
        convert("./nowhere", str(tmp_path / "out"))
    (tmp_path / "there").mkdir()
    with pytest.raises(InvalidInput, match="there"):
        convert(str(t5), str(tmp_path / "there"))


def test_conversion_keeps_a_t5_that_does_not_scale_its_logits(t5):
    """The converter of CTranslate2 takes every T5 of transformers 5 for one that does."""
    pairs = [("The old town of Basel lies on the Rhine.", "which river?")]
    [one], [other] = (loaded(t5, kind).log_likelihood(pairs) for kind in ("hf", "ct2"))
    with pytest.raises(InvalidInput, match=r"temperature 1, got 1\.4"):  # of an encoder-decoder's whole targets
        loaded(t5, "ct2").log_likelihood(pairs, temperature=1.4)
    np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


def test_weights_that_give_no_numbers_are_named(gpt2, tmp_path):
    model = transformers.AutoModelForCausalLM.from_pretrained(gpt2)
    model.transformer.ln_f.weight.data.fill_(float("nan"))
    model.save_pretrained(tmp_path / "broken")
    transformers.AutoTokenizer.from_pretrained(gpt2).save_pretrained(tmp_path / "broken")
    spec = convert(str(tmp_path / "broken"), str(tmp_path / "out"), quantization="float32")
    with pytest.raises(NotFinite, match="Request 0"):
        load_language_model(spec).log_likelihood([("Basel", "who?")])


def test_on_a_cpu_the_log_recommends_it_for_an_encoder_decoder(t5, gpt2, caplog):
    with caplog.at_level(logging.INFO, "drillrank"):
        load_language_model(f"hf:{gpt2}", device="cpu").engine  # noqa: B018
        assert "CTranslate2" not in caplog.text
        load_language_model(f"hf:{t5}", device="cpu").engine  # noqa: B018
    assert "CTranslate2" in caplog.text
