"""Retrievers: over views (MC-indexing), and together with what an LLM generates (BRMGR)."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank import Passage
from drillrank.errors import check_positive
from drillrank.explanation import Explanation
from drillrank.frameworks.components import EXPLAIN, BRMGRFields, ModelFields
from drillrank.frameworks.metadata import describe_explanation, prefixed, with_result_metadata
from drillrank.frameworks.store import retrieve_and_generate
from drillrank.frameworks.views import Merged, ViewRetrieval
from drillrank.llm import Requests, Usage
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from drillrank.views import VIEWS, Expansion, Merge, RetrieverName, View
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of
from langchain_ext._records import as_raw, read_given
from langchain_ext._retriever import QueryRetriever, Retriever, with_score
from langchain_ext._store import LangChainStore
from langchain_ext.rerank import BRMGRRerank, GeneratedDocument
from langchain_ext.settings import BRMGRRetrieverSettings, ScoreSettings

Source = VectorStore | Retriever | RecordStore | dict[View, Retriever]


class MultiViewRetriever(QueryRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: What `MultiViewTextSplitter` made of one or many documents. Without a `source`, they are indexed in
            memory. Beside a source they serve where no store can be asked for a section.
        source: Where to look instead: a vector store that holds such documents, searched for keywords and summaries
            with the filter `{"drillrank_view": ...}`, and once without; a retriever for each view, as a dictionary; or
            a single retriever over all of them, whose results are ranked by their view. A retriever is any Runnable or
            function from a query to documents.
        filters: Which documents may be seen: metadata values and operators as vector stores take them, or a function
            from a document to True or False. It governs every look-up, as do those of the retrievers that
            `store.as_retriever` made.
        retriever: `"bm25"` or `"tfidf"`: one index for each view, where documents are indexed in memory.
        weights: How much each view counts; None takes the best of every view: see `drillrank.views.merge_views`.
        language: Whose stemmer words go through, where an index in memory is searched.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Without a source, semantic similarity then replaces lexical matching.
        merge: `"fusion"`, or `"union"` as in the paper, about `top_n` sections: see `drillrank.views.merge_views`.
        views: The views that are searched.
        top_n: Sections to return; `invoke(query, top_n=...)` overrides it.
        expand: `"neighbours"` or `"parent"`: after each section found come those around it, with its score and its id
            as metadata `drillrank_expanded_from`, beyond `top_n`.
        explain: Whether results say why they stand where they stand.
        settings: What is rarely touched: `langchain_ext.settings.ScoreSettings`, or a mapping of its fields.

    Returns raw documents, each section once, their text as in the source; `metadata["drillrank_matched_views"]` tells
    the views that matched and at which rank. Scores are sums of reciprocal ranks, between 0 and 0.05: they order one
    result list and mean nothing beyond.

    Text and metadata are those of the section's raw record in the store at the time of the question: views are
    references, and a section whose raw record is gone is left out, with a `DrillrankWarning`. The store is asked for
    raw records and for neighbours by id or, as `langchain_core.indexing.index` gives ids of its own, by metadata;
    that of the source, or of retrievers that `store.as_retriever` made. Behind any other Runnable none is guessed:
    there `documents` stand in, unless they differ from what was found.

    Chunks of other splitters are ranked as they are, each as a section of its own, with a `DrillrankWarning`; they
    are found beside sections, whenever they were stored.

    Raises:
        InvalidInput: the raw view of a section is missing, two that may be seen are one section with different texts,
            `source` is an empty dictionary, a weight is below 0, the filters cannot be used, or the query is blank.

    >>> from langchain_ext import MultiViewTextSplitter
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> retriever = MultiViewRetriever(documents=MultiViewTextSplitter().create_documents([text]), top_n=1)
    >>> hit = retriever.invoke("Who sings?")[0]
    >>> hit.metadata["drillrank_section_path"], hit.metadata["drillrank_matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    documents: list[Document] | None = Field(default=None, kw_only=False, description="Sections, indexed in memory.")
    source: Source | None = Field(default=None, description="Where to look; None indexes the documents in memory.")
    filters: Filter | None = Field(default=None, description="Which documents may be seen.")
    retriever: RetrieverName = Field(default="bm25", description="Index of each view in memory.")
    weights: dict[str, float] | None = Field(default=None, description="How much each view counts.")
    language: str = Field(default="english", description="Whose stemmer words go through.")
    embed: Embeddings | Embed | str | None = Field(default=None, description="Ranks by meaning in memory.")
    merge: Merge = Field(default="fusion", description="How the views' rankings become one.")
    views: tuple[View, ...] = Field(default=VIEWS, description="The views that are searched.")
    top_n: int = Field(default=5, description="Sections to return.")
    expand: Expansion | None = Field(default=None, description="What comes after each section found.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: ScoreSettings | dict[str, Any] = Field(default=ScoreSettings(), description="What is rarely touched.")

    def _build_core(self) -> ViewRetrieval:
        DocumentFilter(self.filters)  # says now what is wrong with it
        documents = self.documents or []
        return ViewRetrieval(
            self,
            read_given(documents),
            lambda: [document.page_content for document in documents],
            maker="MultiViewTextSplitter",
            embed=embedding_of(self.embed),
        )

    def _found(self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage) -> Requests[list[Document]]:
        access_filter = DocumentFilter(self.filters, self.source)
        store = LangChainStore(self.source, access_filter, config, question=query)  # type: ignore[arg-type]  # a dictionary by view
        found = yield from self.core.retrieve(query, store, access_filter, top_n or self.top_n)
        return [self._document(merged, why) for merged, why in found]

    def _document(self, found: Merged, why: Explanation | None) -> Document:
        section, merged, origin = found
        document = as_raw(section.record, section.text) if section.view else section.record
        metadata = with_result_metadata(document.metadata, matched_views=None, expanded_from=None)
        name, value = ("matched_views", merged.matched_views) if origin is None else ("expanded_from", origin)
        metadata = with_score(
            metadata, self._settings.score_key, merged.score, {prefixed(name): value} | describe_explanation(why)
        )
        return document.model_copy(update={"metadata": metadata})


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

    Generated documents are made for one query and stored nowhere. Give the model a time limit: a call that exceeds it
    fails. `settings.on_failure` says if a failed call raises an error, or the other documents are merged without it.

    Raises:
        InvalidInput: the question is blank.
        LLMFailure: A call failed or its answer has no word, and `on_failure` says to raise.

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

    def _build_core(self) -> BRMGRRerank:
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
        store = LangChainStore(self.source, DocumentFilter(self.filters), config, component=type(self).__name__)
        found, written = yield from retrieve_and_generate(self._settings, query, self.n_generated, store, top_n or 10)
        return self._merged(query, top_n, [chunk.record for chunk in found], written, config)

    def _merged(
        self, query: str, top_n: int | None, found: list[Document], written: list[Passage], config: RunnableConfig
    ) -> list[Document]:
        generated = [GeneratedDocument(id=passage.id, page_content=passage.text) for passage in written]
        reranker: BRMGRRerank = self.core.model_copy(update={"top_n": top_n})
        return reranker.compress_documents([*found, *generated], query, config.get("callbacks"))
