"""Adapters of LlamaIndex's LLMs with their prompt templates and token counts, and of its embedding models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import unwrap
from typing import Any

from llama_index.core import PromptTemplate, Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import BaseModel, Field, PrivateAttr, ValidationError, create_model
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
    active_instrument_tags,
    instrument_tags,
)
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixin

from drillrank.errors import InvalidInput, UnusableAnswer
from drillrank.frameworks.models import (
    STEPS,
    FrameworkEmbedding,
    fill_framework_template,
    framework_prompt,
    reported_tokens,
)
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import Reply
from drillrank.prompts import check_placeholders
from drillrank.vectors import Embed


def embedding_of(embed: BaseEmbedding | Embed | str | None) -> Embed | None:
    """Return the function from texts to vectors that a component's `embed` means.

    Raises:
        InvalidInput: `embed` is not an embedding model, a function or an encoder's specification.
    """
    if isinstance(embed, BaseEmbedding):
        return FrameworkEmbedding(embed, embed.get_text_embedding_batch, embed.get_query_embedding)
    return as_encoder(embed)


STEP_TAG = "drillrank.step"


class TokenCounter:
    """Token counts of LLM calls, in the order of their ends."""

    def __init__(self) -> None:
        self.calls: list[tuple[int | None, int | None]] = []

    def reply(self, text: str) -> Reply:
        """Return the text with the token counts of the last call that reported any."""
        # A call around another call ends later. It repeats the report of the inner call or has none.
        *_, last = (None, None), *(tokens for tokens in self.calls if tokens != (None, None))
        return Reply(text, prompt_tokens=last[0], completion_tokens=last[1])


_counter: ContextVar[TokenCounter | None] = ContextVar("drillrank_token_counter", default=None)


class _TokenListener(BaseEventHandler):
    """Adds the token counts of each finished call to the counter of its step. Installed only while a step runs."""

    _n_steps: int = PrivateAttr(default=0)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __enter__(self) -> None:
        with self._lock:
            self._n_steps += 1
            if self._n_steps == 1:
                _llm_dispatcher.event_handlers.append(self)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_steps -= 1
            if self._n_steps == 0:  # in a new list, because other threads may iterate over the old one
                _llm_dispatcher.event_handlers = [one for one in _llm_dispatcher.event_handlers if one is not self]

    @classmethod
    def class_name(cls) -> str:
        """Return the name used in serialisation."""
        return "drillrank.TokenListener"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Record the token counts of an end event."""
        counter = _counter.get()
        if counter is not None and isinstance(event, LLMChatEndEvent | LLMCompletionEndEvent) and event.response:
            counter.calls.append(reported_tokens(event.response.raw, event.response.additional_kwargs))


_llm_dispatcher = get_dispatcher("llama_index.core.llms.callbacks")
_listener = _TokenListener()


@contextmanager
def step(name: str) -> Iterator[TokenCounter]:
    """Tag spans and events of the LLM calls in the block with the name of a step, and count their tokens."""
    token = _counter.set(counter := TokenCounter())
    try:
        with _listener, instrument_tags({**active_instrument_tags.get(), STEP_TAG: name}):
            yield counter
    finally:
        _counter.reset(token)


_TEXT_TEMPLATE = PromptTemplate("{text}")  # prompts are complete, and braces in them are plain text


class StepPrompts(PromptMixin):
    """Mixin of components with prompt templates, which `update_prompts` may replace at any time."""

    def _step_prompt(self, name: str, template: BasePromptTemplate | str) -> Callable[..., str]:
        """Set a template, and return a function for the core that fills the current template of this name.

        Raises:
            InvalidInput: The template lacks a placeholder.
        """
        self._set_template(name, PromptTemplate(template) if isinstance(template, str) else template)
        return partial(fill_framework_template, name, partial(self._fill_template, name))

    def _set_template(self, name: str, template: BasePromptTemplate) -> None:
        check_placeholders(template.format, *STEPS[name][1:])
        vars(self).setdefault("_templates", {})[name] = template

    def _fill_template(
        self, name: str, values: dict[str, Any]
    ) -> tuple[str, tuple[BasePromptTemplate, dict[str, Any]]]:
        template = self._get_prompts()[name]
        return template.format(**values), (template, values)

    def _get_prompts(self) -> PromptDictType:
        return dict(vars(self)["_templates"])

    def _update_prompts(self, prompts: PromptDictType) -> None:
        for name in prompts.keys() & self._get_prompts().keys():  # the others belong to other components
            self._set_template(name, prompts[name])


