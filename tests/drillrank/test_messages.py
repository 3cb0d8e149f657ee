"""Messages quote at most 200 characters of what was given: whole documents would land in a log."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import drillrank
import langchain_ext
import llama_index_ext
from drillrank import BRMGR, D3, UPR, Passage, PathSearch, PromptRank, Relevance, load_language_model, parse_document
from drillrank.corpus import Corpus
from drillrank.errors import DrillrankError
from drillrank.evaluation import compare
from drillrank.likelihood import Request, SumOfExperts, UnigramModel
from drillrank.text import token_counter
from drillrank.views import MultiViewChunker, MultiViewIndex

LONG = "x" * 100_000
PASSAGES = [Passage("The Rhine is a river.", id="rhine")]
HOUSE = [Path(package.__file__).parent for package in (drillrank, langchain_ext, llama_index_ext)]
SPEAKS = {"InvalidInput", "LacksCapability", "UnknownModel", "CorpusError", "ServerFailure", "invalid_input", "warn"}

CALLS = {
    "a specification": lambda: load_language_model(LONG),
    "a directory": lambda: load_language_model(f"unigram:{LONG}"),
    "an option's name": lambda: load_language_model("unigram", **{LONG: 1}),
    "an option": lambda: load_language_model("unigram", mu=LONG),
    "a language": lambda: load_language_model("unigram", language=LONG),
    "a dtype": lambda: load_language_model("hf:model", dtype=LONG),
    "a backend": lambda: load_language_model("ce:model", backend=LONG),
    "an address": lambda: load_language_model(f"http://{LONG}"),
    "an engine": lambda: load_language_model("http://localhost/v1#m", engine=LONG),
    "retries": lambda: load_language_model("http://localhost/v1#m", retries=LONG),
    "a concentration": lambda: load_language_model("m2v:model", kappa=LONG),
    "an expert": lambda: SumOfExperts([LONG]),
    "a weight": lambda: SumOfExperts([UnigramModel()], [LONG]),
    "a request": lambda: UnigramModel().log_likelihood([LONG]),
    "a blank target": lambda: UnigramModel().log_likelihood([Request(("x",), " " * 100_000)]),
    "a temperature": lambda: UnigramModel().log_likelihood([("a", "b")], temperature=LONG),
    "a place to save": lambda: UnigramModel().fit(["a"]).save(f"/{LONG}"),
    "a model": lambda: UPR(LONG),
    "a preset": lambda: UPR(preset=LONG),
    "a prior": lambda: UPR(prior=LONG),
    "a preset of relevance": lambda: Relevance("hf:model", preset=LONG),
    "a guard": lambda: BRMGR(guard=LONG),
    "an ensemble": lambda: PromptRank(ensemble=LONG),
    "settings of a search": lambda: PathSearch(PromptRank(), PASSAGES, settings={LONG: 1}),
    "hops": lambda: PathSearch(PromptRank(), PASSAGES, settings={"hops": LONG}),
    "links": lambda: PathSearch(PromptRank(), PASSAGES, links=[LONG]),
    "a format": lambda: parse_document("text", format=LONG),
    "a model of D3": lambda: D3(model=LONG),
    "settings of D3": lambda: D3(settings={LONG: 1}),
    "strategies of D3": lambda: D3(settings={"paragraphs": LONG}),
    "a chunking": lambda: MultiViewChunker(chunking=LONG),
    "views": lambda: MultiViewChunker(views=[LONG]),
    "weights": lambda: MultiViewIndex(weights={LONG: 1.0}),
    "a corpus": lambda: Corpus(f"/{LONG}"),
    "components": lambda: compare([LONG], PASSAGES, [{"question": "which river?", "gold": ["rhine"]}]),
    "tokens": lambda: token_counter(LONG),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
def test_what_is_given_is_quoted_in_part(what):
    with pytest.raises((DrillrankError, TypeError)) as caught:
        CALLS[what]()
    assert "x" * 201 not in str(caught.value)
    assert " " * 201 not in str(caught.value)
    assert len(str(caught.value)) < 1_500


def quotations(tree: ast.AST):
    """Values that an error or a warning would write out by `!r`, whatever their length."""
    for node in ast.walk(tree):
        named = node.func if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Raise) and getattr(named, "id", getattr(named, "attr", "")) not in SPEAKS:
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.FormattedValue) and part.conversion == ord("r") and part.format_spec is None:
                yield part.value


@pytest.mark.parametrize("folder", HOUSE, ids=lambda folder: folder.name)
def test_every_quotation_ends(folder):
    """At so many characters, or as a slice does."""
    endless = {
        f"{file.relative_to(folder)}: {ast.unparse(value)}"
        for file in folder.rglob("*.py")
        for value in quotations(ast.parse(file.read_text(encoding="utf-8")))
        if not isinstance(value, ast.Subscript)
    }
    assert endless == set()
