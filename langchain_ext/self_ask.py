"""Self-ask as a LangChain Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import AddableDict
from pydantic import Field

from drillrank import Passage, SelfAsk
from drillrank.drilldown.answering import ANSWER_PROMPT
from drillrank.drilldown.self_ask import SELF_ASK_PROMPT, FollowUp, SelfAskAnswer
from drillrank.errors import OnFailure
from drillrank.frameworks.store import RetrievedPassages
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.text import Tokens
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, step_prompt
from langchain_ext._records import passage_of
from langchain_ext._retriever import Loadable, Retriever, WithSource
from langchain_ext._store import LangChainStore

Output = dict[str, Any]


class SelfAskChain(WithSource, Loadable, RunnableSerializable[str, Output]):
    r"""Answers multi-hop questions by follow-up questions, each answered from what a retriever finds.

    Args:
        llm: The chat model or text model that asks and answers, or a Runnable around one.
        source: Any retriever, or a Runnable or function from a question to documents.
        title_key: Metadata key of the title.
        filters: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: no LLM reads another document of the retriever's.
        max_steps: Most follow-up questions; then the final answer is asked for.
        max_prompt_tokens: Budget of a prompt, as for `drillrank.SelfAsk`.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`.
        prompt: Asks for the next step: with `{question}` and `{transcript}`, which ends the prompt.
        answer_prompt: Asks for an answer from documents: with `{contents}` and `{question}`.
        on_failure: Where a call fails: `"continue"` with what there is without it, or `"raise"`.

    The input is the question. The output has `answer`, `steps` (each with `question`, `answer` and `documents`),
    `problems` and `usage` (`prompt_tokens`, `completion_tokens` and `llm_calls`, with those of a `D3Retriever`).
    `stream` and `astream` yield each step as soon as it is answered, then the rest; the sum of the chunks is the
    output. Retrievals and LLM calls are children of the chain's run. Whatever the LLM says, there is an answer; what
    went wrong is also told in one `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> from langchain_ext import D3Retriever
    >>> says = ["Yes.\nFollow up: Who wrote Emma?", "Jane Austen", "So the final answer is: Jane Austen"]
    >>> retriever = D3Retriever(documents=[Document(page_content="Emma is a novel that Jane Austen wrote.")])
    >>> chain = SelfAskChain(llm=FakeListChatModel(responses=says), source=retriever)
    >>> for chunk in chain.stream("Who is the author of Emma?"):
    ...     print(list(chunk), chunk.get("answer"))
    ['steps'] None
    ['answer', 'steps', 'problems', 'usage'] Jane Austen
    """

    model_config = WithSource.model_config  # the last base's counts

    source: Retriever = Field(kw_only=False, description="Finds what follow-up questions are answered from.")
    llm: Runnable[Any, Any] = Field(kw_only=False, description="Asks and answers.")
    max_steps: int = Field(default=5, description="Most follow-up questions.")
    max_prompt_tokens: int = Field(default=3000, description="Budget of a prompt.")
    tokens: Tokens = Field(default=None, description="What counts the tokens of a text.")
    # Without a parameter: one of another kind would be built anew.
    prompt: BasePromptTemplate | str = Field(  # type: ignore[type-arg]
        default=SELF_ASK_PROMPT, description="Asks for the next step."
    )
    answer_prompt: BasePromptTemplate | str = Field(  # type: ignore[type-arg]
        default=ANSWER_PROMPT, description="Asks for an answer."
    )
    on_failure: OnFailure = Field(default="continue", description="What a failed call means.")
    title_key: str = Field(default="title", description="Metadata key of the title.")
    filters: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")

    def _build_core(self) -> None:
        self._self_ask({})  # says now what is wrong
        DocumentFilter(self.filters)

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """The answer and how it came about."""
        return reduce(add, self.stream(input, config, **kwargs))

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """As `invoke`, without blocking the event loop."""
        return reduce(add, [chunk async for chunk in self.astream(input, config, **kwargs)])

    def stream(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Output]:
        """Each step, then the answer."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Output]:
        """As `stream`, without blocking the event loop."""

        async def inputs() -> AsyncIterator[str]:
            yield input

        return self.atransform(inputs(), config, **kwargs)

    def transform(self, input: Iterator[str], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Output]:
        """As `stream`, for a question that comes in parts."""
        return self._transform_stream_with_config(
            input, self._chunks, config, run_type="chain", defers_inputs=True, **kwargs
        )

    def atransform(
        self, input: AsyncIterator[str], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """As `astream`, for a question that comes in parts."""
        return self._atransform_stream_with_config(
            input, self._achunks, config, run_type="chain", defers_inputs=True, **kwargs
        )

    def _chunks(
        self, parts: Iterator[str], run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> Iterator[Output]:
        question = reduce(add, parts)
        yield from map(_chunk, self._self_ask(patch_config(config, callbacks=run_manager.get_child())).stream(question))

    async def _achunks(
        self, parts: AsyncIterator[str], run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> AsyncIterator[Output]:
        question = reduce(add, [part async for part in parts])
        async for item in self._self_ask(patch_config(config, callbacks=run_manager.get_child())).astream(question):
            yield _chunk(item)

    def _self_ask(self, config: RunnableConfig) -> SelfAsk:
        def store() -> LangChainStore:
            return LangChainStore(self.source, DocumentFilter(self.filters), config, component="SelfAskChain")

        return SelfAsk(
            FrameworkLLM(self.llm, "ask", config),
            RetrievedPassages(store, self._passage),
            max_steps=self.max_steps,
            max_prompt_tokens=self.max_prompt_tokens,
            tokens=self.tokens,
            on_failure=self.on_failure,
            prompt=step_prompt("prompt", self.prompt),
            answer_prompt=step_prompt("answer_prompt", self.answer_prompt),
        )

    def _passage(self, chunk: StoredChunk[Document]) -> Passage:
        found = chunk.record
        passage = passage_of(found, found.id or "", self.title_key)
        return replace(passage, metadata={"document": found})


def _chunk(item: FollowUp | SelfAskAnswer) -> AddableDict:
    if isinstance(item, FollowUp):
        documents = [passage.metadata["document"] for passage in item.passages]
        return AddableDict(steps=[{"question": item.question, "answer": item.answer, "documents": documents}])
    return AddableDict(answer=item.answer, steps=[], problems=list(item.problems), usage=item.usage.as_metadata())
