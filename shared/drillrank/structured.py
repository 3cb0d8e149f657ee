"""Structured output: prompts whose answer is wanted as JSON of a schema, from LLMs that can be held to one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from drillrank.calling import blocking

Complete = Callable[[str], Any]


class StructuredPrompt(str):
    """A prompt whose answer is wanted as JSON.

    An LLM with `complete_json(prompt, schema)`, or the asynchronous `acomplete_json`, is held to the schema and returns
    the JSON or the value that it stands for. For any other LLM this is a plain string, whose words ask for JSON.

    Attributes:
        schema: The JSON schema.
        given: The prompt that it was made of, which may be more than a string to the LLM.

    >>> StructuredPrompt("Which ones?", {"type": "array"}).schema
    {'type': 'array'}
    """

    __slots__ = ("given", "schema")

    given: str
    schema: dict[str, Any]

    def __new__(cls, text: str, schema: dict[str, Any]) -> StructuredPrompt:
        """The text with its schema."""
        prompt = super().__new__(cls, text)
        prompt.given, prompt.schema = text, schema
        return prompt


def method_for(prompt: str, llm: object, plain: Complete, *names: str) -> Complete:
    """What to call with a prompt: `plain`, or, if the prompt has a schema, the first of these methods that there is.

    >>> class Clerk:
    ...     def complete_json(self, prompt, schema):
    ...         return {"ids": [2]}
    >>> method_for(StructuredPrompt("Which ones?", {}), Clerk(), str.upper, "complete_json")("Which ones?")
    '{"ids": [2]}'
    >>> method_for("Which ones?", Clerk(), str.upper, "complete_json")("Which ones?")
    'WHICH ONES?'
    """
    if isinstance(prompt, StructuredPrompt):
        for method in (getattr(llm, name, None) for name in names):
            if callable(method):
                return _held_to(prompt.schema, method)
    return plain


def _held_to(schema: dict[str, Any], method: Callable[[str, dict[str, Any]], Any]) -> Complete:
    on_a_thread = blocking(method)
    if on_a_thread is not None:
        return lambda prompt: _as_json(on_a_thread(prompt, schema))

    async def complete_later(prompt: str) -> Any:
        return _as_json(await method(prompt, schema))

    return complete_later


def _as_json(answer: object) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)
