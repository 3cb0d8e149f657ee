"""Warnings and logs quote no text of questions, documents or LLMs, and a new question brings no new warning."""

from __future__ import annotations

import logging
import re
import warnings

import pytest

from drillrank.errors import DrillrankWarning
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


FAILED, UNUSABLE = "calls of the LLM failed", "answers of the LLM cannot be used"
# The components, and the warnings of each question.
SCENARIOS = {
    "a threshold that no score reaches": (unreachable_threshold, ["^UPRRerank: no score reaches score_threshold=0.5"]),
    "D3, failing calls": (retriever("D3Retriever", [FAILURE], unit="paragraph", **FALLBACK), [f"^D3: {FAILED}"]),
    "D3, unusable answers": (retriever("D3Retriever", [GARBAGE], unit="paragraph", **FALLBACK), [f"^D3: {UNUSABLE}"]),
    "D3, a small budget": (retriever("D3Retriever", max_tokens=1), ["is short enough for max_tokens=1"]),
    "views, nothing passes the filter": (
        retriever("MultiViewRetriever", filters=no_tenant),
        ["^MultiViewRetriever: nothing was found"],
    ),
    "generated passages, failing calls": (
        retriever("BRMGRRetriever", [FAILURE], n_generated=2, **FALLBACK),
        [r"^Of 2 passages that the LLM was asked for, 2 failed \(ConnectionError\)"],
    ),
    "generated passages, blank and long ones": (
        retriever("BRMGRRetriever", ["", f"{CANARY} " * 900], n_generated=2),
        ["1 had no word, 1 had more than 300 words"],
    ),
    "paths, failing calls": (
        retriever("PromptRankRetriever", [FAILURE], hops=2, **FALLBACK),
        [r"the LLM did not name what is missing \(ConnectionError\)"],
    ),
    "self-ask, failing calls": (self_ask([FAILURE]), [f"^Self-ask: {FAILED}", f"^Self-ask: {UNUSABLE}"]),
    "self-ask, blank answers": (self_ask([""]), [f"^Self-ask: {UNUSABLE}"]),
}


@both_frameworks
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_question_has_the_same_warnings_without_text(host, name, caplog):
    build_question_answering, expected = SCENARIOS[name]
    ask, n_questions = build_question_answering(host), 20
    with caplog.at_level(logging.DEBUG, "drillrank"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(n_questions):
            ask(question(number))
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == len(expected) * n_questions
    for pattern in expected:
        assert sum(re.search(pattern, message) is not None for message in messages) == n_questions
    assert not [text for text in (*messages, *(record.getMessage() for record in caplog.records)) if CANARY in text]


@both_frameworks
@pytest.mark.parametrize("name", SCENARIOS)
def test_python_shows_a_warning_of_many_questions_once(host, name):
    build_question_answering, expected = SCENARIOS[name]
    ask = build_question_answering(host)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")  # each text once at each line
        for number in range(20):
            ask(question(number))
    assert len(caught) == len(expected)


@both_frameworks
def test_a_filter_that_hides_all_documents_is_a_warning_without_text(host):
    with pytest.warns(DrillrankWarning, match="^No given document passes the filter") as caught:
        retriever("D3Retriever", filters=no_tenant)(host)(question(0))
    assert CANARY not in str([str(warning.message) for warning in caught])


@both_frameworks
def test_a_long_question_is_not_quoted(host):
    with pytest.warns(UserWarning, match="^A question was truncated") as caught:
        host.rerank(host.ext.UPRRerank(), f"{CANARY} " * 5_000, host.record(BOOK))
    assert CANARY not in str([str(warning.message) for warning in caught])
