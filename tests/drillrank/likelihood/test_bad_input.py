"""Specifications, requests, saved models and vectors that language models refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import BRMGR, Corpus, MonoT5, Passage, load_language_model
from drillrank.errors import InvalidInput, LacksCapability, UnknownModel
from drillrank.likelihood import UnigramModel
from drillrank.likelihood.encoder import SentenceVectors
from drillrank.text import ANALYZER
from tests.drillrank.helpers import refuses

SERVER = "http://localhost:1/rerank#m"
PAIRS = [("a", "b")]


def counted_as_german() -> object:
    corpus = Corpus(language="german")
    corpus.add([Passage("Ein Fluss")])
    return UnigramModel().fit(corpus.statistics())


def refitted() -> object:
    """Load a model by the name that it had before it was fitted again."""
    model = UnigramModel().fit(["a fox"])
    return load_language_model(model.spec, **model.options)


test_a_specification_that_is_none_is_refused = refuses(
    *((lambda spec=spec: load_language_model(spec), "unigram") for spec in ("bigram", "", None, 5)), error=UnknownModel
)
test_a_model_that_cannot_be_used_is_refused = refuses(
    (lambda: load_language_model(UnigramModel(), mu=3), "mu"),
    (lambda: load_language_model("unigram", device="cpu"), "mu"),
    (lambda: load_language_model("unigram", mu=-1), "mu"),
    (refitted, r"not saved.*model\.save"),
    (counted_as_german, "counted as german"),
)
test_what_a_model_cannot_compute_is_refused = refuses(
    (lambda: MonoT5(SERVER), "MonoT5"),
    *((lambda spec=spec: BRMGR(spec), 'Set generated_score="question"') for spec in (SERVER, f"unigram+{SERVER}")),
    (lambda: UnigramModel().relevance_batch([]), "does not compute the relevance"),
    error=LacksCapability,
)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        *(([*PAIRS, ("a", blank)], {}, "The target of request 1 must contain text") for blank in ("", " ", "\n\t")),
        *(
            ([*PAIRS, pair], {}, "Request 1 must be")
            for pair in (("a",), ("a", "b", "c"), ("a", None), (1, "b"), None, 5, "text")
        ),
        *((PAIRS, {"temperature": wrong}, "temperature") for wrong in (0, -1.0, math.inf, math.nan)),
        (PAIRS, {"include_eos": True}, "end-of-sequence"),
    ],
)
def test_a_request_that_cannot_be_scored_is_named(pairs, options, message):
    model = UnigramModel()
    with pytest.raises(InvalidInput, match=message):
        model.log_likelihood(pairs, **options)
    with pytest.raises(InvalidInput):
        model.log_likelihood_lists([pairs], **options)


# Files

GOOD = {
    "format": "drillrank unigram", "version": 1, "analyzer": ANALYZER, "language": "english",
    "mu": 300.0, "counts": {"fox": 1},
}  # fmt: skip
OTHER_ANALYZER = f"analyzer {ANALYZER + 1}, but this drillrank reads {ANALYZER}"
NOT_JSON = [b"", b"{", b"\xff\xfe", b"[" * 100_000]
NOT_SAVED = [
    *(b"[]", b"7"),
    *(json.dumps(GOOD | change).encode() for change in (
        {"format": "other"}, {"analyzer": 0}, {"analyzer": None}, {"language": "klingon"}, {"language": None},
        {"version": 2}, {"version": "1"}, {"mu": "300"}, {"mu": -1}, {"mu": True}, {"mu": None},
        {"counts": None}, {"counts": ["fox"]}, {"counts": {"fox": 0}}, {"counts": {"fox": 1.5}},
        {"counts": {"fox": True}}, {"counts": {"fox": "1"}}, {"counts": {"fox": 2**53}}, {"counts": {"fox": 10**400}},
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, r"unigram\.json") for content in NOT_JSON),
        *((content, r"unigram\.json|^mu must be a finite number") for content in NOT_SAVED),
        (json.dumps(GOOD | {"analyzer": ANALYZER + 1}).encode(), OTHER_ANALYZER),
    ],
)
def test_a_file_that_is_not_a_saved_unigram_model_is_refused(tmp_path, content, message):
    (tmp_path / "unigram.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        load_language_model(f"unigram:{tmp_path}")


@given(st.binary(max_size=60))
def test_any_bytes_in_place_of_a_saved_unigram_model_are_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "unigram.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"unigram\.json"):
        load_language_model(f"unigram:{folder}")


def test_a_unigram_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(InvalidInput, match="fit"):
        UnigramModel().save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def with_objects(folder: Path) -> str:
    """Write a file of vectors with Python objects in it; return a part of its name."""
    keys = np.empty(1, dtype=object)
    keys[0] = np.zeros(16, dtype=np.uint8)
    np.savez(folder / "from-elsewhere.vectors.npz", keys=keys, vectors=np.ones((1, 3), dtype=np.float32))
    return "from-elsewhere"


def of_another_encoder(folder: Path) -> str:
    SentenceVectors(lambda texts: [[1.0, 2.0]] * len(texts), folder).index(["one"])
    return "directory of its own"


def broken_off(folder: Path) -> str:
    SentenceVectors(lengths, folder).index(["one"])
    [file] = folder.iterdir()
    file.write_bytes(file.read_bytes()[:40])
    return file.name


@pytest.mark.parametrize("write", [with_objects, of_another_encoder, broken_off])
def test_a_file_of_vectors_that_cannot_be_used_is_refused(tmp_path, write):
    message = write(tmp_path)
    with pytest.raises(InvalidInput, match=message):
        SentenceVectors(lengths, tmp_path).index(["two"])
