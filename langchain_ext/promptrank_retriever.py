"""Path search as a LangChain retriever."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field, PrivateAttr

from drillrank import LanguageModel, Passage, PathSearch, Ranked, load_language_model
from drillrank.hosts.notes import notes, path_notes
from drillrank.hosts.shared import Shared, shared
from drillrank.multihop.given import Given, Recognised
from drillrank.multihop.lookups import Steps, arun_steps, run_steps
from drillrank.multihop.rerank import LINKS_IN_TEXTS
from drillrank.multihop.search import Scope
from drillrank.passages import check_query, check_top_n
from langchain_ext._component import Component, index_fields
from langchain_ext._filters import Guard
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config, with_score
from langchain_ext.promptrank import PathSettings, PromptRankRerank
from langchain_ext.promptrank_documents import DocumentSource, names_of


class PromptRankRetriever(Component, PathSettings, ConfiguredRetriever):
    """Finds documents that answer a question together, by searching paths of linked documents (multi-hop questions).

    Args:
        retriever: Any LangChain retriever, or a Runnable or function from a question to documents; all that it returns
            are the first documents of paths. Let it return many, the paper takes 100.
        documents: Documents that may be linked to though they were not retrieved; their titles and addresses are
            indexed once, and a lexical model takes its statistics from them, a filter or not. Where there is a store,
            they lend no more than that: the text that is read and returned is fetched from it by id.
        docstore: The store that linked documents are fetched from by id: a store of documents by key, or a vector store
            that knows `get_by_ids`. Without it, those in `documents` are fetched from the vector store behind
            `retriever`, if it can be asked; if it cannot, they are taken as they were given.
        filter: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: no other document is read, named or linked to, wherever it comes from. Linked documents must pass the
            filter of `retriever`, too.
        links: What links a document to others, as for `PromptRankRerank`; also `"retrieval"`: each path that is
            followed leads to three more documents, those that `retriever` finds with the question and the path's last
            document as its query.
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to return; None returns every one on a scored path. `invoke(query, top_n=...)` overrides it.

    The other fields: `model_options`, `links_key`, `title_key`, `score_key`, `metadata_fields`, and the arguments of
    `PromptRank` and `PathSearch`, such as `hops`.

    Each document comes once, as a copy with an id: `metadata["drillrank_path"]` holds the ids of its best path, joined
    by " > ", `drillrank_path_score` and `relevance_score` that path's score (see `PathSearch.search`). Every hop
    dispatches the custom event `promptrank_hop`.

    A document of `documents` that differs from the store's, or a store that knows none of them by their ids, leads to
    a `DrillrankWarning`.

    Raises:
        InvalidInput: the question is blank, or the retriever has a filter that cannot be checked on linked documents.

    >>> turing = Document("Alan Turing was born in Maida Vale.", id="turing", metadata={"title": "Alan Turing"})
    >>> vale = Document("It is a residential district.", id="vale", metadata={"title": "Maida Vale"})
    >>> class OnlyTuring(ConfiguredRetriever):
    ...     def _get_relevant_documents(self, query, *, run_manager):
    ...         return [turing]
    >>> retriever = PromptRankRetriever(retriever=OnlyTuring(), documents=[turing, vale])
    >>> found = retriever.invoke("In which residential district was Turing born?")
    >>> [document.metadata["drillrank_path"] for document in found]
    ['turing > vale', 'turing > vale']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    retriever: Retriever
    documents: list[Document] = Field(default_factory=list, description="What may be linked to.")
    links: tuple[Literal["metadata", "hyperlinks", "titles", "retrieval"], ...] = Field(
        default=LINKS_IN_TEXTS, description="What links a document to others."
    )
    model: str = Field(default="unigram", description="Specification of the language model that scores.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the language model.")
    top_n: int | None = Field(default=5, gt=0, description="Documents to return; None returns all.")
    title_key: str = Field(default="title", description="Metadata key of the document's title.")
    score_key: str | None = Field(
        default="relevance_score",
        description="Metadata key of the score; None adds nothing that depends on the question.",
    )
    metadata_fields: tuple[str, ...] = Field(default=(), description="Metadata keys that the model reads, too.")

    _rerank: PromptRankRerank = PrivateAttr()
    _language_model: LanguageModel = PrivateAttr()
    _search: Shared[tuple[PathSearch, Given]] = PrivateAttr()
    _known: dict[str, Document] = PrivateAttr()

    def __init__(self, *, model: str | LanguageModel = "unigram", **fields: Any) -> None:
        language_model = load_language_model(model, **fields.pop("model_options", {}))
        fields |= {"model": language_model.spec, "model_options": language_model.options}
        super().__init__(**fields)
        self._language_model = language_model
        Guard(self.filter)  # says now what is wrong with it
        common = (*PathSettings.model_fields, "title_key", "metadata_fields")
        ranking: dict[str, Any] = {name: getattr(self, name) for name in common}
        ranking["model"] = language_model
        ranking["links"] = tuple(name for name in self.links if name != "retrieval")
        ranking["retriever"] = self.retriever if "retrieval" in self.links else None
        self._rerank = PromptRankRerank(**ranking)
        named = list(zip(names_of(self.documents), self.documents, strict=True))
        self._known = dict(named)

        def made() -> tuple[PathSearch, Given]:
            passages = [self._rerank._named(document, name) for name, document in named]
            return self._rerank.path_rerank(passages).search, Given(passages)

        self._search = shared("paths", index_fields(self, language_model, self.documents), made)

    @property
    def _all_from(self) -> Retriever | None:
        """Whose store all results are from; none, if some are from another one."""
        return self.retriever if self.docstore is None else None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_query(query)
        source = self._source(config)
        steps = self._steps(query, source, self.retriever.invoke(query, config), top_n)
        return self._found(run_steps(steps, source, partial(source.tell, query)), source)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_query(query)
        source = await asyncio.to_thread(self._source, config)  # a filter looks at all that was given
        steps = self._steps(query, source, await self.retriever.ainvoke(query, config), top_n)
        return self._found(await arun_steps(steps, source, partial(source.atell, query)), source)

    def _source(self, config: RunnableConfig) -> DocumentSource:
        """Answers the lookups of one question, of what may be seen."""
        guard = Guard(self.filter, self.retriever, config)
        allowed = set(map(id, guard.allowed(self.documents))) if self.documents else set()
        seen = {name: document for name, document in self._known.items() if id(document) in allowed}
        recognised = Recognised(self._search.made[1], seen)
        return DocumentSource(
            self._rerank._named, guard, recognised, self.retriever, self.docstore, given=seen, config=config
        )

    def _steps(
        self, query: str, source: DocumentSource, hits: list[Document], top_n: int | None
    ) -> Steps[list[Ranked[Passage]]]:
        check_top_n(top_n)
        scope = Scope(None if len(source.given) == len(self._known) else source.given.keys(), fetched=True)
        search, _ = self._search.made
        first = source.passages(hits, told_by=type(self).__name__)
        return search.steps(query, self.top_n if top_n is None else top_n, candidates=first, scope=scope)

    def _found(self, ranking: list[Ranked[Passage]], source: DocumentSource) -> list[Document]:
        source.recognised.warn(source.missed)
        return [self._copy(source, item) for item in ranking]

    def _copy(self, source: DocumentSource, item: Ranked[Passage]) -> Document:
        document = source.documents[item.passage.id]
        added = path_notes(source.own_ids(item.details["path"]), item.score) | notes(item.details)
        metadata = with_score(document.metadata, self.score_key, item.score, added)
        return document.model_copy(update={"id": source.recognised.own_id(item.passage.id), "metadata": metadata})
