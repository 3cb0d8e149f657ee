"""LangChain's models as what requests are made to: a language model with its prompt templates, and embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import LLMResult
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config

from drillrank.errors import UnusableAnswer, warn
from drillrank.frameworks.models import HostEmbedding, filled, host_prompt, reported_tokens
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import Reply
from drillrank.vectors import Embed


def embedding_of(embed: Embeddings | Embed | str | None) -> Embed | None:
    """Return the function from texts to vectors that a component's `embed` means.

    Raises:
        InvalidInput: `embed` is a string that is not an encoder's specification.
    """
    if isinstance(embed, Embeddings):
        return HostEmbedding(embed, embed.embed_documents, embed.embed_query)
    return as_encoder(embed)


def step_prompt(name: str, template: BasePromptTemplate[Any] | str) -> Callable[..., str]:
    """A function for the core that fills the places of a template, or of its text."""
    form = PromptTemplate.from_template(template) if isinstance(template, str) else template
    return partial(filled, name, partial(_filled, form))


def _filled(template: BasePromptTemplate[Any], values: dict[str, str]) -> tuple[str, PromptValue]:
    value = template.format_prompt(**values)
    return value.to_string(), value


class _Report(BaseCallbackHandler):
    """What the models behind one answer tell of its cost: wrapped, text models and held to JSON, they all tell here."""

    run_inline = True  # in an event loop, too, done before the answer is there

    def __init__(self) -> None:
        self._calls: list[tuple[int | None, int | None]] = []

    @property
    def ignore_chat_model(self) -> bool:
        """Their starts are of no interest."""
        return True

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Take note of one call."""
        first = next((generation for several in response.generations for generation in several), None)
        message = getattr(first, "message", None)
        metadata = getattr(message, "response_metadata", None)
        self._calls.append(reported_tokens(message, metadata, response.llm_output))

    def answer(self, text: str) -> Reply:
        """The text with the cost of all calls, where each has told it."""
        prompts = [prompt for prompt, _ in self._calls if prompt is not None]
        completions = [completion for _, completion in self._calls if completion is not None]
        prompt_tokens, completion_tokens = (
            sum(showing_warnings) if len(showing_warnings) == len(self._calls) else None
            for showing_warnings in (prompts, completions)
        )
        return Reply(text, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


class FrameworkLLM:
    """Asks a chat model or a text model; its calls are children of the run whose configuration is given.

    Without one they belong to the run that surrounds the call, if there is one. In traces a call has the name of its
    step: the prompt's, or else the one given here.
    """

    def __init__(self, llm: Runnable[Any, Any], step: str, config: RunnableConfig | None = None) -> None:
        self._llm = llm
        self._chain = llm | StrOutputParser()
        self._step = step
        self._config: RunnableConfig = config or {}

    def complete(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        """The model's answer, held to a schema if there is one and it can be."""
        value, config, report = self._run(prompt)
        with _schema_errors():
            return report.answer(_as_text(self._held_to(schema).invoke(value, config)))

    async def acomplete(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        """As `complete`, by the model's own asynchronous call."""
        value, config, report = self._run(prompt)
        with _schema_errors():
            return report.answer(_as_text(await self._held_to(schema).ainvoke(value, config)))

    complete_json, acomplete_json = complete, acomplete

    def _run(self, prompt: str) -> tuple[str | PromptValue, RunnableConfig, _Report]:
        value, step = host_prompt(prompt, str, self._step)
        config = ensure_config({**self._config, "run_name": f"drillrank: {step}"})  # with what surrounds the call
        report, handlers = _Report(), config["callbacks"]
        if isinstance(handlers, BaseCallbackManager):
            handlers = handlers.copy()
            handlers.add_handler(report)
        else:
            handlers = [*(handlers or []), report]
        return value, {**config, "callbacks": handlers}, report

    def _held_to(self, schema: dict[str, Any] | None) -> Runnable[Any, Any]:
        return (schema and held_to(self._llm, schema)) or self._chain


def held_to(llm: Runnable[Any, Any], schema: dict[str, Any]) -> Runnable[Any, Any] | None:
    """The model with structured output, in all that is wrapped around it; None, with a warning, where that fails."""
    if isinstance(llm, BaseLanguageModel):
        with suppress(NotImplementedError):
            return llm.with_structured_output(schema)
        return None
    if isinstance(llm, RunnableBindingBase):  # bind, with_config, with_retry
        bound = held_to(llm.bound, schema)
        return bound and llm.model_copy(update={"bound": bound})
    if isinstance(llm, RunnableWithFallbacks):
        first, *others = (held_to(each, schema) for each in llm.runnables)
        if first is None or None in others:
            return None
        return llm.model_copy(update={"runnable": first, "fallbacks": others})
    warn(
        f"A {type(llm).__name__} cannot be held to JSON: it is asked for it in words. Give the model itself, or what "
        "its bind, with_retry or with_fallbacks returns."
    )
    return None


def identity(llm: Runnable[Any, Any]) -> str:
    """What tells a model's answers from another's: its class and parameters; of an unknown kind, nobody else's."""
    known = _identity(llm)
    return uuid4().hex if known is None or " at 0x" in known else known


def _identity(llm: Runnable[Any, Any]) -> str | None:
    if isinstance(llm, BaseLanguageModel):
        names = {name: getattr(llm, name) for name in ("model_name", "model") if getattr(llm, name, None)}
        known = {**names, **llm._identifying_params}
        return f"{type(llm).__qualname__}({sorted(known.items())!r})" if known else None
    if isinstance(llm, RunnableBindingBase):
        bound = _identity(llm.bound)
        return bound and f"{bound} {sorted(llm.kwargs.items())!r}" if llm.kwargs else bound
    if isinstance(llm, RunnableWithFallbacks):
        each = [_identity(one) for one in llm.runnables]
        return None if None in each else f"{each!r}"
    return None


@contextmanager
def _schema_errors() -> Iterator[None]:
    """Convert the error for an answer that does not follow the schema. Its message has the answer."""
    try:
        yield
    except OutputParserException as cause:
        raise UnusableAnswer("it does not follow the schema") from cause


def _as_text(answer: Any) -> str:
    if answer is None:
        raise UnusableAnswer("it has no structured output")
    return answer if isinstance(answer, str) else json.dumps(answer)
