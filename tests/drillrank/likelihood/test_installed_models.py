"""Kinds of models that installed packages add by entry points of the group `drillrank.models`."""

from __future__ import annotations

import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from drillrank import UPR, load_language_model
from drillrank.errors import InvalidInput, UnknownModel

MODULE = """
    import numpy as np

    from drillrank.likelihood import LanguageModel, Likelihood


    class LengthModel(LanguageModel):
        def __init__(self, name, *, base=2.0):
            self.name, self.base = name, base

        @property
        def spec(self):
            return f"length:{self.name}"

        def log_likelihood_batch(self, requests, temperature, include_eos):
            results = []
            for request in requests:
                n_characters = sum(len(getattr(part, "text", part)) for part in request.prompt)
                tokens = request.target.split()
                log_probs = np.full(len(tokens), -n_characters / self.base)
                results.append(Likelihood(tokens, log_probs, float(log_probs.sum())))
            return results


    def not_a_model(name):
        return name

    constant = 7
"""


@pytest.fixture(autouse=True)
def packages(tmp_path, monkeypatch):
    """Put a folder of packages on the path for one test."""
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for module in ("length_models", "other_models"):
        sys.modules.pop(module, None)


def install(folder: Path, distribution: str, entries: str, module: str = "length_models", code: str = MODULE) -> None:
    """Write what a wheel leaves in a folder of packages: a module, and its metadata with the entry points."""
    (folder / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    metadata = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[drillrank.models]\n{entries}\n", encoding="utf-8")


def test_a_kind_of_an_installed_package_is_used_by_its_specification(tmp_path):
    install(tmp_path, "length-models", "length = length_models:LengthModel")
    ranking = UPR(load_language_model("length:short", base=4)).rank("Which town?", ["A long text.", "Basel"])
    assert [item.passage.text for item in ranking] == ["Basel", "A long text."]
    assert UPR("length:short").language_model.spec == "length:short"
    both = load_language_model("unigram+2*length:a+b", base=8)
    assert both.spec == "unigram+2*length:a+b"
    assert [getattr(expert, "base", None) for expert in both.experts] == [None, 8]


def test_a_kind_appears_in_the_list_of_known_kinds(tmp_path):
    install(tmp_path, "length-models", "length = length_models:LengthModel")
    with pytest.raises(UnknownModel, match=r'"length:<\.\.\.>"'):
        load_language_model("bert")
    with pytest.raises(UnknownModel, match=r"^'lengths:x' is not a language model"):
        load_language_model("lengths:x")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (
            "length = no_such_module:Model",
            "cannot be loaded from no_such_module:Model of length-models",
        ),
        ("length = length_models:Missing", "cannot be loaded from length_models:Missing of length-models"),
        ("length = length_models:constant", "must be a function, got 7"),
        (
            "length = length_models:not_a_model",
            "must be a LanguageModel, but .*:not_a_model of length-models returned",
        ),
    ],
)
def test_a_broken_entry_point_is_a_clear_error(tmp_path, entries, says):
    install(tmp_path, "length-models", entries)
    with pytest.raises(InvalidInput, match=says):
        load_language_model("length:x")
    assert load_language_model("unigram+unigram").spec == "unigram+unigram"


def test_two_packages_with_one_kind_are_an_error_that_names_both(tmp_path):
    install(tmp_path, "length-models", "length = length_models:LengthModel")
    install(tmp_path, "other-models", "length = other_models:LengthModel", "other_models")
    with pytest.raises(InvalidInput, match=r"^Several installed packages add models of kind 'length'") as error:
        load_language_model("length:x")
    assert "length-models" in str(error.value)
    assert "other-models" in str(error.value)


def test_no_package_replaces_a_built_in_kind(tmp_path):
    pytest.importorskip("transformers")
    install(tmp_path, "length-models", "unigram = length_models:LengthModel\nhf = length_models:LengthModel")
    assert type(load_language_model("unigram")).__name__ == "UnigramModel"
    assert type(load_language_model("hf:x")).__name__ == "HuggingFaceModel"


def test_installed_packages_are_not_read_for_built_in_kinds(monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", None)
    assert load_language_model("unigram+unigram").spec == "unigram+unigram"
