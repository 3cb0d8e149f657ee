"""`explain=True` in every component that ranks, in both hosts: each result says why, and nothing else changes."""

from __future__ import annotations

import json
import pickle
import zlib

import numpy as np
import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler

from drillrank.explanation import Explainable
from drillrank.explanation.explanations import ExplanationRequest, explanation_request
from drillrank.likelihood.base import NextTokens
from llama_index_ext.events import ExplanationEvent
from tests.conformance.frameworks import COMPONENTS, LangChain, LlamaIndex, both_frameworks
from tests.drillrank.conftest import HashModel

QUERY = "What lies on the Rhine?"
TEXTS = ["# A\n\nBasel lies on the Rhine.", "# B\n\nA cat.\n\n# C\n\nThe Rhine.", "# D\n\nA dog.\n\nAnother one."]
RANKING = [one for one in COMPONENTS if one.values[1].endswith(("Rerank", "Retriever"))]
HEARD: list[ExplanationEvent] = []


class Hashing(HashModel):
    """Tells probabilities of the next token, too."""

    tells_next_tokens = True

    def next_tokens_batch(self, requests, logits):
        self.requests += requests
        return [NextTokens(np.array([self.log_prob(one, answer) for answer in one.answers])) for one in requests]

    @staticmethod
    def log_prob(request, answer):
        return -(zlib.crc32(f"{request.prompt}{answer}".encode()) % 999) / 99


class Hearing(BaseEventHandler):
    def handle(self, event, **arguments):
        if isinstance(event, ExplanationEvent):
            HEARD.append(event)


@pytest.fixture(autouse=True)
def hearing():
    HEARD.clear()
    handlers = get_dispatcher().event_handlers
    handler = Hearing()
    handlers.append(handler)
    yield
    handlers.remove(handler)


def asked(host, name, model, asynchronous=False, **fields):
    """What is found."""
    fields |= {} if name == "MultiViewRetriever" else {"model": model}
    if name == "BRMGRRetriever":  # the script is told by the order of the calls, which threads do not keep
        fields |= {"llm": host.llm(["Basel lies there.", "Bern."]), "n_generated": 2, "settings": {"workers": 1}}
    component = host.made(name, [host.document(text, str(n)) for n, text in enumerate(TEXTS)], **fields)
    records = [host.record(text, str(n)) for n, text in enumerate(TEXTS)] if name.endswith("Rerank") else []
    return host.ask(component, QUERY, *records, asynchronous=asynchronous)


def total(entry):
    return sum(term["value"] for term in entry["terms"]) / entry["per"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("host", "name"), RANKING)
def test_each_result_says_why_and_nothing_else_changes(host, name, asynchronous, monkeypatch):
    model = Hashing()
    explained = asked(host, name, model, asynchronous, explain=True)
    events, with_reasons = list(HEARD), len(model.requests)
    HEARD.clear()
    monkeypatch.setattr(Explainable, "explain", lambda self: pytest.fail("nobody asked"))
    model.requests.clear()
    plain = asked(host, name, model, asynchronous)
    assert not HEARD
    assert not any("drillrank_explanation" in one.metadata for one in plain)
    if host is LangChain:
        assert not events
        reasons = [one.metadata.pop("drillrank_explanation") for one in explained]
        assert json.loads(json.dumps(reasons)) == reasons
    else:
        [event] = events
        assert event.query == QUERY
        assert event.node_ids == [one.id for one in explained]
        assert not any("drillrank_explanation" in one.metadata for one in explained)
        reasons = json.loads(event.model_dump_json())["explanations"]
        assert bool(event.tree) == (name == "D3Retriever")
    if name != "BRMGRRetriever":  # whose generated ids differ
        assert explained == plain
    assert plain
    assert [entry["rank"] for entry in reasons] == list(range(1, len(plain) + 1))
    for entry, one in zip(reasons, explained, strict=True):
        assert entry["score"] == pytest.approx(one.score)
        assert total(entry) == pytest.approx(one.score, abs=1e-6)
    known = ["MultiViewRetriever", "MonoT5Rerank", "RelevanceRerank", "BRMGRRerank", "BRMGRRetriever"]
    asks_of_nothing = dict.fromkeys(known, 0) | {"UPRRerank": 1, "D3Retriever": 1 + len(plain)}
    if name in asks_of_nothing:
        assert with_reasons - len(model.requests) == asks_of_nothing[name]


