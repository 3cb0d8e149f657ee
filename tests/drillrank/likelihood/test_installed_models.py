"""Kinds of models that installed packages add by entry points of the group `drillrank.models`."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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


def install(folder: Path, distribution: str, entries: str, module: str = "length_models", code: str = MODULE) -> None:
    """Write what a wheel leaves in a folder of packages: a module, and its metadata with the entry points."""
    (folder / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    metadata = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[drillrank.models]\n{entries}\n", encoding="utf-8")


def run(folder: Path, code: str) -> str:
    """Run code in a process that has the folder on its path, and return what it prints."""
    prelude = f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom drillrank import UPR, load_language_model\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def error(folder: Path, spec: str) -> str:
    """Return the type and the message of the error with which a specification is refused."""
    return run(
        folder,
        f"""
        try:
            load_language_model({spec!r})
        except Exception as problem:
            print(type(problem).__name__, problem)
        """,
    )


def test_a_kind_of_an_installed_package_is_used_by_its_specification(tmp_path):
    install(tmp_path, "length-models", "length = length_models:LengthModel")
    printed = run(
        tmp_path,
        """
        ranking = UPR(load_language_model("length:short", base=4)).rank("Which town?", ["A long text.", "Basel"])
        print([item.passage.text for item in ranking], UPR("length:short").language_model.spec)
        both = load_language_model("unigram+2*length:a+b", base=8)
        print(both.spec, [getattr(expert, "base", None) for expert in both.experts])
        """,
    )
    assert printed.splitlines() == ["['Basel', 'A long text.'] length:short", "unigram+2*length:a+b [None, 8]"]


def test_a_kind_appears_in_the_list_of_known_kinds(tmp_path):
    install(tmp_path, "length-models", "length = length_models:LengthModel")
    assert '"length:<...>"' in error(tmp_path, "bert")
    assert error(tmp_path, "lengths:x").startswith("UnknownModel 'lengths:x' names no kind")


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
    assert re.search(f"^InvalidInput .*{says}", error(tmp_path, "length:x"))
    assert run(tmp_path, "print(load_language_model('unigram+unigram').spec)") == "unigram+unigram"


def test_two_packages_with_one_kind_are_an_error_that_names_both(tmp_path):
    install(tmp_path, "length-models", "length = length_models:LengthModel")
    install(tmp_path, "other-models", "length = other_models:LengthModel", "other_models")
    message = error(tmp_path, "length:x")
    assert message.startswith("InvalidInput Several installed packages add models of kind 'length'")
    assert "length-models" in message
    assert "other-models" in message


def test_no_package_replaces_a_built_in_kind(tmp_path):
    install(tmp_path, "length-models", "unigram = length_models:LengthModel\nhf = length_models:LengthModel")
    printed = run(tmp_path, "print(type(load_language_model('unigram')).__name__, load_language_model('hf:x').spec)")
    assert printed == "UnigramModel hf:x"


def test_installed_packages_are_not_read_for_built_in_kinds(tmp_path):
    printed = run(
        tmp_path,
        """
        from importlib import metadata
        metadata.entry_points = None
        print(load_language_model("unigram+unigram").spec)
        """,
    )
    assert printed == "unigram+unigram"
