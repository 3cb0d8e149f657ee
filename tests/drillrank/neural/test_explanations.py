"""Explanations of neural models add up to the scores: transformers, sentence encoders, servers."""

from __future__ import annotations

import numpy as np
import pytest

from drillrank import D3, UPR, Passage, Path, PathSearch, PromptRank, Relevance, load_language_model
from drillrank.explanation.terms import NOTHING, ODDS, PATH
from drillrank.likelihood.encoder import MEANING
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.rerank.explaining import ROUNDING
from tests.drillrank.neural.conftest import loaded, saved
from tests.drillrank.neural.fake_server import FakeServer
from tests.drillrank.neural.tiny_encoder import saved_encoder

QUESTION = "Which river flows through the town?"
PASSAGES = [
    Passage("The Rhine flows through Basel. It is a river.", id="rhine", title="Rhine", links=("basel",)),
    Passage("Basel is an old town. Emma was never there.", id="basel", title="Basel"),
    Passage("Emma is a novel by Jane Austen.", id="emma"),
    Passage("A lake is cold.", id="lake", links=("rhine",)),
]
MANUAL = "# Towns\n\nBasel is an old town.\n\nIt lies on a river.\n\n# Novels\n\nEmma is a novel.\n\nIt was printed."
LOCAL = [("hf", "t5-untied"), ("hf", "gpt2")]
FAMILIES = ["t5-untied", "gpt2", "qwen2"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {family: saved(family, tmp_path_factory) for family in FAMILIES}


@pytest.fixture(scope="module")
def server(folders):
    started = FakeServer("vllm", folders["qwen2"])
    yield started
    started.stop()


def through(server):
    return load_language_model(server.address, tokenizer=str(server.folder), retries=1, timeout=20.0)


@pytest.fixture(scope="module", params=[*LOCAL, ("st", ""), ("served", "qwen2")], ids="-".join)
def model(request, folders, server, tmp_path_factory):
    kind, family = request.param
    if kind == "st":
        pytest.importorskip("sentence_transformers")
        place = saved_encoder(tmp_path_factory.mktemp("encoder"), [passage.text for passage in PASSAGES])
        return load_language_model(f"st:{place}", device="cpu")
    return through(server) if kind == "served" else loaded(folders[family])


def exact(model):
    return 1e-4 if model.spec.startswith("http") else 1e-6


def add_up(ranking, model):
    found = ranking.explain()
    assert len(found) == len(ranking) > 0
    assert [item.total for item in found] == pytest.approx([entry.score for entry in ranking], abs=exact(model))
    str(found), found.svg(), found._repr_html_()
    return found


@pytest.mark.parametrize("prior", [None, "retrieval"])
def test_of_upr(model, prior):
    ranker = UPR(model, prior=prior)
    ranking = ranker.rank(QUESTION, PASSAGES, 3)
    found = add_up(ranking, model)
    likelihoods = ranker.likelihoods(QUESTION, [*PASSAGES, ""])
    for item, entry in zip(found, ranking, strict=True):
        own, nothing = likelihoods[entry.details["position"]].log_probs, likelihoods[-1].log_probs
        np.testing.assert_allclose([token.value for token in item.tokens], own - nothing, atol=1e-4)
        np.testing.assert_allclose([term.value for term in item.term(NOTHING).terms], nothing, atol=1e-4)


def test_of_paths_and_of_path_search(model):
    paths = [Path((passage,)) for passage in PASSAGES] + [Path(tuple(PASSAGES[:2]))]
    for ensemble in ("max", "mean"):
        add_up(PromptRank(model, ensemble=ensemble).rank(QUESTION, paths), model)
    search = PathSearch(PromptRank(model), PASSAGES, settings={"hops": 2})
    found = add_up(search.search(QUESTION), model)
    steps = {step.text for item in found for step in item.term(PATH).terms}
    assert steps <= {"start", "link", "name mention", "jump", "and"}
    add_up(search.search_paths(QUESTION), model)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_16_bits_lose_is_a_term_of_its_own(folders, family):
    model = HuggingFaceModel(str(folders[family]), device="cpu", dtype="bfloat16")
    search = PathSearch(PromptRank(model), PASSAGES, settings={"hops": 2})
    for ranking in (
        search.search(QUESTION),
        search.search_paths(QUESTION),
        D3(model=model).retrieve(QUESTION, [MANUAL], 3),
        UPR(model).rank(QUESTION, PASSAGES),
    ):
        for item in add_up(ranking, model):
            assert abs(item.term(ROUNDING).value) < 0.1 * item.per


def test_meaning_is_one_more_token(tmp_path):
    pytest.importorskip("sentence_transformers")
    place = saved_encoder(tmp_path, [passage.text for passage in PASSAGES])
    model = load_language_model(f"st:{place}", device="cpu", kappa=12.0)
    ranking = UPR(model).rank(QUESTION, PASSAGES)
    for item, entry in zip(ranking.explain(), ranking, strict=True):
        *words, meaning = item.tokens
        nothing = item.term(NOTHING).terms[-1]
        assert meaning.name == nothing.name == MEANING
        assert MEANING not in [token.name for token in words]
        assert nothing.value == pytest.approx(-12.0)  # nothing means nothing: its cosine is 0
        assert nothing.value + meaning.value == pytest.approx(entry.details["log_meaning"])


@pytest.mark.parametrize("kind", ["hf", "served"])
@pytest.mark.parametrize("transform", ["softmax", "margin", "logit"])
def test_of_relevance(kind, transform, folders, server):
    if kind == "served" and transform == "logit":
        return  # a server tells no raw logit, which Relevance refuses
    model = through(server) if kind == "served" else loaded(folders["qwen2"])
    asked = {"positive": "e", "negative": "s", "transform": transform, "scale": 0.5, "shift": 0.1, "chat": False}
    ranking = Relevance(model, preset="yes-no", settings=asked).rank(QUESTION, PASSAGES)
    found = add_up(ranking, model)
    for item, entry in zip(found, ranking, strict=True):
        assert item.tokens == ()
        assert "no contributions of its tokens" in item.note
        odds = item.term(ODDS)
        assert odds.value == pytest.approx(entry.details["log_odds"])
        if transform == "logit":
            assert [(term.name, term.text[:5]) for term in odds.terms] == [("e", "logit"), ("shift", "")]
            assert "P = " not in str(item)
            continue
        yes, no = entry.details["positive"], entry.details["negative"]
        assert [term.name for term in odds.terms] == ["e", "s", "shift"]
        assert [term.value for term in odds.terms] == pytest.approx([0.5 * yes, -0.5 * no, 0.1])
        assert f"margin {yes - no:+.3f} nats" in str(item)
