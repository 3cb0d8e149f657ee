"""Path search as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict, Field, PrivateAttr

from drillrank import Passage, PathSearch, Ranked
from drillrank.dialogue import Usage
from drillrank.hosts.component import WithModel
from drillrank.hosts.equal_ids import EqualIds
from drillrank.hosts.notes import notes, path_notes
from drillrank.hosts.paths import LinkedRecordSettings, PathRetrieverSettings
from drillrank.hosts.shared import Shared, shared
from drillrank.multihop.first_hop import check_by_order, first_stage_prior
from drillrank.multihop.lookups import Steps, arun_steps, run_steps
from drillrank.multihop.missing import MissingSettings
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, TextLinkName
from drillrank.multihop.path_settings import link_prior_was_prior
from drillrank.multihop.record_names import GivenPassages, RecordNames
from drillrank.multihop.search import Scope
from drillrank.once import Once, Told
from drillrank.passages import check_query, check_top_n
from drillrank.settings import settings_of
from langchain_ext._documents import index_fields
from langchain_ext._filters import Guard
from langchain_ext._llm import Filler, FrameworkLLM, PromptField
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config, with_score
from langchain_ext.promptrank import PathFields, PromptRankRerank
from langchain_ext.promptrank_documents import DocumentSource, names_of

_TENANTS = 16  # for whom of those whose documents have equal ids an index is kept


@link_prior_was_prior
class PromptRankRetriever(WithModel, PathFields, ConfiguredRetriever, PathRetrieverSettings):
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
        llm: A chat model or text model, or a Runnable around one, that names what the best path of each hop but the
            last still lacks: one short call, and one question to `retriever`. None asks nobody.
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to return; None returns every one on a scored path. `invoke(query, top_n=...)` overrides it.

    The other fields: `model_options`, `title_key`, `score_key`, `metadata_fields`, `demonstrations`, and the settings
    below.

    Each document comes once, as a copy with an id: `metadata["drillrank_path"]` holds the ids of its best path, joined
    by " > ", `drillrank_path_score` and `relevance_score` that path's score (see `PathSearch.search`). Every hop
    dispatches the custom event `promptrank_hop`. With an `llm`, `drillrank_missing` holds what it named, joined by
    " | ", and `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` its cost; with
    `drillrank_problems` if a call failed.

    The views of a section that `MultiViewTextSplitter` made are one candidate, its raw document, fetched from the store
    behind `retriever` or else from `docstore`; where neither can be asked, the best hit stands for it.

    A document of `documents` that differs from the store's, or a store that knows none of them by their ids, leads to
    a `DrillrankWarning`.

    Raises:
        InvalidInput: two of the `documents` that may be seen share an id, the question is blank, or the retriever has a
            filter that cannot be checked on linked documents.

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

    model_config = ConfigDict(
        arbitrary_types_allowed=True, extra="forbid", protected_namespaces=(), validate_default=True
    )

    retriever: Retriever
    documents: list[Document] = Field(default_factory=list, description="What may be linked to.")
    links: tuple[TextLinkName | Literal["retrieval"], ...] = Field(
        default=LINKS_IN_TEXTS, description="What links a document to others."
    )
    llm: Runnable[Any, Any] | None = Field(default=None, description="Names what a path lacks; None asks nobody.")
    missing_prompt: PromptField  # type: ignore[assignment]  # the host's
    top_n: int | None = Field(default=5, gt=0, description="Documents to return; None returns all.")
    score_key: str | None = Field(
        default="relevance_score",
        description="Metadata key of the score; None adds nothing that depends on the question.",
    )
    title_key: str = Field(default="title", description="Metadata key of the title.")
    metadata_fields: tuple[str, ...] = Field(default=(), description="Metadata keys that the model reads, too.")

    _rerank: PromptRankRerank = PrivateAttr()
    _missing: MissingSettings | None = PrivateAttr(default=None)
    _names: list[str] = PrivateAttr()
    _equal_ids: EqualIds = PrivateAttr()
    _told: Told = PrivateAttr(default_factory=Told)
    _prepared: Once[Shared[tuple[GivenPassages, PathSearch]]] = PrivateAttr(default_factory=lambda: Once(_TENANTS))

    def _prepare(self) -> None:
        Guard(self.filter)  # says now what is wrong with it
        check_by_order(first_stage_prior(self.prior, self.link_prior))
        ranking = settings_of(self, LinkedRecordSettings) | {
            "model": self._language_model,
            "demonstrations": self.demonstrations,
            "docstore": self.docstore,
            "filter": self.filter,
            "links": tuple(name for name in self.links if name != "retrieval"),
            "retriever": self.retriever if "retrieval" in self.links else None,
            "title_key": self.title_key,
            "metadata_fields": self.metadata_fields,
        }
        self._rerank = PromptRankRerank(**ranking)
        if self.llm is not None:
            prompt = Filler("name what is missing", self.missing_prompt, "documents", "question")
            self._missing = MissingSettings(missing_prompt=prompt, on_failure=self.on_failure)
        self._names = names_of(self.documents)
        self._equal_ids = EqualIds(self._names, "documents")
        if not (self._equal_ids and Guard(self.filter, self.retriever).restricts):
            self._search_of(range(len(self._names)))

    @property
    def _all_from(self) -> Retriever | None:
        """Whose store all results are from; none, if some are from another one."""
        return self.retriever if self.docstore is None else None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_query(query)
        source, search = self._source(config)
        first = source.found(query, self.retriever.invoke(query, config), told_by=type(self).__name__)
        usage = Usage()
        steps = self._steps(query, source, search, first, top_n, usage)
        tell = partial(source.tell, query)
        return self._found(run_steps(steps, source, tell, llm=self._asked(config), usage=usage), source)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_query(query)
        source, search = await asyncio.to_thread(self._source, config)  # a filter looks at all that was given
        hits = await self.retriever.ainvoke(query, config)
        first = await source.afound(query, hits, told_by=type(self).__name__)
        usage = Usage()
        steps = self._steps(query, source, search, first, top_n, usage)
        tell = partial(source.atell, query)
        return self._found(await arun_steps(steps, source, tell, llm=self._asked(config), usage=usage), source)

    def _asked(self, config: RunnableConfig) -> FrameworkLLM | None:
        return None if self.llm is None else FrameworkLLM(self.llm, "name what is missing", config)

    def _source(self, config: RunnableConfig) -> tuple[DocumentSource, PathSearch]:
        """Answers the lookups of one question, of what may be seen; and the search that asks them."""
        guard = Guard(self.filter, self.retriever, config)
        allowed = set(map(id, guard.allowed(self.documents))) if self.documents else set()
        shown = {number for number, document in enumerate(self.documents) if id(document) in allowed}
        given, search = self._search_of(shown)
        seen = {self._names[number]: self.documents[number] for number in sorted(shown)}
        record_names = RecordNames(given, seen)
        source = DocumentSource(
            self._rerank._named,
            guard,
            record_names,
            self.retriever,
            self.docstore,
            given=seen,
            config=config,
            told=self._told,
        )
        return source, search

    def _search_of(self, shown: Collection[int]) -> tuple[GivenPassages, PathSearch]:
        """Of all that was given, but for the hidden ones under the id of another."""
        chosen = self._equal_ids.chosen(shown)

        def made() -> tuple[GivenPassages, PathSearch]:
            passages = [self._rerank._named(self.documents[number], self._names[number]) for number in chosen]
            return GivenPassages(passages), self._rerank.path_rerank(passages).path_search

        def prepared() -> Shared[tuple[GivenPassages, PathSearch]]:
            documents = [self.documents[number] for number in chosen]
            return shared("paths", index_fields(self, self._language_model, documents), made)

        return self._prepared.get(chosen, prepared).made

    def _steps(
        self,
        query: str,
        source: DocumentSource,
        search: PathSearch,
        first: list[Passage],
        top_n: int | None,
        usage: Usage,
    ) -> Steps[list[Ranked[Passage]]]:
        check_top_n(top_n)
        scope = Scope(None if len(source.given) == len(self.documents) else source.given.keys(), fetched=True)
        most = self.top_n if top_n is None else top_n
        return search.steps(query, most, candidates=first, scope=scope, missing=self._missing, usage=usage)

    def _found(self, ranking: list[Ranked[Passage]], source: DocumentSource) -> list[Document]:
        source.record_names.warn(source.missed, self._told)
        return [self._copy(source, item) for item in ranking]

    def _copy(self, source: DocumentSource, item: Ranked[Passage]) -> Document:
        document = source.documents[item.passage.id]
        added = path_notes(source.own_ids(item.details["path"]), item.score, item.details) | notes(item.details)
        metadata = with_score(document.metadata, self.score_key, item.score, added)
        return document.model_copy(update={"id": source.record_names.own_id(item.passage.id), "metadata": metadata})
