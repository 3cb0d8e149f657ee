"""`explain=True` in every component that ranks, in both hosts: each result says why, and nothing else changes."""

from __future__ import annotations

import asyncio
import json
import pickle
import zlib

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Document as LlamaDocument
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel

import langchain_ext
import llama_index_ext
from drillrank.explanation import Explainable
from drillrank.explanation.explanations import Request, request
from drillrank.likelihood.base import NextTokens
from llama_index_ext.events import ExplanationEvent
from tests.drillrank.conftest import HashModel

QUERY = "What lies on the Rhine?"
TEXTS = ["# A\n\nBasel lies on the Rhine.", "# B\n\nA cat.\n\n# C\n\nThe Rhine.", "# D\n\nA dog.\n\nAnother one."]
HOSTS = {"langchain_ext": langchain_ext, "llama_index_ext": llama_index_ext}
NO_RANKING = (
    "SelfAskChain",
    "SelfAskQueryEngine",
    "MultiViewTextSplitter",
    "MultiViewNodeParser",
    "LikelihoodCrossEncoder",
)
COMPONENTS = [(host, name) for host in HOSTS for name in HOSTS[host].__all__ if name not in NO_RANKING]
HEARD: list[ExplanationEvent] = []


class Hashing(HashModel):
    """Tells probabilities of the next token, too."""

    tells_next_tokens = True

    def _next_tokens(self, requests, logits):
        self.requests += requests
        return [NextTokens(np.array([self.log_prob(one, answer) for answer in one.answers])) for one in requests]

    @staticmethod
    def log_prob(request, answer):
        return -(zlib.crc32(f"{request.prompt}{answer}".encode()) % 999) / 99


class Hearing(BaseEventHandler):
    def handle(self, event, **arguments):
        if isinstance(event, ExplanationEvent):
            HEARD.append(event)


@pytest.fixture(autouse=True, scope="module")
def hearing():
    handlers = get_dispatcher().event_handlers
    handler = Hearing()
    handlers.append(handler)
    yield
    handlers.remove(handler)


@pytest.fixture(autouse=True)
def deaf():
    HEARD.clear()


def build(host, name, model, **fields):
    cls, fields = getattr(HOSTS[host], name), dict(fields)
    if name != "MultiViewRetriever":
        fields["model"] = model
    if host == "langchain_ext":
        documents = [Document(text, id=str(n)) for n, text in enumerate(TEXTS)]
        if name == "MultiViewRetriever":
            return cls(documents=langchain_ext.MultiViewTextSplitter().split_documents(documents), **fields)
        if name == "D3Retriever":
            return cls(documents=documents, **fields)
        if name in ("BRMGRRetriever", "PromptRankRetriever"):
            fields["source"] = langchain_ext.D3Retriever(documents=documents, top_n=4)
        if name == "BRMGRRetriever":
            fields |= {"llm": FakeListChatModel(responses=["Basel lies there.", "Bern."]), "n_generated": 2}
        return cls(**fields)
    documents = [LlamaDocument(text=text, id_=str(n)) for n, text in enumerate(TEXTS)]
    inner = llama_index_ext.D3Retriever(documents, top_n=4)
    if name == "MultiViewRetriever":
        return cls(llama_index_ext.MultiViewNodeParser()(documents), **fields)
    if name == "D3Retriever":
        return cls(documents, **fields)
    if name == "BRMGRRetriever":
        return cls(inner, MockLLM(), 2, **fields)
    return cls(source=inner, **fields) if name == "PromptRankRetriever" else cls(**fields)


def asked(host, name, component, asynchronous):
    """Id, score and metadata of each result."""
    if host == "langchain_ext":
        if name.endswith("Rerank"):
            documents = [Document(text, id=str(n)) for n, text in enumerate(TEXTS)]
            found = (
                asyncio.run(component.acompress_documents(documents, QUERY))
                if asynchronous
                else component.compress_documents(documents, QUERY)
            )
        else:
            found = asyncio.run(component.ainvoke(QUERY)) if asynchronous else component.invoke(QUERY)
        return [(one.id, one.metadata["relevance_score"], one.metadata) for one in found]
    if name.endswith("Rerank"):
        nodes = [NodeWithScore(node=TextNode(text=text, id_=str(n))) for n, text in enumerate(TEXTS)]
        found = (
            asyncio.run(component.apostprocess_nodes(nodes, query_str=QUERY))
            if asynchronous
            else component.postprocess_nodes(nodes, query_str=QUERY)
        )
    else:
        found = asyncio.run(component.aretrieve(QUERY)) if asynchronous else component.retrieve(QUERY)
    return [(one.node.node_id, one.score, one.node.metadata) for one in found]


def total(entry):
    return sum(term["value"] for term in entry["terms"]) / entry["per"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("host", "name"), COMPONENTS)
