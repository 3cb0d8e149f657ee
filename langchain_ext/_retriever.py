"""Base of the retrievers: sources of any kind, and the configuration of the run for what they call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

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
from drillrank.frameworks.metadata import copy_metadata, without_ranking
from drillrank.likelihood import LanguageModel
from drillrank.llm import LLM, Requests, Usage, arun, run
from drillrank.passages import check_top_n
from drillrank.settings import as_json
from drillrank.structure.record_store import RecordStore

Retriever = Runnable[str, list[Document]]
"""Runnable from a question to documents, such as a retriever, also with retries or fallbacks."""


class WithSource(ComponentFields):
    """Mixin for components with a source: a retriever, a function, a vector store or a record store."""

    @field_validator("source", mode="before", check_fields=False)
    @classmethod
    def _convert_source(cls, source: Any) -> Any:
        takes_views = any(get_origin(kind) is dict for kind in get_args(cls.model_fields["source"].annotation))
        if takes_views and isinstance(source, dict):
            return {view: cls._convert_retriever(retriever) for view, retriever in source.items()}
        source = _convert_function(source)
        if source is None or isinstance(source, Runnable | VectorStore | RecordStore):
            return source
        raise InvalidInput(
            f"{cls.__name__}: source must be a retriever, a VectorStore or a RecordStore, got a "
            f"{type(source).__name__}."
        )

    @classmethod
    def _convert_retriever(cls, source: Any) -> Runnable[str, list[Document]]:
        retriever = _convert_function(source)
        if not isinstance(retriever, Runnable):
            raise InvalidInput(
                f"{cls.__name__}: the source of a view must be a retriever, got a {type(source).__name__}. Of a store, "
                "pass store.as_retriever()."
            )
        return retriever


def _convert_function(source: Any) -> Any:
    """Return a function as a Runnable, and other sources as they are."""
    is_function = callable(source) and not isinstance(source, Runnable | VectorStore | RecordStore | type)
    return RunnableLambda(source) if is_function else source


class Loadable(Serializable):
    """Base of components that the framework's `dumps` writes.

    `loads` builds them again if it is allowed to load this class and namespace. A value that cannot be written, such as
    a function or a store, is written as its name, and `loads` refuses it.
    """

    model_config = ComponentFields.model_config  # that of the last base applies

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: the component can be loaded."""
        return True

    @property
    def lc_attributes(self) -> dict[str, Any]:
        """Settings by name, a model by its specification, and fields that `model_dump` omits, such as filters."""
        written: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, LanguageModel):
                written |= {name: value.spec, "model_options": value.options}
            elif is_dataclass(value) or (field.exclude and value is not None):
                written[name] = as_json(value)
        return written


class ConfiguredRetriever(WithSource, Loadable, BaseRetriever):
    """Base of the retrievers. It passes on all of a run's configuration, not only the callbacks."""

    model_config = ComponentFields.model_config

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Return the documents for a question."""
        with _child_configuration(config):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Run `invoke` without blocking the event loop."""
        with _child_configuration(config):
            return await super().ainvoke(input, config, **kwargs)


class QueryRetriever(ConfiguredRetriever):
    """Base of the retrievers with a generator of requests. `invoke(query, top_n=...)` overrides `top_n`."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        return run(**self._run_arguments(query, top_n, child_config(run_manager)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        return await arun(**self._run_arguments(query, top_n, child_config(run_manager)))

    def _run_arguments(self, query: str, top_n: int | None, config: RunnableConfig) -> dict[str, Any]:
        """Return the arguments of `run` and `arun`."""
        # Each retriever has a field `top_n`.
        usage, top_n = Usage(), self.top_n if top_n is None else top_n  # type: ignore[attr-defined]
        check_top_n(top_n)
        requests = self._retrieve_requests(clean_question(query), top_n, config, usage)
        return {"requests": requests, "llm": self._framework_llm(config), "usage": usage}

    def _framework_llm(self, config: RunnableConfig) -> LLM | None:
        """Return the LLM for the prompts of a question."""
        return None

    @abstractmethod
    def _retrieve_requests(
        self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage
    ) -> Requests[list[Document]]:
        """Return the documents for a question, best first. `usage` counts the cost of the LLM."""


@contextmanager
def _child_configuration(config: RunnableConfig | None) -> Iterator[None]:
    child = ensure_config(config)
    for key in ("run_name", "run_id"):  # they belong to this run only
        child.pop(key, None)  # type: ignore[misc]  # neither is required
    token = var_child_runnable_config.set(child)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def child_config(run_manager: Any) -> RunnableConfig:
    """Return the configuration for calls of a run: its `configurable`, tags and metadata, and child callbacks."""
    return patch_config(None, callbacks=run_manager.get_child())


def with_score(metadata: Mapping[str, Any], key: str | None, score: float, added: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with a document's score and other results of a question, instead of those of an earlier one.

    Args:
        metadata: Metadata of the document.
        key: Metadata key of the score. None adds nothing.
        score: The score.
        added: Further metadata to add.
    """
    return copy_metadata(metadata) if key is None else {**without_ranking(metadata), **added, key: score}
