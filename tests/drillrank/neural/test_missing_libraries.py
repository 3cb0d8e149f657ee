"""Models and encoders whose library is not installed: the error names the extra that installs it."""

from __future__ import annotations

import sys

import pytest

from drillrank import load_language_model
from drillrank.errors import MissingExtra
from drillrank.likelihood.encoders import ENCODERS, load_encoder

CASES = [
    ("sentence_transformers", "st", load_language_model, "ce:some/model"),
    ("fastembed", "fastembed", load_language_model, "ce:fastembed:some/model"),
    ("sentence_transformers", "st", load_language_model, "st:any"),
    ("model2vec", "m2v", load_language_model, "m2v:any"),
    *((encoder.library, encoder.extra, load_encoder, f"{kind}:some/model") for kind, encoder in ENCODERS.items()),
]


@pytest.mark.parametrize(
    ("library", "extra", "load", "spec"), CASES, ids=[f"{load.__name__}-{spec}" for _, _, load, spec in CASES]
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, library, extra, load, spec):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf'pip install "drillrank\[{extra}\]'):
        load(spec)
