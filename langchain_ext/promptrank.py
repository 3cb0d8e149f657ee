"""Path search in LangChain: as a document compressor, and as a retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank import Passage
from drillrank.frameworks.components import EXPLAIN, ModelFields
from drillrank.frameworks.metadata import describe_explanation
from drillrank.frameworks.paths import FoundRecord, PathHost, PathRetrieval, path_rerank, rank_linked
from drillrank.llm import FunctionRequest, Requests, Usage, arun, run
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName, PathRerank, TextLinkName
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.prior import Prior
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, step_prompt
from langchain_ext._records import as_raw, document_names, index_fields, names_of, passage_of, read_chunk
from langchain_ext._retriever import QueryRetriever, Retriever, WithSource, with_score
from langchain_ext._store import LangChainStore, underlying_store
from langchain_ext.rerank import LikelihoodCompressor
from langchain_ext.settings import PromptRankRerankSettings, PromptRankRetrieverSettings

HOP_EVENT = "promptrank_hop"
"""Name of the custom event that each hop of a path search dispatches."""


def _host(component: Any, config: RunnableConfig | None = None) -> PathHost[Document]:
    """Of one question, in a run of this configuration."""
    source, store, settings = component.source, component.store, component.settings
    access_filter = DocumentFilter(component.filters, source)
    return PathHost(
        access_filter=access_filter,
        retrieves=source is not None,
        docstore=store,
        certain=underlying_store(source) is not None,
        lookups=partial(LangChainStore, source, access_filter, config, store),
        by_id=lambda: LangChainStore(source if store is None else None, DocumentFilter(None), config, store),
        own_id=attrgetter("id"),
        names=names_of,
        passage=partial(passage_of, title_key=settings.title_key, metadata_fields=settings.metadata_fields),
        event=lambda hop: FunctionRequest(
            partial(dispatch_custom_event, HOP_EVENT, hop, config=config),
            partial(adispatch_custom_event, HOP_EVENT, hop, config=config),
        ),
    )


class PromptRankRerank(WithSource, LikelihoodCompressor):
    """Reranks documents by the best path of linked documents among them, and beyond them if told where.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default; None keeps all.
        links: What links a document to others: `"metadata"` (ids that its metadata lists under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to the addresses in the metadata), `"titles"` (its text mentions another
            document's title, metadata `title_key`), `"names"` (they mention the same name).
        store: Linked documents that were not retrieved are fetched from here by id, and may enter the result: a
            store of documents by key, or a vector store that knows `get_by_ids`. There is no default, as a reranker is
            not told where its documents come from.
        source: Each path that is followed leads to three more documents, those that this retriever finds with the
            question and the path's last document as its query; for texts without links.
        filters: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: no other document is read, whether it is given, fetched over a link or retrieved. What is fetched
            over links obeys the filters of `source`, too.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Semantic similarity then counts, too.
        prior: As for `UPRRerank`.
        score: As for `UPRRerank`.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.PromptRankRerankSettings`. Its `instructions`,
            `ensemble` and `temperature` are what `tune` finds.

    `store`, `source`, `filters` and `embed` are no part of the serialised configuration. Every hop dispatches
    the custom event `promptrank_hop`.

    >>> from langchain_core.documents import Document
    >>> turing = Document(page_content="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = Document(page_content="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = Document(page_content="London is the capital of England.", metadata={"title": "London"})
    >>> question = "Which London district was Turing born in?"
    >>> ranking = PromptRankRerank().compress_documents([london, vale, turing], question)
    >>> [document.metadata["title"] for document in ranking]
    ['Alan Turing', 'Maida Vale', 'London']
    """

    links: tuple[TextLinkName, ...] = Field(default=LINKS_IN_TEXTS, description="What links a document to others.")
    prior: Prior | None = Field(default=None, description="What documents' scores say, as for UPRRerank.")
    store: BaseStore[str, Document] | VectorStore | None = Field(
        default=None, exclude=True, description="Knows linked documents by id."
    )
    source: Retriever | None = Field(default=None, exclude=True, description="Finds more documents for each path.")
    filters: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")
    embed: Embeddings | Embed | str | None = Field(
        default=None, exclude=True, description="An embedding model, an encoder's specification, or a function."
    )
    settings: PromptRankRerankSettings | dict[str, Any] = Field(
        default=PromptRankRerankSettings(), description="What is rarely touched."
    )

    def _build_core(self) -> PathRerank:
        DocumentFilter(self.filters)  # says what is wrong with it
        settings: Any = self.settings
        links: tuple[LinkName, ...] = self.links if self.source is None else (*self.links, "retrieval")
        prompt_rank = settings.prompt_rank(self.language_model, self.prior)
        return path_rerank(settings, prompt_rank, links, embedding_of(self.embed))

    def _read_input(
        self, inputs: dict[str, Any], filter_results: Callable[[Iterable[Document]], list[Document]] = list
    ) -> tuple[list[Document], list[Passage], RetrievalScores]:
        documents, passages, scores = super()._read_input(inputs, filter_results)
        read = zip(passages, document_names(documents), documents, strict=True)
        return documents, [replace(passage, id=name, metadata=one.metadata) for passage, name, one in read], scores

    def _compress(self, inputs: dict[str, Any], config: RunnableConfig) -> list[Document]:
        return run(self._requests(inputs, config))

    async def _acompress(self, inputs: dict[str, Any], config: RunnableConfig) -> list[Document]:
        return await arun(self._requests(inputs, config))

    def _requests(self, inputs: dict[str, Any], config: RunnableConfig) -> Requests[list[Document]]:
        documents, passages, scores = self._read_input(inputs, DocumentFilter(self.filters).filter_results)
        if not documents:
            return []
        ranked = rank_linked(self.core, inputs["query"], passages, scores, _host(self, config))
        return self._build_results(documents, (yield from ranked))


class PromptRankRetriever(ModelFields, QueryRetriever):
    """Finds documents that answer a question together, by searching paths of linked documents (multi-hop questions).

    Args:
        source: Any LangChain retriever, or a Runnable or function from a question to documents; all that it returns
            are the first documents of paths. Let it return many, the paper takes 100.
        documents: Documents that may be linked to though they were not retrieved; the titles and addresses of those
            that may be seen are indexed once, and a lexical model takes its statistics from them. Where there is a
            store, they lend no more than that: the text that is read and returned is fetched from it by id.
        store: The store that linked documents are fetched from by id: a store of documents by key, or a vector store
            that knows `get_by_ids`. Without it, those in `documents` are fetched from the vector store behind
            `source`, if it can be asked; if it cannot, they are taken as they were given.
        filters: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: no other document is read, named or linked to, wherever it comes from. Linked documents must pass the
            filters of `source`, too.
        links: What links a document to others, as for `PromptRankRerank`; also `"retrieval"`: each path that is
            followed leads to three more documents, those that `source` finds with the question and the path's last
            document as its query.
        llm: A chat model or text model, or a Runnable around one, that names what the best path of each hop but the
            last still lacks: one short call, and one question to `source`. None asks nobody.
        model: A `load_language_model` specification, or a ready language model.
        embed: An embedding model, best that of the vector store, an encoder's specification such as `"onnx:DIR"`, or a
            function from texts to vectors. `documents` are embedded when the retriever is built, what it finds when it
            is first found.
        top_n: Documents to return; None returns every one on a scored path. `invoke(query, top_n=...)` overrides it.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.PromptRankRetrieverSettings`, or a mapping of its
            fields.

    Each document comes once, as a copy with an id: `metadata["drillrank_path"]` holds the ids of its best path, joined
    by " > ", `drillrank_path_score` and `relevance_score` that path's score (see `PathSearch.search`). Every hop
    dispatches the custom event `promptrank_hop`. With an `llm`, `drillrank_missing` holds what it named, joined by
    " | ", and `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` its cost; with
    `drillrank_problems` if a call failed.

    The views of a section that `MultiViewTextSplitter` made are one candidate, its raw document, fetched from the store
    behind `source` or else from `store`; where neither can be asked, the best hit stands for it.

    A document of `documents` whose text is not the store's, or a store that knows none of them by their ids, leads to a
    `DrillrankWarning`.

    Raises:
        InvalidInput: two of the `documents` that may be seen share an id, the question is blank, or the retriever has a
            filter that cannot be checked on linked documents.

    >>> from langchain_core.retrievers import BaseRetriever
    >>> turing = Document("Alan Turing was born in Maida Vale.", id="turing", metadata={"title": "Alan Turing"})
    >>> vale = Document("It is a residential district.", id="vale", metadata={"title": "Maida Vale"})
    >>> class OnlyTuring(BaseRetriever):
    ...     def _get_relevant_documents(self, query, *, run_manager):
    ...         return [turing]
    >>> retriever = PromptRankRetriever(source=OnlyTuring(), documents=[turing, vale])
    >>> found = retriever.invoke("In which residential district was Turing born?")
    >>> [document.metadata["drillrank_path"] for document in found]
    ['turing > vale', 'turing > vale']
    """

    documents: list[Document] = Field(default_factory=list, kw_only=False, description="What may be linked to.")
    source: Retriever = Field(description="Finds the first documents of paths.")
    links: tuple[TextLinkName | Literal["retrieval"], ...] = Field(
        default=LINKS_IN_TEXTS, description="What links a document to others."
    )
    llm: Runnable[Any, Any] | None = Field(default=None, description="Names what a path lacks; None asks nobody.")
    store: BaseStore[str, Document] | VectorStore | None = Field(
        default=None, exclude=True, description="Knows linked documents by id."
    )
    filters: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")
    embed: Embeddings | Embed | str | None = Field(
        default=None, description="An embedding model, an encoder's specification, or a function."
    )
    top_n: int | None = Field(default=5, description="Documents to return; None returns all.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: PromptRankRetrieverSettings | dict[str, Any] = Field(
        default=PromptRankRetrieverSettings(), description="What is rarely touched."
    )

    def _build_core(self) -> PathRetrieval[Document]:
        missing_prompt: Any = self._settings.missing_prompt  # the host's, or a text
        return PathRetrieval(
            self,
            self._settings.prompt_rank(self.language_model, self._settings.prior),
            _host(self),
            embed=embedding_of(self.embed),
            missing_prompt=step_prompt("missing_prompt", missing_prompt),
            fields=index_fields(self, self.language_model),
        )

    def _framework_llm(self, config: RunnableConfig) -> FrameworkLLM | None:
        return None if self.llm is None else FrameworkLLM(self.llm, "name what is missing", config)

    def _found(self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage) -> Requests[list[Document]]:
        return list(map(self._document, (yield from self.core.retrieve(query, _host(self, config), top_n, usage))))

    def _document(self, found: FoundRecord[Document]) -> Document:
        described = found.added_metadata | describe_explanation(found.explanation)
        section = read_chunk(found.record)
        record = as_raw(found.record, section.text) if section.view == "raw" else found.record
        metadata = with_score(record.metadata, self._settings.score_key, found.score, described)
        return record.model_copy(update={"id": found.id, "metadata": metadata})
