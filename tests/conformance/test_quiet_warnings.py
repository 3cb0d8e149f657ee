"""Warnings and logs quote no text of questions, documents or LLMs, and a new question brings no new warning."""

from __future__ import annotations

import logging
import warnings

import pytest

from tests.conformance.frameworks import both_frameworks, build

CANARY = "wombat"
BOOK = f"# Foxes\n\nThe {CANARY} hunts mice.\n\n# Owls\n\nThey hoot at night."
FAILURE = ConnectionError(f"no answer to: the {CANARY} hunts")
GARBAGE = f"The {CANARY} says 77 of [9"
FALLBACK = {"on_failure": "fallback"}


def question(number):
    return f"Does {CANARY}{number} hunt mice at {number} o'clock?"


def unreachable_threshold(host):
    reranker = host.ext.UPRRerank(settings={"score_threshold": 0.5})
    return lambda query: host.rerank(reranker, query, host.record(BOOK))


def retriever(name, llm=None, documents=(BOOK,), **fields):
    def build_question_answering(host):
        chosen = dict(fields) if llm is None else {**fields, "llm": host.llm(llm)}
        documents_of_host = [host.document(text, f"{CANARY}-{number}") for number, text in enumerate(documents)]
        if name in ("BRMGRRetriever", "PromptRankRetriever"):
            source = host.ext.D3Retriever(documents_of_host, settings={"unit": "paragraph"})
            component = build(getattr(host.ext, name), source=source, **chosen)
        elif name == "MultiViewRetriever":
            component = build(getattr(host.ext, name), host.split(documents_of_host), **chosen)
        else:
            component = build(getattr(host.ext, name), documents_of_host, **chosen)
        return lambda query: host.retrieve(component, query)

    return build_question_answering


def self_ask(llm):
    def build_question_answering(host):
        component = host.self_ask(host.ext.D3Retriever([host.document(BOOK)]), host.llm(llm), on_failure="fallback")
        return lambda query: host.answer(component, query)

    return build_question_answering


def no_tenant(record):
    return False


SCENARIOS = {
    "a threshold that no score reaches": unreachable_threshold,
    "D3, failing calls": retriever("D3Retriever", [FAILURE], unit="paragraph", **FALLBACK),
    "D3, unusable answers": retriever("D3Retriever", [GARBAGE], unit="paragraph", **FALLBACK),
    "D3, a small budget": retriever("D3Retriever", max_tokens=1),
    "D3, nothing passes the filter": retriever("D3Retriever", filters=no_tenant),
    "views, nothing passes the filter": retriever("MultiViewRetriever", filters=no_tenant),
    "generated passages, failing calls": retriever("BRMGRRetriever", [FAILURE], n_generated=2, **FALLBACK),
    "generated passages, blank and long ones": retriever("BRMGRRetriever", ["", f"{CANARY} " * 900], n_generated=2),
    "paths, failing calls": retriever("PromptRankRetriever", [FAILURE], hops=2, **FALLBACK),
    "self-ask, failing calls": self_ask([FAILURE]),
    "self-ask, blank answers": self_ask([""]),
}


@both_frameworks
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_warning_quotes_no_text_and_the_registry_does_not_grow(host, name, caplog):
    n_questions = 200 if name in ("a threshold that no score reaches", "D3, failing calls") else 20
    with caplog.at_level(logging.DEBUG, "drillrank"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        ask, sizes = SCENARIOS[name](host), []
        for number in range(n_questions):
            ask(question(number))
            sizes.append(len(globals().get("__warningregistry__", {})))
    assert caught, "a warning is given"
    heard = [str(warning.message) for warning in caught] + [record.getMessage() for record in caplog.records]
    assert not [text for text in heard if CANARY in text]
    assert sizes[-1] == sizes[9], "no warning is new after ten questions"


@both_frameworks
def test_a_long_question_is_not_quoted(host):
    with pytest.warns(UserWarning, match="^A question was truncated") as caught:
        host.rerank(host.ext.UPRRerank(), f"{CANARY} " * 5_000, host.record(BOOK))
    assert CANARY not in str([str(warning.message) for warning in caught])
