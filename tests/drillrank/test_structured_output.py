"""Prompts with a JSON schema: who is held to it, and what becomes of the answer."""

from __future__ import annotations

import asyncio
import json

import pytest

from drillrank import D3
from drillrank.dialogue import Usage, arun, run
from drillrank.errors import DrillrankWarning
from drillrank.structured import StructuredPrompt

MANUAL = "# Battery\n\nIt lasts nine hours.\n\nCharge it over night.\n\n# Screen\n\nClean it with a dry cloth."
QUESTION = "When should I charge it?"
SCHEMA = {"type": "object"}


def dialogue():
    replies = yield [StructuredPrompt("Which ones?", SCHEMA), "Why?"]
    return [reply.text for reply in replies]


class Plain:
    """Answers in upper case."""

    def complete(self, prompt):
        return prompt.upper()


class Held(Plain):
    """Can be held to a schema, too."""

    def complete_json(self, prompt, schema):
        assert schema == SCHEMA
        return {"ids": [len(prompt)]}


class HeldLater(Held):
    """Has asynchronous methods, too."""

    async def acomplete(self, prompt):
        return self.complete(prompt)

    async def acomplete_json(self, prompt, schema):
        return self.complete_json(prompt, schema)


@pytest.mark.parametrize("llm", [Plain(), str.upper])
def test_an_llm_without_structured_output_reads_the_words(llm):
    assert run(dialogue(), llm) == asyncio.run(arun(dialogue(), llm)) == ["WHICH ONES?", "WHY?"]


@pytest.mark.parametrize("llm", [Held(), HeldLater()])
def test_only_prompts_with_a_schema_are_held_to_it(llm):
    usage, later = Usage(), Usage()
    assert run(dialogue(), llm, usage) == ['{"ids": [11]}', "WHY?"]
    assert asyncio.run(arun(dialogue(), llm, usage=later)) == ['{"ids": [11]}', "WHY?"]
    assert usage == later
    assert usage.calls == 2


@pytest.mark.parametrize("wrong", [{1, 2}, object(), b"ids"])
def test_what_is_no_json_is_a_failed_call(wrong):
    llm = Held()
    llm.complete_json = lambda prompt, schema: wrong
    usage = Usage()
    assert run(dialogue(), llm, usage)[0] == ""
    assert usage.failures == 1


class Librarian:
    """Chooses by numbers, as JSON; remembers what it was asked for."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.schemas = []

    def complete(self, prompt):
        raise AssertionError("it offers structured output")

    def complete_json(self, prompt, schema):
        self.schemas.append(schema)
        return self.answers.pop(0)


@pytest.mark.parametrize("as_text", [False, True])
def test_d3_asks_for_json_in_both_steps(as_text):
    answers = [{"ids": [1]}, {"ids": [2]}]
    llm = Librarian(*(map(json.dumps, answers) if as_text else answers))
    found = D3(llm, settings={"sections_by": "json"}).retrieve(QUESTION, [MANUAL])
    assert [item.passage.text for item in found] == ["Charge it over night."]
    schema = {
        "title": "RelevantIds",
        "description": "What is relevant for answering the question.",
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}, "description": "Numbers, or an empty list."}
        },
        "required": ["ids"],
        "additionalProperties": False,
    }
    assert llm.schemas == [schema, schema]
    assert not any(step.problems for step in found.steps)


def test_an_empty_list_means_none_and_numbers_that_were_not_offered_are_dropped():
    assert list(D3(Librarian({"ids": []}), settings={"sections_by": "json"}).retrieve(QUESTION, [MANUAL])) == []
    with pytest.warns(DrillrankWarning, match="'77'"):
        found = D3(Librarian({"ids": [77, 1]}, {"ids": [1]}), settings={"sections_by": "json"}).retrieve(
            QUESTION, [MANUAL]
        )
    assert [item.passage.text for item in found] == ["It lasts nine hours."]


def test_names_are_asked_for_in_words():
    prompts = []

    class Both(Held):
        def complete(self, prompt):
            prompts.append(prompt)
            return "Screen"

    found = D3(Both()).retrieve(QUESTION, [MANUAL])
    assert [item.passage.text for item in found] == ["Clean it with a dry cloth."]
    assert type(prompts[0]) is str
