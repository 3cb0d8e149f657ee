"""LlamaIndex's models as what requests are made to: an LLM with its prompt templates and reports, and embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import unwrap
from typing import Any

from llama_index.core import PromptTemplate, Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import BaseModel, Field, ValidationError, create_model
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
from drillrank.frameworks.models import STEPS, HostEmbedding, filled, host_prompt, reported_tokens
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
        return HostEmbedding(embed, embed.get_text_embedding_batch, embed.get_query_embedding)
    return as_encoder(embed)


STEP_TAG = "drillrank.step"


class Report:
    """What calls have cost, in the order of their ends."""

    def __init__(self) -> None:
        self.calls: list[tuple[int | None, int | None]] = []

    def answer(self, text: str) -> Reply:
        """The text with what it cost."""
        # A call that is made of another one ends later, and repeats the report of that one or has none.
        *_, last = (None, None), *(tokens for tokens in self.calls if tokens != (None, None))
        return Reply(text, prompt_tokens=last[0], completion_tokens=last[1])


_REPORT: ContextVar[Report | None] = ContextVar("drillrank_report", default=None)


class _Listener(BaseEventHandler):
    """Writes the ends of calls into the report of the step that they belong to."""

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return "drillrank.Listener"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take note of one event."""
        report = _REPORT.get()
        if report is not None and isinstance(event, LLMChatEndEvent | LLMCompletionEndEvent) and event.response:
            report.calls.append(reported_tokens(event.response.raw, event.response.additional_kwargs))


get_dispatcher("llama_index.core.llms.callbacks").add_event_handler(_Listener())


@contextmanager
def step(name: str) -> Iterator[Report]:
    """Spans and events of the calls made inside are tagged with the step's name; their cost is in the report."""
    token = _REPORT.set(report := Report())
    try:
        with instrument_tags({**active_instrument_tags.get(), STEP_TAG: name}):
            yield report
    finally:
        _REPORT.reset(token)


_PROMPT = PromptTemplate("{text}")  # prompts are complete; braces in them are text


class Prompted(PromptMixin):
    """Base of components with templates of their own, which `update_prompts` may replace at any time."""

    def _step_prompt(self, name: str, template: BasePromptTemplate | str) -> Callable[..., str]:
        """Take in a template, or its text; a function for the core that fills in what has this name at the time.

        Raises:
            InvalidInput: a template lacks one of its places.
        """
        self._take(name, PromptTemplate(template) if isinstance(template, str) else template)
        return partial(filled, name, partial(self._filled, name))

    def _take(self, name: str, template: BasePromptTemplate) -> None:
        check_placeholders(template.format, *STEPS[name][1:])
        vars(self).setdefault("_templates", {})[name] = template

    def _filled(self, name: str, values: dict[str, Any]) -> tuple[str, tuple[BasePromptTemplate, dict[str, Any]]]:
        template = self._get_prompts()[name]
        return template.format(**values), (template, values)

    def _get_prompts(self) -> PromptDictType:
        return dict(vars(self)["_templates"])

    def _update_prompts(self, prompts: PromptDictType) -> None:
        for name in prompts.keys() & self._get_prompts().keys():  # others are of other components
            self._take(name, prompts[name])


class FrameworkLLM:
    """Asks through `predict` and `apredict`, so that chat models, formatting and events work as everywhere else.

    In traces, the events and spans of a call have a tag with the name of its step: the prompt's, or else the one given.

    Args:
        llm: The LLM; None takes `Settings.llm` at each call.
        step: What it is asked for.

    Raises:
        InvalidInput: it is no LLM of the host's, such as a function.
    """

    def __init__(self, llm: LLM | None, step: str) -> None:
        if not isinstance(llm, LLM | None):
            raise InvalidInput(f"llm is an LLM of LlamaIndex, and a {type(llm).__name__} is none; not {llm!r:.100}.")
        self._given = llm
        self._step = step

    @property
    def _llm(self) -> LLM:
        return Settings.llm if self._given is None else self._given

    def complete(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        """The LLM's answer, held to a schema if there is one and it is a model that calls functions."""
        # A failed call leaves an event open in the host's trace; in a context of its own, the next is no child of it.
        return copy_context().run(self._ask, prompt, schema)

    @property
    def acomplete(self) -> Callable[..., Any] | None:
        """`complete` by the LLM's own asynchronous call; None where the host falls back to the blocking one."""
        return self._aask if _is_asynchronous(self._llm) else None

    complete_json, acomplete_json = complete, acomplete

    def _ask(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        llm = self._llm
        (template, values), name = host_prompt(prompt, _template_of, self._step)
        with step(name) as report:
            if schema is None or not llm.metadata.is_function_calling_model:
                return report.answer(llm.predict(template, **values))
            with _schema_errors(report):
                answer = llm.structured_predict(_model_of(schema), template, **values)
            return report.answer(answer.model_dump_json())

    async def _aask(self, prompt: str, schema: dict[str, Any] | None = None) -> Reply:
        llm = self._llm
        (template, values), name = host_prompt(prompt, _template_of, self._step)
        with step(name) as report:
            if schema is None or not llm.metadata.is_function_calling_model:
                return report.answer(await llm.apredict(template, **values))
            with _schema_errors(report):
                answer = await llm.astructured_predict(_model_of(schema), template, **values)
            return report.answer(answer.model_dump_json())


@contextmanager
def _schema_errors(report: Report) -> Iterator[None]:
    """Convert the error for an answer that does not follow the schema. Its message may have the answer.

    LlamaIndex raises a plain `ValueError` for it, as LLMs may do without an answer, which report no call.
    """
    try:
        yield
    except ValueError as cause:
        if isinstance(cause, ValidationError) or report.calls:
            raise UnusableAnswer("it does not follow the schema") from cause
        raise


def identity(llm: LLM) -> str | None:
    """What tells an LLM's answers from another's: its class, metadata and fields; None where these do not tell."""
    fields = {name: getattr(llm, name) for name, field in type(llm).model_fields.items() if not field.exclude}
    known = f"{type(llm).__module__}.{type(llm).__qualname__}({llm.metadata!r}, {sorted(fields.items())!r})"
    return None if llm.metadata.model_name in ("", "unknown") or " at 0x" in known else known


def _is_asynchronous(llm: LLM) -> bool:
    """Whether an LLM has an asynchronous call of its own: that of `CustomLLM` is the blocking one."""
    name = "achat" if llm.metadata.is_chat_model else "acomplete"
    return unwrap(getattr(type(llm), name)) is not unwrap(getattr(CustomLLM, name))  # wrapped by the host's spans


def _template_of(text: str) -> tuple[BasePromptTemplate, dict[str, str]]:
    return _PROMPT, {"text": text}


def _model_of(schema: dict[str, Any]) -> type[BaseModel]:
    """The host holds LLMs to pydantic models: one with a list of whole numbers for each property of the schema."""
    fields: dict[str, Any] = {
        name: (list[int], Field(description=field["description"])) for name, field in schema["properties"].items()
    }
    return create_model(schema["title"], __doc__=schema["description"], **fields)