class FrameworkLLM:
    """LLM for the core that calls `predict` and `apredict`, so chat models, formatting and events work as usual.

    In traces, the events and spans of a call have a tag with the name of its prompt's step, or else of `step`.

    Args:
        llm: An LLM; None means the current `Settings.llm` at each call.
        step: Name of the step, for prompts without a template.
        temperature: Temperature of the calls, if the LLM takes one; None for the LLM's own.

    Raises:
        InvalidInput: `llm` is not an LLM of LlamaIndex, such as a function.
    """

    def __init__(self, llm: LLM | None, step: str, temperature: float | None = None) -> None:
        if not isinstance(llm, LLM | None):
            raise InvalidInput(f"llm must be an LLM of LlamaIndex, got a {type(llm).__name__}: {llm!r:.100}.")
        self._own_llm = llm
        self._step = step
        self._temperature = temperature

    def takes_temperature(self) -> bool:
        """Return True if the current LLM has a field `temperature`."""
        return "temperature" in type(self._current_llm).model_fields

    @property
    def _current_llm(self) -> LLM:
        return Settings.llm if self._own_llm is None else self._own_llm

    @property
    def _llm(self) -> LLM:
        llm = self._current_llm
        if self._temperature is None or not self.takes_temperature():
            return llm
        return llm.model_copy(update={"temperature": self._temperature})

    def complete(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        """Return the LLM's answer, as JSON of a schema if one is passed and the model calls functions."""
        # A failed call leaves its event open in the framework's trace. In a copied context, the next call is no child.
        return copy_context().run(self._ask, prompt, schema)

    @property
    def acomplete(self) -> Callable[..., Any] | None:
        """Asynchronous `complete`; None if the framework would run the blocking call instead."""
        return self._aask if _is_asynchronous(self._llm) else None

    complete_json, acomplete_json = complete, acomplete

    def _ask(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        llm = self._llm
        (template, values), name = framework_prompt(prompt, _as_template, self._step)
        with step(name) as counter:
            if schema is None or not llm.metadata.is_function_calling_model:
                return counter.reply(llm.predict(template, **values))
            with _schema_errors(counter):
                answer = llm.structured_predict(_pydantic_model(schema), template, **values)
            return counter.reply(_as_json(answer))

    async def _aask(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        llm = self._llm
        (template, values), name = framework_prompt(prompt, _as_template, self._step)
        with step(name) as counter:
            if schema is None or not llm.metadata.is_function_calling_model:
                return counter.reply(await llm.apredict(template, **values))
            with _schema_errors(counter):
                answer = await llm.astructured_predict(_pydantic_model(schema), template, **values)
            return counter.reply(_as_json(answer))


def _as_json(answer: object) -> str:
    """Return an answer that follows the schema. Early releases return the text of an error for one that does not."""
    if not isinstance(answer, BaseModel):
        raise UnusableAnswer("it does not follow the schema")
    return answer.model_dump_json()


@contextmanager
def _schema_errors(counter: TokenCounter) -> Iterator[None]:
    """Convert the error for an answer that does not follow the schema. Its message may have the answer.

    LlamaIndex raises a plain `ValueError` for it, and early releases an `IndexError`. LLMs may raise these without an
    answer, too, but then they report no call.
    """
    try:
        yield
    except (ValueError, IndexError) as cause:
        if isinstance(cause, ValidationError) or counter.calls:
            raise UnusableAnswer("it does not follow the schema") from cause
        raise


def cache_key(llm: LLM) -> str | None:
    """Return a cache key for an LLM: its class, metadata and fields. Return None if these do not identify it."""
    fields = {name: getattr(llm, name) for name, field in type(llm).model_fields.items() if not field.exclude}
    key = f"{type(llm).__module__}.{type(llm).__qualname__}({llm.metadata!r}, {sorted(fields.items())!r})"
    return None if llm.metadata.model_name in ("", "unknown") or " at 0x" in key else key


def _is_asynchronous(llm: LLM) -> bool:
    """Return True if the LLM has its own asynchronous call. The one of `CustomLLM` blocks."""
    name = "achat" if llm.metadata.is_chat_model else "acomplete"
    return unwrap(getattr(type(llm), name)) is not unwrap(getattr(CustomLLM, name))  # the framework's spans wrap it


def _as_template(text: str) -> tuple[BasePromptTemplate, dict[str, str]]:
    return _TEXT_TEMPLATE, {"text": text}


def _pydantic_model(schema: dict[str, Any]) -> type[BaseModel]:
    """Build the pydantic model of a schema, with a list of whole numbers for each property."""
    fields: dict[str, Any] = {
        name: (list[int], Field(description=field["description"])) for name, field in schema["properties"].items()
    }
    return create_model(schema["title"], __doc__=schema["description"], **fields)
