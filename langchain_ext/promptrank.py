"""Path search in LangChain, as a document compressor and as a retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.metadata import describe_explanation
from drillrank.frameworks.paths import PathResultRecord, PathRetrieval, PathStores, build_path_rerank, rank_linked
from drillrank.llm import FunctionRequest, Requests, Usage, arun, run
from drillrank.multihop.link_names import TextLinkName
from drillrank.multihop.path_rerank import PathRerank
from drillrank.rerank.prior import Prior, RetrievalScores
from drillrank.settings import Preset, with_preset
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, step_prompt
from langchain_ext._records import as_raw, document_names, index_fields, names_of, passage_of, read_chunk
from langchain_ext._retriever import QueryRetriever, Retriever, WithSource, with_score
from langchain_ext._store import LangChainStore, underlying_store
from langchain_ext.rerank import LikelihoodCompressor
from langchain_ext.settings import PromptRankRerankSettings, PromptRankRetrieverSettings

_PRESET = 'Values for all that is left open: "paper" for those of the paper.'

HOP_EVENT = "promptrank_hop"
"""Name of the custom event that each hop of a path search dispatches."""


@dataclass(frozen=True)
class _DocumentStores(PathStores[Document]):
    """Stores of a path search for one question. `config` is that of the run, and `settings` are the component's."""

    settings: Any
    config: RunnableConfig | None

    def own_id(self, record: Document) -> str | None:
        return record.id

    def name_records(self, records: Sequence[Document]) -> list[str]:
        return names_of(records)

    def to_passage(self, record: Document, name: str) -> Passage:
        return passage_of(record, name, self.settings.title_key, self.settings.metadata_fields)

    def hop_event(self, hop: dict[str, Any]) -> FunctionRequest:
        return FunctionRequest.of(dispatch_custom_event, adispatch_custom_event, HOP_EVENT, hop, config=self.config)


def _open_stores(component: Any, config: RunnableConfig | None = None, name: str = "") -> _DocumentStores:
    """Return the stores of a component for one question. `name` is that of a component that warns of its filter."""
    source, docstore = component.source, component.store
    access_filter = DocumentFilter(component.filters, source)
    linked_source = source if docstore is None else None
    return _DocumentStores(
        access_filter=access_filter,
        source=None if source is None else LangChainStore(source, access_filter, config, docstore, name),
        linked_store=LangChainStore(linked_source, DocumentFilter(None), config, docstore),
        knows_all_ids=docstore is not None,
        is_one_store=underlying_store(source) is not None,
        settings=component.settings,
        config=config,
    )


class PromptRankRerank(WithSource, LikelihoodCompressor):
    """Reranks documents by the best path of linked documents, for multi-hop questions.

    Paths lead through the given documents, and through other documents if `store` or `source` is given.

    Args:
        model: A `load_language_model` specification, or a language model.
        top_n: Maximum number of documents, 3 by default. None keeps all.
        links: Kinds of links between documents: `"metadata"` (ids that the metadata list under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to addresses in the metadata), `"titles"` (the text mentions another
            document's title, metadata `title_key`), `"names"` (two documents mention the same name). None is these
            four, or those of the preset.
        store: Store from which linked documents are fetched by id: a key-value store of documents, or a vector store
            with `get_by_ids`. They may enter the result. It has no default, because a reranker does not know where
            its documents come from.
        source: Retriever, vector store or record store. Each path also leads to the three documents that it finds with
            the question and the path's last document as its query, for texts without links.
        filters: Metadata values and operators as vector stores take them, or a function that returns True for documents
            that may be seen. No other document is read, whether it is given, fetched or retrieved. Fetched documents
            obey the filters of `source`, too.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Its similarities count in addition to the likelihood.
        prior: Prior from the documents' scores, as for `UPRRerank`.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: prompts, temperature, ensemble,
            search, links (`"metadata"` and `"hyperlinks"`) and the paths that each hop extends. It requires a neural
            model. None keeps `settings.preset`.
        score: Scale of the scores, as for `UPRRerank`.
        explain: Explain the rank of each result.
        model_options: Options of the language model.
        settings: Further settings: `langchain_ext.settings.PromptRankRerankSettings`. `tune` finds its `instructions`,
            `ensemble` and `temperature`.

    `store`, `source`, `filters` and `embed` are not part of the serialized configuration. Every hop dispatches the
    custom event `promptrank_hop`.

    >>> from langchain_core.documents import Document
    >>> turing = Document(page_content="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = Document(page_content="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = Document(page_content="London is the capital of England.", metadata={"title": "London"})
    >>> question = "Which London district was Turing born in?"
    >>> ranking = PromptRankRerank().compress_documents([london, vale, turing], question)
    >>> [document.metadata["title"] for document in ranking]
    ['Alan Turing', 'Maida Vale', 'London']
    """

    links: tuple[TextLinkName, ...] | None = Field(default=None, description="Kinds of links between documents.")
    prior: Prior | None = Field(default=None, description="Prior from the documents' scores, as for UPRRerank.")
    preset: Preset | None = Field(default=None, description=_PRESET)
    store: BaseStore[str, Document] | VectorStore | None = Field(
        default=None, exclude=True, description="Store of linked documents."
    )
    source: Retriever | VectorStore | RecordStore | None = Field(
        default=None, exclude=True, description="Finds more documents for each path."
    )
    filters: Filter | None = Field(default=None, exclude=True, description="Documents that may be seen.")
    embed: Embeddings | Embed | str | None = Field(
        default=None, exclude=True, description="An embedding model, an encoder's specification, or a function."
    )
    settings: PromptRankRerankSettings | dict[str, Any] = Field(
        default=PromptRankRerankSettings(), description="Further settings."
    )

    def _build_core(self) -> PathRerank:
        DocumentFilter(self.filters)  # checks them
        return build_path_rerank(self, embedding_of(self.embed))

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
        ranked = rank_linked(self.core, clean_question(inputs["query"]), passages, scores, _open_stores(self, config))
        return self._build_results(documents, (yield from ranked))


