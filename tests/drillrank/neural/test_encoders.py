"""Words and meaning: the unigram model with sentence encoders of three kinds, tiny ones that are built here."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from drillrank import load_language_model
from drillrank.errors import InvalidInput
from drillrank.likelihood import EmbeddingModel, Request, UnigramModel
from drillrank.prompts import TruncatableText
from tests.drillrank.neural.tiny_encoder import saved_encoder

model2vec = pytest.importorskip("model2vec")
sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = [
    "The physician treats patients in the hospital. She works at night.",
    "The Rhine flows through Basel. It is a river of Europe.",
    "Emma is a novel by Jane Austen. It was printed in 1815.",
    "Zürich has a lake. The lake is cold.",
]
QUESTION = "Which river flows through the town?"
VOCABULARY = ["[UNK]", "river", "Rhine", "doctor", "physician", "novel", "the", "a"]
VECTORS = np.array([[0, 0, 0], [1, 0, 0.1], [0.9, 0.1, 0], [0, 1, 0], [0.1, 1, 0], [0, 0, 1], [0.1] * 3, [0.1] * 3])


def static_table(place):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    model2vec.StaticModel(VECTORS.astype(np.float32), tokenizer, normalize=True).save_pretrained(place)
    return str(place)


def mean_vectors(texts):
    """Of the words that the table knows."""
    words = [["[UNK]", *(word for word in text.replace("?", " ").replace(".", " ").split())] for text in texts]
    rows = [[VECTORS[VOCABULARY.index(word)] for word in own if word in VOCABULARY] for own in words]
    return np.array([np.sum(own, axis=0) for own in rows])


class Function:
    """An encoder that the user brings, with a way of its own for questions."""

    def __call__(self, texts):
        return mean_vectors(texts) + np.array([0, 0, 0.5])

    def questions(self, texts):
        return mean_vectors(texts) + np.array([0, 0.5, 0])


class Kind:
    """How a kind is loaded, and its vectors of questions and of texts in float64."""

    def __init__(self, name, place):
        self.name, self.usual = name, 10.0 if name == "m2v" else 20.0
        self.questions = self.documents = mean_vectors
        if name == "st":
            self.spec = f"st:{saved_encoder(place, TEXTS)}"
            library = sentence_transformers.SentenceTransformer(self.spec[3:], device="cpu").double()
            self.questions, self.documents = library.encode_query, library.encode_document
        elif name == "m2v":
            self.spec = f"m2v:{static_table(place)}"
        else:
            self.questions, self.documents = Function().questions, Function()

    def __call__(self, **options):
        if self.name == "function":
            return EmbeddingModel(Function(), **options)
        return load_language_model(self.spec, **({"device": "cpu"} if self.name == "st" else {}), **options)

    def cosine(self, question, text):
        one, other = self.questions([question])[0], self.documents([text])[0]
        lengths = np.linalg.norm(one) * np.linalg.norm(other)
        return float(one @ other / lengths) if text.strip() and lengths else 0.0


@pytest.fixture(scope="module", params=["st", "m2v", "function"])
def kind(request, tmp_path_factory):
    return Kind(request.param, tmp_path_factory.mktemp(request.param))


def paths(texts, target=QUESTION):
    """Single documents, and all neighbouring pairs."""
    single = [Request(("Document: ", TruncatableText(text)), target) for text in texts]
    return [
        *single,
        *(Request((TruncatableText(one), " and ", TruncatableText(two)), target) for one, two in pairwise(texts)),
    ]


def totals(model, requests=None):
    return [likelihood.total for likelihood in model.log_likelihood(requests or paths(TEXTS))]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("kappa", [None, 3.0])
@pytest.mark.parametrize("fitted", [False, True])
def test_the_formula(kind, kappa, temperature, fitted):
    model, words = kind(**({} if kappa is None else {"kappa": kappa})), UnigramModel()
    model, words = (model.fit(TEXTS), words.fit(TEXTS)) if fitted else (model, words)
    requests = paths([*TEXTS, ""])
    found = model.log_likelihood(requests, temperature=temperature)
    for request, likelihood, word in zip(
        requests, found, words.log_likelihood(requests, temperature=temperature), strict=True
    ):
        texts = [part.text for part in request.prompt if isinstance(part, TruncatableText)]
        chances = [np.exp((kappa or kind.usual) / temperature * (kind.cosine(QUESTION, text) - 1)) for text in texts]
        assert likelihood.total == pytest.approx(word.total + np.log(np.mean(chances)), abs=1e-4)
        assert likelihood.total == pytest.approx(likelihood.log_probs.sum(), abs=1e-9)
        assert likelihood.tokens == [*word.tokens, "<meaning>"]
        assert len(likelihood.tokens) == len(likelihood.log_probs)
        assert (likelihood.log_probs <= 1e-9).all()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.sampled_from(TEXTS) | st.text(max_size=30), min_size=1, max_size=6), cut=st.integers(1, 6))
def test_a_text_has_the_same_score_alone_as_among_others(kind, texts, cut):
    model, texts = kind().fit(TEXTS), [text.encode("utf-8", "replace").decode() for text in texts]
    together = totals(model, [Request((TruncatableText(text, max_tokens=cut),), QUESTION) for text in texts])
    for text, total in zip(texts, together, strict=True):
        assert totals(model, [Request((TruncatableText(text, max_tokens=cut),), QUESTION)]) == pytest.approx(
            [total], abs=1e-4
        )
    alone = [model.log_likelihood([(text, QUESTION)])[0].log_probs for text in texts]
    assert model.document_log_probs(QUESTION, texts) == pytest.approx(np.stack(alone), abs=1e-5)


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_keep_fit_and_scores_and_a_specification_builds_an_equal_model(kind, twin_of, tmp_path):
    model = kind(kappa=7.0).fit(TEXTS)
    twin = twin_of(model)
    assert not twin.wants_fit
    assert totals(twin) == totals(model)
    with pytest.raises(InvalidInput, match=r"pass the model itself|is not a language model"):
        load_language_model(model.spec, **model.options)
    if kind.name != "function":
        fresh = kind(kappa=5, mu=50, language="german", directory=tmp_path)
        again = load_language_model(fresh.spec, **fresh.options)
        assert (again.spec, again.options, again.kappa) == (kind.spec, fresh.options, 5.0)
        of_words = {"kappa": 5, "mu": 50.0, "language": "german", "directory": str(tmp_path), "show_progress": False}
        of_encoder = {"device": "cpu", "batch_size": 32, "revision": None, "trust_remote_code": False}
        assert again.options == of_words | (of_encoder if kind.name == "st" else {})


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return saved_encoder(tmp_path_factory.mktemp("encoder"), TEXTS)


def test_no_progress_is_shown(encoder, capfd):
    model = load_language_model(f"st:{encoder}", device="cpu")
    totals(model)
    capfd.readouterr()
    totals(model.fit(["Another text.", "And one."]), [Request((TruncatableText("Yet another."),), QUESTION)])
    assert capfd.readouterr() == ("", "")


def test_kappa_is_fitted_to_texts(encoder):
    letters = "bcdfghjklm"
    words = [f"{letters[i % 10]}a{letters[i // 10]}o{letters[(3 * i) % 10]}e" for i in range(40)]
    model = load_language_model(f"st:{encoder}", device="cpu", kappa="fit")
    assert (model.kappa, model.options["kappa"]) == (20.0, "fit")
    assert model.fit([f"The {word} is old. The {word} was printed." for word in words]).kappa != 20.0


@pytest.mark.parametrize(
    "options", [{"kappa": 0}, {"kappa": -1.0}, {"kappa": "auto"}, {"kappa": float("nan")}, {"mu": 0}, {"nope": 1}]
)
@pytest.mark.parametrize("spec", ["st", "m2v"])
def test_bad_options(spec, options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        load_language_model(f"{spec}:x", **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("{folder}/nothing", {}, "does not exist. Name a directory"),
        ("", {}, "after the colon"),
        ("x", {"include_eos": True}, "include_eos"),
    ],
)
@pytest.mark.parametrize("spec", ["st", "m2v"])
def test_an_encoder_that_cannot_be_used_is_refused(spec, name, options, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        load_language_model(f"{spec}:{name.format(folder=tmp_path)}").log_likelihood([("a", "b")], **options)


def test_a_table_is_an_expert_of_a_sum_and_loads_no_torch(tmp_path):
    place = static_table(tmp_path)
    model = load_language_model(f"unigram+0.5*m2v:{place}", mu=50)
    pairs = [(text, QUESTION) for text in TEXTS]
    parts = [load_language_model(one, mu=50).log_likelihood(pairs) for one in ("unigram", f"m2v:{place}")]
    expected = [one.mean + 0.5 * other.mean for one, other in zip(*parts, strict=True)]
    assert [item.mean for item in model.log_likelihood(pairs)] == pytest.approx(expected)
    code = (
        f"import sys\nfrom drillrank import UPR\nUPR('m2v:{place}').rank('river', ['a stream'])\n"
        "assert 'model2vec' in sys.modules\nassert not {'torch', 'transformers', 'scipy'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