def test_each_result_says_why_and_nothing_else_changes(host, name, asynchronous, monkeypatch):
    model = Hashing()
    explained = asked(host, name, build(host, name, model, explain=True), asynchronous)
    events, with_reasons = list(HEARD), len(model.requests)
    HEARD.clear()
    monkeypatch.setattr(Explainable, "explain", lambda self: pytest.fail("nobody asked"))
    model.requests.clear()
    plain = asked(host, name, build(host, name, model), asynchronous)
    assert not HEARD
    assert not any("drillrank_explanation" in metadata for _, _, metadata in plain)
    if host == "langchain_ext":
        assert not events
        reasons = [metadata.pop("drillrank_explanation") for _, _, metadata in explained]
        assert json.loads(json.dumps(reasons)) == reasons
    else:
        [event] = events
        assert event.query == QUERY
        assert event.node_ids == [id_ for id_, _, _ in explained]
        assert not any("drillrank_explanation" in metadata for _, _, metadata in explained)
        reasons = json.loads(event.model_dump_json())["explanations"]
        assert bool(event.tree) == (name == "D3Retriever")
    if name != "BRMGRRetriever":  # whose generated ids differ
        assert explained == plain
    assert plain
    assert [entry["rank"] for entry in reasons] == list(range(1, len(plain) + 1))
    for entry, (_, score, _) in zip(reasons, explained, strict=True):
        assert entry["score"] == pytest.approx(score)
        assert total(entry) == pytest.approx(score, abs=1e-6)
    known = ["MultiViewRetriever", "MonoT5Rerank", "RelevanceRerank", "BRMGRRerank", "BRMGRRetriever"]
    asks_of_nothing = dict.fromkeys(known, 0) | {"UPRRerank": 1, "D3Retriever": 1 + len(plain)}
    if name in asks_of_nothing:
        assert with_reasons - len(model.requests) == asks_of_nothing[name]


@pytest.mark.parametrize(("host", "name"), [pair for pair in COMPONENTS if pair[1].endswith("Rerank")])
@pytest.mark.parametrize("scale", ["probability", "softmax"])
def test_on_another_scale_the_reasons_stay_those_of_the_log_likelihood(host, name, scale):
    found = asked(host, name, build(host, name, Hashing(), explain=True, score=scale, top_n=2), False)
    plain = asked(host, name, build(host, name, Hashing(), top_n=2), False)
    reasons = HEARD[0].explanations if HEARD else [metadata["drillrank_explanation"] for _, _, metadata in found]
    assert len(reasons) == 2
    assert [total(entry) for entry in reasons] == pytest.approx([score for _, score, _ in plain], abs=1e-6)


@pytest.mark.parametrize(
    ("host", "name"), [pair for pair in COMPONENTS if pair[1] in ("UPRRerank", "PromptRankRerank")]
)
def test_the_option_survives_configurations_and_pickles(host, name):
    component = getattr(HOSTS[host], name)(explain=True)
    assert isinstance(component, BaseModel)
    assert type(component)(**json.loads(component.model_dump_json(exclude={"callback_manager"}))).explain
    assert pickle.loads(pickle.dumps(component)).explain
    if host == "llama_index_ext":
        assert type(component).from_dict(component.to_dict()).explain


def test_langchain_tells_the_tree_with_the_end_of_a_drill_down():
    retriever = langchain_ext.D3Retriever([Document(text, id=str(n)) for n, text in enumerate(TEXTS)], top_n=None)

    async def ends(component):
        return [e["data"] async for e in component.astream_events(QUERY, version="v2") if e.get("name") == "d3_end"]

    [plain] = asyncio.run(ends(retriever))
    assert "tree" not in plain
    [told] = asyncio.run(ends(retriever.model_copy(update={"explain": True})))
    assert [node["name"] for node in told["tree"] if node["kind"] == "document"] == [
        "Document 1",
        "Document 2",
        "Document 3",
    ]
    assert [node["name"] for node in told["tree"] if node["kind"] == "section"] == [
        "A",
        "B",
        "C",
    ]  # of those with evidence


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


@pytest.mark.parametrize("cut", [False, True])
def test_the_tree_names_documents_as_their_readers_do(cut):
    """By the heading above everything, the title or the file name; where two are called alike, with a number."""
    documents = [Document(text, id=name, metadata=told) for name, (text, told, _) in FILES.items()]
    nodes = [LlamaDocument(text=text, id_=name, metadata=told) for name, (text, told, _) in FILES.items()]
    if cut:
        documents = langchain_ext.MultiViewTextSplitter().split_documents(documents)
        nodes = llama_index_ext.MultiViewNodeParser()(nodes)
    langchain = Request(wanted=True)
    token = request.set(langchain)
    try:
        langchain_ext.D3Retriever(documents=documents).invoke(QUERY)
    finally:
        request.reset(token)
    llama_index_ext.D3Retriever(nodes, explain=True).retrieve(QUERY)
    wanted = [name for *_, name in FILES.values()]
    wanted = [name if wanted.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(wanted, 1)]
    assert [node.name for node in langchain.tree if node.kind == "document"] == wanted
    assert [node["name"] for node in HEARD[0].tree if node["kind"] == "document"] == wanted


def test_of_sections_around_those_found_nothing_is_explained():
    parser = llama_index_ext.MultiViewNodeParser()
    nodes = parser([LlamaDocument(text="# A\n\nA cat.\n\n# B\n\nThe Rhine.\n\n# C\n\nA dog.", id_="1")])
    found = llama_index_ext.MultiViewRetriever(nodes, top_n=1, expand="neighbours", explain=True).retrieve("The Rhine?")
    assert len(found) == 3
    assert [entry and entry["name"] for entry in HEARD[0].explanations] == ["B", None, None]