class PromptRankRetriever(ModelFields, QueryRetriever):
    """Finds documents that answer a question together, by searching paths of linked documents (multi-hop questions).

    Args:
        documents: Documents that may be linked to, although `source` does not find them. Titles and addresses of the
            visible ones are indexed once, and a lexical model takes its statistics from them. If there is a store,
            texts and metadata are read from it by id.
        source: A retriever (any Runnable or function from a question to documents), a vector store or a record store.
            Its results are the first documents of paths: all that a retriever returns, up to `settings.pool` of a
            store. Let a retriever return many; the paper takes 100.
        store: Store from which linked documents are fetched by id: a key-value store of documents, or a vector store
            with `get_by_ids`. By default, `documents` are fetched from the vector store behind `source`. If there is
            none, they are used as they were given.
        filters: Metadata values and operators as vector stores take them, or a function that returns True for documents
            that may be seen. No other document is read, named or linked to. Linked documents obey the filters of
            `source`, too.
        links: Kinds of links between documents, as for `PromptRankRerank`; also `"retrieval"`: each path leads to the
            three documents that `source` finds with the question and the path's last document as its query.
        preset: `"paper"` as for `PromptRankRerank`. The vectors of a store then do not count by default.
        llm: Chat model or text model, or a Runnable around one, that names what the best path of each hop but the last
            lacks, with one short call and one query to `source` each. None asks no LLM.
        model: A `load_language_model` specification, or a language model.
        embed: An embedding model, an encoder's specification such as `"onnx:DIR"`, or a function from texts to vectors.
            `documents` are embedded when the retriever is built, other documents when they are first found. By default,
            the vectors of the vector store behind `source` count, if it has one for each of the `documents`.
        top_n: Maximum number of documents. None returns every document on a scored path. `invoke(query, top_n=...)`
            overrides it.
        explain: Explain the rank of each result.
        model_options: Options of the language model.
        settings: Further settings: `langchain_ext.settings.PromptRankRetrieverSettings`, or a mapping of its fields.

    Each document is returned once, as a copy with an id: `metadata["drillrank_path"]` are the ids of its best path,
    joined by " > ", `drillrank_path_score` and `relevance_score` are the score of that path (see `PathSearch.search`).
    Every hop dispatches the custom event `promptrank_hop`. With an `llm`, `drillrank_missing` is what it named, joined
    by " | ", and `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` are its cost;
    `drillrank_problems` describes calls that failed.

    The views of a section that `MultiViewTextSplitter` made are one candidate: its raw document, fetched from the store
    behind `source` or else from `store`. If neither can be asked, the best hit represents the section.

    A `DrillrankWarning` is given if the store has other texts under the ids of `documents`, or none of these ids.

    Raises:
        InvalidInput: Two visible `documents` share an id, the question is blank, or the retriever has a filter that
            cannot be applied to linked documents.
        LLMFailure: A call failed or its answer is unusable, and `settings.on_failure` says to raise.

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

    documents: list[Document] = Field(
        default_factory=list, kw_only=False, description="Documents that may be linked to."
    )
    source: Retriever | VectorStore | RecordStore = Field(description="Finds the first documents of paths.")
    links: tuple[TextLinkName | Literal["retrieval"], ...] | None = Field(
        default=None, description="Kinds of links between documents."
    )
    preset: Preset | None = Field(default=None, description=_PRESET)
    llm: Runnable[Any, Any] | None = Field(default=None, description="Names what a path lacks; None asks no LLM.")
    store: BaseStore[str, Document] | VectorStore | None = Field(
        default=None, exclude=True, description="Store of linked documents."
    )
    filters: Filter | None = Field(default=None, exclude=True, description="Documents that may be seen.")
    embed: Embeddings | Embed | str | None = Field(
        default=None, description="An embedding model, an encoder's specification, or a function."
    )
    top_n: int | None = Field(default=5, description="Documents to return; None returns all.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: PromptRankRetrieverSettings | dict[str, Any] = Field(
        default=PromptRankRetrieverSettings(), description="Further settings."
    )

    def _build_core(self) -> PathRetrieval[Document]:
        settings = with_preset(self._settings, self.preset)
        missing_prompt, store = step_prompt("missing_prompt", settings.missing_prompt), underlying_store(self.source)
        return PathRetrieval(
            self.documents,
            self.language_model,
            _open_stores(self),
            settings=settings,
            links=self.links,
            embed=embedding_of(self.embed),
            index_embed=None if store is None else embedding_of(store.embeddings),
            missing_prompt=None if self.llm is None else missing_prompt,
            explain=self.explain,
            index_fields=index_fields(self, self.language_model),
        )

    def _framework_llm(self, config: RunnableConfig) -> FrameworkLLM | None:
        return None if self.llm is None else FrameworkLLM(self.llm, "name what is missing", config)

    def _retrieve_requests(
        self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage
    ) -> Requests[list[Document]]:
        stores = _open_stores(self, config, type(self).__name__)
        results = yield from self.core.retrieve_requests(query, stores, top_n, usage)
        return list(map(self._build_document, results))

    def _build_document(self, result: PathResultRecord[Document]) -> Document:
        added = result.added_metadata | describe_explanation(result.explanation)
        section = read_chunk(result.record)
        record = as_raw(result.record, section.text) if section.view == "raw" else result.record
        metadata = with_score(record.metadata, self._settings.score_key, result.score, added)
        return record.model_copy(update={"id": result.id, "metadata": metadata})
