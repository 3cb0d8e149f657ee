"""Retrieval together with generation as a LangChain retriever."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from drillrank import Passage
from drillrank.errors import check_positive
from drillrank.hosts.components import EXPLAIN, BRMGRFields, ModelFields
from drillrank.hosts.store import Answer, retrieved_and_generated
from drillrank.llm import Requests, Usage
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM
from langchain_ext._lookups import StoreLookups
from langchain_ext._retriever import QueryRetriever, Retriever
from langchain_ext.rerank import BRMGRRerank
from langchain_ext.settings import BRMGRRetrieverSettings


class BRMGRRetriever(BRMGRFields, ModelFields, QueryRetriever):
    """Retrieves documents, lets a language model write some more, and merges the two (see `BRMGRRerank`).

    Args:
        source: Any LangChain retriever, or a Runnable or function from a question to documents.
        llm: The chat model or text model that writes, or a Runnable around one, as `with_retry` makes.
        n_generated: Documents to ask for, one call each.
        model: Language model that ranks: a `load_language_model` specification, or a ready one.
        top_n: Documents to return; None returns all. `invoke(query, top_n=...)` overrides it.
        filters: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: what else the retriever brings is left out.
        prior: What the scores or the order of the retrieved documents say, as for `UPRRerank`.
        guard: Drop generated documents that no retrieved one supports, as for `BRMGRRerank`.
        generated_share: The largest share of generated documents among those returned.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.BRMGRRetrieverSettings`, or a mapping of its fields.

    Generated documents are made for one query and stored nowhere. A call that fails or brings nothing costs no
    retrieved document: there is a `DrillrankWarning`, and the others are merged. Give the model a time limit: a call
    that runs into it is a call that failed.

    Raises:
        InvalidInput: the question is blank.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> from langchain_ext import D3Retriever
    >>> inner = D3Retriever(documents=[Document(page_content="Emma is a novel that Jane Austen wrote.")])
    >>> llm = FakeListChatModel(responses=["Jane Austen wrote Emma.", "Emma was written by Charles Dickens."])
    >>> retriever = BRMGRRetriever(source=inner, llm=llm, n_generated=2, guard=True)
    >>> [(found.page_content, found.metadata.get("drillrank_origin")) for found in retriever.invoke("Who wrote Emma?")]
    [('Jane Austen wrote Emma.', 'generated'), ('Emma is a novel that Jane Austen wrote.', None)]
    """

    source: Retriever = Field(kw_only=False, description="Finds documents.")
    llm: Runnable[Any, Any] = Field(kw_only=False, description="Writes documents.")
    n_generated: int = Field(default=3, description="Documents to ask for, one call each.")
    top_n: int | None = Field(default=5, description="Documents to return; None returns all.")
    filters: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: BRMGRRetrieverSettings | dict[str, Any] = Field(
        default=BRMGRRetrieverSettings(), description="What is rarely touched."
    )

    def _make(self) -> BRMGRRerank:
        DocumentFilter(self.filters)  # says now what is wrong
        check_positive(n_generated=self.n_generated)
        merging = {name: getattr(self, name) for name in BRMGRFields.model_fields}
        return BRMGRRerank(
            self.model,
            model_options=self.model_options,
            top_n=None,
            explain=self.explain,
            settings=self._settings,
            **merging,
        )

    @property
    def _at_once(self) -> int:
        return int(self._settings.workers)

    def _framework_llm(self, config: RunnableConfig) -> FrameworkLLM:
        return FrameworkLLM(self.llm, "write a passage", config)

    def _found(self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage) -> Requests[list[Document]]:
        store = StoreLookups(query, self.source, DocumentFilter(self.filters), config, component=type(self).__name__)
        found, written = yield from retrieved_and_generated(self._settings, query, self.n_generated, store)
        return self._merged(query, top_n, found, written, config)

    def _merged(
        self, query: str, top_n: int | None, found: Answer, written: list[Passage], config: RunnableConfig
    ) -> list[Document]:
        generated = [
            Document(id=passage.id, page_content=passage.text, metadata={self._settings.origin_key: "generated"})
            for passage in written
        ]
        key = self._settings.origin_key
        # What was retrieved was written by nobody's LLM here, whatever is stored with it.
        retrieved = [
            one.model_copy(update={"metadata": {name: value for name, value in one.metadata.items() if name != key}})
            for one in found or ()
        ]
        reranker: BRMGRRerank = self.core.model_copy(update={"top_n": top_n})
        return reranker.compress_documents([*retrieved, *generated], query, config.get("callbacks"))
