"""Retrievers: over views (MC-indexing), and together with what an LLM generates (BRMGR)."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank.frameworks.components import EXPLAIN, BRMGRFields, ModelFields
from drillrank.frameworks.metadata import describe_explanation, prefixed
from drillrank.frameworks.settings import ResultLimit, count_merged
from drillrank.frameworks.source_passages import retrieve_and_generate
from drillrank.frameworks.views import FoundSection, ViewRetrieval, build_view_retrieval
from drillrank.llm import Requests, Usage
from drillrank.settings import Preset
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from drillrank.views import VIEWS, Expansion, Merge, RetrieverName, View
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, takes_temperature
from langchain_ext._records import as_raw, read_distinct_documents
from langchain_ext._retriever import QueryRetriever, Retriever, with_score
from langchain_ext._store import LangChainStore
from langchain_ext.rerank import BRMGRRerank, GeneratedDocument
from langchain_ext.settings import BRMGRRetrieverSettings, MultiViewRetrieverSettings

Source = VectorStore | Retriever | RecordStore | dict[View, Retriever]


class MultiViewRetriever(QueryRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: Results of `MultiViewTextSplitter`. Without a `source`, they are indexed in memory. With one, they
            represent sections whose raw records no store can be asked for.
        source: Where to search instead: a vector store that contains such documents, a retriever whose results are
            ranked by their views, a retriever for each view, as a dictionary, or a `RecordStore`. A retriever is any
            Runnable or function from a query to documents. A store is searched for keywords and summaries with the
            filter `{"drillrank_view": ...}`, and once without.
        filters: Metadata values and operators as vector stores take them, or a function from a document to True or
            False. They apply to all look-ups, as do those of retrievers that `store.as_retriever` made.
        retriever: `"bm25"` or `"tfidf"`: index of each view in memory.
        weights: Weight of each view. None takes the best of every view: see `drillrank.views.merge_views`.
        embed: Embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Without a source, semantic similarity then replaces lexical matching.
        merge: `"fusion"`, or `"union"` as in the paper, about `top_n` sections: see `drillrank.views.merge_views`. None
            is fusion, or union with the preset.
        views: Views to search.
        top_n: Maximum number of results. `invoke(query, top_n=...)` overrides it.
        expand: `"parent"` returns, for each section that was found, the section around it: its parent with all
            subsections, or, without a parent, its own subsections. `"neighbours"` adds the previous and the next
            section. See below. None returns the section itself.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: the union of the best of each view.
        explain: True explains the results.
        settings: Settings that rarely change: `langchain_ext.settings.MultiViewRetrieverSettings`, or a mapping.

    The results are raw documents, each section once. `metadata["drillrank_matched_views"]` contains the views that
    found it and its rank in each. Scores are sums of reciprocal ranks between 0 and 0.05. They order one list of
    results and mean nothing beyond it.

    Text and metadata are those of the raw record in the store at the time of the question, because views are
    references. A section whose raw record is missing is left out, with a `DrillrankWarning`. Raw records are looked up
    by id or, because `langchain_core.indexing.index` makes ids of its own, by metadata, in the store of the source, or
    of retrievers that `store.as_retriever` made. For other Runnables, `documents` contain them, unless they differ from
    what was found.

    With `expand`, contiguous sections are joined to one text, up to `settings={"max_expanded_tokens": ...}`. If the
    section around the one that was found is larger, it is returned in part. Each section is in one result at most, so
    that sections with one parent are one result, and there may be fewer than `top_n`. Text, `drillrank_start`,
    `drillrank_end` and pages are those of the joined text, and `drillrank_expanded_from` is the id of the section that
    was found. Sections that the filter hides, or that are missing in the store, end the text before or after them.

    Chunks of other splitters are ranked as they are, each as a section of its own, with a `DrillrankWarning`.

    Raises:
        InvalidInput: The raw view of a section is missing, two visible documents are one section with different texts,
            a setting is invalid, or the query is blank.

    >>> from langchain_ext import MultiViewTextSplitter
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> retriever = MultiViewRetriever(documents=MultiViewTextSplitter().create_documents([text]), top_n=1)
    >>> hit = retriever.invoke("Who sings?")[0]
    >>> hit.metadata["drillrank_section_path"], hit.metadata["drillrank_matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    documents: list[Document] | None = Field(default=None, kw_only=False, description="Views of sections.")
    source: Source | None = Field(default=None, description="Store, retrievers or None.")
    filters: Filter | None = Field(default=None, description="Filter of the documents.")
    retriever: RetrieverName = Field(default="bm25", description="Index of each view in memory.")
    weights: dict[str, float] | None = Field(default=None, description="Weight of each view.")
    embed: Embeddings | Embed | str | None = Field(default=None, description="Embeddings for an index in memory.")
    merge: Merge | None = Field(default=None, description="Way to merge the rankings.")
    views: tuple[View, ...] = Field(default=VIEWS, description="Views to search.")
    top_n: int = Field(default=5, description="Maximum number of results.")
    expand: Expansion | None = Field(default=None, description="Sections to join to those found.")
    preset: Preset | None = Field(default=None, description='"paper" sets what the paper fixes.')
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: MultiViewRetrieverSettings | dict[str, Any] = Field(
        default=MultiViewRetrieverSettings(), description="Settings that rarely change."
    )

    def _build_core(self) -> ViewRetrieval[Document]:
        DocumentFilter(self.filters)  # says now what is wrong with it
        sections, text_of = read_distinct_documents(self.documents or []), attrgetter("page_content")
        return build_view_retrieval(self, sections, text_of, embedding_of(self.embed), "MultiViewTextSplitter")

    def _retrieve_requests(
        self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage
    ) -> Requests[list[Document]]:
        access_filter = DocumentFilter(self.filters, self.source)
        store = LangChainStore(self.source, access_filter, config, question=query)  # type: ignore[arg-type]  # a dictionary by view
        sections = yield from self.core.retrieve_requests(query, store, access_filter=access_filter, top_n=top_n)
        return list(map(self._build_document, sections))

    def _build_document(self, section: FoundSection[Document]) -> Document:
        chunk, metadata = section.chunk, section.metadata
        if section.members and metadata.get("start_index") == chunk.record.metadata.get(prefixed("start")):
            metadata["start_index"] = chunk.start  # the splitter's, not one of the user's own
        added_metadata = section.retrieval_metadata | describe_explanation(section.explanation)
        metadata = with_score(metadata, self._settings.score_key, section.merged.score, added_metadata)
        document = chunk.record.model_copy(update={"metadata": metadata})
        return as_raw(document, chunk.text) if chunk.view else document


class BRMGRRetriever(BRMGRFields, ModelFields, QueryRetriever):
    """Retrieves documents, lets a language model write more of them, and merges both (see `BRMGRRerank`).

    Args:
        source: Any retriever, Runnable or function from a question to documents, a vector store or a record store. The
            latter two are searched for `top_n` documents, or 10 without a limit. The views of a section count as one
            document, its raw one.
        llm: Chat model or text model that writes, or a Runnable around one, as `with_retry` makes.
        n_generated: Number of passages that the LLM writes, with one call each. None is 3, or 10 with a preset.
        model: Language model that ranks: a `load_language_model` specification, or a language model.
        top_n: Maximum number of results. None returns all. `"auto"` is 5, or None with a preset. `invoke(query,
            top_n=...)` overrides it.
        filters: Metadata values and operators as vector stores take them, or a function from a document to True or
            False, for the retrieved documents.
        prior: Prior from the scores or the order of the retrieved documents, as for `UPRRerank`.
        guard: Drop generated documents that no retrieved one supports, as for `BRMGRRerank`.
        preset: `"paper"` sets what the paper fixes, as for `drillrank.BRMGR`, and merges all of 10 retrieved and 10
            generated passages. The LLM samples them with one prompt at a temperature of 0.95, if it has a field
            `temperature`. Otherwise it answers ten prompts, with a `DrillrankWarning`.
        explain: True explains the results.
        model_options: Options of the language model.
        settings: Settings that rarely change: `langchain_ext.settings.BRMGRRetrieverSettings`, or a mapping.

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

    source: Retriever | VectorStore | RecordStore = Field(kw_only=False, description="Finds documents.")
    llm: Runnable[Any, Any] = Field(kw_only=False, description="Writes documents.")
    n_generated: int | None = Field(default=None, description="Documents to ask for, one call each. None is 3.")
    top_n: ResultLimit = Field(default="auto", description='Documents to return; None returns all, "auto" is 5.')
    filters: Filter | None = Field(default=None, exclude=True, description="Filter of the documents.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: BRMGRRetrieverSettings | dict[str, Any] = Field(
        default=BRMGRRetrieverSettings(), description="What is rarely touched."
    )

    def _build_core(self) -> BRMGRRerank:
        DocumentFilter(self.filters)  # says now what is wrong
        count_merged(self.top_n, self.n_generated, self.preset)  # says now what is wrong
        merging = {name: getattr(self, name) for name in BRMGRFields.model_fields}
        return BRMGRRerank(
            self.model,
            model_options=self.model_options,
            top_n=None,
            explain=self.explain,
            settings=self._settings,
            **merging,
        )

    def _run_arguments(self, query: str, top_n: int | None, config: RunnableConfig) -> dict[str, Any]:
        return {**super()._run_arguments(query, top_n, config), "workers": self._settings.workers}

    def _framework_llm(self, config: RunnableConfig) -> FrameworkLLM:
        return FrameworkLLM(self.llm, "write a passage", config, self._settings.sampling_temperature(self.preset))

    def _retrieve_requests(
        self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage
    ) -> Requests[list[Document]]:
        access_filter = DocumentFilter(self.filters, self.source)
        store = LangChainStore(self.source, access_filter, config, component=type(self).__name__, question=query)
        counts = count_merged(top_n, self.n_generated, self.preset)
        temperature = self._settings.sampling_temperature(self.preset)
        prompts = self._settings.choose_prompts(temperature, partial(takes_temperature, self.llm))
        chunks, passages = yield from retrieve_and_generate(self._settings, query, counts, prompts, store)
        retrieved = [as_raw(one.record, one.text) if one.view == "raw" else one.record for one in chunks]
        generated = [GeneratedDocument(id=passage.id, page_content=passage.text) for passage in passages]
        reranker: BRMGRRerank = self.core.model_copy(update={"top_n": counts.top_n})
        return reranker.compress_documents([*retrieved, *generated], query, config.get("callbacks"))
