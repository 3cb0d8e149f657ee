"""What all retrievers share: they take whatever answers a question, and hand the run's configuration on to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, get_args

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, patch_config, var_child_runnable_config
from langchain_core.vectorstores import VectorStore
from pydantic import field_validator

from drillrank.errors import InvalidInput
from drillrank.frameworks.components import ComponentFields
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.metadata import copy_metadata, with_notes
from drillrank.likelihood import LanguageModel
from drillrank.llm import LLM, Requests, Usage, arun, run
from drillrank.passages import check_top_n
from drillrank.settings import as_json

Retriever = Runnable[str, list[Document]]
"""A Runnable from a question to documents, or a function; a retriever is one, with fallbacks, retries and all."""


class WithSource(ComponentFields):
    """In front of components that ask a source, which may be a function, too."""

    @field_validator("source", mode="before", check_fields=False)
    @classmethod
    def _as_runnable(cls, given: Any) -> Any:
        takes_store = VectorStore in get_args(cls.model_fields["source"].annotation)
        retrievers = given.values() if isinstance(given, dict) else () if takes_store else (given,)
        if any(isinstance(one, VectorStore) for one in retrievers):
            raise InvalidInput(f"source of {cls.__name__}: of a vector store give the retriever, store.as_retriever().")
        if isinstance(given, dict):
            return {name: cls._as_runnable(one) for name, one in given.items()}
        plain = callable(given) and not isinstance(given, Runnable | VectorStore | type)
        return RunnableLambda(given) if plain else given


class Loadable(Serializable):
    """What the host's `dumps` writes, and `loads` builds again if it is allowed this class and namespace.

    What cannot be written, such as a function or a store, is named in its place, and `loads` refuses it.
    """

    model_config = ComponentFields.model_config  # the last base's counts

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether it can be loaded."""
        return True

    @property
    def lc_attributes(self) -> dict[str, Any]:
        """Settings by name, a model by its specification, and what `model_dump` leaves out, such as filters."""
        written: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, LanguageModel):
                written |= {name: value.spec, "model_options": value.options}
            elif is_dataclass(value) or (field.exclude and value is not None):
                written[name] = as_json(value)
        return written


class ConfiguredRetriever(WithSource, Loadable, BaseRetriever):
    """Base of the retrievers: the host's own keeps all of a run's configuration but the callbacks to itself."""

    model_config = ComponentFields.model_config

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Documents for a question."""
        with _handed_on(config):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """As `invoke`, without blocking the event loop."""
        with _handed_on(config):
            return await super().ainvoke(input, config, **kwargs)


class QueryRetriever(ConfiguredRetriever):
    """Base of those that find what a question asks for; `invoke(query, top_n=...)` overrides `top_n`."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        return run(**self._run_arguments(query, top_n, child_config(run_manager)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        return await arun(**self._run_arguments(query, top_n, child_config(run_manager)))

    def _run_arguments(self, query: str, top_n: int | None, config: RunnableConfig) -> dict[str, Any]:
        """What `run` and `arun` take."""
        usage, top_n = Usage(), self._default_top_n if top_n is None else top_n
        check_top_n(top_n)
        requests, llm = self._found(clean_question(query), top_n, config, usage), self._framework_llm(config)
        return {"requests": requests, "llm": llm, "usage": usage, "workers": self._at_once}

    @property
    def _default_top_n(self) -> int | None:
        """Maximum number of results of a question that is asked without one."""
        return self.top_n  # type: ignore[attr-defined,no-any-return]  # a field of each

    @property
    def _at_once(self) -> int:
        """Most requests at the same time."""
        return 4

    def _framework_llm(self, config: RunnableConfig) -> LLM | None:
        """The LLM that a question's prompts go to."""
        return None

    @abstractmethod
    def _found(self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage) -> Requests[list[Document]]:
        """Documents for a question, best first; `usage` counts what the LLM costs."""


@contextmanager
def _handed_on(config: RunnableConfig | None) -> Iterator[None]:
    handed = ensure_config(config)
    for key in ("run_name", "run_id"):  # of this run alone
        handed.pop(key, None)  # type: ignore[misc]  # neither is required
    token = var_child_runnable_config.set(handed)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def child_config(run_manager: Any) -> RunnableConfig:
    """The configuration for what a run asks: `configurable`, tags and metadata as they are, callbacks of its own."""
    return patch_config(None, callbacks=run_manager.get_child())


def with_score(
    metadata: Mapping[str, Any], key: str | None, score: float, added: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Metadata with what the question made of a document, for notes of an earlier one; as it is without a key."""
    return copy_metadata(metadata) if key is None else {**with_notes(metadata, {}), **(added or {}), key: score}
