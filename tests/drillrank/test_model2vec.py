"""`m2v:`: words and meaning by a table of token vectors, with a tiny table that is built here; no torch."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from drillrank import UPR, Passage, load_language_model
from drillrank.errors import InvalidInput, MissingExtra
from drillrank.likelihood import UnigramModel

model2vec = pytest.importorskip("model2vec")

VOCABULARY = ["[UNK]", "river", "stream", "doctor", "physician", "novel", "the", "a"]
VECTORS = np.array([[0, 0, 0], [1, 0, 0.1], [0.9, 0.1, 0], [0, 1, 0], [0.1, 1, 0], [0, 0, 1], [0.1] * 3, [0.1] * 3])
TEXTS = ["the stream", "a physician", "the novel", "???", ""]


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    place = tmp_path_factory.mktemp("static")
    model2vec.StaticModel(VECTORS.astype(np.float32), tokenizer, normalize=True).save_pretrained(place)
    return str(place)


def mean_vector(text):
    rows = [VECTORS[VOCABULARY.index(word)] for word in text.split() if word in VOCABULARY]
    mean = np.mean(rows, axis=0) if rows else np.zeros(3)
    return mean / max(np.linalg.norm(mean), 1e-9)


@pytest.mark.parametrize("kappa", [None, 3.0])
def test_the_formula(static, kappa):
    model = load_language_model(f"m2v:{static}", **({} if kappa is None else {"kappa": kappa}))
    for question in ("river", "the doctor"):
        pairs = [(text, question) for text in TEXTS]
        words = UnigramModel().log_likelihood(pairs)
        for (text, _), word, found in zip(pairs, words, model.log_likelihood(pairs), strict=True):
            meaning = (kappa or 10.0) * (mean_vector(text) @ mean_vector(question) - 1)
            assert found.tokens == [*word.tokens, "<meaning>"]
            assert found.total == pytest.approx(word.total + meaning, abs=1e-5)


def test_it_finds_what_shares_no_word(static):
    ranking = UPR(f"m2v:{static}").rank("doctor", [Passage(text) for text in TEXTS[:3]])
    assert ranking[0].passage.text == "a physician"


def test_a_specification_pickles_and_eight_threads(static):
    model = load_language_model(f"m2v:{static}", mu=50)
    again = load_language_model(model.spec, **model.options)
    assert (again.spec, again.options) == (f"m2v:{static}", model.options)
    pairs = [(text, "the river") for text in TEXTS]
    expected = [item.total for item in model.fit(TEXTS).log_likelihood(pairs)]
    assert [item.total for item in pickle.loads(pickle.dumps(model)).log_likelihood(pairs)] == expected
    with pytest.raises(InvalidInput, match="pass the model itself"):
        load_language_model(model.spec)
    fresh = load_language_model(f"m2v:{static}", mu=50).fit(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: [item.total for item in fresh.log_likelihood(pairs)], range(32))
        assert all(one == expected for one in found)


def test_torch_is_not_loaded(static):
    code = (
        f"import sys\nfrom drillrank import UPR\nUPR('m2v:{static}').rank('river', ['a stream'])\n"
        "assert 'model2vec' in sys.modules\nassert not {'torch', 'transformers', 'scipy'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_expert_of_a_sum(static):
    spec = f"unigram+0.5*m2v:{static}"
    model = load_language_model(spec, mu=50)
    pairs = [(text, "the river") for text in TEXTS]
    parts = [load_language_model(one, mu=50).log_likelihood(pairs) for one in ("unigram", f"m2v:{static}")]
    expected = [one.mean + 0.5 * other.mean for one, other in zip(*parts, strict=True)]
    assert [item.mean for item in model.log_likelihood(pairs)] == pytest.approx(expected)
    assert model.spec == spec


def test_no_such_encoder(tmp_path):
    with pytest.raises(InvalidInput, match="no encoder that can be loaded"):
        load_language_model(f"m2v:{tmp_path}").log_likelihood([("a", "b")])
    with pytest.raises(InvalidInput, match="after the colon"):
        load_language_model("m2v:")
    with pytest.raises(InvalidInput, match="options of 'm2v:x' are: kappa, mu, language, directory"):
        load_language_model("m2v:x", device="cpu")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtra, match=r"drillrank\[m2v\]"):
        load_language_model("m2v:any")
