"""A LlamaIndex LLM and its prompt templates as what a dialogue asks."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any

from llama_index.core import PromptTemplate, Settings
from llama_index.core.bridge.pydantic import BaseModel, Field, create_model
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.prompts import BasePromptTemplate

from drillrank.prompts import check_places
from drillrank.structured import StructuredPrompt

_PROMPT = PromptTemplate("{text}")  # a dialogue's prompts are complete; braces in them are text


class FilledPrompt(str):
    """A prompt made from a template; the LLM is asked with the template, so that roles and events are the host's."""

    template: BasePromptTemplate
    values: dict[str, Any]

    def __new__(cls, template: BasePromptTemplate, values: dict[str, Any]) -> FilledPrompt:
        """Fill the template."""
        prompt = super().__new__(cls, template.format(**values))
        prompt.template, prompt.values = template, values
        return prompt


class Prompts:
    """A component's templates, which `update_prompts` may replace at any time.

    Raises:
        InvalidInput: a template lacks one of its places.
    """

    def __init__(self) -> None:
        self.templates: dict[str, BasePromptTemplate] = {}
        self._places: dict[str, tuple[str, ...]] = {}

    def filler(self, name: str, template: BasePromptTemplate, *places: str) -> Filler:
        """Take in a template; a function for the core that fills in what has this name at the time."""
        self._places[name] = places
        self.update({name: template})
        return Filler(self, name, places)

    def update(self, templates: dict[str, BasePromptTemplate]) -> None:
        """Replace the templates that are given; other names belong to other components."""
        for name in templates.keys() & self._places.keys():
            check_places(templates[name].format, *self._places[name])
            self.templates[name] = templates[name]


class Filler:
    """Fills the places of one template as it is at the time."""

    def __init__(self, prompts: Prompts, name: str, places: tuple[str, ...]) -> None:
        self._prompts = prompts
        self._name = name
        self._places = places

    def __call__(self, **values: str) -> FilledPrompt:
        """The prompt."""
        return FilledPrompt(self._prompts.templates[self._name], {place: values[place] for place in self._places})


class FrameworkLLM:
    """Asks through `predict` and `apredict`, so that chat models, formatting and events work as everywhere else.

    Args:
        llm: The LLM; None takes `Settings.llm` at each call.
    """

    def __init__(self, llm: LLM | None) -> None:
        self._given = llm

    @property
    def _llm(self) -> LLM:
        return Settings.llm if self._given is None else self._given

    def complete(self, prompt: str) -> str:
        """The LLM's answer."""
        template, values = _with_values(prompt)
        # A failed call leaves an event open in the host's trace; in a context of its own, the next is no child of it.
        return copy_context().run(self._llm.predict, template, **values)

    async def acomplete(self, prompt: str) -> str:
        """The LLM's answer, by its own asynchronous call if it has one, else on a worker thread."""
        llm = self._llm
        if _is_sync_only(llm):
            return await asyncio.to_thread(self.complete, prompt)
        template, values = _with_values(prompt)
        return await llm.apredict(template, **values)

    def complete_json(self, prompt: str, schema: dict[str, Any]) -> str:
        """The LLM's answer, held to the schema if it is a model that calls functions."""
        llm = self._llm
        if not llm.metadata.is_function_calling_model:
            return self.complete(prompt)
        template, values = _with_values(prompt)
        answer = copy_context().run(llm.structured_predict, _model_of(schema), template, **values)
        return str(answer.model_dump_json())

    async def acomplete_json(self, prompt: str, schema: dict[str, Any]) -> str:
        """As `complete_json`, by the LLM's own asynchronous call."""
        llm = self._llm
        if not llm.metadata.is_function_calling_model:
            return await self.acomplete(prompt)
        template, values = _with_values(prompt)
        answer = await llm.astructured_predict(_model_of(schema), template, **values)
        return str(answer.model_dump_json())


def _is_sync_only(llm: LLM) -> bool:
    """Whether its asynchronous methods are those of `CustomLLM`, which block the event loop."""
    name = "achat" if llm.metadata.is_chat_model else "acomplete"
    return next((owner for owner in type(llm).__mro__ if name in vars(owner)), None) is CustomLLM


def _with_values(prompt: str) -> tuple[BasePromptTemplate, dict[str, Any]]:
    given = prompt.given if isinstance(prompt, StructuredPrompt) else prompt
    if isinstance(given, FilledPrompt):
        return given.template, given.values
    return _PROMPT, {"text": str(given)}


def _model_of(schema: dict[str, Any]) -> type[BaseModel]:
    """The host holds LLMs to pydantic models: one with a list of whole numbers for each property of the schema."""
    fields: dict[str, Any] = {
        name: (list[int], Field(description=field["description"])) for name, field in schema["properties"].items()
    }
    return create_model(schema["title"], __doc__=schema["description"], **fields)