@pytest.mark.parametrize(("host", "name"), [one for one in RANKING if one.values[1].endswith("Rerank")])
@pytest.mark.parametrize("scale", ["probability", "softmax"])
def test_on_another_scale_the_reasons_stay_those_of_the_log_likelihood(host, name, scale):
    found = asked(host, name, Hashing(), explain=True, score=scale, top_n=2)
    plain = asked(host, name, Hashing(), top_n=2)
    reasons = HEARD[0].explanations if HEARD else [one.metadata["drillrank_explanation"] for one in found]
    assert len(reasons) == 2
    assert [total(entry) for entry in reasons] == pytest.approx([one.score for one in plain], abs=1e-6)


@both_frameworks
@pytest.mark.parametrize("name", ["UPRRerank", "PromptRankRerank"])
def test_the_option_survives_configurations_and_pickles(host, name):
    component = getattr(host.ext, name)(explain=True)
    assert host.again(component).explain
    assert pickle.loads(pickle.dumps(component)).explain


PARAGRAPHS = {"unit": "paragraph"}
FILES = {
    "plain": (
        "# A\n\nBasel lies on the Rhine.\n\n# B\n\nA cat.",
        {"file_name": "towns.md", "source": "in/towns.md"},
        "towns.md",
    ),
    "titled": ("# A\n\nThe Rhine.\n\n# B\n\nA dog.", {"title": "Rivers", "file_name": "rivers.md"}, "Rivers"),
    "headed": ("# Lakes\n\nThe Rhine.\n\n## B\n\nAn owl.", {"title": "x", "file_name": "lakes.md"}, "Lakes"),
    "same": ("# A\n\nThe Rhine, too.\n\n# B\n\nA fox.", {"file_name": "other/towns.md"}, "towns.md"),
    "nameless": ("# A\n\nThe Rhine again.\n\n# B\n\nA hen.", {}, "Document 5"),
}


@both_frameworks
@pytest.mark.parametrize("cut", [False, True])
def test_the_tree_names_documents_as_their_readers_do(host, cut):
    """By the heading above everything, the title or the file name; where two are called alike, with a number."""
    documents = [host.document(text, name, **told) for name, (text, told, _) in FILES.items()]
    given = host.split(documents) if cut else documents
    _, heard = host.hear(host.ext.D3Retriever(given, top_n=None, settings=PARAGRAPHS), QUERY)
    assert not [event for event in heard if event.get("tree")]
    _, heard = host.hear(host.ext.D3Retriever(given, top_n=None, settings=PARAGRAPHS, explain=True), QUERY)
    [tree] = [event["tree"] for event in heard if event.get("tree")]
    token = explanation_request.set(comparison := ExplanationRequest(enabled=True))  # as a comparison asks it to
    host.retrieve(host.ext.D3Retriever(given, top_n=None, settings=PARAGRAPHS), QUERY)
    explanation_request.reset(token)
    wanted = [name for *_, name in FILES.values()]
    wanted = [name if wanted.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(wanted, 1)]
    assert [node["name"] for node in tree if node["kind"] == "document"] == wanted
    assert [node.name for node in comparison.tree if node.kind == "document"] == wanted
    sections = {node["name"] for node in tree if node["kind"] == "section"}
    assert sections == {"A", "B"}, "those with evidence"


def test_a_section_with_its_neighbors_is_explained_by_the_section_that_was_found():
    nodes = LlamaIndex.sections(("1", "# A\n\nA cat.\n\n# B\n\nThe Rhine.\n\n# C\n\nA dog."))
    found = LlamaIndex.ext.MultiViewRetriever(nodes, top_n=1, expand="neighbours", explain=True).retrieve("The Rhine?")
    assert len(found) == 1
    assert [entry["name"] for entry in HEARD[0].explanations] == ["B"]
