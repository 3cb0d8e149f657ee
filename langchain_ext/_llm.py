"""A LangChain language model and its prompt templates as what a dialogue asks."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BeforeValidator, InstanceOf

from drillrank.errors import InvalidInput
from drillrank.structured import StructuredPrompt


def _as_template(prompt: object) -> object:
    return PromptTemplate.from_template(prompt) if isinstance(prompt, str) else prompt


PromptField = Annotated[InstanceOf[BasePromptTemplate], BeforeValidator(_as_template)]  # type: ignore[type-arg]
"""A component's prompt: a template, or its text."""


class FilledPrompt(str):
    """A prompt made from a template; the model is asked with the template's own value, so that roles are kept."""

    value: PromptValue

    def __new__(cls, value: PromptValue) -> FilledPrompt:
        """What the value says."""
        prompt = super().__new__(cls, value.to_string())
        prompt.value = value
        return prompt


class Filler:
    """A function for the core that fills the places of a template."""

    def __init__(self, template: BasePromptTemplate[Any], *places: str) -> None:
        self._template = template
        self._places = places

    def __call__(self, **values: str) -> FilledPrompt:
        """The prompt."""
        return FilledPrompt(self._template.format_prompt(**{place: values[place] for place in self._places}))


class FrameworkLLM:
    """Asks a chat model or a text model; its calls are children of the run whose configuration is given.

    Without one they belong to the run that surrounds the call, if there is one.
    """

    def __init__(self, llm: Runnable[Any, Any], config: RunnableConfig | None = None) -> None:
        self._llm = llm
        self._chain = llm | StrOutputParser()
        self._config = config

    def complete(self, prompt: str) -> str:
        """The model's answer."""
        return self._chain.invoke(_value(prompt), self._config)

    async def acomplete(self, prompt: str) -> str:
        """The model's answer, by its own asynchronous call."""
        return await self._chain.ainvoke(_value(prompt), self._config)

    def complete_json(self, prompt: str, schema: dict[str, Any]) -> Any:
        """The model's answer, held to the schema if it can be."""
        return _structured(self._held_to(schema).invoke(_value(prompt), self._config))

    async def acomplete_json(self, prompt: str, schema: dict[str, Any]) -> Any:
        """As `complete_json`, by the model's own asynchronous call."""
        return _structured(await self._held_to(schema).ainvoke(_value(prompt), self._config))

    def _held_to(self, schema: dict[str, Any]) -> Runnable[Any, Any]:
        if isinstance(self._llm, BaseLanguageModel):
            with suppress(NotImplementedError):
                return self._llm.with_structured_output(schema)
        return self._chain


def _structured(answer: Any) -> Any:
    if answer is None:
        raise InvalidInput("The model gave no structured output.")
    return answer


def _value(prompt: str) -> str | PromptValue:
    given = prompt.given if isinstance(prompt, StructuredPrompt) else prompt
    return given.value if isinstance(given, FilledPrompt) else str(given)
