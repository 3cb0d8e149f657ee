"""Self-ask as a LangChain Runnable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import AddableDict
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank import Passage, SelfAsk
from drillrank.drilldown.answering import ANSWER_PROMPT
from drillrank.drilldown.self_ask import SELF_ASK_PROMPT, FollowUp, SelfAskAnswer
from drillrank.errors import OnFailure
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.source_passages import RetrievedPassages
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.text import Tokens
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, step_prompt
from langchain_ext._records import passage_of
from langchain_ext._retriever import Loadable, Retriever, WithSource
from langchain_ext._store import LangChainStore

Output = dict[str, Any]


class SelfAskChain(WithSource, Loadable, RunnableSerializable[str, Output]):
    r"""Answers multi-hop questions by follow-up questions, each answered from the documents of a retriever.

    Args:
        llm: Chat model or text model that asks and answers, or a Runnable around one.
        source: Any retriever, or a Runnable or function from a question to documents.
        title_key: Metadata key of the title.
        filters: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False. The LLM reads only documents that pass.
        max_steps: Maximum number of follow-up questions. After them, the LLM is asked for the final answer.
        max_prompt_tokens: Token limit of each prompt.
        tokens: Token counter; see `drillrank.text.token_counter`.
        prompt: Prompt for the next step, with `{question}` and, at its end, `{transcript}`.
        answer_prompt: Prompt for an answer from documents, with `{contents}` and `{question}`.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer is unusable. `"fallback"`
            continues without the answer. None raises if a call fails, and falls back if an answer is unusable. The
            source has its own policy if it asks an LLM.

    The input is the question. The output has `answer`, `steps` (each with `question`, `answer` and `documents`),
    `problems` and `usage` (`prompt_tokens`, `completion_tokens` and `llm_calls`, including those of a `D3Retriever`).
    `stream` and `astream` yield each step as soon as it is answered, then the rest. The sum of the chunks is the
    output. Retrievals and LLM calls are children of the chain's run. If answers of the LLM are unusable, there is still
    an output and one `DrillrankWarning`. `with_retry` and `with_fallbacks` react to an `LLMFailure`.

    Raises:
        InvalidInput: A setting cannot be used, or the question is blank.
        LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise.

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

    model_config = WithSource.model_config  # otherwise that of the last base class would apply

    source: Retriever | VectorStore | RecordStore = Field(
        kw_only=False, description="Source of documents for follow-up questions."
    )
    llm: Runnable[Any, Any] = Field(kw_only=False, description="LLM that asks and answers.")
    max_steps: int = Field(default=5, description="Maximum number of follow-up questions.")
    max_prompt_tokens: int = Field(default=3000, description="Token limit of each prompt.")
    tokens: Tokens = Field(default=None, description="Token counter.")
    # Templates have no type parameter here, since pydantic would make a copy of a template with another one.
    prompt: BasePromptTemplate | str = Field(  # type: ignore[type-arg]
        default=SELF_ASK_PROMPT, description="Prompt for the next step."
    )
    answer_prompt: BasePromptTemplate | str = Field(  # type: ignore[type-arg]
        default=ANSWER_PROMPT, description="Prompt for an answer from documents."
    )
    on_failure: OnFailure | None = Field(default=None, description="Reaction to an LLM that fails.")
    title_key: str = Field(default="title", description="Metadata key of the title.")
    filters: Filter | None = Field(default=None, exclude=True, description="Filter of documents.")

    def _build_core(self) -> None:
        """Raise an error for unusable fields now, not at the first question."""
        self._make_self_ask({})
        DocumentFilter(self.filters)

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Return the answer and its steps."""
        return reduce(add, self.stream(input, config, **kwargs))

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run `invoke` without blocking the event loop."""
        return reduce(add, [chunk async for chunk in self.astream(input, config, **kwargs)])

    def stream(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Output]:
        """Yield each step, then the answer."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Output]:
        """Run `stream` without blocking the event loop."""

        async def inputs() -> AsyncIterator[str]:
            yield input

        return self.atransform(inputs(), config, **kwargs)

    def transform(self, input: Iterator[str], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Output]:
        """Run `stream` for a question that arrives in parts."""
        return self._transform_stream_with_config(
            input, self._stream_chunks, config, run_type="chain", defers_inputs=True, **kwargs
        )

    def atransform(
        self, input: AsyncIterator[str], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Output]:
        """Run `astream` for a question that arrives in parts."""
        return self._atransform_stream_with_config(
            input, self._astream_chunks, config, run_type="chain", defers_inputs=True, **kwargs
        )

    def _stream_chunks(
        self, parts: Iterator[str], run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> Iterator[Output]:
        self_ask = self._make_self_ask(patch_config(config, callbacks=run_manager.get_child()))
        yield from map(_make_chunk, self_ask.stream(clean_question(reduce(add, parts))))

    async def _astream_chunks(
        self, parts: AsyncIterator[str], run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> AsyncIterator[Output]:
        self_ask = self._make_self_ask(patch_config(config, callbacks=run_manager.get_child()))
        question = clean_question(reduce(add, [part async for part in parts]))
        async for item in self_ask.astream(question):
            yield _make_chunk(item)

    def _make_self_ask(self, config: RunnableConfig) -> SelfAsk:
        """Return the component of the core for one run."""

        def store() -> LangChainStore:
            return LangChainStore(
                self.source, DocumentFilter(self.filters, self.source), config, component="SelfAskChain"
            )

        return SelfAsk(
            FrameworkLLM(self.llm, "ask", config),
            RetrievedPassages(store, self._convert_chunk),
            max_steps=self.max_steps,
            max_prompt_tokens=self.max_prompt_tokens,
            tokens=self.tokens,
            on_failure=self.on_failure,
            prompt=step_prompt("prompt", self.prompt),
            answer_prompt=step_prompt("answer_prompt", self.answer_prompt),
        )

    def _convert_chunk(self, chunk: StoredChunk[Document]) -> Passage:
        """Return a passage with the text that an LLM reads and, in its metadata, the document."""
        document = chunk.record
        passage = passage_of(document, document.id or "", self.title_key)
        return replace(passage, metadata={"document": document})


def _make_chunk(item: FollowUp | SelfAskAnswer) -> AddableDict:
    if isinstance(item, FollowUp):
        documents = [passage.metadata["document"] for passage in item.passages]
        return AddableDict(steps=[{"question": item.question, "answer": item.answer, "documents": documents}])
    return AddableDict(answer=item.answer, steps=[], problems=list(item.problems), usage=item.usage.as_metadata())
