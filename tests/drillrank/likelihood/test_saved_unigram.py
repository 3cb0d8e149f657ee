"""A fitted unigram model survives in a directory."""

from __future__ import annotations

import json
import os
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import Corpus, Passage, load_language_model
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from tests.examples import examples

TEXTS = st.lists(st.sampled_from(["a red fox", "Café des Fées", "the river", "狐 42", "", "foxes' rivers"]), max_size=5)
PAIRS = [("a red fox by the river", "which foxes?"), ("", "Café"), ("42", "a river 42"), ("a red fox", "a red fox")]


def numbers(model, temperature=1.0):
    return [list(item.log_probs) for item in model.log_likelihood(PAIRS, temperature=temperature)]


@settings(max_examples=examples(20))
@given(TEXTS, st.floats(1, 5000), st.sampled_from([1.0, 1.4]))
def test_what_is_loaded_gives_the_same_numbers(tmp_path_factory, texts, mu, temperature):
    model = UnigramModel(mu).fit(texts)
    expected = numbers(model, temperature)
    spec = model.save(tmp_path_factory.mktemp("model"))
    loaded = load_language_model(spec)
    assert not loaded.wants_fit
    assert numbers(loaded, temperature) == [pytest.approx(log_probs, abs=1e-12) for log_probs in expected]
    for copy in (model, loaded, pickle.loads(pickle.dumps(loaded)), load_language_model(loaded.spec, **loaded.options)):
        assert (copy.spec, copy.options) == (spec, {"mu": mu})
        assert numbers(copy, temperature) == [pytest.approx(log_probs, abs=1e-12) for log_probs in expected]


def test_no_text_is_written(tmp_path):
    UnigramModel().fit(["Alan Turing met foxes"]).save(tmp_path)
    content = (tmp_path / "unigram.json").read_text()
    assert json.loads(content)["counts"] == {"alan": 1, "fox": 1, "met": 1, "ture": 1}
    assert os.listdir(tmp_path) == ["unigram.json"]


def test_the_name_follows_the_fit(tmp_path):
    model = UnigramModel()
    assert model.spec == "unigram"
    spec = model.fit(["a fox"]).save(tmp_path)
    assert model.spec == model.fitted(["ignored"]).spec == spec == f"unigram:{tmp_path}"
    model.fit(["another fox"])
    assert model.spec != spec


def test_a_model_keeps_its_language(tmp_path):
    spec = UnigramModel(language="german").fit(["Die Flüsse", "Ein Fluss"]).save(tmp_path)
    loaded = load_language_model(spec)
    assert loaded.language == load_language_model(spec, language="german").language == "german"
    assert loaded.log_likelihood([("Flüsse", "Fluss")])[0].matched
    with pytest.raises(InvalidInput, match="fitted on german, got language='english'"):
        load_language_model(spec, language="english")


def test_statistics_of_a_corpus_stand_for_its_texts():
    corpus, texts = Corpus(language="german"), ["Die Flüsse der Stadt", "Ein Fluss, der fließt"]
    corpus.add(map(Passage, texts))
    model = UnigramModel(language="german").fit(corpus.statistics())
    pairs = [(text, "Welche Flüsse?") for text in texts]
    expected = [item.log_probs for item in UnigramModel(language="german").fit(texts).log_likelihood(pairs)]
    assert [item.log_probs for item in model.log_likelihood(pairs)] == [pytest.approx(of) for of in expected]
