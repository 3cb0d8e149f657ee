"""Adapters of LangChain's language models, prompt templates and embeddings."""

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
from drillrank.frameworks.models import FrameworkEmbedding, fill_framework_template, framework_prompt, reported_tokens
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import Reply
from drillrank.vectors import Embed


def embedding_of(embed: Embeddings | Embed | str | None) -> Embed | None:
    """Return the function from texts to vectors that a component's `embed` means.

    Raises:
        InvalidInput: `embed` is a string that is not an encoder's specification.
    """
    if isinstance(embed, Embeddings):
        return FrameworkEmbedding(embed, embed.embed_documents, embed.embed_query)
    return as_encoder(embed)


def step_prompt(name: str, template: BasePromptTemplate[Any] | str) -> Callable[..., str]:
    """Return a function for the core that fills a template, which may be a string."""
    prompt_template = PromptTemplate.from_template(template) if isinstance(template, str) else template
    return partial(fill_framework_template, name, partial(_fill_template, prompt_template))


def _fill_template(template: BasePromptTemplate[Any], values: dict[str, str]) -> tuple[str, PromptValue]:
    value = template.format_prompt(**values)
    return value.to_string(), value


class _TokenCounter(BaseCallbackHandler):
    """Collects the token counts that all models behind one answer report, also wrapped ones."""

    run_inline = True  # so that an event loop, too, calls it before the answer is returned

    def __init__(self) -> None:
        self._calls: list[tuple[int | None, int | None]] = []

    @property
    def ignore_chat_model(self) -> bool:
        """Return True, to skip the starts of chat models."""
        return True

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Record the token counts of one call."""
        generation = next((generation for group in response.generations for generation in group), None)
        message = getattr(generation, "message", None)
        metadata = getattr(message, "response_metadata", None)
        self._calls.append(reported_tokens(message, metadata, response.llm_output))

    def reply(self, text: str) -> Reply:
        """Return the text with the token counts of all calls. A count is None if one call did not report it."""
        prompts = [prompt for prompt, _ in self._calls if prompt is not None]
        completions = [completion for _, completion in self._calls if completion is not None]
        prompt_tokens, completion_tokens = (
            sum(counts) if len(counts) == len(self._calls) else None for counts in (prompts, completions)
        )
        return Reply(text, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


class FrameworkLLM:
    """LLM for the core that calls a chat model or a text model.

    Its calls are children of the run with the configuration `config`, or else of the run around the call, if there is
    one. In traces, a call has the name of its prompt's step, or else of `step`. `temperature` is set if the model has
    such a field; None keeps the model's own.
    """

    def __init__(
        self,
        llm: Runnable[Any, Any],
        step: str,
        config: RunnableConfig | None = None,
        temperature: float | None = None,
    ) -> None:
        if temperature is not None:
            llm = with_temperature(llm, temperature) or llm
        self._llm = llm
        self._chain = llm | StrOutputParser()
        self._step = step
        self._config: RunnableConfig = config or {}

    def complete(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        """Return the model's answer, as JSON of a schema if one is passed and the model can follow it."""
        value, config, counter = self._prepare_run(prompt)
        with _schema_errors():
            return counter.reply(_as_text(self._with_schema(schema).invoke(value, config)))

    async def acomplete(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        """Return the answer of the model's own asynchronous call, like `complete`."""
        value, config, counter = self._prepare_run(prompt)
        with _schema_errors():
            return counter.reply(_as_text(await self._with_schema(schema).ainvoke(value, config)))

    complete_json, acomplete_json = complete, acomplete

    def _prepare_run(self, prompt: str) -> tuple[str | PromptValue, RunnableConfig, _TokenCounter]:
        value, step = framework_prompt(prompt, str, self._step)
        config = ensure_config({**self._config, "run_name": f"drillrank: {step}"})  # merged with the surrounding run's
        counter, handlers = _TokenCounter(), config["callbacks"]
        if isinstance(handlers, BaseCallbackManager):
            handlers = handlers.copy()
            handlers.add_handler(counter)
        else:
            handlers = [*(handlers or []), counter]
        return value, {**config, "callbacks": handlers}, counter

    def _with_schema(self, schema: dict[str, Any] | None) -> Runnable[Any, Any]:
        return (schema and with_schema(self._llm, schema)) or self._chain


def change_model(
    llm: Runnable[Any, Any], change: Callable[[Runnable[Any, Any]], Runnable[Any, Any] | None]
) -> Runnable[Any, Any] | None:
    """Return a Runnable with its models changed inside their wrappers. None if one of them cannot be changed.

    Args:
        llm: A model, perhaps inside `bind`, `with_config`, `with_retry` and `with_fallbacks`.
        change: Function from a model, or another Runnable, to the changed one.
    """
    if isinstance(llm, RunnableBindingBase):  # bind, with_config, with_retry
        bound = change_model(llm.bound, change)
        return bound and llm.model_copy(update={"bound": bound})
    if isinstance(llm, RunnableWithFallbacks):
        first, *others = (change_model(runnable, change) for runnable in llm.runnables)
        if first is None or None in others:
            return None
        return llm.model_copy(update={"runnable": first, "fallbacks": others})
    return change(llm)


def with_schema(llm: Runnable[Any, Any], schema: dict[str, Any]) -> Runnable[Any, Any] | None:
    """Return the model with structured output, with its wrappers. If that fails, warn and return None."""

    def add_schema(model: Runnable[Any, Any]) -> Runnable[Any, Any] | None:
        if isinstance(model, BaseLanguageModel):
            with suppress(NotImplementedError):
                return model.with_structured_output(schema)
            return None
        warn(
            f"A {type(model).__name__} has no structured output, so the prompt asks for JSON. Pass the model itself, "
            "or the result of its bind, with_retry or with_fallbacks."
        )
        return None

    return change_model(llm, add_schema)


def takes_temperature(llm: Runnable[Any, Any]) -> bool:
    """Return True if the temperature of a model can be set."""
    return with_temperature(llm, 1.0) is not None


def with_temperature(llm: Runnable[Any, Any], temperature: float) -> Runnable[Any, Any] | None:
    """Return the model at a temperature, with its wrappers. Return None if it has no field `temperature`."""

    def set_temperature(model: Runnable[Any, Any]) -> Runnable[Any, Any] | None:
        has_field = isinstance(model, BaseLanguageModel) and "temperature" in type(model).model_fields
        return model.model_copy(update={"temperature": temperature}) if has_field else None  # type: ignore[attr-defined]

    return change_model(llm, set_temperature)


def cache_key(llm: Runnable[Any, Any]) -> str:
    """Return a cache key for a model: its class and parameters, or a random key if these do not identify it."""
    key = _parameter_key(llm)
    return uuid4().hex if key is None or " at 0x" in key else key


def _parameter_key(llm: Runnable[Any, Any]) -> str | None:
    if isinstance(llm, BaseLanguageModel):
        names = {name: getattr(llm, name) for name in ("model_name", "model") if getattr(llm, name, None)}
        parameters = {**names, **llm._identifying_params}
        return f"{type(llm).__qualname__}({sorted(parameters.items())!r})" if parameters else None
    if isinstance(llm, RunnableBindingBase):
        key = _parameter_key(llm.bound)
        return key and f"{key} {sorted(llm.kwargs.items())!r}" if llm.kwargs else key
    if isinstance(llm, RunnableWithFallbacks):
        keys = [_parameter_key(runnable) for runnable in llm.runnables]
        return None if None in keys else f"{keys!r}"
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
