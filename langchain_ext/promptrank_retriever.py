"""Path search as a LangChain retriever."""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field, PrivateAttr

from drillrank import LanguageModel, Passage, PathSearch, Ranked, load_language_model
from drillrank.hosts.notes import notes, path_notes
from drillrank.hosts.shared import Shared, shared
from drillrank.multihop.lookups import Steps, arun_steps, run_steps
from drillrank.multihop.rerank import LINKS_IN_TEXTS
from drillrank.passages import check_query, check_top_n
from langchain_ext._component import Component, index_fields
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config, with_score
from langchain_ext.promptrank import PathSettings, PromptRankRerank
from langchain_ext.promptrank_documents import DocumentSource, atell, names_of, tell


class PromptRankRetriever(Component, PathSettings, ConfiguredRetriever):
    """Finds documents that answer a question together, by searching paths of linked documents (multi-hop questions).

    Args:
        retriever: Any LangChain retriever, or a Runnable or function from a question to documents; all that it returns
            are the first documents of paths. Let it return many, the paper takes 100.
        documents: Documents that may be linked to though they were not retrieved; their titles and addresses are
            indexed once, and a lexical model takes its statistics from them.
        docstore: Where linked documents are fetched by id that are neither retrieved nor in `documents`: a store of
            documents by key, or a vector store that knows `get_by_ids`.
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

    Raises:
        InvalidInput: the question is blank.

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
    _search: Shared[PathSearch] = PrivateAttr()
    _known: dict[str, Document] = PrivateAttr()

    def __init__(self, *, model: str | LanguageModel = "unigram", **fields: Any) -> None:
        language_model = load_language_model(model, **fields.pop("model_options", {}))
        fields |= {"model": language_model.spec, "model_options": language_model.options}
        super().__init__(**fields)
        self._language_model = language_model
        common = (*PathSettings.model_fields, "title_key", "metadata_fields")
        ranking: dict[str, Any] = {name: getattr(self, name) for name in common}
        ranking["model"] = language_model
        ranking["links"] = tuple(name for name in self.links if name != "retrieval")
        ranking["retriever"] = self.retriever if "retrieval" in self.links else None
        self._rerank = PromptRankRerank(**ranking)
        named = list(zip(names_of(self.documents), self.documents, strict=True))
        self._known = dict(named)
        self._search = shared(
            "paths",
            index_fields(self, language_model),
            lambda: self._rerank.path_rerank([self._rerank._named(document, name) for name, document in named]).search,
        )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_query(query)
        source = self._source(config)
        steps = self._steps(query, source, self.retriever.invoke(query, config), top_n)
        return self._found(run_steps(steps, source, partial(tell, query, config=config)), source)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        check_query(query)
        source = self._source(config)
        steps = self._steps(query, source, await self.retriever.ainvoke(query, config), top_n)
        return self._found(await arun_steps(steps, source, partial(atell, query, config=config)), source)

    def _source(self, config: RunnableConfig) -> DocumentSource:
        return DocumentSource(self._rerank._named, self.retriever, self.docstore, config, ChainMap({}, self._known))

    def _steps(
        self, query: str, source: DocumentSource, hits: list[Document], top_n: int | None
    ) -> Steps[list[Ranked[Passage]]]:
        check_top_n(top_n)
        return self._search.made.steps(query, self.top_n if top_n is None else top_n, candidates=source.passages(hits))

    def _found(self, ranking: list[Ranked[Passage]], source: DocumentSource) -> list[Document]:
        return [
            source.documents[item.passage.id].model_copy(
                update={
                    "id": item.passage.id,
                    "metadata": with_score(
                        item.passage.metadata,
                        self.score_key,
                        item.score,
                        path_notes(item.details["path"], item.score) | notes(item.details),
                    ),
                }
            )
            for item in ranking
        ]
