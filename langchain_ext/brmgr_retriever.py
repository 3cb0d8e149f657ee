"""Retrieval together with generation as a LangChain retriever."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, Field

from drillrank import Passage
from drillrank.dialogue import Dialogue, arun, run
from drillrank.generation import generated_passages
from drillrank.hosts.component import WithModel
from drillrank.hosts.generated import GeneratedRecordSettings, GenerationSettings
from drillrank.passages import check_query, check_top_n
from drillrank.settings import settings_of
from langchain_ext._filters import Filter, Guard
from langchain_ext._llm import FrameworkLLM
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config
from langchain_ext.brmgr import BRMGRRerank


class BRMGRRetriever(WithModel, ConfiguredRetriever, GenerationSettings):
    """Retrieves documents, lets a language model write some more, and merges the two (see `BRMGRRerank`).

    Args:
        retriever: Any LangChain retriever, or a Runnable or function from a question to documents.
        llm: The chat model or text model that writes, or a Runnable around one, as `with_retry` makes.
        n_generated: Documents to ask for, one call each.
        model: Language model that ranks: a `load_language_model` specification, or a ready one.
        top_n: Documents to return; None returns all. `invoke(query, top_n=...)` overrides it.

    The other fields: `model_options`, `title_key`, `score_key`, `filter` (metadata values and operators, as vector
    stores take them, or a function from a document to True or False: what else the retriever brings is left out), and
    the settings below; with a `prior` the scores or the order of the retrieved count, as for `UPRRerank`.

    Generated documents are made for one query and stored nowhere. A call that fails or brings nothing costs no
    retrieved document: there is a `DrillrankWarning`, and the others are merged. Give the model a time limit: a call
    that runs into it is a call that failed.

    Raises:
        InvalidInput: the question is blank.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> from langchain_ext import D3Retriever
    >>> inner = D3Retriever(documents=[Document(page_content="Emma is a novel that Jane Austen wrote.")])
    >>> llm = FakeListChatModel(responses=["Jane Austen wrote Emma.", "Emma was written by Charles Dickens."])
    >>> retriever = BRMGRRetriever(retriever=inner, llm=llm, n_generated=2, guard=True)
    >>> [(found.page_content, found.metadata.get("drillrank_origin")) for found in retriever.invoke("Who wrote Emma?")]
    [('Jane Austen wrote Emma.', 'generated'), ('Emma is a novel that Jane Austen wrote.', None)]
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    retriever: Retriever
    llm: Runnable[Any, Any]
    n_generated: int = Field(default=3, gt=0, description="Documents to ask for, one call each.")
    top_n: int | None = Field(default=None, gt=0, description="Documents to return; None returns all.")
    title_key: str = Field(default="title", description="Metadata key of the title.")
    score_key: str | None = Field(
        default="relevance_score",
        description="Metadata key of the score; None adds nothing that depends on the question.",
    )
    filter: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")

    def _prepare(self) -> None:
        Guard(self.filter)  # says now what is wrong with it

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_top_n(top_n)
        dialogue = self._dialogue(query)
        retrieved = self.retriever.invoke(query, config)
        written = run(dialogue, FrameworkLLM(self.llm, "write a passage", config), workers=self.workers)
        return self._merged(query, retrieved, written, top_n)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_top_n(top_n)
        dialogue = self._dialogue(query)
        writing = asyncio.ensure_future(
            arun(dialogue, FrameworkLLM(self.llm, "write a passage", config), workers=self.workers)
        )
        try:
            retrieved = await self.retriever.ainvoke(query, config)
            written = await writing
        finally:
            writing.cancel()  # of use only if retrieval raised
        return await asyncio.to_thread(self._merged, query, retrieved, written, top_n)

    def _dialogue(self, query: str) -> Dialogue[list[Passage]]:
        return generated_passages(check_query(query), self.n_generated, self.prompts, self.on_failure)

    def _merged(
        self, query: str, retrieved: list[Document], written: list[Passage], top_n: int | None
    ) -> list[Document]:
        generated = [
            Document(id=passage.id, page_content=passage.text, metadata={self.origin_key: "generated"})
            for passage in written
        ]
        ranking = settings_of(self, GeneratedRecordSettings) | {
            "model": self._language_model,
            "top_n": self.top_n if top_n is None else top_n,
            "title_key": self.title_key,
            "score_key": self.score_key,
        }
        seen = Guard(self.filter).kept(retrieved, type(self).__name__)
        return BRMGRRerank(**ranking).compress_documents([*seen, *generated], query)
